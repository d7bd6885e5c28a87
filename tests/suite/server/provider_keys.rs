//! Users of a host application's identity provider: its keys, their ids, and sessions that outlive a token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::Utc;
use futures_util::future::join_all;
use galley::yjs::protocol;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use reqwest::header::{COOKIE, WWW_AUTHENTICATE};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep_until};

use crate::server::auth::signed;
use crate::server::commands::{galley, galley_with};
use crate::support::fixtures::{found, until};
use crate::support::galley_process::Server;
use crate::support::identity_provider::{AUDIENCE, ISSUER, IdentityProvider, Publishes};
use crate::support::push_service::PushService;
use crate::support::rest_client::{Desk, Person};
use crate::support::webhook_receiver::{events, setting};
use crate::support::ws_client::Peer;

/// Status and cause of `GET /api/me` with this token.
async fn me(server: &Server, token: &str) -> (u16, String) {
    let request = server.http.get(format!("{}/api/me", server.url)).bearer_auth(token);
    let answer = request.send().await.expect("an answer");
    let challenge = answer.headers().get(WWW_AUTHENTICATE).map(|it| it.to_str().expect("text"));
    let cause = challenge.and_then(|it| it.split('"').nth(3)).unwrap_or_default().to_owned();
    (answer.status().as_u16(), cause)
}

/// The warning of `/readyz` about the keys. The server is ready with it and without.
async fn warning(server: &Server) -> Option<String> {
    let answer = server.http.get(format!("{}/readyz", server.url)).send().await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.status(), 200);
    let body: Value = answer.json().await.expect("JSON");
    let warnings = body["warnings"].as_array()?;
    let warning = warnings.iter().find(|warning| warning["name"] == "keys")?;
    Some(warning["remedy"].as_str().expect("text").to_owned())
}

/// A desk of two users of the provider.
async fn desk_of(server: &Server, provider: &IdentityProvider) -> Desk {
    let (kim, lee) = (provider.person("kim", "김민수"), provider.person("lee", "이서연"));
    server.desk_of(kim, lee, "text").await
}

#[tokio::test]
async fn g14_a_user_of_the_provider_has_documents_and_a_seat_and_no_admin_rights() {
    let provider = IdentityProvider::start().await;
    let server = provider.server(&[("AUTH__GUESTS", "false")]).await;
    let desk = desk_of(&server, &provider).await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    writer.append(" and more");
    reviewer.reads("text and more").await;
    let mut claims = IdentityProvider::claims("kim", "Kim", 300);
    claims["admin"] = json!(true);
    let admin = Person { token: provider.sign(&claims), ..desk.writer.clone() };
    server.get(&admin, "/api/admin/sessions").await.problem(403, "not-admin");
    let request = server.http.get(format!("{}/api/me", server.url));
    let request = request.header(COOKIE, format!("galley_token={}", desk.writer.token));
    let by_cookie: Value = request.send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!((&by_cookie["id"], &by_cookie["name"]), (&json!("kim"), &json!("김민수")));
    // The server's own tokens count beside them.
    let own = signed(&server, "park", "Park", 60);
    server.get(&own, "/api/me").await.ok(200);
    assert_eq!(provider.requests(), 1);
}

/// The vector of `src/http/PROTOCOL.md`.
#[tokio::test]
async fn a_subject_of_any_form_is_a_user() {
    let provider = IdentityProvider::start().await;
    let server = provider.server(&[]).await;
    for (subject, id) in [
        ("auth0|kim@example.com", "ext_Tr_ETGrEVhXbeOIfvZCul3gNypCUWsFbyKhuOm7pbcA"),
        ("김민수", "ext_ktCJA0BYfhen7IvsuAUrvPzMfGTs57AjlSeqL0grvHU"),
        ("user-17", "user-17"),
    ] {
        let me = server.get(&provider.person(subject, "Kim"), "/api/me").await.ok(200);
        assert_eq!(me["id"], id);
    }
    let longest = server.get(&provider.person(&"x".repeat(255), "Kim"), "/api/me").await.ok(200);
    assert!(longest["id"].as_str().is_some_and(|id| id.starts_with("ext_")), "{longest}");
    for subject in ["", &"x".repeat(256), "a\nb", "a\u{7f}b"] {
        let refused = me(&server, &provider.person(subject, "Kim").token).await;
        assert_eq!(refused, (401, "claim sub".to_owned()), "{subject:?}");
    }
}

/// Goal: each token that proves nothing is refused by REST and by the websocket, and names its fault.
#[tokio::test]
async fn g14_a_token_that_the_keys_do_not_verify_is_refused() {
    let (provider, other) = (IdentityProvider::start().await, IdentityProvider::start().await);
    let server = provider.server(&[]).await;
    let desk = desk_of(&server, &provider).await;
    let claims = IdentityProvider::claims("kim", "Kim", 300);
    let with = |claim: &str, value: Value| {
        let mut claims = claims.clone();
        claims[claim] = value;
        provider.sign(&claims)
    };
    let header = |algorithm, kid: &str| Header { kid: Some(kid.into()), ..Header::new(algorithm) };
    let by_public_key = EncodingKey::from_secret(provider.public().to_string().as_bytes());
    let by_public_key = encode(&header(Algorithm::HS256, "first"), &claims, &by_public_key);
    let valid = provider.sign(&claims);
    let rest = valid.split_once('.').expect("three parts").1;
    let under = |header: Value| format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header.to_string()));
    let none = under(json!({ "alg": "none" }));
    let none = format!("{}.", none.rsplit_once('.').expect("three parts").0);
    let now = Utc::now().timestamp();
    for (token, cause) in [
        (none, "header"),
        (by_public_key.expect("signed"), "signature"),
        (other.sign(&claims), "signature"),
        (under(json!({ "alg": "PS256", "kid": "first" })), "header alg"),
        (under(json!({ "alg": "ES256", "kid": "second" })), "header kid"),
        (under(json!({ "alg": "ES256" })), "header kid"),
        (with("aud", json!("another")), "claim aud"),
        (with("aud", Value::Null), "claim aud"),
        (with("iss", json!("https://other.example.com/")), "claim iss"),
        (with("exp", json!(now - 31)), "claim exp"),
        (with("nbf", json!(now + 90)), "claim nbf"),
        (with("iat", json!(now + 90)), "claim iat"),
    ] {
        assert_eq!(me(&server, &token).await, (401, cause.to_owned()), "{token}");
        let peer = Peer::connect(&server.url, &desk.link, "writer", &token, "events=1").await;
        assert_eq!(peer.closed().await, (4401, "token-not-valid".to_owned()), "{cause}");
    }
    server.get(&desk.writer, "/api/me").await.ok(200);
}

/// Goal: a provider that is away, or publishes no usable set, stops no start. Clients come back once it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_starts_without_the_keys_and_finds_them_later() {
    let without = async |publishes: Publishes| {
        let provider = IdentityProvider::publishing(publishes).await;
        let server = provider.server(&[]).await;
        let remedy = warning(&server).await.expect("a warning");
        assert!(remedy.contains("no token of the provider is accepted"), "{remedy}");
        assert!(!remedy.contains("127.0.0.1"), "{remedy}");
        let kim = provider.person("kim", "Kim");
        assert_eq!(me(&server, &kim.token).await, (401, "keys-unavailable".to_owned()));
        let desk = server.desk("text").await;
        let peer = Peer::connect(&server.url, &desk.link, "writer", &kim.token, "").await;
        assert_eq!(peer.closed().await, (4503, "keys".to_owned()), "{publishes:?}");
        provider.publish(Publishes::Keys);
        found(async || match me(&server, &kim.token).await {
            (200, _) => Ok(()),
            refused => Err(refused),
        })
        .await;
        until("no warning", async || warning(&server).await.is_none()).await;
    };
    join_all([
        without(Publishes::Nothing),
        without(Publishes::NoKey),
        without(Publishes::TooMuch),
        without(Publishes::Slowly),
        without(Publishes::Redirect),
        without(Publishes::Html),
        without(Publishes::OctKey),
        without(Publishes::OneIdTwice),
    ])
    .await;
}

/// Goal: a new key is found by the first token that names it. While the provider is away, the last set stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotated_key_is_found_and_an_outage_leaves_the_last_set_in_force() {
    let provider = IdentityProvider::start().await;
    let server = provider.server(&[]).await;
    let former = provider.person("kim", "Kim");
    assert_eq!(me(&server, &former.token).await.0, 200);
    provider.rotate("second");
    let present = provider.person("kim", "Kim");
    let mut causes = Vec::new();
    found(async || match me(&server, &present.token).await {
        (200, _) => Ok(()),
        (_, cause) => {
            causes.push(cause);
            Err(())
        }
    })
    .await;
    assert!(causes.iter().all(|it| ["header kid", "keys-unavailable"].contains(&&**it)));
    assert_eq!(provider.requests(), 2, "of {} tokens", causes.len());
    let (_, cause) = me(&server, &former.token).await;
    assert_eq!(cause, "header kid", "the set has the former key no more");

    provider.publish(Publishes::Nothing);
    provider.rotate("third");
    let next = provider.person("kim", "Kim");
    let remedy = found(async || {
        assert_eq!(me(&server, &next.token).await.0, 401);
        warning(&server).await.ok_or("an attempt fails")
    })
    .await;
    assert!(remedy.contains("the last set stays in force"), "{remedy}");
    server.has("galley_keys_failing{setting=\"auth.jwks_url\"}", 1).await;
    assert_eq!(me(&server, &present.token).await.0, 200);
    assert_eq!(me(&server, &next.token).await, (401, "keys-unavailable".to_owned()));
}

#[tokio::test]
async fn the_doctor_reads_the_keys() {
    let provider = IdentityProvider::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let settings = [
        ("GALLEY_AUTH__JWKS_URL", provider.url.as_str()),
        ("GALLEY_AUTH__ISSUER", ISSUER),
        ("GALLEY_AUTH__AUDIENCE", AUDIENCE),
    ];
    let shown = galley_with(folder.path(), &["doctor"], &settings).await.result();
    assert!(shown.contains("ok     auth.jwks_url: keys of the provider: 1"), "{shown}");
    provider.publish(Publishes::Html);
    let shown = galley_with(folder.path(), &["doctor"], &settings).await.result();
    assert!(shown.contains("FAULT  auth.jwks_url: the response is no key set"), "{shown}");
}

/// A token whose session ends after that many seconds.
fn ending(provider: &IdentityProvider, id: &str, seconds: i64) -> String {
    // The leeway of 30 s follows `exp`.
    provider.sign(&IdentityProvider::claims(id, "Kim", seconds - 30))
}

fn renew(peer: &Peer, token: &str) {
    peer.send(protocol::token(token));
}

/// Goal: tokens that follow one another are one session: no other user, no webhook and no version notices.
#[tokio::test]
async fn forty_renewals_leave_no_trace_of_the_tokens() {
    let (provider, receiver) = (IdentityProvider::start().await, PushService::start().await);
    let endpoint = setting(&[&receiver.url], &["seat.taken", "seat.left"]);
    let server = provider.server(&[("NOTIFY__WEBHOOKS", &endpoint)]).await;
    let desk = desk_of(&server, &provider).await;
    let reviewer = server.reviewer(&desk).await;
    let first = ending(&provider, "kim", 8);
    let ends_at = Instant::now() + Duration::from_secs(8);
    let writer = Peer::connect(&server.url, &desk.link, "writer", &first, "events=1").await;
    writer.event("seat.granted").await;
    writer.synced().await;
    writer.event("peer.joined").await;
    reviewer.event("peer.joined").await;
    for seconds in 0..40 {
        renew(&writer, &ending(&provider, "kim", 200 + seconds));
    }
    sleep_until(ends_at + Duration::from_secs(1)).await;
    writer.append(" and more");
    writer.saved().await;
    reviewer.reads("text and more").await;
    let of_seats = |peer: &Peer| -> Vec<Value> {
        let mut events = peer.take_events();
        events.retain(|event| event["event"] != "document.saved");
        events
    };
    assert_eq!((of_seats(&writer), of_seats(&reviewer)), (vec![], vec![]));
    receiver.has_only(2).await;
    assert!(events(&receiver).iter().all(|event| event["type"] == "seat.taken"));
    let path = format!("/api/documents/{}/versions", desk.document);
    let versions = server.get(&desk.writer, &path).await.ok(200);
    assert_eq!(versions["versions"], json!([]));
    // The last token counts, also an earlier end.
    renew(&writer, &ending(&provider, "kim", 2));
    assert_eq!(writer.closed().await, (4401, "token-expired".to_owned()));
    reviewer.event("peer.left").await;
}

#[tokio::test]
async fn a_renewal_by_another_user_or_by_an_invalid_token_ends_the_socket() {
    let provider = IdentityProvider::start().await;
    let server = provider.server(&[]).await;
    let desk = desk_of(&server, &provider).await;
    let valid = desk.writer.token.clone();
    let own = signed(&server, "kim", "Kim", 0).token;
    for (token, close) in [
        (provider.person("lee", "Kim").token, (4401, "token-not-valid")),
        (ending(&provider, "kim", -1), (4401, "token-not-valid")),
        ("x.y.z".to_owned(), (4401, "token-not-valid")),
        (String::new(), (4401, "token-not-valid")),
    ] {
        let writer = server.writer(&desk).await;
        // A token of the server's own secret, of the same user, is as good.
        renew(&writer, &own);
        renew(&writer, &valid);
        renew(&writer, &token);
        let (code, reason) = writer.closed().await;
        assert_eq!((code, reason.as_str()), close, "{token}");
    }
    let writer = server.writer(&desk).await;
    writer.send(vec![101, 9, b'x']);
    assert_eq!(writer.closed().await, (4400, "frame".to_owned()));
}

/// Goal: a user who waits for a seat renews the token, too.
#[tokio::test]
async fn a_waiter_renews_its_token() {
    let provider = IdentityProvider::start().await;
    let server = provider.server(&[]).await;
    let desk = desk_of(&server, &provider).await;
    let holder = server.writer(&desk).await;
    let wait = async |token: &str| {
        let query = "events=1&wait=60";
        let waiter = Peer::connect(&server.url, &desk.link, "writer", token, query).await;
        waiter.event("seat.waiting").await;
        waiter
    };
    let ends_at = Instant::now() + Duration::from_secs(8);
    let waiter = wait(&ending(&provider, "kim", 8)).await;
    renew(&waiter, &ending(&provider, "kim", 200));
    let impatient = wait(&desk.writer.token).await;
    renew(&impatient, &ending(&provider, "kim", 2));
    assert_eq!(impatient.closed().await, (4401, "token-expired".to_owned()));
    let false_one = wait(&desk.writer.token).await;
    renew(&false_one, &desk.reviewer.token);
    assert_eq!(false_one.closed().await, (4401, "token-not-valid".to_owned()));
    sleep_until(ends_at + Duration::from_secs(1)).await;
    holder.leave().await;
    waiter.event("seat.granted").await;
    waiter.synced().await;
    waiter.append(" and more");
    waiter.saved().await;
}

/// Goal: the first renewals by a new key come before the server has it, and end no session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_by_a_key_that_the_server_does_not_have_yet_counts_at_the_end() {
    let (provider, other) =
        (IdentityProvider::publishing(Publishes::Nothing).await, IdentityProvider::start().await);
    let server = provider.server(&[]).await;
    let (kim, lee) = (signed(&server, "kim", "Kim", 0), signed(&server, "lee", "Lee", 0));
    let desk = server.desk_of(kim, lee, "text").await;
    let short = async |id: &str| {
        let arguments = ["token", "--sub", id, "--name", "Kim", "--ttl", "16s"];
        let token = galley(server.folder(), &arguments).await.ok().trim().to_owned();
        Person { id: id.to_owned(), name: "Kim".to_owned(), token }
    };
    let (kim, lee) = (short("kim").await, short("lee").await);
    let ends_at = Instant::now() + Duration::from_secs(16);
    let short = Desk { writer: kim, reviewer: lee, ..desk.clone() };
    let (writer, reviewer) = (server.writer(&short).await, server.reviewer(&short).await);
    renew(&writer, &provider.person("kim", "Kim").token);
    renew(&reviewer, &other.person("lee", "Lee").token);
    provider.publish(Publishes::Keys);
    assert_eq!(reviewer.closed().await, (4401, "token-not-valid".to_owned()));
    sleep_until(ends_at + Duration::from_secs(1)).await;
    writer.append(" and more");
    writer.saved().await;
}
