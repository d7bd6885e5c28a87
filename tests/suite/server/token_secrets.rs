//! The secrets of tokens, which an operator rotates, and the root secret, which the database knows.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::header::WWW_AUTHENTICATE;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::auth::signed;
use crate::server::commands::{galley, galley_with};
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::rest_client::Desk;

const NEW: &str = "a new secret of tokens, thirty-two bytes";

fn folder() -> Arc<TempDir> {
    Arc::new(TempDir::new().expect("a folder"))
}

/// The setting with these names, each with its file in `data`.
fn secrets(names: &[(&str, &str)]) -> String {
    let rows = names.iter().map(|(kid, file)| json!({ "kid": kid, "file": file }));
    Value::from(rows.collect::<Vec<_>>()).to_string()
}

/// `Ok`: the token is accepted. Else the cause.
async fn verified(server: &Server, token: &str) -> Result<(), String> {
    let request = server.http.get(format!("{}/api/me", server.url)).bearer_auth(token);
    let answer = request.send().await.expect("an answer");
    let Some(challenge) = answer.headers().get(WWW_AUTHENTICATE) else { return Ok(()) };
    Err(challenge.to_str().expect("text").split('"').nth(3).expect("a cause").to_owned())
}

/// The name of the secret in a token's header.
fn kid(token: &str) -> Value {
    let header = URL_SAFE_NO_PAD.decode(token.split('.').next().expect("a header"));
    let header: Value = serde_json::from_slice(&header.expect("base64url")).expect("JSON");
    header["kid"].clone()
}

async fn invite(server: &Server, desk: &Desk) -> String {
    let path = format!("/api/documents/{}/share-link", desk.document);
    let link = server.post(&desk.writer, &path, json!({})).await.ok(200);
    link["invite"]["token"].as_str().expect("an invite").to_owned()
}

/// Goal: no user signs in again when an operator rotates the secret of tokens, and no invite ends.
#[tokio::test]
async fn a_rotation_of_the_secrets_of_tokens_ends_the_tokens_of_a_removed_one_alone() {
    let folder = folder();
    let mut server = Server::in_folder(Arc::clone(&folder), &[]).await;
    let desk = server.desk("text").await;
    assert_eq!(kid(&desk.writer.token), Value::Null);
    assert!(server.stop().await.success());

    std::fs::write(folder.path().join("data/new"), NEW).expect("written");
    let both = secrets(&[("2027", "data/new"), ("2026", "data/secret")]);
    let settings = [("AUTH__TOKEN_SECRETS", both.as_str())];
    let mut server = Server::in_folder(Arc::clone(&folder), &settings).await;
    let writer = server.writer(&desk).await;
    writer.append(" and more");
    writer.saved().await;
    assert_eq!(invite(&server, &desk).await, desk.invite);
    let lee = server.guest("Lee").await;
    assert_eq!(kid(&lee.token), "2027");
    let arguments = ["token", "--sub", "kim", "--name", "Kim"];
    let variable = [("GALLEY_AUTH__TOKEN_SECRETS", both.as_str())];
    let printed = galley_with(folder.path(), &arguments, &variable).await.ok();
    assert_eq!(kid(&printed), "2027");
    let by_root = signed(&server, "park", "Park", 0).token;
    for token in [&lee.token, printed.trim(), &desk.reviewer.token, &by_root] {
        assert_eq!(verified(&server, token).await, Ok(()));
    }
    assert!(server.stop().await.success());

    let one = secrets(&[("2027", "data/new")]);
    let settings = [("AUTH__TOKEN_SECRETS", one.as_str())];
    let server = Server::in_folder(Arc::clone(&folder), &settings).await;
    assert_eq!(verified(&server, &lee.token).await, Ok(()));
    for token in [&desk.writer.token, &by_root] {
        assert_eq!(
            verified(&server, token).await,
            Err("signature".to_owned()),
            "the root signs none"
        );
    }
    let (_, rest) = lee.token.split_once('.').expect("three parts");
    let renamed = URL_SAFE_NO_PAD.encode(json!({ "alg": "HS256", "kid": "2026" }).to_string());
    let renamed = verified(&server, &format!("{renamed}.{rest}")).await;
    assert_eq!(renamed, Err("header kid".to_owned()));
}

#[tokio::test]
async fn a_secret_of_tokens_that_is_missing_or_short_stops_the_start() {
    let folder = folder();
    std::fs::write(folder.path().join("short"), "short").expect("written");
    for file in ["missing", "short"] {
        let setting = secrets(&[("2027", file)]);
        let variable = [("GALLEY_AUTH__TOKEN_SECRETS", setting.as_str())];
        let arguments = ["serve", "--listen", "127.0.0.1:0"];
        let ran = galley_with(folder.path(), &arguments, &variable).await;
        let complaint = ran.complaint();
        assert_eq!(ran.code(), Some(1), "{complaint}");
        assert!(complaint.contains(&format!("auth.token_secrets: {file}")), "{complaint}");
        assert!(complaint.contains("galley keys"), "{complaint}");
    }
    assert!(!folder.path().join("missing").exists());
}

/// A start with another root, which must fail and change nothing.
async fn is_refused(folder: &Path, url: &str) {
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--database-url", url];
    for _ in 0..2 {
        let ran = galley(folder, &arguments).await;
        let complaint = ran.complaint();
        assert_eq!(ran.code(), Some(1), "{complaint}");
        for part in ["auth.secret_file: ", "data/secret", "galley serve --new-root"] {
            assert!(complaint.contains(part), "{complaint}");
        }
    }
}

async fn a_new_root_ends_the_invites(url: &str) {
    let folder = folder();
    let settings = [("DATABASE__URL", url)];
    let mut server = Server::in_folder(Arc::clone(&folder), &settings).await;
    let (kim, lee) = (signed(&server, "kim", "Kim", 0), signed(&server, "lee", "Lee", 0));
    let desk = server.desk_of(kim, lee, "text").await;
    let address = server.get(&desk.writer, "/api/me/address").await.ok(200);
    assert!(server.stop().await.success());
    let secret = folder.path().join("data/secret");
    let former = std::fs::read(&secret).expect("a secret");
    std::fs::write(&secret, NEW).expect("written");
    is_refused(folder.path(), url).await;
    std::fs::write(&secret, &former).expect("written");
    let mut server = Server::in_folder(Arc::clone(&folder), &settings).await;
    assert!(server.stop().await.success());

    std::fs::write(&secret, NEW).expect("written");
    let environment = vec![("GALLEY_DATABASE__URL".to_owned(), url.to_owned())];
    let arguments = ["serve", "--new-root"];
    let again =
        async || Server::spawn_with(Arc::clone(&folder), environment.clone(), &arguments).await;
    let mut server = again().await;
    let log = server.log();
    let line = log.lines().find(|line| line.contains("the root secret is replaced"));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("share_links=1") && line.contains(&desk.link), "{line}");
    assert_eq!(log.matches("the root secret is replaced").count(), 1);
    // The secret signed the tokens, too.
    let writer = signed(&server, "kim", "Kim", 0);
    let next = Desk { writer: writer.clone(), ..desk.clone() };
    let renewed = invite(&server, &next).await;
    assert_ne!(renewed, desk.invite);
    let check = async |invite: &str| {
        let path = format!("/api/share-links/{}/invite/check", desk.link);
        server.post(&writer, &path, json!({ "invite": invite })).await.status.as_u16()
    };
    assert_eq!((check(&desk.invite).await, check(&renewed).await), (404, 200));
    let after = server.get(&writer, "/api/me/address").await.ok(200);
    assert_ne!(after, address, "a personal link");
    assert!(verified(&server, &desk.writer.token).await.is_err());
    assert!(server.stop().await.success());

    let mut server = again().await;
    assert!(server.log().contains("no invite ends"), "{}", server.log());
    assert!(server.stop().await.success());
    let server = Server::in_folder(folder, &settings).await;
    assert_eq!(invite(&server, &next).await, renewed);
}

#[tokio::test]
async fn a_new_root_ends_the_invites_in_sqlite() {
    a_new_root_ends_the_invites("sqlite://data/galley.db").await;
}

#[tokio::test]
async fn a_new_root_ends_the_invites_in_postgresql() {
    let database = postgres_server::shared().database().await;
    a_new_root_ends_the_invites(&database.url()).await;
}
