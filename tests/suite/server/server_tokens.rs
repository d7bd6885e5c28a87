//! Server tokens: the scopes that open each route of the `OpenAPI` document, and calls in the name of a user.

use std::collections::HashMap;

use reqwest::Method;
use reqwest::header::WWW_AUTHENTICATE;
use serde_json::{Value, json};

use crate::server::auth::signed;
use crate::server::operation_fixtures::Users;
use crate::support::contract::Contract;
use crate::support::galley_process::Server;
use crate::support::identity_provider::IdentityProvider;
use crate::support::rest_client::{Answer, Desk, Person};
use crate::support::ws_client::Peer;

const SCOPES: [&str; 8] = [
    "documents:read",
    "documents:write",
    "documents:delete",
    "reviews:read",
    "reviews:write",
    "users:export",
    "users:delete",
    "audit:read",
];

/// Many calls of one user and one address.
const PATIENT: [(&str, &str); 2] =
    [("LIMITS__REQUESTS_PER_SECOND", "100000"), ("LIMITS__REQUEST_BURST", "100000")];

/// A token under the server's secret with these claims beside the usual ones.
pub(crate) fn token_with(server: &Server, more: &Value) -> String {
    let secret = std::fs::read(server.folder().join("data/secret")).expect("a secret");
    let now = chrono::Utc::now().timestamp();
    let mut claims =
        json!({ "iss": "galley", "sub": "backend", "iat": now - 60, "exp": now + 600, "jti": "1" });
    let fields = claims.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    let key = jsonwebtoken::EncodingKey::from_secret(&secret);
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("signed")
}

pub(crate) fn server_token(server: &Server, scope: &str) -> String {
    token_with(server, &json!({ "scope": scope }))
}

/// A call with these headers.
pub(crate) async fn call(
    server: &Server,
    token: &str,
    headers: &[(&str, &str)],
    (method, path): (&str, &str),
    body: Option<Value>,
) -> Answer {
    let method: Method = method.parse().expect("a method");
    let mut request = server.http.request(method, format!("{}{path}", server.url));
    request = request.bearer_auth(token);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some(body) = body {
        request = request.json(&body);
    }
    let response = request.send().await.expect("an answer");
    let status = response.status();
    let cause = response.headers().get(WWW_AUTHENTICATE).map(|it| it.to_str().expect("text"));
    let etag = cause.and_then(|it| it.split('"').nth(3)).map(str::to_owned);
    let bytes = response.bytes().await.expect("a body");
    let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    // In the place of the tag: the cause of a refused token.
    Answer { status, etag, retry_after: None, json }
}

const KIM: (&str, &str) = ("Galley-User", "kim");
/// 김민수
const NAMED_KIM: [(&str, &str); 2] = [KIM, ("Galley-User-Name", "%EA%B9%80%EB%AF%BC%EC%88%98")];

/// The status and the name of a problem.
fn problem(answer: &Answer) -> (u16, &str) {
    let kind = answer.json["type"].as_str().and_then(|kind| kind.strip_prefix("/problems/"));
    (answer.status.as_u16(), kind.unwrap_or_default())
}

/// Method, path with ids that nothing has, and scopes.
fn operations() -> Vec<(String, String, Vec<String>)> {
    let contract = Contract::served();
    let paths = contract.document()["paths"].as_object().expect("paths");
    let mut found = Vec::new();
    for (path, item) in paths {
        let filled = path.replace("{role}", "writer");
        let filled: Vec<_> = filled
            .split('/')
            .map(|part| if part.starts_with('{') { "nothing" } else { part })
            .collect();
        for (method, operation) in item.as_object().expect("a path item") {
            let security = operation["security"].as_array().into_iter().flatten();
            let scopes = security.filter_map(|it| it["serverToken"].as_array()).flatten();
            let scopes = scopes.map(|it| it.as_str().expect("a scope").to_owned()).collect();
            found.push((method.to_uppercase(), filled.join("/"), scopes));
        }
    }
    found
}

fn is_of_product(path: &str) -> bool {
    ["/api/users/", "/api/user-deletions/", "/api/admin/"].iter().any(|it| path.starts_with(it))
}

/// The answer to a server with one scope, which names no user.
fn holds_to_its_scope(answer: &Answer, at: (&str, &str), closed: bool, missing: Option<&str>) {
    match missing {
        _ if closed => assert_eq!(problem(answer), (403, "not-for-servers"), "{at:?}"),
        Some(missing) => {
            assert_eq!(problem(answer), (403, "scope-missing"), "{at:?}");
            assert_eq!(answer.json["scope"], missing, "{at:?}");
        }
        None if is_of_product(at.1) => {
            let status = answer.status.as_u16();
            assert!(![401, 403].contains(&status), "{at:?}: {}", answer.json);
        }
        None => assert_eq!(problem(answer), (422, "invalid"), "{at:?} without a user"),
    }
}

/// Goal: each route of the document answers each scope, all of them and none as the document says.
#[tokio::test]
async fn g14_each_route_opens_for_its_scopes_alone() {
    let server = Server::with(&PATIENT).await;
    let single: HashMap<_, _> =
        SCOPES.iter().map(|scope| (*scope, server_token(&server, scope))).collect();
    let all = server_token(&server, &format!("openid {}", SCOPES.join(" ")));
    let none = token_with(&server, &json!({ "scope": "openid profile", "name": "Kim" }));
    let mut opened = 0;
    for (method, path, scopes) in operations() {
        let at = (method.as_str(), path.as_str());
        if !path.starts_with("/api/") && !path.starts_with("/ws/") {
            let open = call(&server, &all, &[], at, None).await;
            assert_eq!(open.status, 200, "{at:?} needs no token");
            continue;
        }
        let closed = scopes.is_empty();
        for (scope, token) in &single {
            let missing = scopes.iter().find(|it| it != scope).map(String::as_str);
            let answer = call(&server, token, &[], at, None).await;
            holds_to_its_scope(&answer, at, closed, missing);
        }
        let answer = call(&server, &all, &NAMED_KIM, at, None).await;
        if closed {
            assert_eq!(problem(&answer), (403, "not-for-servers"), "{at:?}");
        } else {
            opened += 1;
            let refusals = ["not-for-servers", "scope-missing", "server-token-required"];
            let (status, name) = problem(&answer);
            assert!(status != 401 && !refusals.contains(&name), "{at:?}: {}", answer.json);
        }
        // A token without a scope of Galley is that of a user.
        let answer = call(&server, &none, &[KIM], at, None).await;
        assert_eq!(problem(&answer), (403, "server-token-required"), "{at:?}");
    }
    assert!(40 <= opened, "{opened} routes");
}

#[tokio::test]
async fn a_server_acts_in_the_name_of_a_user_whom_it_creates() {
    let server = Server::start().await;
    let token = server_token(&server, "documents:read documents:write documents:delete");
    let create = ("POST", "/api/documents");
    let body = || Some(json!({ "title": "자기소개서", "text": "나는" }));
    let unknown = call(&server, &token, &[KIM], create, body()).await;
    assert_eq!(problem(&unknown), (422, "invalid"));
    assert!(unknown.json["detail"].as_str().is_some_and(|it| it.contains("Galley-User-Name")));
    let made = call(&server, &token, &NAMED_KIM, create, body()).await.ok(201);
    assert_eq!(made["owner"], json!({ "id": "kim", "name": "김민수" }));
    // From here on the user is known, and another name changes nothing.
    let other = [KIM, ("Galley-User-Name", "Eve")];
    let listed = call(&server, &token, &other, ("GET", "/api/documents"), None).await.ok(200);
    assert_eq!(listed["documents"][0]["owner"]["name"], "김민수");
    // The user has it, under the name of the own token, which was issued before.
    let kim = signed(&server, "kim", "Kim Minsu", 300);
    let path = format!("/api/documents/{}", made["id"].as_str().expect("an id"));
    server.get(&kim, &path).await.ok(200);
    server.post(&kim, create.1, json!({ "title": "x", "text": "" })).await.ok(201);
    let shown = call(&server, &token, &[KIM], ("GET", &path), None).await.ok(200);
    assert_eq!(shown["owner"]["name"], "Kim Minsu");
    // Another user's document is as absent as it is for that user.
    let lee = [("Galley-User", "lee"), ("Galley-User-Name", "Lee")];
    assert_eq!(
        problem(&call(&server, &token, &lee, ("DELETE", &path), None).await),
        (404, "not-found")
    );
    assert_eq!(call(&server, &token, &[KIM], ("DELETE", &path), None).await.status, 204);
}

#[tokio::test]
async fn g10_a_server_never_outranks_a_seat() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let token = server_token(&server, "reviews:write reviews:read documents:write");
    let lee = [("Galley-User", desk.reviewer.id.as_str())];
    let review =
        || Some(json!({ "anchor": { "start": 0, "end": 4, "quote": "text" }, "body": "why?" }));
    let path = desk.reviews();
    let without = call(&server, &token, &lee, ("POST", &path), review()).await;
    assert_eq!(problem(&without), (403, "seat-not-held"));
    let reviewer = server.reviewer(&desk).await;
    let made = call(&server, &token, &lee, ("POST", &path), review()).await.ok(201);
    assert_eq!(made["author"]["id"], desk.reviewer.id);
    reviewer.event("review.created").await;
    // The reviewer's seat does not decide.
    let accept = format!("{path}/{}/resolve", made["id"].as_str().expect("an id"));
    let decided = call(&server, &token, &lee, ("POST", &accept), None).await;
    assert_eq!(problem(&decided), (403, "seat-not-held"));
}

#[tokio::test]
async fn g14_a_server_has_no_socket() {
    let server = Server::start().await;
    let Desk { link, writer, .. } = server.desk("text").await;
    let scope = json!({ "scope": SCOPES.join(" "), "sub": writer.id, "name": "Kim" });
    let token = token_with(&server, &scope);
    let closed = (4403, "server-token".to_owned());
    let peer = Peer::connect(&server.url, &link, "writer", &token, "events=1").await;
    assert_eq!(peer.closed().await, closed);
    // Neither has the socket of the user whose id it has a renewal by it.
    let peer = Peer::connect(&server.url, &link, "writer", &writer.token, "events=1").await;
    peer.event("seat.granted").await;
    peer.send(galley::yjs::protocol::token(&token));
    assert_eq!(peer.closed().await, closed);
}

#[tokio::test]
async fn g14_a_scope_makes_no_server_of_a_user_and_no_user_of_a_server() {
    let server = Server::start().await;
    let me = ("GET", "/api/me");
    let audit = ("GET", "/api/admin/audit");
    for scope in [json!(["documents:read"]), json!(7), json!({}), json!(true)] {
        let token = token_with(&server, &json!({ "scope": scope, "name": "Kim" }));
        let refused = call(&server, &token, &[], me, None).await;
        assert_eq!(
            (refused.status.as_u16(), refused.etag.as_deref()),
            (401, Some("claim scope")),
            "{scope}"
        );
    }
    for scope in [json!(null), json!(""), json!("openid calendar:read documents:readx documents")] {
        let token = token_with(&server, &json!({ "scope": scope, "name": "Kim" }));
        call(&server, &token, &[], me, None).await.ok(200);
        let refused = call(&server, &token, &[], audit, None).await;
        assert_eq!(problem(&refused), (403, "not-admin"));
    }
    // The claim `admin` opens nothing beside a scope.
    let admin =
        token_with(&server, &json!({ "scope": "audit:read", "admin": true, "name": "Kim" }));
    let sessions = call(&server, &admin, &[], ("GET", "/api/admin/sessions"), None).await;
    assert_eq!(problem(&sessions), (403, "not-for-servers"));
    call(&server, &admin, &[], audit, None).await.ok(200);
    // A guest's token is Galley's own, and has no scope.
    let now = chrono::Utc::now().timestamp();
    let guest = json!({ "sub": format!("usr_{}", "0".repeat(32)), "name": "Kim", "iat": now,
        "exp": now + 30 * 24 * 3_600, "scope": "documents:read" });
    let refused = call(&server, &token_with(&server, &guest), &[], me, None).await;
    assert_eq!((refused.status.as_u16(), refused.etag.as_deref()), (401, Some("claim scope")));
    // A browser adds a cookie to requests of any page.
    let token = server_token(&server, "audit:read");
    let request = server.http.get(format!("{}{}", server.url, audit.1));
    let answer = request.header("Cookie", format!("galley_token={token}")).send().await;
    let answer = answer.expect("an answer");
    let challenge = answer.headers()[WWW_AUTHENTICATE].to_str().expect("text").to_owned();
    assert_eq!(answer.status(), 401);
    assert!(challenge.contains("server token in a cookie"), "{challenge}");
}

#[tokio::test]
async fn g14_the_header_that_names_a_user_is_read_once_and_of_servers_alone() {
    let server = Server::start().await;
    let token = server_token(&server, "documents:read audit:read");
    let list = ("GET", "/api/documents");
    let long = "x".repeat(65);
    for headers in [
        &[("Galley-User", "")][..],
        &[("Galley-User", "kim lee")],
        &[("Galley-User", "auth0|kim")],
        &[("Galley-User", "del_1")],
        &[("Galley-User", &long)],
        &[KIM, KIM],
        &[KIM, ("Galley-User", "lee")],
        &[("Galley-User-Name", "Kim")],
        &[KIM, ("Galley-User-Name", "%zz")],
        &[KIM, ("Galley-User-Name", "%0A")],
        &[KIM, ("Galley-User-Name", "Kim"), ("Galley-User-Name", "Kim")],
    ] {
        let refused = call(&server, &token, headers, list, None).await;
        assert_eq!(problem(&refused), (422, "invalid"), "{headers:?}");
    }
    // A route without a user takes the header, too.
    call(&server, &token, &[KIM], ("GET", "/api/admin/audit"), None).await.ok(200);
    let Users { admin, .. } = Users::of(&server).await;
    let kim = server.guest("Kim").await;
    for (who, path) in
        [(&admin, "/api/admin/sessions"), (&kim, "/api/me"), (&kim, "/api/documents")]
    {
        let refused = call(&server, &who.token, &[KIM], ("GET", path), None).await;
        assert_eq!(problem(&refused), (403, "server-token-required"), "{path}");
    }
    let request = server.http.get(format!("{}/api/auth", server.url)).header(KIM.0, KIM.1);
    assert_eq!(request.send().await.expect("an answer").status(), 403);
    let refused = call(&server, "x.y.z", &[KIM], list, None).await;
    assert_eq!(problem(&refused), (401, "unauthenticated"));
}

/// Goal: a client of the provider is a server by its scopes, without a name; a user with `openid` is none.
#[tokio::test]
async fn a_client_of_the_provider_is_a_server() {
    let provider = IdentityProvider::start().await;
    let server = provider.server(&[("AUTH__GUESTS", "false")]).await;
    let mut claims = IdentityProvider::claims("galley-backend@clients", "x", 300);
    let fields = claims.as_object_mut().expect("an object");
    fields.remove("name");
    fields.insert("scope".to_owned(), json!("documents:write"));
    let token = provider.sign(&claims);
    let body = Some(json!({ "title": "x", "text": "" }));
    let made = call(&server, &token, &NAMED_KIM, ("POST", "/api/documents"), body).await.ok(201);
    assert_eq!(made["owner"]["id"], "kim");
    let refused = call(&server, &token, &[KIM], ("GET", "/api/documents"), None).await;
    assert_eq!(
        (problem(&refused), &refused.json["scope"]),
        ((403, "scope-missing"), &json!("documents:read"))
    );
    for scope in [json!("openid profile"), json!(["openid", "profile"]), json!(7)] {
        let mut claims = IdentityProvider::claims("kim", "김민수", 300);
        claims["scope"] = scope;
        let kim =
            Person { id: "kim".to_owned(), name: String::new(), token: provider.sign(&claims) };
        server.get(&kim, "/api/documents").await.ok(200);
    }
    claims["scope"] = json!(["documents:write"]);
    claims["name"] = json!("Kim");
    let refused = call(&server, &provider.sign(&claims), &[], ("GET", "/api/me"), None).await;
    assert_eq!(refused.etag.as_deref(), Some("claim scope"));
    // Without a scope it needs a name.
    for claim in ["name", "scope"] {
        claims.as_object_mut().expect("an object").remove(claim);
    }
    let refused = call(&server, &provider.sign(&claims), &[], ("GET", "/api/me"), None).await;
    assert_eq!(refused.etag.as_deref(), Some("claim name"));
}
