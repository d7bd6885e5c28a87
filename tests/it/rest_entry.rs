//! Who gets in, by what, and from where.

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, ORIGIN, SET_COOKIE};
use serde_json::{Value, json};

use crate::desk::Answer;
use crate::process::Server;
use crate::rest_commands::galley;

/// Sends a request by cookie, as a browser would.
async fn by_cookie(
    server: &Server,
    method: &str,
    path: &str,
    cookie: &str,
    origin: Option<&str>,
) -> Answer {
    let method = method.parse().expect("a method");
    let mut request = server.http.request(method, format!("{}{path}", server.url));
    request = request.header("Cookie", format!("galley_token={cookie}"));
    if let Some(origin) = origin {
        request = request.header(ORIGIN, origin);
    }
    let response = request.json(&json!({ "title": "t" })).send().await.expect("an answer");
    let status = response.status();
    let json = response.json().await.unwrap_or(Value::Null);
    Answer { status, etag: None, json }
}

async fn enter(server: &Server, body: Value) -> (StatusCode, HeaderMap, Value) {
    let request = server.http.post(format!("{}/api/auth/guest", server.url)).json(&body);
    let response = request.send().await.expect("an answer");
    let (status, headers) = (response.status(), response.headers().clone());
    (status, headers, response.json().await.expect("JSON"))
}

#[tokio::test]
async fn a_guest_enters_under_a_name_in_any_script() {
    let server = Server::start().await;
    let (status, headers, guest) = enter(&server, json!({ "name": " 김민수 👩‍👩‍👧 " })).await;
    assert_eq!(status, 201);
    assert_eq!(guest["user"]["name"], "김민수 👩‍👩‍👧");
    let cookie = headers[SET_COOKIE].to_str().expect("text");
    let token = guest["token"].as_str().expect("a token");
    assert!(cookie.starts_with(&format!("galley_token={token};")), "{cookie}");
    for attribute in ["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age="] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "not under http: {cookie}");
    assert_eq!(headers["cache-control"], "no-store");
    let me = by_cookie(&server, "GET", "/api/me", token, None).await.ok(200);
    assert_eq!(me, guest["user"]);
}

#[tokio::test]
async fn a_name_that_is_none_is_refused() {
    let server = Server::start().await;
    for name in [json!(""), json!("  "), json!("a\u{202e}b"), json!("x".repeat(81)), json!(7)] {
        let (status, _, problem) = enter(&server, json!({ "name": name })).await;
        assert_eq!((status.as_u16(), &problem["type"]), (422, &json!("/problems/invalid")));
    }
}

#[tokio::test]
async fn under_https_the_cookie_is_secure_and_links_say_so() {
    let server = Server::with(&[("SERVER__PUBLIC_URL", "https://galley.example")]).await;
    let (_, headers, guest) = enter(&server, json!({ "name": "Kim" })).await;
    assert!(headers[SET_COOKIE].to_str().expect("text").contains("; Secure"));
    assert!(headers.contains_key("strict-transport-security"));
    let token = guest["token"].as_str().expect("a token");
    let origin = Some("https://galley.example");
    let made = by_cookie(&server, "POST", "/api/documents", token, origin).await.ok(201);
    let path = format!("/api/documents/{}/share-link", made["id"].as_str().expect("an id"));
    let link = by_cookie(&server, "POST", &path, token, origin).await.ok(201);
    let url = link["invite"]["url"].as_str().expect("a URL");
    assert!(url.starts_with("https://galley.example/s/shr_"), "{url}");
}

#[tokio::test]
async fn g14_a_cookie_acts_only_for_our_own_pages() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let ours = server.url.clone();
    let port = ours.rsplit(':').next().expect("a port").to_owned();
    let localhost = format!("http://localhost:{port}");
    for origin in [ours.as_str(), localhost.as_str()] {
        let made = by_cookie(&server, "POST", "/api/documents", &kim.token, Some(origin)).await;
        made.ok(201);
    }
    let suffixed = format!("{ours}.evil.example");
    let https = ours.replace("http:", "https:");
    for origin in
        [None, Some("null"), Some("https://evil.example"), Some(&*suffixed), Some(&*https)]
    {
        let refused = by_cookie(&server, "POST", "/api/documents", &kim.token, origin).await;
        refused.problem(403, "foreign-origin");
    }
    // Reading does no harm: the other page cannot see the answer.
    let origin = Some("https://evil.example");
    by_cookie(&server, "GET", "/api/documents", &kim.token, origin).await.ok(200);
    // Nobody is logged in here by a page of another site.
    let request = server.http.post(format!("{ours}/api/auth/guest"));
    let request = request.header(ORIGIN, "https://evil.example").json(&json!({ "name": "x" }));
    assert_eq!(request.send().await.expect("an answer").status(), 403);
}

#[tokio::test]
async fn without_guests_only_a_signed_token_opens() {
    let server = Server::with(&[("AUTH__GUESTS", "false")]).await;
    let (status, _, problem) = enter(&server, json!({ "name": "Kim" })).await;
    assert_eq!((status.as_u16(), &problem["type"]), (403, &json!("/problems/guests-off")));
    let token = galley(server.folder(), &["token", "--sub", "kim-1", "--name", "Kim"]).await.ok();
    let me = by_cookie(&server, "GET", "/api/me", token.trim(), None).await.ok(200);
    assert_eq!(me, json!({ "id": "kim-1", "name": "Kim" }));
    let admin = ["token", "--sub", "root", "--name", "Root", "--admin", "--ttl", "5m"];
    let admin = galley(server.folder(), &admin).await.ok();
    by_cookie(&server, "GET", "/api/admin/sessions", admin.trim(), None).await.ok(200);
    let refused = by_cookie(&server, "GET", "/api/admin/sessions", token.trim(), None).await;
    refused.problem(403, "not-admin");
}

/// Method and path of every route that is not open to all, from the document that is held against
/// the route table: a new route is in here without anybody having to think of it.
async fn closed_routes(server: &Server) -> Vec<(String, String)> {
    let document = server.http.get(format!("{}/openapi.json", server.url)).send().await;
    let document: Value = document.expect("an answer").json().await.expect("JSON");
    let paths = document.get("paths").and_then(Value::as_object).expect("paths");
    let routes = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("methods").iter();
        methods.map(move |(method, operation)| (method, path, operation))
    });
    routes
        .filter(|(_, path, _)| !path.starts_with("/ws/"))
        .filter(|(_, _, operation)| operation.get("security").is_none_or(|all| *all != json!([])))
        .map(|(method, path, _)| {
            let names = ["{id}", "{rid}", "{session_id}"];
            let path = names.iter().fold(path.clone(), |path, name| path.replace(name, "x"));
            (method.to_uppercase(), path)
        })
        .collect()
}

#[tokio::test]
async fn g14_no_route_answers_without_a_token_or_by_a_cookie_from_elsewhere() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let routes = closed_routes(&server).await;
    assert!(20 < routes.len(), "{routes:?}");
    for (method, path) in routes {
        let nobody = by_cookie(&server, &method, &path, "forged", Some(&server.url)).await;
        nobody.problem(401, "unauthenticated");
        let elsewhere = by_cookie(&server, &method, &path, &kim.token, None).await;
        match (path.starts_with("/api/admin"), method.as_str()) {
            (true, _) => elsewhere.problem(403, "not-admin"),
            (false, "GET") => assert_ne!(elsewhere.status, 403),
            (false, _) => elsewhere.problem(403, "foreign-origin"),
        }
    }
}
