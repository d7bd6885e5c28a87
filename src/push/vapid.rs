//! The server's identity towards push services: VAPID (RFC 8292).
//!
//! A browser binds its subscription to the server's public key, so the key must outlive every
//! subscription, and all servers of a service share it. The private key is 32 bytes in base64url, the
//! form of other programs for Web Push, so an operator can bring a key along.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use aws_lc_rs::encoding::{AsBigEndian as _, EcPrivateKeyBin};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde::Serialize;

/// Lifetime of a token; a push service accepts 24 hours at most.
const TTL: TimeDelta = TimeDelta::hours(12);
/// Rest of its lifetime at which the server signs a new token: a push may wait for its slot, and the
/// clock of a push service may be ahead.
const RENEW_BEFORE: TimeDelta = TimeDelta::hours(1);
/// Tokens of so many push services are stored. There are about ten.
const TOKENS_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no private key of P-256: 32 bytes in base64url")]
pub struct InvalidPushKey;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token for a push service could not be signed")]
pub struct NotSigned;

/// `Debug` does not print it.
pub struct PushKey {
    signing: EncodingKey,
    public: String,
    tokens: Mutex<HashMap<String, Token>>,
}

struct Token {
    text: String,
    expires_at: DateTime<Utc>,
}

#[derive(Serialize)]
struct Claims<'a> {
    aud: &'a str,
    exp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub: Option<&'a str>,
}

impl PushKey {
    pub fn generate() -> Result<String, InvalidPushKey> {
        let key = PrivateKey::generate(&ECDH_P256).map_err(|_error| InvalidPushKey)?;
        let bytes: EcPrivateKeyBin<'_> = key.as_be_bytes().map_err(|_error| InvalidPushKey)?;
        Ok(URL_SAFE_NO_PAD.encode(bytes.as_ref()))
    }

    pub fn parse(text: &str) -> Result<Self, InvalidPushKey> {
        let private = text.trim().trim_end_matches('=');
        let private = URL_SAFE_NO_PAD.decode(private).map_err(|_error| InvalidPushKey)?;
        let key = PrivateKey::from_private_key(&ECDH_P256, &private);
        let public = key.map_err(|_error| InvalidPushKey)?.compute_public_key();
        let public = public.map_err(|_error| InvalidPushKey)?;
        let pair = EcdsaKeyPair::from_private_key_and_public_key(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            &private,
            public.as_ref(),
        );
        let document = pair.map_err(|_error| InvalidPushKey)?.to_pkcs8v1();
        let document = document.map_err(|_error| InvalidPushKey)?;
        Ok(Self {
            signing: EncodingKey::from_ec_der(document.as_ref()),
            public: URL_SAFE_NO_PAD.encode(public.as_ref()),
            tokens: Mutex::default(),
        })
    }

    /// The public key: an uncompressed point in base64url, for `applicationServerKey`.
    #[must_use]
    pub fn public(&self) -> &str {
        &self.public
    }

    /// The value of `Authorization` for the push service at `origin`. One token serves many pushes.
    pub fn authorization(
        &self,
        origin: &str,
        subject: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<String, NotSigned> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let is_valid =
            |token: &&Token| now + RENEW_BEFORE < token.expires_at && token.expires_at <= now + TTL;
        let token = match tokens.get(origin).filter(is_valid) {
            Some(token) => token.text.clone(),
            None => {
                let token = self.sign(origin, subject, now)?;
                let text = token.text.clone();
                if tokens.len() >= TOKENS_MAX {
                    tokens.clear();
                }
                tokens.insert(origin.to_owned(), token);
                text
            }
        };
        Ok(format!("vapid t={token}, k={}", self.public))
    }

    fn sign(
        &self,
        origin: &str,
        subject: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<Token, NotSigned> {
        let expires_at = now + TTL;
        let claims = Claims { aud: origin, exp: expires_at.timestamp(), sub: subject };
        let text = encode(&Header::new(Algorithm::ES256), &claims, &self.signing);
        Ok(Token { text: text.map_err(|_error| NotSigned)?, expires_at })
    }
}

impl fmt::Debug for PushKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushKey").field("public", &self.public).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{DecodingKey, Validation, decode};
    use serde_json::Value;

    use super::*;

    const ORIGIN: &str = "https://push.example";

    fn token_of(authorization: &str) -> &str {
        let token = authorization.strip_prefix("vapid t=").expect("the scheme");
        token.split_once(", k=").expect("the key").0
    }

    fn claims_of(key: &PushKey, authorization: &str) -> Value {
        let point = URL_SAFE_NO_PAD.decode(key.public()).expect("base64url");
        let verify = DecodingKey::from_ec_der(&point);
        let mut rules = Validation::new(Algorithm::ES256);
        rules.set_audience(&[ORIGIN]);
        decode(token_of(authorization), &verify, &rules).expect("a valid token").claims
    }

    #[test]
    fn a_generated_key_is_read_again_with_the_same_public_key() {
        let text = PushKey::generate().expect("random bytes");
        assert_eq!(text.len(), 43);
        let key = PushKey::parse(&text).expect("a key");
        assert_eq!(key.public().len(), 87);
        assert_eq!(PushKey::parse(&format!("{text}=\n")).expect("a key").public(), key.public());
        assert!(!format!("{key:?}").contains(&text));
    }

    #[test]
    fn a_text_that_is_no_key_is_refused() {
        let zero = URL_SAFE_NO_PAD.encode([0; 32]);
        let above_the_order = URL_SAFE_NO_PAD.encode([0xff; 32]);
        let short = URL_SAFE_NO_PAD.encode([1; 31]);
        for text in ["", "secret", "+/", &zero, &above_the_order, &short] {
            assert!(PushKey::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_token_names_its_service_and_ends_within_twelve_hours() {
        let key = PushKey::parse(&PushKey::generate().expect("random")).expect("a key");
        let now = Utc::now();
        let authorization =
            key.authorization(ORIGIN, Some("mailto:ops@example.com"), now).expect("signed");
        assert!(authorization.ends_with(&format!(", k={}", key.public())));
        let claims = claims_of(&key, &authorization);
        assert_eq!(claims["aud"], ORIGIN);
        assert_eq!(claims["sub"], "mailto:ops@example.com");
        assert_eq!(claims["exp"], (now + TTL).timestamp());
        let without = key.authorization("https://other.example", None, now).expect("signed");
        let payload = token_of(&without).split('.').nth(1).expect("claims");
        let payload = URL_SAFE_NO_PAD.decode(payload).expect("base64url");
        assert!(!String::from_utf8(payload).expect("text").contains("sub"));
    }

    #[test]
    fn a_token_is_signed_once_for_many_pushes_and_again_before_it_ends() {
        let key = PushKey::parse(&PushKey::generate().expect("random")).expect("a key");
        let now = Utc::now();
        let at = |time| key.authorization(ORIGIN, None, time).expect("signed");
        let first = at(now);
        assert_eq!(at(now + TimeDelta::hours(10)), first);
        let later = at(now + TimeDelta::hours(11));
        assert_ne!(later, first);
        // The clock was set back: the service would reject the long lifetime.
        assert_ne!(at(now), later);
    }

    #[test]
    fn g13_the_tokens_of_many_services_are_bounded() {
        let key = PushKey::parse(&PushKey::generate().expect("random")).expect("a key");
        for number in 0..=TOKENS_MAX {
            let origin = format!("https://{number}.example");
            key.authorization(&origin, None, Utc::now()).expect("signed");
        }
        let stored = key.tokens.lock().expect("no panic").len();
        assert!(stored <= TOKENS_MAX, "{stored}");
    }
}
