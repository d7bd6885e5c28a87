//! Tokens that the server accepts, and the many that it rejects.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use super::*;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

fn kim() -> User {
    User { id: "kim".parse().expect("an id"), name: "김민수".to_owned() }
}

fn hour() -> Duration {
    Duration::from_secs(3_600)
}

fn good() -> Value {
    let now = Utc::now().timestamp();
    json!({
        "sub": "kim", "name": "Kim", "iat": now, "exp": now + 3_600,
        "iss": "galley", "jti": "one", "admin": false,
    })
}

/// A token with any header and any claims, signed by HMAC-SHA256 with any key.
fn forge(header: &Value, claims: &Value, key: &[u8]) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(header), part(claims));
    let key = EncodingKey::from_secret(key);
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::HS256);
    format!("{message}.{}", signature.expect("signed"))
}

fn hs256() -> Value {
    json!({ "alg": "HS256", "typ": "JWT" })
}

fn is_refused(token: &str) -> bool {
    Tokens::new(SECRET).verify(token).is_err()
}

fn with(change: impl FnOnce(&mut Map<String, Value>)) -> String {
    let mut claims = good();
    change(claims.as_object_mut().expect("an object"));
    forge(&hs256(), &claims, SECRET)
}

#[test]
fn a_token_names_the_user_it_was_signed_for() {
    let tokens = Tokens::new(SECRET);
    let signed = tokens.sign(&kim(), true, hour(), Utc::now()).expect("signed");
    let identity = tokens.verify(&signed.token).expect("valid");
    assert_eq!(identity.user, kim());
    assert!(identity.is_admin);
    assert_eq!(identity.expires_at, signed.expires_at);
    assert!(!is_refused(&forge(&hs256(), &good(), SECRET)));
}

#[test]
fn the_first_secret_signs_and_all_of_them_verify() {
    let secrets = |names: &[&str]| {
        let named = |name: &&str| (Some((*name).to_owned()), format!("{name}{name}{name}"));
        let named: Vec<_> = names.iter().map(named).collect();
        Tokens::of(named.iter().map(|(id, secret)| (id.clone(), secret.as_bytes())))
    };
    let (former, both, present) =
        (secrets(&["former"]), secrets(&["present", "former"]), secrets(&["present"]));
    let sign =
        |tokens: &Tokens| tokens.sign(&kim(), false, hour(), Utc::now()).expect("signed").token;
    let cause = |tokens: &Tokens, token: &str| tokens.verify(token).err().map(|refused| refused.0);
    let [old, new] = [&former, &both].map(sign);
    assert_eq!(decode_header(&new).expect("a header").kid.as_deref(), Some("present"));
    assert_eq!([cause(&both, &old), cause(&both, &new), cause(&present, &new)], [None; 3]);
    assert_eq!(cause(&present, &old), Some("header kid"));
    // Without a name each secret is tried, and a token is not valid under the name of another one.
    let unnamed = forge(&hs256(), &good(), b"formerformerformer");
    assert_eq!((cause(&both, &unnamed), cause(&present, &unnamed)), (None, Some("signature")));
    let named = json!({ "alg": "HS256", "kid": "present" });
    let named = forge(&named, &good(), b"formerformerformer");
    assert_eq!(cause(&both, &named), Some("signature"));
    let expired = with(|claims| drop(claims.insert("exp".to_owned(), json!(0))));
    assert_eq!(cause(&Tokens::new(SECRET), &expired), Some("claim exp"));
}

#[test]
fn a_token_signed_with_another_secret_is_refused() {
    assert!(is_refused(&forge(&hs256(), &good(), b"another secret of enough length.")));
}

#[test]
fn a_token_without_a_signature_is_refused() {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    for alg in ["none", "None", "NONE", "nOnE"] {
        let header = json!({ "alg": alg, "typ": "JWT" });
        assert!(is_refused(&format!("{}.{}.", part(&header), part(&good()))), "{alg}");
    }
    let signed = forge(&hs256(), &good(), SECRET);
    let bare = signed.rsplit_once('.').expect("three parts").0;
    assert!(is_refused(bare) && is_refused(&format!("{bare}.")));
}

#[test]
fn a_header_with_a_critical_extension_is_refused() {
    for crit in [json!(["b64"]), json!(["exp"]), json!([]), json!(null), json!("exp")] {
        let header = json!({ "alg": "HS256", "typ": "JWT", "crit": crit, "b64": true });
        assert!(is_refused(&forge(&header, &good(), SECRET)), "{crit}");
    }
    let harmless = json!({ "alg": "HS256", "typ": "JWT", "x-trace": "crit" });
    assert!(!is_refused(&forge(&harmless, &good(), SECRET)));
}

#[test]
fn a_header_that_names_another_algorithm_is_refused() {
    // The classic attack: an HMAC keyed with a public key, under a header that names RS256 or ES256.
    for alg in ["RS256", "ES256", "EdDSA", "PS256", "HS384", "HS512", "hs256", ""] {
        let header = json!({ "alg": alg, "typ": "JWT" });
        assert!(is_refused(&forge(&header, &good(), SECRET)), "{alg}");
    }
}

#[test]
fn a_header_cannot_bring_its_own_key() {
    let key = URL_SAFE_NO_PAD.encode(b"attacker's own secret, long enough");
    for (name, value) in [
        ("jwk", json!({ "kty": "oct", "k": key })),
        ("jku", json!("https://evil.example/jwks.json")),
        ("kid", json!("../../dev/null")),
    ] {
        let mut header = hs256();
        header[name] = value;
        let forged = forge(&header, &good(), b"attacker's own secret, long enough");
        assert!(is_refused(&forged), "{name}");
    }
    let mut header = hs256();
    header["kid"] = json!("../../dev/null");
    assert!(is_refused(&forge(&header, &good(), b"")));
}

#[test]
fn every_claim_is_required() {
    for claim in ["sub", "name", "iat", "exp", "iss", "jti", "admin"] {
        let token = with(|claims| drop(claims.remove(claim)));
        assert_eq!(is_refused(&token), claim != "admin", "{claim}");
        let token = with(|claims| drop(claims.insert(claim.to_owned(), Value::Null)));
        assert!(is_refused(&token), "{claim} = null");
    }
}

#[test]
fn a_token_without_the_admin_claim_is_no_administrators() {
    let token = with(|claims| drop(claims.remove("admin")));
    assert!(Tokens::new(SECRET).verify(&token).is_ok_and(|identity| !identity.is_admin));
}

#[test]
fn a_claim_of_another_type_is_refused() {
    let soon = Utc::now().timestamp() + 3_600;
    for (claim, value) in [
        // CVE-2026-25537: an expiry as text must not become an expiry that never arrives.
        ("exp", json!(soon.to_string())),
        ("exp", json!([soon])),
        ("exp", json!(1e300)),
        ("exp", json!(true)),
        ("iat", json!("0")),
        ("nbf", json!("0")),
        ("sub", json!(7)),
        ("sub", json!("a b")),
        ("name", json!(["Kim"])),
        ("name", json!("  ")),
        ("iss", json!(["galley"])),
        ("jti", json!(1)),
        ("jti", json!("")),
        ("admin", json!("false")),
        ("admin", json!(1)),
    ] {
        let shown = format!("{claim} = {value}");
        let token = with(|claims| drop(claims.insert(claim.to_owned(), value)));
        assert!(is_refused(&token), "{shown}");
    }
}

#[test]
fn an_expired_or_early_token_is_refused() {
    let now = Utc::now().timestamp();
    assert!(is_refused(&with(|claims| {
        claims.insert("iat".to_owned(), json!(now - 10));
        claims.insert("exp".to_owned(), json!(now - 1));
    })));
    assert!(is_refused(&with(|claims| drop(claims.insert("nbf".to_owned(), json!(now + 60))))));
    assert!(is_refused(&with(|claims| drop(claims.insert("exp".to_owned(), json!(0))))));
    assert!(is_refused(&with(|claims| drop(claims.insert("exp".to_owned(), json!(-1))))));
}

/// Goal: the server rejects a token in the very second of its `exp`, when its socket ends too.
#[test]
fn a_token_is_refused_from_the_second_of_its_expiry() {
    let now = Utc::now();
    let signed = Tokens::new(SECRET).sign(&kim(), false, hour(), now - hour()).expect("signed");
    assert!(signed.expires_at <= now && is_refused(&signed.token));
}

#[test]
fn a_token_of_another_issuer_or_audience_is_refused() {
    assert!(is_refused(&with(|claims| drop(claims.insert("iss".to_owned(), json!("other"))))));
    assert!(is_refused(&with(|claims| drop(claims.insert("aud".to_owned(), json!("other"))))));
}

#[test]
fn a_text_that_is_no_token_is_refused() {
    let long = "a".repeat(1_000_000);
    for text in ["", ".", "..", "a.b.c", "a.b.c.d", "Bearer x", "\u{0}", long.as_str()] {
        assert!(is_refused(text));
    }
    let signed = forge(&hs256(), &good(), SECRET);
    assert!(is_refused(&format!("{signed}x")) && is_refused(&format!(" {signed}")));
}

#[test]
fn a_refused_token_names_the_part_that_is_at_fault() {
    let now = Utc::now().timestamp();
    let changed =
        |name: &str, value: Value| with(|claims| drop(claims.insert(name.to_owned(), value)));
    let cause = |token: &str| Tokens::new(SECRET).verify(token).expect_err("refused").0;
    for (name, value, expected) in [
        ("iss", json!("other"), "claim iss"),
        ("iss", json!(7), "claim iss"),
        ("exp", json!(1.5), "claim exp"),
        ("exp", json!(now - 5), "claim exp"),
        ("exp", json!("soon"), "claim exp"),
        ("iat", json!(now + 9_000), "claim exp"),
        ("nbf", json!(now + 600), "claim nbf"),
        ("aud", json!("galley"), "claim aud"),
        ("sub", json!("kim@example.com"), "claim sub"),
        ("name", json!(""), "claim name"),
        ("name", json!(null), "claim name"),
        ("jti", json!(""), "claim jti"),
        ("admin", json!("true"), "claim admin"),
    ] {
        assert_eq!(cause(&changed(name, value.clone())), expected, "{name}: {value}");
    }
    for name in ["sub", "name", "iat", "exp", "iss", "jti"] {
        let token = with(|claims| drop(claims.remove(name)));
        assert_eq!(cause(&token), format!("claim {name}"));
    }
    let other = forge(&hs256(), &good(), b"another secret of enough length.");
    assert_eq!(cause(&other), "signature");
    let rs256 = forge(&json!({ "alg": "RS256" }), &good(), SECRET);
    assert_eq!(cause(&rs256), "header alg");
    let none = forge(&json!({ "alg": "none" }), &good(), SECRET);
    assert_eq!(cause(&none), "header");
    assert_eq!(cause("x"), "form");
}
