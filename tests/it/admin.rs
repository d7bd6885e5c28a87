//! The administrator's view: who sits where on which server, and how to end it.

use serde_json::Value;

use crate::cluster::Cluster;
use crate::process::Server;

async fn sessions(server: &Server, query: &str) -> Value {
    let url = format!("{}/api/admin/sessions{query}", server.url);
    let request = server.http.get(url).bearer_auth(server.admin_token());
    request.send().await.expect("an answer").json().await.expect("JSON")
}

#[tokio::test]
async fn every_held_seat_of_the_cluster_is_listed_on_each_server() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let _writer = cluster.one.writer(&desk).await;
    let _reviewer = cluster.two.reviewer(&desk).await;
    for server in [&cluster.one, &cluster.two] {
        let listed = sessions(server, "").await;
        let rows = listed["sessions"].as_array().expect("a list");
        assert_eq!(rows.len(), 2, "{listed}");
        assert_eq!(listed["nodes"].as_array().map(Vec::len), Some(2));
        for row in rows {
            let role = row["role"].as_str().expect("a role");
            assert_eq!(row["lock_key"], format!("share-link:lock:{}:{role}", desk.link));
            let value: String =
                cluster.redis.run(&format!("GET share-link:lock:{}:{role}", desk.link)).await;
            assert_eq!(row["session_id"], value, "the key's value is the session id");
            assert_eq!(row["state"], "held");
            let ttl = row["ttl_ms"].as_u64().expect("a number");
            assert!(0 < ttl && ttl <= 12_000, "{ttl}");
            assert!(row["since"].is_string() && row["last_seen"].is_string());
        }
        let here = sessions(server, "?node=self").await;
        assert_eq!(here["sessions"].as_array().map(Vec::len), Some(1));
    }
}

#[tokio::test]
async fn an_evicted_session_ends_on_whatever_server_it_is() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let writer = cluster.one.writer(&desk).await;
    let listed = sessions(&cluster.two, "").await;
    let id = listed["sessions"][0]["session_id"].as_str().expect("an id").to_owned();
    let url = format!("{}/api/admin/sessions/{id}", cluster.two.url);
    let evict = || async {
        let request = cluster.two.http.delete(&url).bearer_auth(cluster.two.admin_token());
        request.send().await.expect("an answer").status().as_u16()
    };
    assert_eq!(evict().await, 204);
    assert_eq!(writer.event("seat.lost").await["reason"], "evicted");
    assert_eq!(writer.closed().await, (4410, "evicted".to_owned()));
    assert_eq!(evict().await, 404);
    let again = cluster.two.writer(&desk).await;
    assert!(again.is_open());
}

#[tokio::test]
async fn only_an_administrator_sees_who_sits_where() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    server.get(&kim, "/api/admin/sessions").await.problem(403, "not-admin");
    let nobody = server.http.get(format!("{}/api/admin/sessions", server.url)).send().await;
    assert_eq!(nobody.expect("an answer").status().as_u16(), 401);
}
