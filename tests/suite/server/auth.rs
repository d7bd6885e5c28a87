//! `/api/auth`, `/api/auth/guest` and `/api/auth/leave`: the credentials that every route accepts, and the
//! origins that may send them. `me.rs` tests `/api/auth/transfer`.

use futures_util::StreamExt as _;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, ORIGIN, SET_COOKIE};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::server::commands::galley;
use crate::support::fixtures::until;
use crate::support::galley_process::Server;
use crate::support::rest_client::{Answer, Desk, Person};

/// Sends a request with a cookie, as a browser does.
async fn by_cookie(
    server: &Server,
    method: &str,
    path: &str,
    cookie: &str,
    origin: Option<&str>,
) -> Answer {
    let method = method.parse().expect("a method");
    let mut request = server.http.request(method, format!("{}{path}", server.url));
    let name = if cookie.starts_with("__Host-") { "" } else { "galley_token=" };
    request = request.header("Cookie", format!("{name}{cookie}"));
    if let Some(origin) = origin {
        request = request.header(ORIGIN, origin);
    }
    let response = request.json(&json!({ "title": "t" })).send().await.expect("an answer");
    let status = response.status();
    let json = response.json().await.unwrap_or(Value::Null);
    Answer { status, etag: None, retry_after: None, json }
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
    assert_eq!((&me["id"], &me["name"]), (&guest["user"]["id"], &guest["user"]["name"]));
}

#[tokio::test]
async fn an_invalid_name_is_rejected() {
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
    let set = headers[SET_COOKIE].to_str().expect("text");
    assert!(set.starts_with("__Host-galley_token=") && set.contains("; Secure"), "{set}");
    assert!(set.contains("Path=/") && !set.contains("Domain"), "{set}");
    assert!(headers.contains_key("strict-transport-security"));
    let token = guest["token"].as_str().expect("a token");
    let token = &format!("__Host-galley_token={token}");
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
    // A read does no harm: the foreign page cannot see the response.
    let origin = Some("https://evil.example");
    by_cookie(&server, "GET", "/api/documents", &kim.token, origin).await.ok(200);
    // A foreign page cannot sign a user in here.
    let request = server.http.post(format!("{ours}/api/auth/guest"));
    let request = request.header(ORIGIN, "https://evil.example").json(&json!({ "name": "x" }));
    assert_eq!(request.send().await.expect("an answer").status(), 403);
}

#[tokio::test]
async fn without_guests_only_a_signed_token_is_accepted() {
    let server = Server::with(&[("AUTH__GUESTS", "false")]).await;
    let (status, _, problem) = enter(&server, json!({ "name": "Kim" })).await;
    assert_eq!((status.as_u16(), &problem["type"]), (403, &json!("/problems/guests-off")));
    let token = galley(server.folder(), &["token", "--sub", "kim-1", "--name", "Kim"]).await.ok();
    let me = by_cookie(&server, "GET", "/api/me", token.trim(), None).await.ok(200);
    assert_eq!(me, json!({ "id": "kim-1", "name": "Kim", "guest_requests": true }));
    let admin = ["token", "--sub", "root", "--name", "Root", "--admin", "--ttl", "5m"];
    let admin = galley(server.folder(), &admin).await.ok();
    by_cookie(&server, "GET", "/api/admin/sessions", admin.trim(), None).await.ok(200);
    let refused = by_cookie(&server, "GET", "/api/admin/sessions", token.trim(), None).await;
    refused.problem(403, "not-admin");
}

#[tokio::test]
async fn g14_a_sibling_subdomain_cannot_sign_a_user_in_as_another() {
    let server = Server::with(&[("SERVER__PUBLIC_URL", "https://galley.example")]).await;
    let (kim, eve) = (server.guest("Kim").await, server.guest("Eve").await);
    let me = async |cookie: String| by_cookie(&server, "GET", "/api/me", &cookie, None).await;
    let own = format!("__Host-galley_token={}", kim.token);
    // A sibling domain sets the plain name only, in any number and order.
    let both = me(format!("{own}; galley_token={}; galley_token=x", eve.token)).await.ok(200);
    assert_eq!(both["name"], "Kim");
    let alone = format!("__Host-x=y; galley_token={}", eve.token);
    me(alone).await.problem(401, "unauthenticated");
    me(format!("{own}; {own}")).await.problem(401, "unauthenticated");
    // A token that a host application signs and sets for its domain still counts.
    let token = galley(server.folder(), &["token", "--sub", "lee", "--name", "Lee"]).await.ok();
    assert_eq!(me(token.trim().to_owned()).await.ok(200)["name"], "Lee");
}

#[tokio::test]
async fn two_cookies_of_one_name_sign_no_user_in() {
    let server = Server::start().await;
    let (kim, eve) = (server.guest("Kim").await, server.guest("Eve").await);
    let two = format!("{}; galley_token={}", kim.token, eve.token);
    by_cookie(&server, "GET", "/api/me", &two, None).await.problem(401, "unauthenticated");
}

#[tokio::test]
async fn a_user_who_signs_out_leaves_no_cookie_behind() {
    for (public_url, names) in [
        (None, &["galley_token="][..]),
        (Some("https://galley.example"), &["galley_token=", "__Host-galley_token="]),
    ] {
        let settings = public_url.map(|url| ("SERVER__PUBLIC_URL", url));
        let server = Server::with(settings.as_slice()).await;
        let origin = public_url.unwrap_or(&server.url);
        let kim = server.guest("Kim").await;
        let prefix = if public_url.is_some() { "__Host-" } else { "" };
        let cookie = format!("{prefix}galley_token={}", kim.token);
        let leave = |origin: &str| {
            let request = server.http.post(format!("{}/api/auth/leave", server.url));
            request.header("Cookie", cookie.clone()).header(ORIGIN, origin).send()
        };
        let elsewhere = leave("https://evil.example").await.expect("an answer");
        assert_eq!(elsewhere.status(), 403);
        let left = leave(origin).await.expect("an answer");
        assert_eq!(left.status(), 204);
        let set = left.headers().get_all(SET_COOKIE).iter().map(|set| set.to_str().expect("text"));
        let set: Vec<_> = set.collect();
        assert_eq!(set.len(), names.len(), "{set:?}");
        for name in names {
            let removes = |set: &&&str| set.starts_with(&format!("{name};"));
            let removed = set.iter().find(removes).unwrap_or_else(|| panic!("{name}: {set:?}"));
            assert!(removed.contains("Max-Age=0"), "{removed}");
        }
        // The response clears no other sign-in of the domain and no unsaved edits.
        assert!(!left.headers().contains_key("clear-site-data"));
    }
}

#[tokio::test]
async fn a_page_without_a_sign_in_learns_where_to_get_one() {
    let url = "https://app.example/in?next={return}";
    let server = Server::with(&[("AUTH__GUESTS", "false"), ("AUTH__SIGN_IN_URL", url)]).await;
    let answer = server.http.get(format!("{}/api/auth", server.url)).send().await;
    let entry: Value = answer.expect("an answer").json().await.expect("JSON");
    assert_eq!(
        entry,
        json!({ "guests": false, "sign_in_url": url, "sign_out_url": null, "user": null, "expires_at": null })
    );
}

/// Goal: who asks how to sign in also learns who has; a refused token is no error there.
#[tokio::test]
async fn the_ways_to_sign_in_name_the_caller_of_a_valid_token_only() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let caller_of = async |token: &str| {
        let request = server.http.get(format!("{}/api/auth", server.url)).bearer_auth(token);
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), 200);
        answer.json::<Value>().await.expect("JSON")["user"].clone()
    };
    assert_eq!(
        caller_of(&kim.token).await,
        json!({ "id": kim.id, "name": "Kim", "guest_requests": true })
    );
    assert_eq!(caller_of("nonsense").await, Value::Null);
    assert_eq!(caller_of(&server.admin_token()).await, Value::Null);
}

/// A token as a host application signs it, `age` seconds ago.
pub(crate) fn signed(server: &Server, id: &str, name: &str, age: i64) -> Person {
    let secret = std::fs::read(server.folder().join("data/secret")).expect("a secret");
    let now = chrono::Utc::now().timestamp();
    let claims = json!({ "iss": "galley", "sub": id, "name": name, "iat": now - age,
        "exp": now + 600, "jti": "1" });
    let key = jsonwebtoken::EncodingKey::from_secret(&secret);
    let token = jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key);
    Person { id: id.to_owned(), name: name.to_owned(), token: token.expect("signed") }
}

#[tokio::test]
async fn a_name_is_stored_at_the_seat_and_only_from_the_newest_token() {
    let server = Server::start().await;
    let (kim, lee) = (signed(&server, "kim", "Kim", 60), signed(&server, "lee", "Lee", 60));
    let desk = server.desk_of(kim.clone(), lee.clone(), "Text.").await;
    let names = async || {
        let link = server.get(&lee, &format!("/api/share-links/{}", desk.link)).await.ok(200);
        (link["writer"]["name"].clone(), link["reviewer"]["name"].clone())
    };
    assert_eq!(names().await, (json!("Kim"), json!("Lee")));
    let renamed = Desk {
        writer: signed(&server, "kim", "Kim Minsu", 20),
        reviewer: signed(&server, "lee", "Lee Seoyeon", 20),
        ..desk.clone()
    };
    let (writer, reviewer) = (server.writer(&renamed).await, server.reviewer(&renamed).await);
    assert_eq!(names().await, (json!("Kim Minsu"), json!("Lee Seoyeon")));
    drop((writer, reviewer));
    // Tokens from before the rename still open the seats, and do not restore the old name.
    let body = json!({ "title": "Another", "text": "" });
    let between = signed(&server, "kim", "Kim", 40);
    let made = server.post(&between, "/api/documents", body).await.ok(201);
    let path = format!("/api/documents/{}", made["id"].as_str().expect("an id"));
    assert_eq!(server.get(&between, &path).await.ok(200)["owner"]["name"], "Kim Minsu");
    let old = server.claim_seat(&desk, "reviewer", "events=1&takeover=1").await;
    old.event("seat.granted").await;
    assert_eq!(names().await, (json!("Kim Minsu"), json!("Lee Seoyeon")));
}

/// Goal: a page that only opens a seat uses its token, so an older token does not rename the user.
#[tokio::test]
async fn a_token_that_only_opens_a_seat_is_the_newest_of_its_user() {
    let server = Server::start().await;
    let (kim, lee) = (signed(&server, "kim", "Kim", 500), signed(&server, "lee", "Lee", 500));
    let desk = server.desk_of(kim, lee, "Text.").await;
    let newest = Desk { writer: signed(&server, "kim", "Kim", 100), ..desk };
    let _writer = server.writer(&newest).await;
    let since = (chrono::Utc::now().timestamp() - 200) * 1_000;
    let mut database = server.database().await;
    let select = "SELECT updated_at FROM users WHERE id = 'kim'";
    until("the time of the name moves", async || {
        since <= sqlx::query_scalar::<_, i64>(select).fetch_one(&mut database).await.expect("a row")
    })
    .await;
    let between = signed(&server, "kim", "Kim Before", 300);
    let body = json!({ "title": "Another", "text": "" });
    let made = server.post(&between, "/api/documents", body).await.ok(201);
    let path = format!("/api/documents/{}", made["id"].as_str().expect("an id"));
    assert_eq!(server.get(&between, &path).await.ok(200)["owner"]["name"], "Kim");
}

#[tokio::test]
async fn a_refused_token_names_its_claim_to_the_client_and_in_the_log() {
    let server = Server::start().await;
    let path = server.folder().join("data/secret");
    let secret = std::fs::read(path).expect("a secret");
    let now = chrono::Utc::now().timestamp();
    let claims = json!({ "iss": "other", "sub": "kim", "name": "Kim", "iat": now,
        "exp": now + 60, "jti": "1" });
    let key = jsonwebtoken::EncodingKey::from_secret(&secret);
    let token = jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key);
    let token = token.expect("signed");
    let me = format!("{}/api/me", server.url);
    let refused = server.http.get(&me).bearer_auth(&token).send().await.expect("an answer");
    assert_eq!(refused.status(), 401);
    let challenge = refused.headers()["www-authenticate"].to_str().expect("text");
    assert_eq!(challenge, r#"Bearer error="invalid_token", error_description="claim iss""#);
    let without = server.http.get(&me).send().await.expect("an answer");
    assert_eq!(without.headers()["www-authenticate"], "Bearer");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("a token was refused")).expect("a line");
    assert!(line.contains("claim iss") && line.contains("127.0.0.1"), "{line}");
    assert!(!log.contains(&token), "{log}");
}

#[tokio::test]
async fn security_events_are_logged_with_the_address_and_without_a_secret() {
    let server = Server::start().await;
    let desk = server.desk("Text.").await;
    let eve = server.guest("Eve").await;
    let path = format!("/api/share-links/{}/join", desk.link);
    let wrong = json!({ "invite": "a-guessed-invite" });
    server.post(&eve, &path, wrong).await.problem(403, "wrong-invite");
    let leave = server.post(&eve, "/api/auth/leave", json!({})).await;
    assert_eq!(leave.status, 204);
    let kim = server.guest("Kim").await;
    let other = by_cookie(&server, "POST", "/api/documents", &kim.token, Some("https://b.example"));
    other.await.problem(403, "foreign-origin");
    let log = server.log();
    for (event, part) in [
        ("a guest entered", eve.id.as_str()),
        ("a request was refused", "the invite is not the one"),
        ("a user signed out", eve.id.as_str()),
        ("from another origin was refused", "https://b.example"),
    ] {
        let line = log.lines().find(|line| line.contains(event) && line.contains(part));
        let line = line.unwrap_or_else(|| panic!("{event}: {log}"));
        assert!(line.contains("127.0.0.1"), "{line}");
    }
    for secret in ["a-guessed-invite", &desk.invite, &eve.token, &desk.writer.token] {
        assert!(!log.contains(secret), "{log}");
    }
}

/// Goal: with a wrong `server.public_url` the log has one line that names both origins; the server does
/// not fail silently.
#[tokio::test]
async fn a_websocket_from_another_origin_leaves_one_warning() {
    let server = Server::with(&[("SERVER__PUBLIC_URL", "https://galley.example")]).await;
    for _ in 0..6 {
        let url = format!("{}/ws/share-links/shr_x/writer", server.url);
        let request = server.http.get(url).header(ORIGIN, "https://app.example");
        let request = request.header("Connection", "Upgrade").header("Upgrade", "websocket");
        let request = request.header("Sec-WebSocket-Version", "13");
        let request = request.header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(request.send().await.expect("an answer").status(), 101);
    }
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains("from another origin was refused"));
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("WARN") && lines[0].contains("https://app.example"), "{log}");
    assert!(lines[0].contains("https://galley.example"), "{log}");
}

/// Method and path of every route that needs a credential, from the document that a test compares with
/// the route table. A new route is covered automatically.
/// Neither an empty list nor one with an empty requirement, which a client without a token meets.
fn is_closed(security: &Value) -> bool {
    security.as_array().is_some_and(|all| !all.is_empty() && !all.contains(&json!({})))
}

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
        .filter(|(_, _, operation)| operation.get("security").is_none_or(is_closed))
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
        let without_identity =
            by_cookie(&server, &method, &path, "forged", Some(&server.url)).await;
        without_identity.problem(401, "unauthenticated");
        let elsewhere = by_cookie(&server, &method, &path, &kim.token, None).await;
        let is_admins = ["/api/admin", "/api/users"].iter().any(|it| path.starts_with(it));
        match (is_admins, method.as_str()) {
            (true, _) => elsewhere.problem(403, "not-admin"),
            (false, "GET") => assert_ne!(elsewhere.status, 403),
            (false, _) => elsewhere.problem(403, "foreign-origin"),
        }
    }
}

/// Goal: no address contains a token. A browser can offer subprotocols, and no other header of its own.
#[tokio::test]
async fn g14_a_token_travels_as_a_subprotocol() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let (good, bad) = (desk.writer.token.clone(), "x.y.z".to_owned());
    let claim_seat = async |protocols: &str, query: &str| {
        let address = server.url.replacen("http", "ws", 1);
        let address = format!("{address}/ws/share-links/{}/writer?{query}", desk.link);
        let mut request = address.into_client_request().expect("a request");
        let offered = protocols.parse().expect("a header");
        request.headers_mut().insert("sec-websocket-protocol", offered);
        let (socket, response) = connect_async(request).await.expect("a handshake");
        assert_eq!(response.headers()["sec-websocket-protocol"], "galley", "{protocols}");
        let first = async |message: Result<Message, _>| match message.expect("a message") {
            Message::Close(close) => Some(close.map(|close| u16::from(close.code))),
            Message::Binary(_) => Some(None),
            _ => None,
        };
        let mut first = std::pin::pin!(socket.filter_map(first));
        first.next().await.expect("an end")
    };
    let token = |token: &str| format!("galley.token.{token}");
    assert_eq!(claim_seat(&format!("galley, {}", token(&good)), "").await, None);
    assert_eq!(claim_seat(&format!("{},galley", token(&bad)), "").await, Some(4401));
    assert_eq!(claim_seat("galley", "").await, Some(4401));
    // With two tokens neither counts.
    let both = format!("galley, {}, {}", token(&good), token(&good));
    assert_eq!(claim_seat(&both, "").await, Some(4400));
    let one = format!("galley, {}", token(&good));
    assert_eq!(claim_seat(&one, &format!("token={good}")).await, Some(4400));
}
