//! Sign-in at the provider of `auth.oidc`: `/api/auth/oidc/start`, `/api/auth/oidc/callback` and
//! `/api/auth/oidc/sign-out`.

use chrono::Utc;
use futures_util::future::join_all;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use serde_json::{Value, json};

use crate::server::commands::galley_with;
use crate::server::oidc_fixtures::{Browser, fault, is, server_of};
use crate::support::fixtures::{found, until};
use crate::support::galley_process::Server;
use crate::support::identity_provider::{IdentityProvider, Publishes, query};

const CLIENT: &str = "galley at/team:1";
const SECRET: &str = "s3cret+with &signs=";

#[tokio::test]
async fn g14_a_user_signs_in_at_the_provider_and_out_again() {
    let provider = IdentityProvider::start().await;
    let server = server_of(&provider, &[("AUTH__SESSION", "2h")]).await;
    let mut browser = Browser::new(&server);
    let entry = browser.entry().await;
    let template = format!("{}/api/auth/oidc/start?return={{return}}", server.url);
    assert_eq!((&entry["sign_in_url"], &entry["sign_out_url"]), (&json!(template), &Value::Null));

    let address = browser.start("/d/doc_1%3Fa%3Db").await;
    assert!(address.as_str().starts_with(&format!("{}/authorize?realm=team&", provider.issuer())));
    let redirect_uri = format!("{}/api/auth/oidc/callback", server.url);
    for (name, value) in [
        ("client_id", "galley-team"),
        ("scope", "openid profile"),
        ("redirect_uri", redirect_uri.as_str()),
    ] {
        assert_eq!(query(&address, name), value);
    }
    assert_eq!(browser.cookies.len(), 1);
    let claims = provider.id_claims(&address, "auth0|kim@example.com", "김민수");
    let code = provider.grant(&address, claims);
    let state = query(&address, "state");
    let back =
        browser.answer(&[("code", &code), ("state", &state), ("iss", provider.issuer())]).await;
    assert_eq!(back.as_str(), format!("{}/d/doc_1?a=b", server.url));
    assert_eq!(browser.cookies.len(), 1, "the cookie of the sign-in is gone");

    let entry = browser.entry().await;
    let id = entry["user"]["id"].as_str().expect("an id");
    assert!(id.starts_with("ext_") && entry["user"]["name"] == "김민수", "{entry}");
    let end: chrono::DateTime<Utc> =
        entry["expires_at"].as_str().expect("text").parse().expect("a time");
    assert!((7_100..=7_200).contains(&(end - Utc::now()).num_seconds()), "{end}");
    let out = entry["sign_out_url"].as_str().and_then(|it| it.strip_prefix(&server.url));
    let out = browser.location(out.expect("an address of the server")).await;
    assert!(out.as_str().starts_with(&format!("{}/logout?", provider.issuer())), "{out}");
    let home = format!("{}/", server.url);
    assert_eq!(
        (query(&out, "client_id"), query(&out, "post_logout_redirect_uri")),
        ("galley-team".into(), home)
    );
    assert!(browser.is_signed_in(), "only POST /api/auth/leave removes the cookie");

    // An ID token is no access token.
    let id_token = provider.sign(&provider.id_claims(&address, "kim", "Kim"));
    let me = server.http.get(format!("{}/api/me", server.url)).bearer_auth(id_token).send().await;
    assert_eq!(me.expect("an answer").status(), 401);
    let token = &browser.cookies["galley_token"];
    let leave = server.http.post(format!("{}/api/auth/leave", server.url));
    let leave = leave.header(COOKIE, format!("galley_token={token}")).header(ORIGIN, &server.url);
    assert_eq!(leave.send().await.expect("an answer").status(), 204);
    server.has("galley_sign_ins_total{outcome=\"signed-in\"}", 1).await;
    let log = server.log();
    assert!(log.contains("a user signed in at the provider") && !log.contains(&code), "{log}");
}

/// Goal: each answer that proves nothing signs no user in, and the page has a sentence for it.
#[tokio::test]
async fn g14_an_answer_that_proves_nothing_signs_no_user_in() {
    let (provider, other) = (IdentityProvider::start().await, IdentityProvider::start().await);
    provider.discover(json!({ "userinfo_endpoint": null }));
    let server = server_of(&provider, &[]).await;
    let now = Utc::now().timestamp();
    for (claim, value, outcome) in [
        ("aud", json!("another-client"), "invalid"),
        ("aud", Value::Null, "invalid"),
        ("azp", json!("another-client"), "invalid"),
        ("nonce", json!("x"), "invalid"),
        ("nonce", Value::Null, "invalid"),
        ("iss", json!(other.issuer()), "invalid"),
        ("exp", json!(now - 31), "invalid"),
        ("nbf", json!(now + 90), "invalid"),
        ("iat", json!(now + 90), "invalid"),
        ("sub", json!(""), "invalid"),
        ("name", json!(" "), "nameless"),
    ] {
        let mut browser = Browser::new(&server);
        let back = browser.sign_in(&provider, |claims| claims[claim] = value.clone()).await;
        assert_eq!(fault(&back), is(outcome, "/d/doc_1"), "{claim}: {value}");
        assert_eq!(browser.cookies.len(), 0, "{claim}: {value}");
    }
    let mut browser = Browser::new(&server);
    let address = browser.start("/").await;
    let state = query(&address, "state");
    let code = other.grant(&address, provider.id_claims(&address, "kim", "Kim"));
    let foreign = Browser::new(&server).start("/").await;
    let foreign = query(&foreign, "state");
    for (pairs, outcome) in [
        (&[("code", code.as_str()), ("state", foreign.as_str())][..], "cookie"),
        (&[("code", &code), ("state", "x")], "cookie"),
        (&[("code", &code)], "cookie"),
        (&[("error", "access_denied")], "cookie"),
        (&[("code", &code), ("state", &state)], "refused"),
        (&[("code", &code), ("state", &state)], "cookie"),
    ] {
        assert_eq!(fault(&browser.answer(pairs).await), is(outcome, "/"), "{pairs:?}");
    }
    for (pair, outcome) in [
        (("error", "access_denied"), "denied"),
        (("error", "server_error\n\u{1b}[31m"), "refused"),
        (("iss", "https://id.example.com"), "refused"),
        (("x", "y"), "refused"),
        (("code", ""), "refused"),
    ] {
        let state = query(&browser.start("/d/doc_1").await, "state");
        let back = browser.answer(&[("state", &state), pair]).await;
        assert_eq!(fault(&back), is(outcome, "/d/doc_1"), "{pair:?}");
    }
    assert!(!browser.is_signed_in());
    server.has("galley_sign_ins_total{outcome=\"denied\"}", 1).await;
    let log = server.log();
    assert!(log.contains("claim nonce") && log.contains("server_error[31m"), "{log}");
}

/// Goal: a stolen answer is of no use: the provider takes a code once, and only with the verifier of its sign-in.
#[tokio::test]
async fn g14_a_replayed_or_stolen_code_signs_no_user_in() {
    let provider = IdentityProvider::start().await;
    let server = server_of(&provider, &[]).await;
    let (mut kim, mut thief) = (Browser::new(&server), Browser::new(&server));
    let address = kim.start("/").await;
    let code = provider.grant(&address, provider.id_claims(&address, "kim", "Kim"));
    let of_thief = query(&thief.start("/").await, "state");
    let before = kim.cookies.clone();
    let answer = [("code", code.as_str()), ("state", &query(&address, "state"))];
    assert_eq!(kim.answer(&answer).await.path(), "/");
    assert!(kim.is_signed_in());
    let mut replayed = Browser { cookies: before, ..Browser::new(&server) };
    assert_eq!(fault(&replayed.answer(&answer).await), is("refused", "/"));
    let address = kim.start("/").await;
    let code = provider.grant(&address, provider.id_claims(&address, "kim", "Kim"));
    let stolen = thief.answer(&[("code", &code), ("state", &of_thief)]).await;
    assert_eq!(fault(&stolen), is("refused", "/"));
    assert!(!replayed.is_signed_in() && !thief.is_signed_in());
}

#[tokio::test]
async fn sign_ins_in_several_tabs_do_not_disturb_each_other() {
    let provider = IdentityProvider::start().await;
    let server = server_of(&provider, &[]).await;
    let mut browser = Browser::new(&server);
    let (one, two) = (browser.start("/d/doc_1").await, browser.start("/d/doc_2").await);
    for (address, name, path) in [(&two, "Lee", "/d/doc_2"), (&one, "Kim", "/d/doc_1")] {
        let code = provider.grant(address, provider.id_claims(address, name, name));
        let back = browser.answer(&[("code", &code), ("state", &query(address, "state"))]).await;
        assert_eq!(back.path(), path);
        assert_eq!(browser.entry().await["user"]["id"], name);
    }
    // A header of cookies has a bound, so the ninth sign-in ends the earlier ones.
    for _ in 0..8 {
        browser.start("/").await;
    }
    assert_eq!(browser.cookies.len(), 9);
    browser.start("/").await;
    assert_eq!(browser.cookies.len(), 2);
}

#[tokio::test]
async fn g14_a_page_of_another_site_signs_no_visitor_in() {
    let provider = IdentityProvider::start().await;
    let server = server_of(&provider, &[]).await;
    let client = Browser::new(&server).client;
    for (site, path) in
        [("cross-site", "/d/doc_1"), ("same-site", "/authorize"), ("none", "/authorize")]
    {
        let request = client.get(format!("{}/api/auth/oidc/start?return=/d/doc_1", server.url));
        let answer = request.header("sec-fetch-site", site).send().await.expect("an answer");
        let location = Url::parse(answer.headers()[LOCATION].to_str().expect("text"));
        assert_eq!(location.expect("an address").path(), path, "{site}");
        assert_eq!(answer.headers().contains_key(SET_COOKIE), path == "/authorize", "{site}");
    }
}

#[tokio::test]
async fn g14_a_sign_in_leads_back_to_own_pages_only() {
    let provider = IdentityProvider::start().await;
    let server = server_of(&provider, &[]).await;
    let own = format!("{}/s/shr_1", server.url);
    let long = format!("/{}", "x".repeat(512));
    for (given, leads_to) in [
        ("/s/shr_1", "/s/shr_1"),
        (own.as_str(), "/s/shr_1"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example/", "/"),
        (&format!("{}.evil.example/", server.url), "/"),
        (&format!("{}@evil.example/", server.url), "/"),
        ("javascript:alert(1)", "/"),
        ("d/doc_1", "/"),
        ("/d/\r\nset-cookie: a=b", "/"),
        ("/문서", "/"),
        (&long, "/"),
        ("", "/"),
    ] {
        let mut browser = Browser::new(&server);
        let path = Url::parse_with_params("http://x/api/auth/oidc/start", [("return", given)]);
        let path = path.expect("an address");
        let address =
            browser.location(&format!("{}?{}", path.path(), path.query().expect("a query"))).await;
        let code = provider.grant(&address, provider.id_claims(&address, "kim", "Kim"));
        let back = browser.answer(&[("code", &code), ("state", &query(&address, "state"))]).await;
        assert_eq!(back.as_str(), format!("{}{leads_to}", server.url), "{given}");
    }
}

/// Goal: a server starts without its provider, whatever that sends, and users sign in as soon as it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_starts_without_the_provider_and_finds_it_later() {
    let without = async |publishes: Publishes| {
        let provider = IdentityProvider::publishing(publishes).await;
        let server = server_of(&provider, &[]).await;
        let mut browser = Browser::new(&server);
        assert_eq!(
            fault(&browser.start("/d/doc_1").await),
            is("away", "/d/doc_1"),
            "{publishes:?}"
        );
        assert_eq!(browser.location("/api/auth/oidc/sign-out").await.path(), "/");
        let remedy = found(async || {
            let ready = server.http.get(format!("{}/readyz", server.url)).send().await;
            let ready: Value = ready.expect("an answer").json().await.expect("JSON");
            let mut warnings = ready["warnings"].as_array().into_iter().flatten();
            let warning = warnings.find(|it| it["name"] == "oidc").cloned();
            warning.map(|it| it["remedy"].to_string()).ok_or(ready)
        })
        .await;
        assert!(remedy.contains("the key set of auth.oidc cannot be read"), "{remedy}");
        provider.publish(Publishes::Keys);
        let mut back = browser.start("/").await;
        while back.path() != "/authorize" {
            assert_eq!(fault(&back).0, "away");
            back = browser.start("/").await;
        }
        assert_eq!(browser.sign_in(&provider, |_| {}).await.path(), "/d/doc_1");
    };
    let all = [
        Publishes::Nothing,
        Publishes::TooMuch,
        Publishes::Slowly,
        Publishes::Redirect,
        Publishes::Html,
        Publishes::Refusal,
    ];
    join_all(all.map(without)).await;
}

/// Goal: a token endpoint that fails signs no user in, and the next attempt has its own chance.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_endpoint_that_fails_is_named_on_the_page() {
    let failing = async |(exchanges, outcome): (Publishes, &str)| {
        let provider = IdentityProvider::start().await;
        let server = server_of(&provider, &[]).await;
        let mut browser = Browser::new(&server);
        provider.exchange(exchanges);
        let back = browser.sign_in(&provider, |_| {}).await;
        assert_eq!(fault(&back), is(outcome, "/d/doc_1"), "{exchanges:?}");
        provider.exchange(Publishes::Keys);
        assert_eq!(browser.sign_in(&provider, |_| {}).await.path(), "/d/doc_1");
    };
    let all = [
        (Publishes::Nothing, "away"),
        (Publishes::TooMuch, "away"),
        (Publishes::Slowly, "away"),
        (Publishes::Redirect, "away"),
        (Publishes::Html, "away"),
        (Publishes::Refusal, "refused"),
    ];
    join_all(all.map(failing)).await;
}

/// Goal: the secret stands where the provider takes it, encoded as the standard demands, and in no log.
#[tokio::test]
async fn the_client_proves_itself_as_the_provider_demands() {
    let provider = IdentityProvider::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("secret");
    std::fs::write(&file, format!("{SECRET}\n")).expect("written");
    let oidc =
        json!({ "issuer": provider.issuer(), "client_id": CLIENT, "client_secret_file": file });
    let oidc = oidc.to_string().replace(CLIENT, "galley:team");
    for (methods, proof) in [
        (
            Value::Null,
            "authorization: Basic Z2FsbGV5JTNBdGVhbTpzM2NyZXQlMkJ3aXRoKyUyNnNpZ25zJTNE\r\n",
        ),
        (
            json!(["client_secret_post"]),
            "&client_id=galley%3Ateam&client_secret=s3cret%2Bwith+%26signs%3D",
        ),
    ] {
        provider.discover(json!({ "token_endpoint_auth_methods_supported": methods }));
        let server = Server::with(&[("AUTH__OIDC", &oidc)]).await;
        let mut browser = Browser::new(&server);
        assert_eq!(browser.sign_in(&provider, |_| {}).await.path(), "/d/doc_1");
        let request = provider.exchanged().pop().expect("a request");
        assert!(request.contains(proof), "{request}");
        assert!(!server.log().contains("s3cret"));
    }
    let server = server_of(&provider, &[]).await;
    assert_eq!(Browser::new(&server).sign_in(&provider, |_| {}).await.path(), "/d/doc_1");
    let request = provider.exchanged().pop().expect("a request");
    assert!(
        request.ends_with("&client_id=galley-team") && !request.contains("authorization: "),
        "{request}"
    );
}

#[tokio::test]
async fn a_name_that_the_id_token_lacks_comes_from_userinfo() {
    let provider = IdentityProvider::start().await;
    let server = server_of(&provider, &[]).await;
    let mut browser = Browser::new(&server);
    let nameless =
        |claims: &mut Value| drop(claims.as_object_mut().expect("an object").remove("name"));
    assert_eq!(fault(&browser.sign_in(&provider, nameless).await).0, "invalid", "of no user");
    provider.set_userinfo(json!({ "sub": "eve", "name": "Eve" }));
    assert_eq!(fault(&browser.sign_in(&provider, nameless).await).0, "invalid", "of another user");
    provider.set_userinfo(json!({ "sub": "auth0|kim@example.com" }));
    assert_eq!(fault(&browser.sign_in(&provider, nameless).await).0, "nameless");
    provider.set_userinfo(
        json!({ "sub": "auth0|kim@example.com", "preferred_username": "kim", "exp": 1 }),
    );
    assert_eq!(browser.sign_in(&provider, nameless).await.path(), "/d/doc_1");
    assert_eq!(browser.entry().await["user"]["name"], "kim");
}

#[tokio::test]
async fn a_new_key_of_the_provider_signs_users_in_at_once() {
    let provider = IdentityProvider::start().await;
    let server = server_of(&provider, &[]).await;
    let mut browser = Browser::new(&server);
    assert_eq!(browser.sign_in(&provider, |_| {}).await.path(), "/d/doc_1");
    provider.rotate("second");
    // The reading of another sign-in may count for two seconds.
    until("the new key", async || browser.sign_in(&provider, |_| {}).await.path() == "/d/doc_1")
        .await;
}

/// Goal: a guest has no other way back to the own documents than the cookie, so no sign-in replaces it.
#[tokio::test]
async fn a_sign_in_replaces_no_guest() {
    let provider = IdentityProvider::start().await;
    let server = server_of(&provider, &[("AUTH__GUESTS", "true")]).await;
    let guest = server.guest("Kim").await;
    let mut browser = Browser::new(&server);
    let address = browser.start("/d/doc_1").await;
    browser.cookies.insert("galley_token".to_owned(), guest.token.clone());
    let code = provider.grant(&address, provider.id_claims(&address, "kim", "Kim"));
    let back = browser.answer(&[("code", &code), ("state", &query(&address, "state"))]).await;
    assert_eq!(fault(&back), is("guest", "/d/doc_1"));
    assert_eq!(fault(&browser.start("/d/doc_1").await), is("guest", "/d/doc_1"));
    assert_eq!(browser.cookies["galley_token"], guest.token);
    assert_eq!(browser.entry().await["sign_out_url"], Value::Null);
}

#[tokio::test]
async fn g14_under_https_the_cookie_of_a_sign_in_is_of_this_host_and_no_frame() {
    let provider = IdentityProvider::start().await;
    let settings = [
        ("SERVER__PUBLIC_URL", "https://galley.example"),
        ("SERVER__FRAME_ANCESTORS", "https://app.example"),
    ];
    let server = server_of(&provider, &settings).await;
    let mut browser = Browser::new(&server);
    let answer = browser.get("/api/auth/oidc/start").await;
    let cookie = answer.headers()[SET_COOKIE].to_str().expect("text");
    let (name, value) = cookie.split_once('=').expect("a cookie");
    assert!(name.starts_with("__Host-galley_sign_in_"), "{cookie}");
    assert!(value.ends_with("; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=600"), "{cookie}");
    let address =
        Url::parse(answer.headers()[LOCATION].to_str().expect("text")).expect("an address");
    assert_eq!(query(&address, "redirect_uri"), "https://galley.example/api/auth/oidc/callback");
    // Under https a cookie without the prefix may come from a sibling name.
    let own = std::mem::take(&mut browser.cookies);
    let planted = own.into_iter().map(|(name, value)| (name.replace("__Host-", ""), value));
    browser.cookies = planted.collect();
    let code = provider.grant(&address, provider.id_claims(&address, "kim", "Kim"));
    let back = browser.answer(&[("code", &code), ("state", &query(&address, "state"))]).await;
    assert_eq!((back.host_str(), fault(&back).0), (Some("galley.example"), "cookie".to_owned()));
}

#[tokio::test]
async fn a_server_without_a_provider_has_no_such_sign_in() {
    let server = Server::start().await;
    for path in ["start", "callback", "sign-out"] {
        let answer = server.http.get(format!("{}/api/auth/oidc/{path}", server.url)).send().await;
        let answer = answer.expect("an answer");
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()[CONTENT_TYPE]),
            (404, &"application/problem+json".parse().expect("a header"))
        );
        let problem: Value = answer.json().await.expect("JSON");
        assert!(problem["detail"].as_str().is_some_and(|it| it.contains("auth.oidc")), "{problem}");
    }
}

#[tokio::test]
async fn the_doctor_names_the_redirect_uri_and_the_faults() {
    let provider = IdentityProvider::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let doctor = async |oidc: Value| {
        let settings = [
            ("GALLEY_AUTH__OIDC", &*oidc.to_string()),
            ("GALLEY_SERVER__PUBLIC_URL", "https://galley.example"),
        ];
        galley_with(folder.path(), &["doctor"], &settings).await.result()
    };
    let valid = json!({ "issuer": provider.issuer(), "client_id": "galley" });
    let shown = doctor(valid.clone()).await;
    let line = "ok     auth.oidc: keys of the provider: 1; its redirect URI for Galley is \
                https://galley.example/api/auth/oidc/callback";
    assert!(shown.contains(line), "{shown}");
    let mut without_secret = valid.clone();
    without_secret["client_secret_file"] = json!("nowhere");
    let shown = doctor(without_secret).await;
    assert!(
        shown.contains("FAULT  auth.oidc: auth.oidc.client_secret_file: nowhere is missing"),
        "{shown}"
    );
    let mut slash = valid.clone();
    slash["issuer"] = json!(format!("{}/", provider.issuer()));
    let shown = doctor(slash).await;
    assert!(
        shown.contains(&format!(
            "its issuer is {}: set auth.oidc.issuer to exactly",
            provider.issuer()
        )),
        "{shown}"
    );
    provider.publish(Publishes::Html);
    let shown = doctor(valid).await;
    assert!(
        shown.contains("FAULT  auth.oidc: the discovery document: the response is no discovery"),
        "{shown}"
    );
}
