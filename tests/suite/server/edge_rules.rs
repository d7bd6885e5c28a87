//! The edge before any handler: hosts, compressed files, page requests, and the log of readiness probes.

use std::sync::Arc;

use reqwest::header::HeaderMap;
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::support::galley_process::Server;
use crate::support::raw_socket::{connect, head};
use crate::support::redis_server::{self, TEST_TIMEOUT};

async fn exchange(server: &Server, lines: &str) -> String {
    let mut socket: TcpStream = connect(server).await;
    head(&mut socket, &format!("{lines}\r\n")).await
}

fn status(head: &str) -> &str {
    head.get(9..12).unwrap_or(head)
}

/// A request with no `Host`, or with two, is one half of a request smuggling behind a proxy.
#[tokio::test]
async fn g12_a_request_has_exactly_one_host() {
    let server = Server::start().await;
    let host = server.url.strip_prefix("http://").expect("an address");
    let one = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n");
    assert_eq!(status(&exchange(&server, &one).await), "200");
    let two = format!("{one}Host: {host}\r\n");
    let refused = exchange(&server, &two).await;
    assert_eq!(status(&refused), "400");
    assert!(refused.contains("application/problem+json"), "{refused}");
    assert!(refused.contains("x-content-type-options: nosniff"), "{refused}");
    assert_eq!(status(&exchange(&server, "GET /healthz HTTP/1.1\r\n").await), "400");
    assert_eq!(status(&exchange(&server, "GET /healthz HTTP/1.0\r\n").await), "200");
}

/// Through DNS rebinding a foreign page reached a local server under the page's own name.
#[tokio::test]
async fn g14_a_local_server_answers_under_its_own_names_only() {
    let server = Server::start().await;
    for host in ["127.0.0.1", "localhost:1", "[::1]:8080", "LOCALHOST"] {
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n");
        assert_eq!(status(&exchange(&server, &request).await), "200", "{host}");
    }
    for host in ["evil.example", "localhost.evil.example:8080", "127.0.0.1.evil.example", ""] {
        for path in ["/metrics", "/readyz", "/api/me", "/ws/share-links/shr_1/writer"] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n");
            let refused = exchange(&server, &request).await;
            assert_eq!(status(&refused), "421", "{host}{path}");
            assert!(refused.contains("application/problem+json"), "{refused}");
        }
    }
    let host = server.url.strip_prefix("http://").expect("an address");
    let absolute = format!("GET http://evil.example/metrics HTTP/1.1\r\nHost: {host}\r\n");
    assert_eq!(status(&exchange(&server, &absolute).await), "421");
}

/// The same with a public address: its host, the hosts of the settings, and numeric addresses.
#[tokio::test]
async fn g14_a_public_server_answers_under_its_public_name() {
    let settings = [
        ("SERVER__PUBLIC_URL", "https://galley.example"),
        ("SERVER__HOSTS", "galley, galley.internal"),
    ];
    let server = Server::with(&settings).await;
    for host in ["galley.example", "galley.example:443", "10.1.2.3:8080", "galley:8080"] {
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n");
        let answer = exchange(&server, &request).await;
        assert_eq!(status(&answer), "200", "{host}");
        assert!(answer.contains("max-age=63072000; includeSubDomains"), "{answer}");
    }
    let request = "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n";
    assert_eq!(status(&exchange(&server, request).await), "421");
}

async fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> (u16, HeaderMap, Vec<u8>) {
    let mut request = server.http.get(format!("{}{path}", server.url));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.expect("an answer");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    (status, headers, response.bytes().await.expect("a body").to_vec())
}

/// The server compressed a file anew for each request, without a token and without a rate limit.
#[tokio::test]
async fn g17_files_are_compressed_at_build_time() {
    let server = Server::start().await;
    let page = get(&server, "/", &[]).await.2;
    let page = String::from_utf8(page).expect("text");
    let bundle = page.split('\'').find(|part| part.ends_with(".js")).expect("a script");
    for path in [bundle, "/vendor/docs.js"] {
        let (_, whole, plain) = get(&server, path, &[]).await;
        let is_immutable = whole["cache-control"].to_str().expect("text").ends_with(", immutable");
        assert_eq!(is_immutable, path == bundle, "{path}");
        assert!(!whole.contains_key("content-encoding"), "{path}");
        let gzip = [("accept-encoding", "br;q=1.0, gzip;q=0.8, *;q=0.1")];
        let (status, headers, packed) = get(&server, path, &gzip).await;
        assert_eq!(status, 200);
        assert_eq!(headers["content-encoding"], "gzip", "{path}");
        // A response that is compressed while it is sent has no length.
        assert_eq!(headers["content-length"], packed.len().to_string(), "{path}");
        assert_eq!(headers["vary"], "accept-encoding", "{path}");
        assert_eq!(whole["vary"], "accept-encoding", "{path}");
        assert!(packed.len() < plain.len() && packed.starts_with(&[0x1f, 0x8b]), "{path}");
        let refused = [("accept-encoding", "gzip;q=0, identity")];
        assert_eq!(get(&server, path, &refused).await.2, plain, "{path}");
        let tag = headers["etag"].to_str().expect("text").to_owned();
        assert_eq!(tag, whole["etag"].to_str().expect("text"), "{path}");
        let (status, headers, body) = get(&server, path, &[("if-none-match", &tag), gzip[0]]).await;
        assert_eq!((status, body.len()), (304, 0), "{path}");
        assert_eq!(headers["vary"], "accept-encoding", "{path}");
    }
}

/// Apache returns its own tag of a compressed response to the client, and the client's to the server.
#[tokio::test]
async fn an_address_a_tag_and_a_body_are_taken_as_proxies_and_clients_change_them() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    for path in [format!("/d/{}", desk.document), format!("/s/{}", desk.link), "/admin".to_owned()]
    {
        let plain = get(&server, &path, &[]).await;
        let slashed = get(&server, &format!("{path}/"), &[]).await;
        assert_eq!((plain.0, slashed.0), (200, 200), "{path}");
    }
    let tag =
        get(&server, "/vendor/docs.js", &[]).await.1["etag"].to_str().expect("text").to_owned();
    let changed = format!("{}-gzip\"", tag.trim_end_matches('"'));
    assert_eq!(get(&server, "/vendor/docs.js", &[("if-none-match", &changed)]).await.0, 304);
    for (coding, status) in [("gzip", 415), ("br", 415), ("identity", 201)] {
        let request = server.http.post(format!("{}/api/documents", server.url));
        let request = request.bearer_auth(&desk.writer.token).header("content-encoding", coding);
        let sending = request.json(&serde_json::json!({ "title": "x", "text": "y" })).send().await;
        let response = sending.expect("an answer");
        assert_eq!(response.status().as_u16(), status, "{coding}");
        let accepted = response.headers().get("accept-encoding").cloned();
        assert_eq!(accepted.is_some_and(|it| it == "identity"), status == 415, "{coding}");
        let text = response.text().await.expect("a body");
        assert_eq!(text.contains("without a Content-Encoding"), status == 415, "{text}");
    }
}

/// The files are in the program: no file of its working folder has an address.
#[tokio::test]
async fn no_file_of_the_working_folder_is_served() {
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let sources = folder.path().join("static/js");
    std::fs::create_dir_all(&sources).expect("a folder");
    std::fs::write(sources.join("new.js"), "first").expect("written");
    let server = Server::in_folder(folder, &[]).await;
    for path in ["/js/new.js", "/../log", "/js/../../data/admin-token", "//etc/hostname"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n");
        assert_eq!(status(&exchange(&server, &request).await), "404", "{path}");
    }
}

/// RFC 9457 expects text at the address of a problem's type.
#[tokio::test]
async fn the_type_of_a_problem_is_the_address_of_its_description() {
    let server = Server::start().await;
    let (status, headers, body) = get(&server, "/problems/seat-not-held", &[]).await;
    assert_eq!(status, 200, "{body:?}");
    assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
    let body = String::from_utf8(body).expect("text");
    assert!(body.contains("does not hold the own seat of this link now"), "{body}");
    assert!(!body.contains("foreign-origin"), "{body}");
    assert_eq!(get(&server, "/problems/no-such-problem", &[]).await.0, 404);
}

/// No rate limit covered requests for pages and their files.
#[tokio::test]
async fn g17_pages_are_counted_by_address_and_probes_are_not() {
    let limits = [("LIMITS__REQUESTS_PER_SECOND", "1"), ("LIMITS__REQUEST_BURST", "1")];
    let server = Server::with(&limits).await;
    let mut refused = 0;
    for path in ["/", "/docs/", "/openapi.json", "/nothing"].iter().cycle().take(60) {
        let (status, headers, _) = get(&server, path, &[]).await;
        if status == 429 {
            assert!(headers.contains_key("retry-after"), "{path}");
            refused += 1;
        }
    }
    assert!(0 < refused, "60 pages at once");
    for _ in 0..60 {
        assert_eq!(get(&server, "/healthz", &[]).await.0, 200);
        assert_eq!(get(&server, "/readyz", &[]).await.0, 200);
    }
}

/// Each failed probe logged a WARN and an ERROR, which hid the line with the cause.
#[tokio::test]
async fn failed_probes_log_the_change_of_state_and_no_failed_request() {
    let mut redis = redis_server::Server::start().await;
    let url = redis.url();
    let settings = [("LOCKS__URL", url.as_str()), ("DATABASE__SHARED_SQLITE", "true")];
    let server = Server::with(&settings).await;
    assert_eq!(get(&server, "/readyz", &[]).await.0, 200);
    redis.stop().await;
    let mut failed = 0;
    let degraded = async || {
        let (_, _, body) = get(&server, "/readyz", &[]).await;
        String::from_utf8_lossy(&body).contains("\"degraded\"")
    };
    while failed < 5 {
        failed += usize::from(degraded().await);
        // Longer than the server caches the result of a probe.
        tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    }
    redis.start_again().await;
    let ready = async { while degraded().await {} };
    tokio::time::timeout(TEST_TIMEOUT, ready).await.expect("in time");
    let log = std::fs::read_to_string(server.folder().join("log")).expect("a log");
    let lines = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    assert_eq!(lines("request failed"), 0, "{log}");
    assert_eq!(lines("a probe fails"), 1, "{log}");
    assert_eq!(lines("a probe succeeds again"), 1, "{log}");
}
