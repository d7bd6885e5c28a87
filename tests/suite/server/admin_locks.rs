//! `/api/admin/locks`: held locks by class, alarms, and the preflight of Redis.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use galley::locks::{AcquireOptions, Guard, Lease, LockName, Locks};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::server::many_servers::Cluster;
use crate::support::galley_process::Server;
use crate::support::redis_server::TEST_TIMEOUT;

async fn locks(server: &Server, query: &str) -> Value {
    admin(server, &format!("locks{query}")).await
}

async fn admin(server: &Server, what: &str) -> Value {
    let url = format!("{}/api/admin/{what}", server.url);
    let request = server.http.get(url).bearer_auth(server.admin_token());
    request.send().await.expect("an answer").json().await.expect("JSON")
}

/// Waits until the body of `/readyz` matches.
async fn readiness(server: &Server, is_so: impl Fn(&Value) -> bool) -> Value {
    let finds = async {
        loop {
            let request = server.http.get(format!("{}/readyz", server.url)).send().await;
            let said = request.expect("an answer").json().await.expect("JSON");
            if is_so(&said) {
                return said;
            }
        }
    };
    timeout(TEST_TIMEOUT, finds).await.expect("in time")
}

async fn held(locks: &Locks, names: &[String]) -> Vec<Guard> {
    let options = AcquireOptions::new(Lease::Renewed(Duration::from_secs(12)));
    let guards = names.iter().map(|name| async {
        locks.try_lock(&LockName::named(name), &options).await.expect("a free lock")
    });
    join_all(guards).await
}

#[tokio::test]
async fn held_locks_are_listed_by_class_with_totals_and_no_secret() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let _writer = cluster.one.writer(&desk).await;
    let waiter = cluster.two.claim_seat(&desk, "writer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    let third = Locks::connect(&cluster.redis.url()).await.expect("a good address");
    let guards = held(&third, &["export:doc_1".to_owned()]).await;
    let secret: String = cluster.redis.run("GET lock:export:doc_1").await;
    for server in [&cluster.one, &cluster.two] {
        let said = locks(server, "").await;
        assert!(!said.to_string().contains(&secret), "the value is a secret: {said}");
        let classes = said["classes"].as_array().expect("classes");
        let names: Vec<_> = classes.iter().map(|class| class["class"].as_str()).collect();
        assert_eq!(names, [Some("export"), Some("seat")]);
        assert_eq!((&classes[1]["held"], &classes[1]["waiting"]), (&json!(1), &json!(1)));
        assert!(classes[0]["oldest_age_ms"].as_u64().is_some(), "{said}");
        let [export, seat] = said["locks"].as_array().expect("locks").as_slice() else {
            panic!("{said}")
        };
        assert_eq!(export["lock_key"], "lock:export:doc_1");
        assert_eq!((&export["name"], &export["user"]), (&json!("export:doc_1"), &Value::Null));
        assert_eq!(export.get("session_id"), None);
        assert_eq!(export["fence"], guards[0].fence().0);
        assert!(export["ttl_ms"].as_u64().is_some_and(|ttl| ttl <= 12_000), "{export}");
        assert!(export["node"].is_string() && export["age_ms"].is_u64(), "{export}");
        let value: String =
            cluster.redis.run(&format!("GET {}", seat["lock_key"].as_str().expect("a key"))).await;
        assert_eq!(seat["session_id"], value);
        assert_eq!((&seat["role"], &seat["user"]["name"]), (&json!("writer"), &json!("Kim")));
        assert_eq!((&seat["waiting"], &said["alarms"]), (&json!(1), &json!([])));
        let only = locks(server, "?class=export").await;
        assert_eq!(only["locks"].as_array().map(Vec::len), Some(1));
        assert_eq!(only["classes"].as_array().map(Vec::len), Some(1));
    }
    third.close().await;
}

#[tokio::test]
async fn a_key_without_a_grant_is_listed_with_its_stored_fields() {
    let cluster = Cluster::start().await;
    let desk = cluster.one.desk("text").await;
    let seat = format!("share-link:lock:{}:writer", desk.link);
    for key in ["lock:by:hand", &seat] {
        let _: String = cluster.redis.run(&format!("SET {key} secret")).await;
    }
    let said = locks(&cluster.one, "").await;
    assert!(!said.to_string().contains("secret"), "{said}");
    let [lock, taken] = said["locks"].as_array().expect("locks").as_slice() else {
        panic!("{said}")
    };
    assert_eq!((&lock["name"], &taken["lock_key"]), (&json!("by:hand"), &json!(seat)));
    for unknown in ["node", "since", "age_ms", "ttl_ms", "fence", "user"] {
        assert_eq!(lock[unknown], Value::Null, "{unknown}: {lock}");
        assert_eq!(taken[unknown], Value::Null, "{unknown}: {taken}");
    }
    assert_eq!((&taken["role"], taken.get("session_id")), (&json!("writer"), Some(&Value::Null)));
    // The list invents neither a server nor a user for such a key.
    let said = admin(&cluster.one, "sessions").await;
    let [listed] = said["sessions"].as_array().expect("seats").as_slice() else { panic!("{said}") };
    assert_eq!((&listed["lock_key"], &listed["role"]), (&json!(seat), &json!("writer")));
    for unknown in ["session_id", "user", "node", "since", "fence", "ttl_ms"] {
        assert_eq!(listed.get(unknown), Some(&Value::Null), "{unknown}: {listed}");
    }
    assert_eq!(said["nodes"].as_array().map(Vec::len), Some(1), "{said}");
    let link = format!("/api/share-links/{}", desk.link);
    let link = cluster.one.get(&desk.reviewer, &link).await.ok(200);
    let unowned = json!({ "taken": true, "user": null, "since": null });
    assert_eq!(link["seats"]["writer"], unowned);
    let refused = cluster.one.claim_seat(&desk, "writer", "events=1").await.closed().await;
    let holder: Value = serde_json::from_str(&refused.1).expect("JSON");
    assert_eq!((refused.0, &holder), (4409, &json!({ "holder": { "name": "", "since": null } })));
    let waiter = cluster.one.claim_seat(&desk, "writer", "events=1&wait=60").await;
    assert_eq!(waiter.event("seat.waiting").await["holder"], holder["holder"]);
}

#[tokio::test]
async fn the_list_of_locks_is_paged_with_the_oldest_of_each_class_first() {
    let cluster = Cluster::start().await;
    let third = Locks::connect(&cluster.redis.url()).await.expect("a good address");
    let names: Vec<_> = (0..23).map(|n| format!("{}:{n}", ["b", "a"][n % 2])).collect();
    let _guards = held(&third, &names).await;
    let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let said = locks(&cluster.one, &format!("?limit=5{cursor}")).await;
        assert_eq!(said["classes"][0]["held"], 11, "totals are of all pages: {said}");
        let page = said["locks"].as_array().expect("locks");
        assert!(page.len() <= 5);
        seen.extend(page.iter().map(|lock| {
            let text = |name: &str| lock[name].as_str().expect("text").to_owned();
            let since: DateTime<Utc> = text("since").parse().expect("a time");
            (text("class"), since, text("lock_key"))
        }));
        pages += 1;
        match said["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!((seen.len(), pages), (23, 5));
    assert!(seen.is_sorted(), "{seen:?}");
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 23, "each once");
    for wrong in ["?cursor=x", "?limit=0"] {
        assert_eq!(locks(&cluster.one, wrong).await["type"], "/problems/invalid", "{wrong}");
    }
    third.close().await;
}

/// Goal: after the preflight finds an evicting Redis, the servers grant no seat, holders keep theirs,
/// and one log line names the remedy. Refused claims raise the alarm of their class.
#[tokio::test]
async fn an_evicting_redis_fails_the_preflight_and_grants_no_seat_and_holders_keep_theirs() {
    let cluster = Cluster::with(&[("SEATS__LEASE", "3s"), ("SEATS__RENEW_EVERY", "500ms")]).await;
    let desk = cluster.one.desk("text").await;
    let writer = cluster.one.writer(&desk).await;
    let _: String = cluster.redis.run("CONFIG SET maxmemory-policy allkeys-lru").await;
    let said = readiness(&cluster.one, |said| said["degraded"] == json!(["locks"])).await;
    let remedy = said["remedy"].as_str().expect("a line");
    assert!(remedy.contains("allkeys-lru") && remedy.contains("set it to noeviction"), "{remedy}");
    assert_eq!(remedy.lines().count(), 1);
    // Repeated probes log the finding once.
    readiness(&cluster.one, |said| said["degraded"] == json!(["locks"])).await;
    let log = std::fs::read_to_string(cluster.one.folder().join("log")).expect("a log");
    let warnings: Vec<_> = log.lines().filter(|it| it.contains("not fit to keep locks")).collect();
    assert!(warnings.len() == 1 && warnings[0].contains("set it to noeviction"), "{warnings:?}");
    let claims = (0..20).map(|_| cluster.one.claim_seat(&desk, "reviewer", "events=1"));
    for peer in join_all(claims).await {
        assert_eq!(peer.closed().await.0, 4503);
    }
    let alarms = locks(&cluster.one, "").await["alarms"].clone();
    assert_eq!((&alarms[0]["class"], &alarms[0]["alarm"]), (&json!("seat"), &json!("failures")));
    assert!(alarms[0]["remedy"].as_str().is_some_and(|line| line.contains("/readyz")), "{alarms}");
    let metrics = cluster.one.metrics().await;
    assert!(metrics.contains("galley_lock_alarm{class=\"seat\",alarm=\"failures\"} 1\n"));
    // The renewal is longer than the lease.
    let renewed_at = Duration::from_secs(4);
    assert!(timeout(renewed_at, writer.closed()).await.is_err(), "a holder keeps its seat");
    writer.append(" and goes on");
    writer.saved().await;
    let _: String = cluster.redis.run("CONFIG SET maxmemory-policy noeviction").await;
    readiness(&cluster.one, |said| said.get("degraded").is_none()).await;
    let _reviewer = cluster.one.reviewer(&desk).await;
}

/// Goal: the log names the key that another program wrote in the place of a seat's.
#[tokio::test]
async fn the_log_names_the_key_of_another_program() {
    let redis = crate::support::redis_server::Server::start().await;
    let url = redis.url();
    let settings = [("LOCKS__URL", url.as_str()), ("DATABASE__SHARED_SQLITE", "true")];
    let server = Server::with(&settings).await;
    let desk = server.desk("text").await;
    for (role, command, code) in [("writer", "SET", 4409), ("reviewer", "LPUSH", 4503)] {
        let key = format!("share-link:lock:{}:{role}", desk.link);
        let _: redis::Value = redis.run(&format!("{command} {key} x")).await;
        assert_eq!(server.claim_seat(&desk, role, "events=1").await.closed().await.0, code);
        let log = server.log();
        let named = log.lines().any(|line| line.contains(&key) && line.contains("delete it"));
        assert!(named, "{log}");
    }
}

#[tokio::test]
async fn a_server_without_the_right_to_subscribe_is_ready_and_warns() {
    let redis = crate::support::redis_server::Server::start().await;
    let rights = "~share-link:* ~lock:* &* +@all -subscribe";
    let _: String = redis.run(&format!("ACL SETUSER galley on >hunter2 {rights}")).await;
    let url = format!("redis://galley:hunter2@127.0.0.1:{}", redis.port());
    let settings = [("LOCKS__URL", url.as_str()), ("DATABASE__SHARED_SQLITE", "true")];
    let server = Server::with(&settings).await;
    let said = readiness(&server, |said| said["warnings"].is_array()).await;
    assert_eq!(said["status"], "ready");
    let warning = &said["warnings"][0];
    assert!(warning["remedy"].as_str().is_some_and(|line| line.contains("`&*`")), "{said}");
    assert!(!said.to_string().contains("hunter2"));
}
