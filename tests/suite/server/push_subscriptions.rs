//! `/api/push-subscriptions`: the browsers of a user; and `/api/push-key`: the server's key for Web Push.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::many_servers::Cluster;
use crate::server::operation_fixtures::{rows, subscription};
use crate::support::galley_process::{Server, command_of};
use crate::support::rest_client::Person;

const ALL: &str = "/api/push-subscriptions";

async fn browsers(server: &Server, who: &Person) -> Vec<Value> {
    rows(&server.get(who, ALL).await.ok(200), "subscriptions")
}

async fn key(server: &Server, who: &Person) -> String {
    server.get(who, "/api/push-key").await.ok(200)["key"].as_str().expect("a key").to_owned()
}

#[tokio::test]
async fn a_browser_is_registered_listed_and_removed() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let mut browser = subscription("one");
    browser["lang"] = json!("ko");
    browser["expirationTime"] = json!(4_102_444_800_000.5);
    let made = server.post(&kim, ALL, browser.clone()).await.ok(201);
    let again = server.post(&kim, ALL, browser).await.ok(200);
    assert_eq!(again, made);
    let list = browsers(&server, &kim).await;
    let shown = json!({
        "id": made["id"],
        "service": "push.example",
        "lang": "ko",
        "expires_at": "2100-01-01T00:00:00Z",
        "created_at": made["created_at"],
    });
    assert_eq!(list, [shown]);
    let path = format!("{ALL}/{}", made["id"].as_str().expect("an id"));
    let lee = server.guest("Lee").await;
    server.call(&lee, "DELETE", &path, None).await.problem(404, "not-found");
    assert_eq!(server.call(&kim, "DELETE", &path, None).await.status, 204);
    server.call(&kim, "DELETE", &path, None).await.problem(404, "not-found");
    assert_eq!(browsers(&server, &kim).await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_browser_belongs_to_the_user_who_signed_in_last_on_any_server() {
    let cluster = Cluster::start().await;
    let (kim, lee) = (cluster.one.guest("Kim").await, cluster.one.guest("Lee").await);
    cluster.one.post(&kim, ALL, subscription("shared")).await.ok(201);
    cluster.two.post(&lee, ALL, subscription("shared")).await.ok(200);
    assert_eq!(browsers(&cluster.one, &kim).await.len(), 0);
    assert_eq!(browsers(&cluster.one, &lee).await.len(), 1);
    for number in 0..12 {
        let server = if number % 2 == 0 { &cluster.one } else { &cluster.two };
        server.post(&kim, ALL, subscription(&number.to_string())).await.ok(201);
    }
    assert_eq!(browsers(&cluster.two, &kim).await.len(), 10);
}

#[tokio::test]
async fn g12_an_invalid_subscription_is_refused_and_not_stored() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let with = |pointer: &str, value: Value| {
        let mut body = subscription("one");
        body["lang"] = Value::Null;
        *body.pointer_mut(pointer).expect("a field") = value;
        body
    };
    let long = format!("https://push.example/{}", "x".repeat(2_048));
    let endpoints = [
        "",
        "push.example",
        "http://push.example/x",
        "ftp://push.example/x",
        "https://user:word@push.example/x",
        "https://push.example:22/x",
        "https://localhost/x",
        "https://redis:6379/x",
        "https://127.0.0.1/x",
        "https://0x7f000001/x",
        "https://10.0.0.1/x",
        "https://100.64.0.1/x",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/x",
        "https://[::ffff:10.0.0.1]/x",
        "https://[fd00:ec2::254]/x",
        "https://[64:ff9b::a00:1]/x",
        &long,
    ];
    let keys = ["", "AAAA", "BBBB".repeat(22).leak()];
    let bodies = endpoints
        .map(|endpoint| with("/endpoint", json!(endpoint)))
        .into_iter()
        .chain(keys.map(|key| with("/keys/p256dh", json!(key))))
        .chain(keys.map(|key| with("/keys/auth", json!(key))))
        .chain([with("/lang", json!("fr")), with("/lang", json!(""))])
        .chain([json!(1), json!(-1), json!(1e300)].map(|end| with("/expirationTime", end)));
    for body in bodies {
        let shown = body.to_string();
        let answer = server.post(&kim, ALL, body).await;
        assert_eq!(answer.json["type"], "/problems/invalid-subscription", "{shown}");
        assert_eq!(answer.status, 422);
    }
    for body in [with("/keys", json!({})), with("/endpoint", json!(7)), json!({})] {
        server.post(&kim, ALL, body).await.problem(422, "invalid");
    }
    let longest = with("/endpoint", json!(format!("https://push.example/{}", "x".repeat(5_000))));
    server.post(&kim, ALL, longest).await.problem(413, "too-large");
    assert_eq!(browsers(&server, &kim).await.len(), 0);
}

#[tokio::test]
async fn the_key_of_the_service_outlives_a_restart_and_is_one_for_its_servers() {
    let mut server = Server::with(&[("DATABASE__SHARED_SQLITE", "true")]).await;
    let kim = server.guest("Kim").await;
    let first = key(&server, &kim).await;
    let point = URL_SAFE_NO_PAD.decode(&first).expect("base64url");
    assert_eq!((point.len(), point[0]), (65, 4));
    let file = server.folder().join("data/push-key");
    let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(key(&server.beside().await, &kim).await, first);
    server.stop().await;
    server.start_again().await;
    assert_eq!(key(&server, &kim).await, first);
    let request = server.http.get(format!("{}/api/push-key", server.url)).send().await;
    assert_eq!(request.expect("an answer").status(), 401);
}

#[tokio::test]
async fn a_server_without_pushes_says_so_and_keeps_its_other_routes() {
    let server = Server::with(&[("PUSH__ENABLED", "false")]).await;
    let kim = server.guest("Kim").await;
    server.get(&kim, "/api/push-key").await.problem(404, "push-off");
    server.post(&kim, ALL, subscription("one")).await.problem(404, "push-off");
    assert_eq!(browsers(&server, &kim).await.len(), 0);
    assert!(!server.folder().join("data/push-key").exists());
}

/// A server of an earlier version may have run in a folder without write access.
#[tokio::test]
async fn a_key_file_that_cannot_be_made_stops_no_start_and_another_text_does() {
    let server = Server::with(&[("PUSH__KEY_FILE", "/proc/none/push-key")]).await;
    let kim = server.guest("Kim").await;
    server.get(&kim, "/api/push-key").await.problem(404, "push-off");
    assert!(server.log().contains("push.key_file"), "{}", server.log());
    let folder = Arc::new(TempDir::new().expect("a folder"));
    std::fs::write(folder.path().join("push-key"), "no key").expect("a file");
    let settings =
        [("GALLEY_PUSH__KEY_FILE", "push-key"), ("GALLEY_SERVER__LISTEN", "127.0.0.1:0")];
    let mut command = command_of(env!("CARGO_BIN_EXE_galley").as_ref());
    command.current_dir(folder.path()).envs(settings);
    let output = command.output().await.expect("the binary");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("push-key"), "{error}");
}

#[tokio::test]
async fn g17_subscriptions_are_charged_to_the_address_of_a_guest() {
    let server = Server::with(&[("LIMITS__GUEST_BYTES_PER_HOUR", "65536")]).await;
    let kim = server.guest("Kim").await;
    let path = "x".repeat(1_900);
    let mut accepted = 0;
    loop {
        let answer = server.post(&kim, ALL, subscription(&format!("{accepted}{path}"))).await;
        if answer.status == 429 {
            break answer.problem(429, "too-many-requests");
        }
        accepted += 1;
        assert!(accepted < 65_536 / 1_900, "no limit");
    }
    assert!(20 < accepted, "{accepted}");
}
