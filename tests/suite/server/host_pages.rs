//! Pages of the host application: their origins, their frames, and the cookie that they exchange a token for.

use futures_util::StreamExt as _;
use reqwest::Method;
use reqwest::header::{CONTENT_SECURITY_POLICY, ORIGIN, SET_COOKIE};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::support::fixtures::until;
use crate::support::galley_process::{Server, command_of};
use crate::support::rest_client::Desk;

const HOST: &str = "https://app.example";
const FOREIGN: &str = "https://evil.example";
const SESSION: &str = "/api/auth/session";

async fn with_host() -> Server {
    Server::with(&[("SERVER__ALLOWED_ORIGINS", "https://app.example, https://other.example")]).await
}

/// A token of the host application.
async fn token(server: &Server, sub: &str, admin: bool) -> String {
    let mut command = command_of(env!("CARGO_BIN_EXE_galley").as_ref());
    command.args(["token", "--sub", sub, "--name", "Lee"]).current_dir(server.folder());
    if admin {
        command.arg("--admin");
    }
    let made = command.output().await.expect("the binary");
    String::from_utf8(made.stdout).expect("text").trim().to_owned()
}

/// The first frame of a socket: none of the protocol, or the code and reason of its close.
async fn first(
    server: &Server,
    desk: &Desk,
    origin: &str,
    credential: (&'static str, String),
) -> Option<(u16, String)> {
    let address = server.url.replacen("http", "ws", 1);
    let address = format!("{address}/ws/share-links/{}/writer", desk.link);
    let mut request = address.into_client_request().expect("a request");
    if !origin.is_empty() {
        request.headers_mut().insert("origin", origin.parse().expect("a header"));
    }
    request.headers_mut().insert(credential.0, credential.1.parse().expect("a header"));
    let (socket, _response) = connect_async(request).await.expect("a handshake");
    let first = async |message: Result<Message, _>| match message.expect("a message") {
        Message::Close(close) => {
            Some(close.map(|close| (u16::from(close.code), close.reason.to_string())))
        }
        Message::Binary(_) => Some(None),
        _ => None,
    };
    std::pin::pin!(socket.filter_map(first)).next().await.expect("a frame or an end")
}

/// Goal: a page of an allowed origin opens a socket with a token, and never with the cookie; a foreign page learns
/// by a close code that it is foreign, and the log names it.
#[tokio::test]
async fn g14_an_allowed_origin_opens_a_socket_with_a_token_and_never_with_the_cookie() {
    let server = with_host().await;
    let desk = server.desk("text").await;
    let offered = || {
        let token = &desk.writer.token;
        ("sec-websocket-protocol", format!("galley, galley.token.{token}"))
    };
    let cookie = || ("cookie", format!("galley_token={}", desk.writer.token));
    let refused = Some((4403, "foreign-origin".to_owned()));
    assert_eq!(first(&server, &desk, FOREIGN, offered()).await, refused);
    assert_eq!(first(&server, &desk, "null", offered()).await, refused);
    assert_eq!(first(&server, &desk, FOREIGN, cookie()).await, refused);
    assert_eq!(first(&server, &desk, HOST, cookie()).await, refused);
    assert_eq!(first(&server, &desk, "", cookie()).await, refused, "a cookie needs a witness");
    let suffixed = format!("{}.evil.example", server.url);
    let https = server.url.replace("http:", "https:");
    for origin in [&*suffixed, &*https, "http://127.0.0.1:1"] {
        assert_eq!(first(&server, &desk, origin, offered()).await, refused, "{origin}");
    }
    let own = first(&server, &desk, &server.url, cookie()).await;
    assert_eq!(own, None, "a frame of the protocol");
    until("a line of the refusal", async || {
        let log = server.log();
        let line = log.lines().find(|line| line.contains("a claim of a seat was refused"));
        line.is_some_and(|line| line.contains("foreign-origin") && line.contains(" INFO "))
    })
    .await;
    assert_eq!(first(&server, &desk, HOST, offered()).await, None);
}

/// The response to a request of a page: its status, and its headers of CORS and the cookie.
async fn from(
    server: &Server,
    origin: &str,
    (method, path): (Method, &str),
    headers: &[(&'static str, &str)],
) -> (u16, Value) {
    let mut request = server.http.request(method, format!("{}{path}", server.url));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.header(ORIGIN, origin).send().await.expect("an answer");
    let shown = |name: &str| {
        let value = response.headers().get(name)?;
        Some(value.to_str().expect("text").to_owned())
    };
    let names = ["access-control-allow-origin", "access-control-allow-credentials", "set-cookie"];
    (response.status().as_u16(), json!(names.map(shown)))
}

/// Goal: pages of an allowed origin read the API with a token; the cookie gives them nothing, and a foreign page
/// gets no leave.
#[tokio::test]
async fn g14_a_page_of_an_allowed_origin_uses_the_api_with_a_token_and_never_with_the_cookie() {
    let server = with_host().await;
    let kim = server.guest("Kim").await;
    let bearer = format!("Bearer {}", kim.token);
    let cookie = format!("galley_token={}", kim.token);
    let list = (Method::GET, "/api/documents");
    let allowed = json!([HOST, null, null]);
    let by_token = [("authorization", bearer.as_str())];
    assert_eq!(from(&server, HOST, list.clone(), &by_token).await, (200, allowed.clone()));
    let none = json!([null, null, null]);
    assert_eq!(from(&server, FOREIGN, list.clone(), &by_token).await, (200, none.clone()));
    // Without credentials in the response, a browser shows the page nothing of it.
    let by_cookie = [("cookie", cookie.as_str())];
    assert_eq!(from(&server, HOST, list, &by_cookie).await, (200, allowed.clone()));
    let create = (Method::POST, "/api/documents");
    assert_eq!(from(&server, HOST, create, &by_cookie).await, (403, allowed.clone()));
    let guest = (Method::POST, "/api/auth/guest");
    assert_eq!(
        from(&server, HOST, guest, &[]).await,
        (403, allowed.clone()),
        "no account of its choice"
    );
    let preflight = |path| (Method::OPTIONS, path);
    let method = ("access-control-request-method", "PATCH");
    let header = ("access-control-request-headers", "authorization, if-match, content-type");
    assert_eq!(from(&server, HOST, preflight("/api/me"), &[method, header]).await, (200, allowed));
    assert_eq!(from(&server, FOREIGN, preflight("/api/me"), &[method, header]).await, (200, none));
    let with_cookie = json!([HOST, "true", null]);
    assert_eq!(from(&server, HOST, preflight(SESSION), &[method]).await, (200, with_cookie));
    let without = Server::start().await;
    let found = from(&without, HOST, preflight("/api/me"), &[method]).await;
    assert_eq!(found, (405, json!([null, null, null])), "no origin is allowed by default");
}

/// Goal: a token of the host application becomes a cookie of this server, which signs out as any other; neither
/// a cookie, nor a guest, nor a foreign page exchanges one.
#[tokio::test]
async fn a_token_of_the_host_is_exchanged_for_the_cookie() {
    let server = with_host().await;
    let lee = token(&server, "lee-1", true).await;
    let bearer = format!("Bearer {lee}");
    let exchange = (Method::POST, SESSION);
    let (status, shown) =
        from(&server, HOST, exchange.clone(), &[("authorization", &bearer)]).await;
    assert_eq!((status, &shown[0], &shown[1]), (204, &json!(HOST), &json!("true")));
    let set = shown[2].as_str().expect("a cookie");
    assert!(set.contains("; HttpOnly; SameSite=Lax; Path=/; Max-Age=43200"), "{set}");
    let cookie = set.split(';').next().expect("a pair").to_owned();
    let me = (Method::GET, "/api/me");
    let ours = server.url.clone();
    let by_cookie = [("cookie", cookie.as_str())];
    assert_eq!(from(&server, &ours, me, &by_cookie).await.0, 200);
    let admin = (Method::GET, "/api/admin/sessions");
    assert_eq!(
        from(&server, &ours, admin, &by_cookie).await.0,
        403,
        "no right of an administrator"
    );
    let problem = async |origin: &str, headers: &[(&'static str, &str)]| {
        let mut request = server.http.post(format!("{ours}{SESSION}")).header(ORIGIN, origin);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let problem: Value = request.send().await.expect("an answer").json().await.expect("JSON");
        (problem["status"].clone(), problem["type"].clone())
    };
    let expected = |status: u16, name: &str| (json!(status), json!(format!("/problems/{name}")));
    assert_eq!(problem(&ours, &by_cookie).await, expected(403, "bearer-required"));
    let by_token = [("authorization", bearer.as_str())];
    assert_eq!(problem(FOREIGN, &by_token).await, expected(403, "foreign-origin"));
    let guest = format!("Bearer {}", server.guest("Kim").await.token);
    let by_guest = [("authorization", guest.as_str())];
    assert_eq!(problem(&ours, &by_guest).await, expected(409, "guest-session"));
    assert_eq!(problem(&ours, &[]).await, expected(401, "unauthenticated"));
    let leave = (Method::POST, "/api/auth/leave");
    let (status, shown) = from(&server, &ours, leave, &by_cookie).await;
    assert_eq!(status, 204);
    assert!(shown[2].as_str().is_some_and(|set| set.starts_with("galley_token=;")), "{shown}");
}

/// Goal: only the pages of the named origins show Galley's in a frame; there the cookie belongs to the frame.
#[tokio::test]
async fn g14_only_the_named_origins_show_the_page_in_a_frame() {
    let settings = [
        ("SERVER__PUBLIC_URL", "https://galley.example"),
        ("SERVER__PAGE_URL", "https://desk.example"),
        ("SERVER__FRAME_ANCESTORS", "https://app.example https://b.example"),
        ("AUTH__SESSION", "5m"),
    ];
    let server = Server::with(&settings).await;
    let policy = async |server: &Server| {
        let page = server.http.get(format!("{}/", server.url)).send().await.expect("an answer");
        let policy = page.headers()[CONTENT_SECURITY_POLICY].to_str().expect("text").to_owned();
        let of_frames = policy.split("; ").find(|part| part.starts_with("frame-ancestors"));
        of_frames.expect("a directive").to_owned()
    };
    assert_eq!(policy(&server).await, "frame-ancestors https://app.example https://b.example");
    assert_eq!(policy(&Server::start().await).await, "frame-ancestors 'none'");
    let request = server.http.post(format!("{}{SESSION}", server.url));
    let lee = token(&server, "lee-1", false).await;
    let made = request.bearer_auth(lee).send().await.expect("an answer");
    let set = made.headers()[SET_COOKIE].to_str().expect("text");
    assert!(set.starts_with("__Host-galley_token="), "{set}");
    assert!(
        set.ends_with("HttpOnly; SameSite=None; Secure; Partitioned; Path=/; Max-Age=300"),
        "{set}"
    );
    // Links lead to the page, which is one of the server's origins and names.
    let kim = server.guest("Kim").await;
    let document = server.post(&kim, "/api/documents", json!({ "title": "t" })).await.ok(201);
    let id = document["id"].as_str().expect("an id");
    let link =
        server.post(&kim, &format!("/api/documents/{id}/share-link"), json!({})).await.ok(201);
    let url = link["invite"]["url"].as_str().expect("a URL");
    assert!(url.starts_with("https://desk.example/s/shr_"), "{url}");
    let cookie = format!("__Host-galley_token={}", kim.token);
    let create = server.http.post(format!("{}/api/documents", server.url));
    let create = create.header("cookie", cookie).header(ORIGIN, "https://desk.example");
    let create = create.header("host", "desk.example").json(&json!({ "title": "t" }));
    assert_eq!(create.send().await.expect("an answer").status(), 201);
}

/// Goal: the log names a request for another host, with the remedy.
#[tokio::test]
async fn a_request_for_another_host_is_a_line_of_the_log() {
    let server = Server::start().await;
    let request = server.http.get(format!("{}/", server.url)).header("host", "other.example");
    assert_eq!(request.send().await.expect("an answer").status(), 421);
    until("a line of the refusal", async || {
        let log = server.log();
        let line = log.lines().find(|line| line.contains("other.example"));
        line.is_some_and(|line| line.contains(" INFO ") && line.contains("server.hosts"))
    })
    .await;
}
