//! The edge itself: headers, files, limits, health, unknown addresses.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::fixtures::until;
use crate::support::galley_process::Server;
use crate::support::raw_socket::{connect, head, upgrade};
use crate::support::redis_server;

fn address(server: &Server) -> &str {
    server.url.strip_prefix("http://").expect("an address")
}

#[tokio::test]
async fn g12_every_response_carries_the_security_headers() {
    let server = Server::start().await;
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/d/doc_1"),
        ("GET", "/s/shr_1"),
        ("GET", "/admin"),
        ("GET", "/docs/"),
        ("GET", "/openapi.json"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),
        ("GET", "/nothing/here"),
        ("GET", "/service-worker.js"),
        ("GET", "/../Cargo.toml"),
        ("GET", "/%2e%2e/Cargo.toml"),
        ("PUT", "/api/me"),
        ("GET", "/api/me"),
        ("GET", "/api/nothing"),
        ("POST", "/api/auth/guest"),
        ("DELETE", "/"),
    ] {
        let method = method.parse().expect("a method");
        let request = server.http.request(method, format!("{}{path}", server.url));
        let response = request.send().await.expect("an answer");
        let headers = response.headers();
        let header = |name: &str| {
            assert!(headers.contains_key(name), "{path} has no {name}");
            headers[name].to_str().expect("text").to_owned()
        };
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("cross-origin-opener-policy"), "same-origin");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin");
        assert!(header("permissions-policy").contains("camera=(), "), "{path}");
        let policy = header("content-security-policy");
        for part in [
            "default-src 'self'",
            "script-src 'self';",
            "worker-src 'self';",
            "object-src 'none'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        if !path.starts_with("/docs") {
            assert!(!policy.contains("unsafe"), "{path}: {policy}");
        }
        let is_failure = response.status().is_client_error();
        assert!(!is_failure || header("content-type") == "application/problem+json", "{path}");
    }
}

/// Goal: a plain address bypasses the router, and one with percent-encoding passes through it. The
/// responses and metrics do not differ.
#[tokio::test]
async fn an_upgrade_is_answered_and_counted_alike_with_and_without_the_router() {
    let server = Server::start().await;
    let desk = server.desk("").await;
    let counted = |status: u16| {
        let route = "/ws/share-links/{id}/{role}";
        format!(
            "galley_http_requests_total{{method=\"GET\",route=\"{route}\",status=\"{status}\"}}"
        )
    };
    let query = async |role: &str, origin: &str| {
        let plain = upgrade(&desk, role, "events=1", origin);
        let encoded = plain.replace("/reviewer?", "/%72eviewer?");
        let mut socket = connect(&server).await;
        let head = head(&mut socket, &encoded).await;
        let mut lines: Vec<_> = head.lines().map(str::to_owned).collect();
        lines.retain(|line| !line.starts_with("date:") && !line.starts_with("x-request-id: http_"));
        lines.sort_unstable();
        lines
    };
    let [plain, decoded] = [query("writer", "").await, query("reviewer", "").await];
    assert_eq!(plain, decoded);
    assert!(plain.iter().any(|line| line.starts_with("HTTP/1.1 101 ")), "{plain:?}");
    assert!(plain.contains(&"x-content-type-options: nosniff".to_owned()), "{plain:?}");
    server.has(&counted(101), 2).await;
    for role in ["writer", "reviewer"] {
        // A close code refuses it after the handshake.
        assert_eq!(query(role, "Origin: http://elsewhere.example\r\n").await, plain, "{role}");
    }
    server.has(&counted(101), 4).await;
}

/// Goal: the server notifies a client with a keep-alive connection when it closes that connection.
#[tokio::test]
async fn a_response_to_an_unread_long_body_announces_and_closes_the_connection() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let post = async |length: usize, token: Option<&str>| {
        let request = server.http.post(format!("{}/api/documents", server.url));
        let body = json!({ "title": "t", "text": "x".repeat(length) }).to_string();
        let request = request.header("content-type", "application/json").body(body);
        let request = request.bearer_auth(token.unwrap_or("none"));
        let answer = request.send().await.expect("an answer");
        let ends = answer.headers().get("connection").is_some_and(|value| value == "close");
        (answer.status().as_u16(), ends)
    };
    assert_eq!(post(100_000, Some(&kim.token)).await, (201, false));
    assert_eq!(post(100, None).await, (401, false), "the server reads a short body");
    assert_eq!(post(100_000, None).await, (401, true));
    assert_eq!(post(3_000_000, Some(&kim.token)).await, (413, true));
}

#[tokio::test]
async fn a_page_has_a_new_nonce_each_time_and_its_policy_names_it() {
    let server = Server::start().await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let page = server.http.get(format!("{}/d/doc_1", server.url)).send().await;
        let page = page.expect("an answer");
        let policy = page.headers()["content-security-policy"].to_str().expect("text").to_owned();
        let nonce = policy.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next());
        let nonce = nonce.expect("a nonce").to_owned();
        let html = page.text().await.expect("text");
        assert!(!html.contains("{{nonce}}"), "{html}");
        assert!(html.contains(&nonce), "{html}");
        seen.push(nonce);
    }
    assert_ne!(seen.first(), seen.last());
}

#[tokio::test]
async fn the_api_documentation_loads_nothing_from_another_origin() {
    let server = Server::start().await;
    let get = async |path: &str| {
        let response = server.http.get(format!("{}{path}", server.url)).send().await;
        response.expect("an answer").error_for_status().expect(path).text().await.expect("text")
    };
    let page = get("/docs").await;
    assert_eq!(get("/docs/").await, page);
    let files = page.split('"').filter(|part| part.ends_with(".css") || part.ends_with(".js"));
    let files: Vec<_> = files.collect();
    assert_eq!(files, ["/vendor/docs.css", "/vendor/docs.js"], "{page}");
    assert!(get("/vendor/docs.css").await.contains(".swagger-ui"));
    assert!(get("/vendor/docs.js").await.contains("\"/openapi.json\""));
    let document: Value = serde_json::from_str(&get("/openapi.json").await).expect("JSON");
    assert_eq!(document["openapi"], "3.1.0");
}

#[tokio::test]
async fn g13_a_rate_limited_client_gets_a_retry_hint_and_others_are_served() {
    let limits = [("LIMITS__REQUESTS_PER_SECOND", "1"), ("LIMITS__REQUEST_BURST", "5")];
    let server = Server::with(&limits).await;
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    for _ in 0..5 {
        server.get(&kim, "/api/me").await.ok(200);
    }
    let request = server.http.get(format!("{}/api/me", server.url)).bearer_auth(&kim.token);
    // Any client can send that header; it changes nothing.
    let refused = request.header("X-Forwarded-For", "203.0.113.9").send().await.expect("an answer");
    assert_eq!(refused.status(), 429);
    let wait = refused.headers()["retry-after"].to_str().expect("text").parse::<u64>();
    assert!((1..=2).contains(&wait.expect("seconds")));
    let problem: Value = refused.json().await.expect("JSON");
    assert_eq!(problem["type"], "/problems/too-many-requests");
    server.get(&lee, "/api/me").await.ok(200);
    let health = server.http.get(format!("{}/healthz", server.url)).send().await;
    assert_eq!(health.expect("an answer").status(), 200);
}

#[tokio::test]
async fn g13_a_partial_request_is_closed_by_a_timeout() {
    let server = Server::start().await;
    let mut socket = TcpStream::connect(address(&server)).await.expect("connected");
    socket.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").await.expect("written");
    let mut answer = Vec::new();
    let ended = timeout(Duration::from_secs(15), socket.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "it is still open after 15 s");
}

const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Sends a request on a connection of its own, and holds the connection. `None`: the server closed it
/// without a response.
async fn hold(server: &Server) -> Option<TcpStream> {
    let mut socket = TcpStream::connect(address(server)).await.expect("connected");
    let mut start = [0; 12];
    socket.write_all(REQUEST).await.ok()?;
    socket.read_exact(&mut start).await.ok()?;
    assert_eq!(&start, b"HTTP/1.1 200");
    Some(socket)
}

#[tokio::test]
async fn g13_connections_beyond_the_limit_are_closed_and_slots_come_back() {
    let server = Server::with(&[("LIMITS__CONNECTIONS", "3")]).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(hold(&server).await.expect("a slot"));
    }
    assert!(hold(&server).await.is_none());
    held.clear();
    let free = async { while hold(&server).await.is_none() {} };
    timeout(redis_server::TEST_TIMEOUT, free).await.expect("the slots come back");
}

#[tokio::test]
async fn metrics_are_labelled_by_route_and_hold_no_ids() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let link = format!("/api/share-links/{}", desk.link);
    server.get(&desk.writer, &link).await.ok(200);
    let metrics = server.metrics().await;
    for part in [
        "galley_http_requests_total{method=\"GET\",route=\"/api/share-links/{id}\",status=\"200\"}",
        "galley_http_request_seconds_bucket{method=\"POST\",route=\"/api/auth/guest\",le=",
        "galley_connections ",
    ] {
        assert!(metrics.contains(part), "{part} is not in\n{metrics}");
    }
    for id in [&desk.link, &desk.document, &desk.writer.id] {
        assert!(!metrics.contains(id.as_str()));
    }
    let off = Server::with(&[("METRICS__ENABLED", "false")]).await;
    let response = off.http.get(format!("{}/metrics", off.url)).send().await;
    assert_eq!(response.expect("an answer").status(), 404);
}

#[tokio::test]
async fn logs_hold_neither_tokens_nor_invites_nor_text() {
    let server = Server::with(&[("LOG__LEVEL", "debug"), ("LOG__FORMAT", "json")]).await;
    let desk = server.desk("어디에도 적히지 않을 문장").await;
    let writer = server.seated(&desk, "writer", "events=1").await;
    writer.leave().await;
    let admin = server.admin_token();
    let request = server.http.get(format!("{}/api/admin/sessions?x={admin}", server.url));
    request.bearer_auth(&admin).send().await.expect("an answer");
    let log = std::fs::read_to_string(server.folder().join("log")).expect("a log");
    assert!(log.lines().count() > 3, "{log}");
    let texts = [&desk.invite, &desk.writer.token, &desk.reviewer.token, &admin];
    for secret in texts.into_iter().map(String::as_str).chain(["적히지 않을"]) {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

/// Goal: a browser grants the worker every page of the origin, and revalidates it before each use.
#[tokio::test]
async fn the_service_worker_is_a_script_at_the_root_that_no_cache_serves_unseen() {
    let server = Server::start().await;
    let get = async |tag: &str| {
        let request = server.http.get(format!("{}/service-worker.js", server.url));
        request.header("if-none-match", tag).send().await.expect("an answer")
    };
    let response = get("\"another\"").await;
    assert_eq!(response.status(), 200);
    let header = |name: &str| response.headers()[name].to_str().expect("text").to_owned();
    assert_eq!(header("content-type"), "text/javascript; charset=utf-8");
    assert_eq!(header("cache-control"), "no-cache");
    assert!(header("content-security-policy").contains("worker-src 'self';"));
    let tag = header("etag");
    let script = response.text().await.expect("a script");
    for event in ["push", "notificationclick", "pushsubscriptionchange"] {
        assert!(script.contains(&format!("\"{event}\"")), "{event}");
    }
    assert!(!script.contains("\"fetch\""), "it caches nothing");
    assert_eq!(get(&tag).await.status(), 304);
}

#[tokio::test]
async fn an_unknown_address_is_a_page_for_a_browser_and_a_problem_for_others() {
    let server = Server::start().await;
    let get = |path: &str, accept: &'static str| {
        server.http.get(format!("{}{path}", server.url)).header("accept", accept).send()
    };
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for path in ["/nonsense", "/s/a/b", "/nonsense.html", "/api/nonsense"] {
        let page = get(path, browser).await.expect("an answer");
        assert_eq!(page.status(), 404, "{path}");
        let kind = page.headers()["content-type"].to_str().expect("text").to_owned();
        assert_eq!(kind, "text/html; charset=utf-8", "{path}");
        assert_eq!(page.headers()["vary"], "accept");
        assert!(page.headers().contains_key("content-security-policy"));
        let html = page.text().await.expect("text");
        assert!(html.contains("href=\"/\"") && html.contains("lang=\"ko\""), "{html}");
        for accept in ["*/*", "application/json", "image/png"] {
            let problem = get(path, accept).await.expect("an answer");
            assert_eq!(problem.status(), 404, "{path} as {accept}");
            let json: Value = problem.json().await.expect("JSON");
            assert_eq!(json["type"], "/problems/not-found");
        }
    }
    let post = server.http.post(format!("{}/nonsense", server.url)).header("accept", browser);
    assert_eq!(post.send().await.expect("an answer").status(), 404);
}

/// The names in each log line of a request: its id, and its trace if that is valid.
fn logged(server: &Server, text: &str) -> Vec<(Value, Value)> {
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains(text));
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    lines.map(|it| (it["span"]["request_id"].clone(), it["span"]["traceparent"].clone())).collect()
}

#[tokio::test]
async fn a_request_has_one_id_in_its_response_its_problem_and_its_log_lines() {
    let server = Server::with(&[("LOG__LEVEL", "debug"), ("LOG__FORMAT", "json")]).await;
    let desk = server.desk("").await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let (longest, long, longer) = ("a".repeat(128), "a".repeat(129), "a".repeat(10_240));
    let cases = [
        ("7d3f6c1e-1b2a-4c5d-8e9f-0a1b2c3d4e5f", true),
        ("Root=1-67891233-abcdef012345678912345678", true),
        (longest.as_str(), true),
        (long.as_str(), false),
        (longer.as_str(), false),
        ("", false),
        ("a\tb", false),
        ("a b", false),
        ("a\u{e9}", false),
        ("a\"},\"level\":\"ERROR", false),
        ("one\r\nX-Request-Id: two", false),
    ];
    for (sent, is_taken) in cases {
        let query = format!(
            "GET /api/nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             X-Request-Id: {sent}\r\ntraceparent: {trace}\r\n\r\n"
        );
        let mut socket = connect(&server).await;
        let head = head(&mut socket, &query).await;
        let mut body = String::new();
        socket.read_to_string(&mut body).await.expect("a body");
        let id = head.lines().find_map(|line| line.strip_prefix("x-request-id: ")).expect("an id");
        assert_eq!(id == sent, is_taken, "{sent}: {head}");
        assert!(is_taken || id.starts_with("http_") && id.len() == 37, "{id}");
        let problem: Value = serde_json::from_str(&body).expect("a problem");
        assert_eq!((&problem["status"], &problem["request_id"]), (&json!(404), &json!(id)));
        let lines = logged(&server, id);
        assert!(
            !lines.is_empty() && lines.iter().all(|it| *it == (json!(id), json!(trace))),
            "{id}"
        );
    }
    // The router's path, the short one, and a host that the service refuses.
    for (role, host, status) in [
        ("writer", "localhost", 101),
        ("%72eviewer", "localhost", 101),
        ("writer", "elsewhere.example", 421),
    ] {
        let id = format!("of-{host}-{status}-{}", role.len());
        let more = format!("X-Request-Id: {id}\r\ntraceparent: {trace}-more\r\n");
        let who = if role == "writer" { role } else { "reviewer" };
        let query = upgrade(&desk, who, "events=1", &more)
            .replace("Host: localhost", &format!("Host: {host}"));
        let mut socket = connect(&server).await;
        let head =
            head(&mut socket, &query.replace(&format!("/{who}?"), &format!("/{role}?"))).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        assert!(head.contains(&format!("x-request-id: {id}\r\n")), "{head}");
        let log = async || !logged(&server, &id).is_empty();
        until("a line of the request", log).await;
        assert!(logged(&server, &id).iter().all(|it| *it == (json!(id), Value::Null)), "{id}");
    }
    // The claim has the id of its upgrade.
    let seated = async || {
        let lines = server.log().lines().filter(|line| line.contains("seated")).count();
        lines == logged(&server, "seated").iter().filter(|it| it.0.is_string()).count() && lines > 1
    };
    until("both claims with their ids", seated).await;
}
