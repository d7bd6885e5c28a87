//! A room publishes only while a room of another server has the document open, and loses nothing by it.

use std::collections::HashSet;
use std::sync::Arc;

use tempfile::TempDir;

use crate::server::delivery::QUICK;
use crate::server::many_servers::Cluster;
use crate::support::fixtures::{NO_TICK, until};
use crate::support::galley_process::Server;
use crate::support::proxy::{Proxy, Way};
use crate::support::redis_monitor::Monitor;
use crate::support::redis_server;
use crate::support::rest_client::Desk;
use crate::support::ws_client::Peer;

const EDITS: usize = 200;
/// Edits that each wait for a commit, and so for the disk: fewer in a run of `tests/run` without `--all`.
fn committed() -> usize {
    if std::env::var_os("GALLEY_SHORT").is_some() { 40 } else { EDITS }
}
const COMMITS: &str = "galley_document_persist_seconds_count";

impl Cluster {
    async fn publishes(&self) -> u64 {
        self.redis.calls("publish").await
    }

    /// Whether an edit of this writer is published.
    async fn is_published(&self, writer: &Peer) -> bool {
        let before = self.publishes().await;
        writer.append(".");
        writer.saved().await;
        before < self.publishes().await
    }
}

/// A writer on the first server and a reviewer on the second, which know each other.
async fn split(cluster: &Cluster) -> (Desk, Peer, Peer) {
    let desk = cluster.one.desk("").await;
    let (writer, reviewer) = (cluster.one.writer(&desk).await, cluster.two.reviewer(&desk).await);
    writer.event("peer.joined").await;
    reviewer.event("peer.joined").await;
    writer.append("!");
    reviewer.reads("!").await;
    (desk, writer, reviewer)
}

#[tokio::test]
async fn edits_of_a_pair_on_one_server_cost_redis_no_command_beside_a_second_server() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("").await;
    let (writer, reviewer) = (cluster.one.writer(&desk).await, cluster.one.reviewer(&desk).await);
    writer.append("x");
    writer.saved().await;
    let monitor = Monitor::of(&cluster.redis).await;
    for _ in 1..committed() {
        writer.append("x");
        writer.saved().await;
    }
    reviewer.reads(&"x".repeat(committed())).await;
    writer.leave().await;
    reviewer.leave().await;
    // Other channels have what the servers announce from time to time.
    let of_the_room = || monitor.lines(&format!("share-link:room:{}", desk.document));
    until("the end of the subscription", async || !of_the_room().is_empty()).await;
    let lines = of_the_room();
    assert!(lines.iter().all(|line| line.to_lowercase().contains("unsubscribe")), "{lines:?}");
}

/// Goal: the subscription of a room whose peers are all here costs one command, and its end another.
#[tokio::test]
async fn a_room_without_a_peer_subscribes_once_and_unsubscribes_once() {
    let cluster = Cluster::with(&NO_TICK).await;
    let desk = cluster.one.desk("").await;
    let before = cluster.redis.calls_of(["subscribe", "unsubscribe"]).await;
    let (writer, reviewer) = (cluster.one.writer(&desk).await, cluster.one.reviewer(&desk).await);
    writer.append("x");
    reviewer.reads("x").await;
    writer.saved().await;
    writer.leave().await;
    reviewer.leave().await;
    cluster.one.has_rooms(0).await;
    until("the end of the subscription", async || {
        before[1] < cluster.redis.calls_of(["subscribe", "unsubscribe"]).await[1]
    })
    .await;
    let after = cluster.redis.calls_of(["subscribe", "unsubscribe"]).await;
    assert_eq!(after, before.map(|calls| calls + 1));
}

/// Goal: a group commit is one message, however many edits it has.
#[tokio::test]
async fn a_group_commit_is_published_as_one_message() {
    let cluster = Cluster::with(&NO_TICK).await;
    let (desk, writer, reviewer) = split(&cluster).await;
    writer.saved().await;
    let commits = cluster.one.metric(COMMITS).await.expect("commits");
    let monitor = Monitor::of(&cluster.redis).await;
    for _ in 0..EDITS {
        writer.append("x");
    }
    reviewer.reads(&format!("!{}", "x".repeat(EDITS))).await;
    writer.saved().await;
    let commits = cluster.one.metric(COMMITS).await.expect("commits") - commits;
    let publishes = monitor.lines(&format!("share-link:room:{}", desk.document)).len();
    let published = f64::from(u32::try_from(publishes).expect("a few hundred"));
    assert!(0.0 < published && published <= commits, "{publishes} messages of {commits} commits");
}

/// Goal: edits are published until the last room of another server is closed, and not after it.
#[tokio::test]
async fn a_room_publishes_no_edit_after_the_goodbye_of_the_last_other_room() {
    let cluster = Cluster::with(&NO_TICK).await;
    let (desk, writer, reviewer) = split(&cluster).await;
    assert!(cluster.is_published(&writer).await);
    reviewer.leave().await;
    cluster.two.has_rooms(0).await;
    until("no message", async || !cluster.is_published(&writer).await).await;
    let reviewer = cluster.two.reviewer(&desk).await;
    until("a message again", async || cluster.is_published(&writer).await).await;
    reviewer.reads(&writer.text()).await;
}

#[tokio::test]
async fn a_room_publishes_no_edit_for_a_server_that_died() {
    let mut cluster = Cluster::with(&QUICK).await;
    let (_desk, writer, _reviewer) = split(&cluster).await;
    cluster.two.kill().await;
    assert!(cluster.is_published(&writer).await, "its seat is still held");
    until("no message", async || !cluster.is_published(&writer).await).await;
}

/// Goal: `Hello` is answered by the last number. The first server commits an edit after the second one has
/// read the log, and before it receives that server's `Hello`; no tick repairs it.
#[tokio::test]
async fn g8_an_edit_committed_during_the_subscription_of_another_server_arrives_without_a_tick() {
    let redis = redis_server::Server::start().await;
    let proxy = Proxy::to(&redis).await;
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let start = async |url: String| {
        let settings = [("LOCKS__URL", url.as_str()), ("DATABASE__SHARED_SQLITE", "true")];
        Server::in_folder(Arc::clone(&folder), &[&settings, NO_TICK.as_slice()].concat()).await
    };
    let (one, two) = (start(proxy.url()).await, start(redis.url()).await);
    let desk = one.desk("").await;
    let writer = one.writer(&desk).await;
    let publishes = redis.calls("publish").await;
    proxy.hold(Way::ToClient);
    let reviewer = two.reviewer(&desk).await;
    until("its Hello", async || publishes < redis.calls("publish").await).await;
    // The second server reads the log after its `Hello`, before it serves this request.
    two.text(&desk.reviewer, &desk.document).await;
    writer.append("x");
    writer.saved().await;
    proxy.heal();
    reviewer.reads("x").await;
    writer.append("y");
    reviewer.reads("xy").await;
}

fn words(line: &str, numbers: &[usize]) -> Vec<String> {
    let words: Vec<_> = line.split(' ').collect();
    numbers.iter().map(|&number| words[number].to_owned()).collect()
}

/// Goal: after a loss of all pub/sub connections the rooms introduce themselves again over a tick, not at
/// once, and each `Hello` has one answer at most.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g16_rooms_whose_subscriptions_were_lost_introduce_themselves_over_a_tick() {
    const ROOMS: usize = 30;
    let cluster = Cluster::start().await;
    let mut pairs = Vec::new();
    for _ in 0..ROOMS {
        pairs.push(split(&cluster).await);
    }
    let monitor = Monitor::of(&cluster.redis).await;
    let killed: i64 = cluster.redis.run("CLIENT KILL TYPE pubsub").await;
    assert_eq!(killed, 4, "each server also receives hand-overs of locks");
    // Of each room: two `Hello`, each answered unless the other server is not connected again.
    let sent = || {
        let lines = monitor.lines("share-link:room:").into_iter();
        lines.filter(|line| line.contains("\"PUBLISH\"")).collect::<Vec<_>>()
    };
    until("an introduction of each room of each server", async || {
        // `+SECONDS [DATABASE ADDRESS] "PUBLISH" "CHANNEL" …`
        let rooms: HashSet<_> = sent().iter().map(|line| words(line, &[2, 4])).collect();
        2 * ROOMS <= rooms.len()
    })
    .await;
    let times: Vec<f64> =
        sent().iter().filter_map(|line| words(line, &[0])[0][1..].parse().ok()).collect();
    assert!(times.len() <= 5 * ROOMS, "{} messages", times.len());
    let span = times.last().expect("messages") - times[0];
    assert!(1.0 < span, "{span} s");
    for (_, writer, reviewer) in &pairs {
        writer.append("?");
        reviewer.reads("!?").await;
    }
    // The edits came after every introduction and its answers.
    let all = sent().len();
    assert!(all <= 6 * ROOMS, "{all} messages");
}
