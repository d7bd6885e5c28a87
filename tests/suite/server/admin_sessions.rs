//! `/api/admin/sessions` and `/api/admin/sessions/{session_id}`: which session holds which seat on
//! which server, and eviction.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::server::many_servers::Cluster;
use crate::support::fixtures::until;
use crate::support::galley_process::Server;
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::rest_client::time;

pub(crate) async fn read(server: &Server, path: &str) -> Value {
    let request = server.http.get(format!("{}{path}", server.url));
    let answer = request.bearer_auth(server.admin_token()).send().await.expect("an answer");
    answer.json().await.expect("JSON")
}

pub(crate) async fn sessions(server: &Server, query: &str) -> Value {
    read(server, &format!("/api/admin/sessions{query}")).await
}

#[tokio::test]
async fn every_held_seat_of_the_cluster_is_listed_on_each_server() {
    let cluster = Cluster::with(&[("SERVER__NAME", "galley-1")]).await;
    let desk = cluster.one.desk("text").await;
    let _writer = cluster.one.writer(&desk).await;
    let _reviewer = cluster.two.reviewer(&desk).await;
    for server in [&cluster.one, &cluster.two] {
        until("both names", async || {
            let nodes = sessions(server, "").await["nodes"].clone();
            nodes[0]["name"] == "galley-1" && nodes[1]["name"] == "galley-1"
        })
        .await;
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
        let count =
            async |query: &str| sessions(server, query).await["sessions"].as_array().map(Vec::len);
        assert_eq!(count("?node=self").await, Some(1));
        assert_eq!(count(&format!("?user={}", desk.writer.id)).await, Some(1));
        assert_eq!(count(&format!("?document={}", desk.document)).await, Some(2));
        assert_eq!(count("?user=usr_nobody").await, Some(0));
        let first = sessions(server, "?limit=1").await;
        let cursor = first["next_cursor"].as_str().expect("a second page");
        let last = sessions(server, &format!("?limit=1&cursor={cursor}")).await;
        assert_eq!(first["nodes"], last["nodes"], "they have the seats of all pages");
        assert_eq!(last["next_cursor"], Value::Null);
        let of = |page: &Value| page["sessions"][0]["role"].clone();
        assert_eq!([of(&first), of(&last)], [rows[0]["role"].clone(), rows[1]["role"].clone()]);
        let refused = sessions(server, "?cursor=x").await;
        assert_eq!(refused["type"], "/problems/invalid");
    }
}

#[tokio::test]
async fn an_evicted_session_ends_on_any_server() {
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
    // The log names the administrator, the session and the time. The server that lost the seat counts
    // the loss.
    let log = std::fs::read_to_string(cluster.two.folder().join("log")).expect("a log");
    let line = log.lines().find(|line| line.contains("an administrator ended a session"));
    let line = line.expect("it is in the log");
    for part in ["the admin token", &desk.link, &desk.writer.id, &id, "20"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let metrics = cluster.one.metrics().await;
    assert!(metrics.contains("galley_seats_lost_total{reason=\"evicted\"} 1\n"), "{metrics}");
    let again = cluster.two.writer(&desk).await;
    assert!(again.is_open());
}

/// Goal: an eviction leaves no trace of an older Redis state, so the next claim waits for no reassert
/// grace.
#[tokio::test]
async fn g6_after_an_eviction_the_next_claim_does_not_wait() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    for role in ["writer", "reviewer"] {
        let key = format!("{}:{role}", desk.link);
        let evicted = cluster.one.seated(&desk, role, "events=1").await;
        let session: String = cluster.redis.run(&format!("GET share-link:lock:{key}")).await;
        let url = format!("{}/api/admin/sessions/{session}", cluster.two.url);
        let ended = cluster.two.http.delete(&url).bearer_auth(cluster.two.admin_token());
        assert_eq!(ended.send().await.expect("an answer").status().as_u16(), 204);
        assert_eq!(evicted.closed().await, (4410, "evicted".to_owned()));
        let again = cluster.two.seated(&desk, role, "events=1").await;
        again.reads("text").await;
        let waited: bool =
            cluster.redis.run(&format!("HEXISTS share-link:grant:{key} older")).await;
        assert!(!waited, "the {role}'s next claim waited");
    }
}

/// The explanation of a held seat, as `server` gives it.
async fn why(server: &Server, session: &str) -> Value {
    sessions(server, &format!("/{session}")).await
}

/// Goal: any server explains a held seat with the facts of the session's server, and names that server.
#[tokio::test]
async fn any_server_explains_a_held_seat() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let writer = cluster.one.writer(&desk).await;
    let listed = sessions(&cluster.one, "").await;
    let id = listed["sessions"][0]["session_id"].as_str().expect("an id").to_owned();
    assert_eq!(why(&cluster.one, &id).await["last_edit"], Value::Null, "nothing was written yet");
    writer.append(" and more");
    writer.saved().await;
    let waiter = cluster.two.claim_seat(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    for (server, source) in [(&cluster.one, "this-server"), (&cluster.two, "its-server")] {
        let said = why(server, &id).await;
        assert_eq!(said["told_by"], source, "{said}");
        assert_eq!((&said["session_id"], &said["state"]), (&json!(id), &json!("held")));
        for moment in ["last_heard", "last_active", "last_edit", "last_renewal"] {
            let ago = age(&said, moment);
            assert!((-0.1..12.0).contains(&ago), "{moment}: {said}");
        }
        assert!(-12.1 < age(&said, "kept_until") && age(&said, "kept_until") < 0.0, "{said}");
        assert!(age(&said, "trusted_until") < 0.0 && age(&said, "idle_release_at") < -1_700.0);
        assert_eq!((&said["grace_until"], &said["waiting"]), (&Value::Null, &json!(1)));
        assert_eq!(said["line"][0]["user"]["name"], "Kim");
        assert_ne!(said["line"][0]["node"], said["node"]);
        let sentence = said["why"].as_str().expect("a sentence");
        assert!(sentence.starts_with("Kim's client was heard "), "{sentence}");
        assert!(sentence.contains("unless renewed") && sentence.ends_with("One person waits."));
    }
    // The socket breaks without a close: the seat is held for the resume grace.
    drop(writer);
    let away = async {
        let mut said = why(&cluster.two, &id).await;
        while said["state"] != "away" {
            said = why(&cluster.two, &id).await;
        }
        said
    };
    let away = timeout(TEST_TIMEOUT, away).await.expect("in time");
    assert!(-8.1 < age(&away, "grace_until") && age(&away, "grace_until") < 0.1, "{away}");
    assert!(away["why"].as_str().expect("a sentence").contains("waits for their return"));
}

/// Goal: for a session of a frozen server, the explanation has the facts of Redis, within a second, and
/// says so.
#[tokio::test]
async fn the_explanation_of_a_frozen_servers_seat_comes_from_redis_within_a_second() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let _writer = cluster.one.writer(&desk).await;
    let listed = sessions(&cluster.two, "").await;
    let id = listed["sessions"][0]["session_id"].as_str().expect("an id").to_owned();
    cluster.one.freeze().await;
    let requested_at = Instant::now();
    let said = why(&cluster.two, &id).await;
    // Before the lease of the frozen server ends.
    assert!(requested_at.elapsed() < Duration::from_secs(10), "{:?}", requested_at.elapsed());
    assert_eq!((&said["told_by"], &said["last_heard"]), (&json!("redis"), &Value::Null), "{said}");
    assert!((-0.1..12.0).contains(&age(&said, "last_renewal")), "{said}");
    let sentence = said["why"].as_str().expect("a sentence");
    assert!(sentence.contains("did not answer within a second"), "{sentence}");
    cluster.one.thaw().await;
}

/// Seconds from that moment to the response.
fn age(said: &Value, moment: &str) -> f64 {
    (time(&said["as_of"]) - time(&said[moment])).as_seconds_f64()
}

#[tokio::test]
async fn only_an_administrator_lists_sessions_and_locks() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let unused_id = "ses_00000000000000000000000000000000";
    for path in ["sessions", &format!("sessions/{unused_id}"), "locks"] {
        let path = format!("/api/admin/{path}");
        server.get(&kim, &path).await.problem(403, "not-admin");
        let response = server.http.get(format!("{}{path}", server.url)).send().await;
        assert_eq!(response.expect("an answer").status().as_u16(), 401, "{path}");
    }
    assert_eq!(why(&server, unused_id).await["type"], "/problems/not-found");
    assert_eq!(why(&server, "ses_1").await["type"], "/problems/not-found");
}
