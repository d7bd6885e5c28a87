//! Sets and tokens of a provider: those that are accepted, and the many that are not.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair,
};
use bytes::Bytes;
use jsonwebtoken::{EncodingKey, encode};
use serde_json::json;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use super::*;
use crate::http::auth::tokens::Tokens;

const ISSUER: &str = "https://id.example.com/";

/// The bytes of PKCS #8 before the key itself (PKCS #1) of 2,048 bits.
const RSA_HEAD_BYTES: usize = 26;

fn rsa() -> EncodingKey {
    let pair = RsaKeyPair::generate(KeySize::Rsa2048).expect("a key");
    let der: Pkcs8V1Der<'_> = pair.as_der().expect("a form");
    EncodingKey::from_rsa_der(&der.as_ref()[RSA_HEAD_BYTES..])
}

fn ec() -> EncodingKey {
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let made = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new());
    EncodingKey::from_ec_der(made.expect("a key").as_ref())
}

fn ed() -> EncodingKey {
    let made = Ed25519KeyPair::generate_pkcs8v1(&SystemRandom::new());
    EncodingKey::from_ed_der(made.expect("a key").as_ref())
}

/// A key of each algorithm. That of RSA takes long.
static KEYS: LazyLock<[(Algorithm, EncodingKey); 3]> = LazyLock::new(|| {
    [(Algorithm::RS256, rsa()), (Algorithm::ES256, ec()), (Algorithm::EdDSA, ed())]
});

/// The public form of a key, with these members.
fn public(algorithm: Algorithm, key: &EncodingKey, members: &Value) -> Value {
    let made = Jwk::from_encoding_key(key, algorithm).expect("a public key");
    let mut made = serde_json::to_value(made).expect("JSON");
    let fields = made.as_object_mut().expect("an object");
    fields.remove("alg");
    fields.extend(members.as_object().expect("an object").clone());
    made
}

fn keys() -> HostKeys {
    let name_claims = ["name", "preferred_username"].map(str::to_owned).to_vec();
    let (issuer, audience) = (ISSUER.to_owned(), "galley".to_owned());
    HostKeys::new(Provider { setting: "auth.jwks_url", issuer, audience, name_claims })
}

/// Puts a set in force.
fn with(set: &[Value]) -> HostKeys {
    let keys = keys();
    keys.take(Ok(json!({ "keys": set }).to_string())).expect("a set");
    keys
}

fn claims() -> Value {
    let now = Utc::now().timestamp();
    json!({ "iss": ISSUER, "aud": "galley", "sub": "user-17", "name": "김민수", "iat": now,
        "exp": now + 300, "admin": true })
}

fn signed(algorithm: Algorithm, key: &EncodingKey, kid: Option<&str>, claims: &Value) -> String {
    let header = Header { kid: kid.map(str::to_owned), ..Header::new(algorithm) };
    encode(&header, claims, key).expect("signed")
}

fn verify(keys: &HostKeys, token: &str) -> Result<Identity, &'static str> {
    Tokens::new(b"0123456789abcdef0123456789abcdef")
        .with_provider(Some(keys.clone()))
        .verify(token)
        .map_err(|refused| refused.0)
}

/// The outcome for these claims under a key of the set.
fn outcome(change: impl FnOnce(&mut Map<String, Value>)) -> Result<Identity, &'static str> {
    let key = &KEYS[2].1;
    let keys = with(&[public(Algorithm::EdDSA, key, &json!({ "kid": "one" }))]);
    let mut claims = claims();
    change(claims.as_object_mut().expect("an object"));
    verify(&keys, &signed(Algorithm::EdDSA, key, Some("one"), &claims))
}

fn put(claim: &str, value: Value) -> Result<Identity, &'static str> {
    outcome(|claims| drop(claims.insert(claim.to_owned(), value)))
}

#[test]
fn a_key_verifies_the_one_algorithm_of_its_type_with_and_without_its_name() {
    for (algorithm, key) in KEYS.iter() {
        for members in [
            json!({ "kid": "one" }),
            json!({ "kid": "one", "alg": format!("{algorithm:?}"), "use": "sig" }),
            json!({ "kid": "one", "key_ops": ["verify"] }),
        ] {
            let keys = with(&[public(*algorithm, key, &members)]);
            let token = signed(*algorithm, key, Some("one"), &claims());
            let identity = verify(&keys, &token).expect("valid");
            assert_eq!(identity.user.id.as_str(), "user-17");
            assert_eq!(identity.user.name, "김민수");
            assert!(!identity.is_admin && !identity.is_guest());
        }
    }
    let (rs256, rsa) = &KEYS[0];
    let keys = with(&[public(*rs256, rsa, &json!({ "kid": "one" }))]);
    for other in [Algorithm::PS256, Algorithm::RS512] {
        let token = signed(other, rsa, Some("one"), &claims());
        assert_eq!(verify(&keys, &token), Err("header alg"), "{other:?}");
    }
}

#[test]
fn a_token_without_a_signature_of_the_set_is_refused() {
    let (algorithm, key) = &KEYS[0];
    let jwk = public(*algorithm, key, &json!({ "kid": "one" }));
    let keys = with(std::slice::from_ref(&jwk));
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let none = json!({ "alg": "none", "kid": "one" });
    assert_eq!(verify(&keys, &format!("{}.{}.", part(&none), part(&claims()))), Err("header"));
    // The public key as the secret of an HMAC, in the forms that libraries have taken for one.
    let modulus = URL_SAFE_NO_PAD.decode(jwk["n"].as_str().expect("text")).expect("base64url");
    for secret in [modulus, jwk.to_string().into_bytes(), Vec::new()] {
        let secret = EncodingKey::from_secret(&secret);
        let token = signed(Algorithm::HS256, &secret, Some("one"), &claims());
        assert_eq!(verify(&keys, &token), Err("signature"));
    }
    let of_other = |kid| signed(Algorithm::RS256, &rsa(), kid, &claims());
    assert_eq!(verify(&keys, &of_other(Some("one"))), Err("signature"));
    assert_eq!(verify(&keys, &of_other(Some("two"))), Err("header kid"));
    assert_eq!(verify(&keys, &of_other(None)), Err("header kid"));
    let es256 = signed(Algorithm::ES256, &KEYS[1].1, Some("one"), &claims());
    assert_eq!(verify(&keys, &es256), Err("header alg"));
}

#[test]
fn a_claim_that_is_missing_or_wrong_is_named() {
    let now = Utc::now().timestamp();
    for claim in ["iss", "aud", "sub", "exp", "iat", "name"] {
        let refused = outcome(|claims| drop(claims.remove(claim)));
        assert_eq!(refused, Err(&*format!("claim {claim}")), "{claim}");
    }
    for (claim, value) in [
        ("iss", json!("https://other.example.com/")),
        ("iss", json!(7)),
        ("iss", json!([ISSUER, "https://other.example.com/"])),
        ("aud", json!("another")),
        ("aud", json!(["another"])),
        ("sub", json!("")),
        ("sub", json!("x".repeat(256))),
        ("sub", json!("a\nb")),
        ("sub", json!("a\u{0}b")),
        ("sub", json!(17)),
        ("exp", json!(now - 31)),
        ("exp", json!(now - 300)),
        ("exp", json!((now + 300).to_string())),
        ("exp", json!(1e300)),
        ("iat", json!(now + 90)),
        ("iat", json!("now")),
        ("nbf", json!(now + 90)),
        ("nbf", json!("now")),
        ("name", json!(" ")),
    ] {
        let shown = format!("{claim} = {value}");
        assert_eq!(put(claim, value), Err(&*format!("claim {claim}")), "{shown}");
    }
    for (claim, value) in [
        ("aud", json!(["another", "galley"])),
        ("exp", json!(now + 5)),
        ("iat", json!(now - 300)),
        ("nbf", json!(now + 20)),
        ("jti", json!(7)),
        ("admin", json!("yes")),
    ] {
        let shown = format!("{claim} = {value}");
        assert!(put(claim, value).is_ok_and(|identity| !identity.is_admin), "{shown}");
    }
}

/// Goal: the server takes a token as long as it says that the session lasts.
#[test]
fn a_token_is_valid_for_the_leeway_after_its_end() {
    let now = Utc::now().timestamp();
    let identity = outcome(|claims| {
        claims.insert("iat".to_owned(), json!(now - 300));
        claims.insert("exp".to_owned(), json!(now - 10));
    });
    let end = identity.expect("valid").expires_at.timestamp();
    assert_eq!(end, now - 10 + LEEWAY);
}

#[test]
fn the_name_is_the_first_claim_that_can_be_one() {
    let preferred = |name: Value| {
        outcome(|claims| {
            claims.insert("name".to_owned(), name);
            claims.insert("preferred_username".to_owned(), json!("kim"));
        })
    };
    for (name, expected) in
        [(json!("Kim Minsu"), "Kim Minsu"), (json!(""), "kim"), (json!("x".repeat(81)), "kim")]
    {
        assert_eq!(preferred(name).expect("valid").user.name, expected);
    }
}

/// The vector of `src/http/PROTOCOL.md`, *Users of a provider*.
#[test]
fn a_subject_is_the_id_or_its_hash() {
    let id = |subject: &str| user_id(ISSUER, subject).map(|id| id.to_string());
    for subject in ["kim", "user-17", &"Z".repeat(64), "usr_17"] {
        assert_eq!(id(subject).as_deref(), Some(subject));
    }
    let vector = "ext_Tr_ETGrEVhXbeOIfvZCul3gNypCUWsFbyKhuOm7pbcA";
    assert_eq!(id("auth0|kim@example.com").as_deref(), Some(vector));
    let written = include_str!("../PROTOCOL.md");
    assert!(written.contains(vector) && written.contains("auth0|kim@example.com"));
    let other = "ext_ktCJA0BYfhen7IvsuAUrvPzMfGTs57AjlSeqL0grvHU";
    assert_eq!(id("김민수").as_deref(), Some(other));
    assert!(id(&"x".repeat(255)).is_some_and(|id| id.starts_with("ext_") && id.len() == 47));
    assert_ne!(user_id("https://id.example.com", "김민수"), user_id(ISSUER, "김민수"));
    // No user of the provider becomes a guest or another user by a `sub` of the form that the server makes.
    for taken in [vector, UserId::generate().as_str()] {
        assert!(id(taken).is_some_and(|id| id.starts_with("ext_") && id != taken), "{taken}");
    }
}

#[test]
fn a_set_at_fault_leaves_the_last_one_in_force() {
    let (algorithm, key) = &KEYS[2];
    let good = public(*algorithm, key, &json!({ "kid": "one" }));
    let keys = with(std::slice::from_ref(&good));
    let token = signed(*algorithm, key, Some("one"), &claims());
    let oct = json!({ "kty": "oct", "kid": "one", "k": "c2VjcmV0", "alg": "HS256" });
    let of_rsa = |members: Value| public(Algorithm::RS256, &KEYS[0].1, &members);
    let set = |keys: &[Value]| json!({ "keys": keys }).to_string();
    for (document, fault) in [
        (String::new(), "no key set"),
        ("<html>".to_owned(), "no key set"),
        ("[]".to_owned(), "no key set"),
        (json!({ "keys": {} }).to_string(), "no key set"),
        (set(&[]), "no key with"),
        (set(&[oct]), "no key with"),
        (set(&[json!(7), json!({ "kty": "new" })]), "no key with"),
        (set(&[public(*algorithm, key, &json!({}))]), "no key with"),
        (set(&[public(*algorithm, key, &json!({ "kid": "two", "use": "enc" }))]), "no key with"),
        (set(&[of_rsa(json!({ "kid": "two", "alg": "PS256" }))]), "no key with"),
        (set(&[of_rsa(json!({ "kid": "two", "key_ops": ["encrypt"] }))]), "no key with"),
        (set(&[good.clone(), of_rsa(json!({ "kid": "one" }))]), "two keys of one"),
        (set(&vec![json!({}); 65]), "more than 64"),
    ] {
        let refused = keys.take(Ok(&document)).expect_err("a fault");
        assert!(refused.contains(fault), "{refused}: {document}");
        assert!(verify(&keys, &token).is_ok(), "{document}");
        let warning = keys.warning().expect("a warning");
        assert!(warning.contains("the last set stays in force"), "{warning}");
    }
    let mixed = set(&[json!({ "kty": "oct", "k": "c2VjcmV0", "kid": "x" }), good]);
    assert_eq!((keys.take(Ok(mixed)), keys.warning()), (Ok(1), None));
}

#[tokio::test(start_paused = true)]
async fn without_a_set_and_with_an_old_one_the_keys_are_unavailable() {
    let (algorithm, key) = &KEYS[2];
    let keys = keys();
    let token = |kid| signed(*algorithm, key, Some(kid), &claims());
    assert_eq!((verify(&keys, &token("one")), keys.warning()), (Err("keys-unavailable"), None));
    keys.take(Err::<&[u8], _>("away".to_owned())).expect_err("a fault");
    assert!(keys.warning().is_some_and(|warning| warning.contains("no token of the provider")));
    let set = json!({ "keys": [public(*algorithm, key, &json!({ "kid": "one" }))] }).to_string();
    keys.take(Ok(set)).expect("a set");
    assert_eq!(verify(&keys, &token("two")), Err("header kid"));
    sleep(READ_PACE).await;
    assert_eq!(verify(&keys, &token("two")), Err("keys-unavailable"), "it may be a new key");
    assert!(verify(&keys, &token("one")).is_ok());
}

#[tokio::test(start_paused = true)]
async fn g13_a_flood_of_unknown_keys_is_one_request_in_ten_seconds() {
    static REQUESTS: AtomicUsize = AtomicUsize::new(0);
    let (algorithm, key) = &KEYS[2];
    let set = json!({ "keys": [public(*algorithm, key, &json!({ "kid": "one" }))] }).to_string();
    let keys = with(&[public(*algorithm, key, &json!({ "kid": "one" }))]);
    let fetch = move || {
        REQUESTS.fetch_add(1, Ordering::Relaxed);
        let set = Bytes::from(set.clone());
        async move { Ok(set) }
    };
    #[expect(clippy::disallowed_methods, reason = "the only task of the test")]
    let reading = TaskTracker::new().spawn(keys.clone().run(fetch));
    let requests = || REQUESTS.swap(0, Ordering::Relaxed);
    sleep(READ_EVERY - Duration::from_secs(1)).await;
    assert_eq!(requests(), 0);
    for number in 0..300 {
        let token = signed(*algorithm, key, Some(&number.to_string()), &claims());
        assert!(verify(&keys, &token).is_err());
        sleep(Duration::from_millis(3)).await;
    }
    assert_eq!(requests(), 1);
    sleep(READ_PACE).await;
    assert_eq!(requests(), 1, "for the tokens after the first request");
    sleep(READ_EVERY).await;
    assert_eq!(requests(), 1, "the periodic one");
    reading.abort();
}
