//! `/readyz` while Redis is away, refuses, or is asked for too often.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

use crate::support::fixtures::{apart, found, until};
use crate::support::galley_process::Server;
use crate::support::proxy::Proxy;
use crate::support::redis_server::{self, TEST_TIMEOUT};
use crate::support::tcp_side::Parting;
use crate::support::tls::TestTls;

/// The time after which `HAProxy` gives a probe up, with the shipped file.
const PROBE_OF_HAPROXY: Duration = Duration::from_secs(1);

/// Status and body of `/readyz`.
async fn readiness(server: &Server) -> (u16, Value) {
    let sent = server.http.get(format!("{}/readyz", server.url)).send().await.expect("an answer");
    (sent.status().as_u16(), sent.json().await.expect("JSON"))
}

/// Waits until `/readyz` names these dependencies as degraded; returns the remedy.
async fn degraded(server: &Server, names: Value) -> Value {
    found(async || {
        let (status, body) = readiness(server).await;
        assert_eq!(status, 200, "{body}");
        if body["degraded"] == names { Ok(body["remedy"].clone()) } else { Err(body) }
    })
    .await
}

async fn on(url: &str) -> Server {
    Server::with(&[("LOCKS__URL", url), ("DATABASE__SHARED_SQLITE", "true")]).await
}

/// Goal: without Redis a server that was ready stays routable, because it serves every read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_ready_stays_routable_without_redis() {
    let mut redis = redis_server::Server::start().await;
    let server = on(&redis.url()).await;
    let desk = server.desk("text").await;
    let answers_in_time = async || {
        let mut took = Vec::new();
        for _ in 0..20 {
            let requested_at = Instant::now();
            let (status, body) = readiness(&server).await;
            took.push(requested_at.elapsed());
            assert!(status == 200 && body["age_ms"].is_u64(), "{body}");
        }
        took.sort_unstable();
        // A unit test holds the bound for each answer; a busy machine delays some of them here.
        assert!(took[10] <= Duration::from_millis(200), "{took:?}");
        assert!(took[19] <= PROBE_OF_HAPROXY, "{took:?}");
    };
    answers_in_time().await;
    redis.freeze().await;
    answers_in_time().await;
    degraded(&server, json!(["locks"])).await;
    redis.thaw().await;
    degraded(&server, Value::Null).await;
    redis.stop().await;
    let remedy = degraded(&server, json!(["locks"])).await;
    for (part, value) in [("locks", 0), ("storage", 1), ("server", 1)] {
        server.has(&format!("galley_ready{{part=\"{part}\"}}"), value).await;
    }
    let remedy = remedy.as_str().expect("a line for the operator");
    assert!(remedy.starts_with("locks: Redis does not answer"), "{remedy}");
    assert!(!remedy.contains("127.0.0.1") && remedy.lines().count() == 1, "{remedy}");
    answers_in_time().await;
    let page = server.http.get(format!("{}/", server.url)).send().await.expect("an answer");
    assert_eq!(page.status(), 200);
    assert_eq!(server.text(&desk.reviewer, &desk.document).await, "text");
    server.get(&desk.writer, &desk.reviews()).await.ok(200);
    // Another server with the same settings has never been ready: the settings may be wrong.
    let late = server.beside().await;
    let (status, problem) = readiness(&late).await;
    assert_eq!((status, &problem["type"]), (503, &json!("/problems/not-ready")));
    assert_eq!((&problem["down"], problem.get("detail")), (&json!(["locks"]), None));
    redis.start_again().await;
    degraded(&server, Value::Null).await;
}

/// Goal: a storm of probes is no storm of commands to Redis.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_probes_checks_redis_twice_a_second_at_most() {
    let redis = redis_server::Server::start().await;
    let server = on(&redis.url()).await;
    let checks = async || {
        let info: String = redis.run("INFO commandstats").await;
        let calls = info.split_once("cmdstat_script|load:calls=").expect("a check").1;
        calls.split(',').next().and_then(|it| it.parse::<u64>().ok()).expect("a number")
    };
    let (before, began) = (checks().await, Instant::now());
    for _ in 0..50 {
        let storm = (0..50).map(|_| readiness(&server));
        for (status, body) in futures_util::future::join_all(storm).await {
            assert_eq!((status, body.get("degraded")), (200, None), "{body}");
        }
    }
    let most = 2 + u64::try_from(began.elapsed().as_millis()).expect("a short time") / 500;
    let checked = checks().await - before;
    assert!(checked <= most, "{checked} checks for 2,500 probes, and {most} are due");
}

/// Goal: the operator reads the fault and its remedy in one line, which holds no secret and no address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refusal_of_redis_has_its_own_remedy() {
    let redis = redis_server::Server::start().await;
    let proxy = Proxy::to(&redis).await;
    let server = on(&proxy.url().replace("://", "://galley:hunter2@")).await;
    let (status, problem) = readiness(&server).await;
    assert_eq!(status, 503);
    let remedy = problem["remedy"].as_str().expect("a line").to_owned();
    assert!(remedy.contains("refuses the user or the password"), "{remedy}");
    let _: String = redis.run("ACL SETUSER galley on >hunter2 ~* &* +@all").await;
    until("the server is ready", async || readiness(&server).await.0 == 200).await;
    let mut remedies = vec![remedy];
    for (request, error, words) in [
        (
            "EVALSHA",
            "OOM command not allowed when used memory > 'maxmemory'. script: 0a, on @user_script:1.",
            "raise its `maxmemory`",
        ),
        (
            "EVALSHA",
            "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
            "free space on the disk of Redis",
        ),
        ("EVALSHA", "NOREPLICAS Not enough good replicas to write.", "`min-replicas-to-write`"),
        ("EVALSHA", "READONLY You can't write against a read only replica.", "at its primary"),
        (
            "EVALSHA",
            "NOPERM User galley has no permissions to run the 'evalsha' command",
            "allow the user `~share-link:* ~lock:* &* +@all`",
        ),
        (
            "SCRIPT",
            "ERR unknown command 'SCRIPT', with args beginning with: 'LOAD'",
            "lacks a command",
        ),
        (
            "HELLO",
            "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'galley' 'hunter2'",
            "lacks a command",
        ),
        ("HELLO", "ERR unknown command `HELLO`, with args beginning with: `3`", "lacks a command"),
        ("HELLO", "NOAUTH Authentication required.", "requires a password"),
        ("HELLO", "WRONGPASS invalid username-password pair", "refuses the user or the password"),
    ] {
        proxy.refuse(request, error);
        if request == "HELLO" {
            proxy.end_all(Parting::Reset);
        }
        let remedy = found(async || {
            let (status, body) = readiness(&server).await;
            assert_eq!(status, 200, "{body}");
            let remedy = body["remedy"].as_str().filter(|remedy| remedy.contains(words));
            remedy.map(str::to_owned).ok_or(body.clone())
        });
        let remedy = timeout(TEST_TIMEOUT, remedy).await.expect(words);
        assert!(remedy.lines().count() == 1 && !remedy.contains("127.0.0.1"), "{remedy}");
        remedies.push(remedy);
    }
    remedies.sort();
    remedies.dedup();
    assert_eq!(remedies.len(), 8, "one for each fault: {remedies:#?}");
    for text in [remedies.join("\n"), server.log()] {
        assert!(!text.contains("hunter2"), "the password is a secret: {text}");
    }
}

/// Goal: a Redis with a certificate of an unknown authority is named as that.
#[tokio::test]
async fn an_untrusted_certificate_of_redis_has_its_own_remedy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let tls = TestTls::make();
    let acceptor = tls.acceptor();
    apart(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let _refused = acceptor.accept(socket).await;
        }
    });
    let server = on(&format!("rediss://localhost:{port}")).await;
    // The first tries may be under way still.
    let remedy = async || readiness(&server).await.1["remedy"].to_string();
    until("its remedy", async || remedy().await.contains("the certificate of Redis")).await;
    assert_eq!(readiness(&server).await.0, 503);
    assert!(server.log().contains("UnknownIssuer"), "the log has the cause");
}
