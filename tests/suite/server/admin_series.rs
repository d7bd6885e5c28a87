//! `/api/admin/series`: the last hour of all servers.

use serde_json::{Value, json};

use crate::server::admin_sessions::{read, sessions};
use crate::server::many_servers::Cluster;
use crate::support::fixtures::until;
use crate::support::galley_process::Server;

/// Goal: each of three servers sums the last hour of all. One that does not answer is named, and its minutes are
/// missing.
#[tokio::test]
async fn the_series_of_three_servers_are_summed_and_name_those_that_do_not_answer() {
    let mut cluster = Cluster::start().await;
    let three = cluster.one.beside().await;
    let (desk, other) = (cluster.one.desk("text").await, cluster.one.desk("text").await);
    let writer = cluster.one.writer(&desk).await;
    let _reviewer = cluster.two.reviewer(&desk).await;
    let elsewhere = three.writer(&other).await;
    for peer in [&writer, &elsewhere] {
        peer.append("!");
        peer.saved().await;
    }
    let listed = sessions(&cluster.two, "").await;
    let node_of = |server: usize| listed["sessions"][server]["node"].clone();
    // Oldest first: the sessions at the first, the second and the third server.
    let (second, third) = (node_of(1), node_of(2));
    let is_summed = async |server: &Server, seats: u64, edits: u64, missing: &[&Value]| {
        let series = read(server, "/api/admin/series").await;
        let minutes = series["minutes"].as_array().map(Vec::len);
        assert_eq!(minutes, Some(60), "{series}");
        let latest = series["renewal_p99_ms"].as_array().expect("a list").last();
        assert!(latest.is_some_and(|it| it.is_null() || it.as_f64().is_some()), "{series}");
        assert_eq!(series["seats"][0], Value::Null, "no server ran an hour ago");
        let counted = series["edits"].as_array().expect("a list").iter().filter_map(Value::as_u64);
        edits <= counted.sum::<u64>()
            && series["seats"][59] == seats
            && series["missing"] == json!(missing)
    };
    for server in [&cluster.one, &cluster.two, &three] {
        until("all are summed", async || is_summed(server, 3, 2, &[]).await).await;
    }
    three.freeze().await;
    until("the frozen one is named", async || is_summed(&cluster.one, 2, 1, &[&third]).await).await;
    three.thaw().await;
    cluster.two.kill().await;
    until("the dead one is named", async || is_summed(&three, 2, 2, &[&second]).await).await;
}
