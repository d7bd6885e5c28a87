//! Tokens of an identity provider, that of the host application or that of `auth.oidc`, verified by the public
//! keys that it publishes.
//!
//! The key fixes the algorithm, not the token: each key of the set verifies one, and none is symmetric.
//! Verification never waits: it uses the last set that was read whole. The server reads the set at the start,
//! every [`READ_EVERY`], and when a token names an unknown key, at most once in [`READ_PACE`]. A provider that
//! is away, or publishes a set at fault, changes nothing: the last set stays in force.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use chrono::Utc;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use crate::domain::ids::UserId;
use crate::domain::line::Line;
use crate::domain::user::User;
use crate::http::auth::identity::{
    Identity, KEYS_UNAVAILABLE, TokenRefused, cause, demands_more, seconds,
};
use crate::http::auth::scopes::Scopes;
use crate::storage::revocations::TokenSubject;

const READ_EVERY: Duration = Duration::from_mins(5);
/// Any text can name an unknown key, so such tokens cause few requests.
const READ_PACE: Duration = Duration::from_secs(10);
/// Longest key set in bytes: a key has a kilobyte, with a chain of certificates ten.
pub const KEY_SET_BYTES_MAX: usize = 256 * 1_024;
/// Keys of a set. A provider in rotation has three for each algorithm.
const KEYS_MAX: usize = 64;
/// How far the clocks of provider and server may differ, in seconds. A token is valid for so much longer.
const LEEWAY: i64 = 30;
/// Longest `sub` in characters: the standard of these providers has the same bound.
const SUBJECT_CHARACTERS_MAX: usize = 255;

/// Whose tokens are accepted, and which of their claims is the name.
#[derive(Clone, Debug)]
pub struct Provider {
    /// The setting that names the provider, for the log and for `/readyz`.
    pub setting: &'static str,
    pub issuer: String,
    pub audience: String,
    pub name_claims: Vec<String>,
}

#[derive(Clone)]
pub struct HostKeys(Arc<Inner>);

struct Inner {
    provider: Provider,
    set: RwLock<Option<Arc<KeySet>>>,
    /// Why the last attempt to read the set failed.
    fault: Mutex<Option<String>>,
    unknown: Notify,
}

struct KeySet {
    keys: Vec<HostKey>,
    read_at: Instant,
}

struct HostKey {
    id: String,
    key: DecodingKey,
    rules: Validation,
}

/// A key set (RFC 7517 §5). Keys of other types are no fault of the set.
#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

impl HostKeys {
    #[must_use]
    pub fn new(provider: Provider) -> Self {
        let (set, fault) = (RwLock::default(), Mutex::default());
        Self(Arc::new(Inner { provider, set, fault, unknown: Notify::new() }))
    }

    pub(crate) fn verify(&self, token: &str, header: &Header) -> Result<Identity, TokenRefused> {
        self.identity(&self.claims_under(header, token)?)
    }

    /// The claims of an ID token, which the provider itself has sent: its length has no other bound.
    pub(crate) fn claims(&self, token: &str) -> Result<Map<String, Value>, TokenRefused> {
        if demands_more(token) {
            return Err(TokenRefused("header crit"));
        }
        let header = decode_header(token);
        let header = header.map_err(|error| TokenRefused(cause(&error, token)))?;
        self.claims_under(&header, token)
    }

    /// The user of claims that [`Self::claims`] has verified.
    pub(crate) fn identity(&self, claims: &Map<String, Value>) -> Result<Identity, TokenRefused> {
        self.0.provider.identity(claims)
    }

    fn claims_under(
        &self,
        header: &Header,
        token: &str,
    ) -> Result<Map<String, Value>, TokenRefused> {
        let Some(id) = &header.kid else { return Err(TokenRefused("header kid")) };
        let set = self.0.set.read().unwrap_or_else(PoisonError::into_inner).clone();
        let found = set.as_ref().and_then(|set| set.keys.iter().find(|key| key.id == *id));
        let Some(HostKey { key, rules, .. }) = found else {
            self.0.unknown.notify_one();
            // The provider may have made the key since the set was read.
            let is_fresh = set.as_ref().is_some_and(|set| set.read_at.elapsed() < READ_PACE);
            return Err(if is_fresh { TokenRefused("header kid") } else { KEYS_UNAVAILABLE });
        };
        let claims = decode::<Map<String, Value>>(token, key, rules).map(|found| found.claims);
        claims.map_err(|error| match error.kind() {
            ErrorKind::MissingRequiredClaim(claim) | ErrorKind::InvalidClaimFormat(claim) => {
                TokenRefused(claim_named(claim))
            }
            _ => TokenRefused(cause(&error, token)),
        })
    }

    /// Replaces the set by that of `document`, and returns its number of keys. A document at fault replaces
    /// nothing.
    fn replace(&self, document: &[u8]) -> Result<usize, String> {
        let found: Document = serde_json::from_slice(document)
            .map_err(|_error| "the response is no key set (JSON with `keys`)".to_owned())?;
        if KEYS_MAX < found.keys.len() {
            return Err(format!("the set has more than {KEYS_MAX} keys"));
        }
        let keys = found.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
        let keys: Vec<_> = keys.filter_map(|key| self.0.provider.key(&key)).collect();
        let is_repeated = |(index, key): (usize, &HostKey)| {
            keys.iter().take(index).any(|earlier| earlier.id == key.id)
        };
        if keys.iter().enumerate().any(is_repeated) {
            return Err("the set has two keys of one `kid`".to_owned());
        }
        if keys.is_empty() {
            return Err("the set has no key with a `kid` for RS256, ES256 or EdDSA".to_owned());
        }
        let (count, read_at) = (keys.len(), Instant::now());
        let set = Some(Arc::new(KeySet { keys, read_at }));
        *self.0.set.write().unwrap_or_else(PoisonError::into_inner) = set;
        Ok(count)
    }

    /// Takes the outcome of one attempt to read the set.
    pub fn take(&self, fetched: Result<impl AsRef<[u8]>, String>) -> Result<usize, String> {
        let taken = fetched.and_then(|document| self.replace(document.as_ref()));
        let fault = taken.as_ref().err().cloned();
        let setting = self.0.provider.setting;
        let failing = metrics::gauge!("galley_keys_failing", "setting" => setting);
        failing.set(if fault.is_some() { 1.0 } else { 0.0 });
        let mut before = self.0.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if *before != fault {
            match &fault {
                Some(fault) => tracing::warn!(fault, "the key set of {setting} was not read"),
                None => tracing::info!("the key set of {setting} is read again"),
            }
        }
        *before = fault;
        taken
    }

    /// Reads the set for ever, after a first attempt of the caller. `fetch` makes one bounded request.
    pub async fn run<F>(self, fetch: impl Fn() -> F)
    where
        F: Future<Output = Result<Bytes, String>>,
    {
        let mut read_at = Instant::now();
        loop {
            let _due = timeout(READ_EVERY, self.0.unknown.notified()).await;
            sleep_until(read_at + READ_PACE).await;
            read_at = Instant::now();
            if let Ok(keys) = self.take(fetch().await) {
                tracing::debug!(keys, "the key set of {} was read", self.0.provider.setting);
            }
        }
    }

    /// The warning of `/readyz`, without the address and its fault, which the log has.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let is_failing = self.0.fault.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let has_set = self.0.set.read().unwrap_or_else(PoisonError::into_inner).is_some();
        let effect = match has_set {
            true => "the last set stays in force",
            false => "no token of the provider is accepted",
        };
        is_failing.then(|| {
            format!(
                "the key set of {} cannot be read, and {effect}: see whether the provider responds \
                 there; the server's log has the cause",
                self.0.provider.setting
            )
        })
    }
}

impl Provider {
    /// None: the key is of no use here.
    fn key(&self, jwk: &Jwk) -> Option<HostKey> {
        let is_for_signatures = match (&jwk.common.public_key_use, &jwk.common.key_operations) {
            (Some(public_key_use), _) => *public_key_use == PublicKeyUse::Signature,
            (None, Some(operations)) => operations.contains(&KeyOperations::Verify),
            (None, None) => true,
        };
        let algorithm = algorithm_of(jwk).filter(|_| is_for_signatures)?;
        let mut rules = Validation::new(algorithm);
        rules.leeway = LEEWAY.unsigned_abs();
        rules.validate_nbf = true;
        rules.set_required_spec_claims(&["exp", "iss", "sub", "aud"]);
        rules.set_issuer(&[&self.issuer]);
        rules.set_audience(&[&self.audience]);
        let id = jwk.common.key_id.clone().filter(|id| !id.is_empty())?;
        Some(HostKey { id, key: DecodingKey::from_jwk(jwk).ok()?, rules })
    }

    /// The user of claims whose signature, issuer, audience and `nbf` are verified.
    fn identity(&self, claims: &Map<String, Value>) -> Result<Identity, TokenRefused> {
        let text = |claim: &str| claims.get(claim).and_then(Value::as_str);
        let time = |claim: &str| claims.get(claim).and_then(Value::as_i64);
        // The library also accepts a list of issuers.
        text("iss").ok_or(TokenRefused("claim iss"))?;
        let now = Utc::now().timestamp();
        let issued_at = time("iat").filter(|iat| *iat <= now + LEEWAY);
        let issued_at = issued_at.ok_or(TokenRefused("claim iat"))?;
        let expires_at = time("exp").filter(|exp| issued_at < *exp);
        let end = expires_at.map(|exp| exp.saturating_add(LEEWAY)).filter(|end| now < *end);
        let end = end.ok_or(TokenRefused("claim exp"))?;
        let subject = text("sub").and_then(|subject| user_id(&self.issuer, subject));
        let mut names = self.name_claims.iter().filter_map(|claim| text(claim));
        let name = names.find_map(|name| Line::Name.parse(name).ok());
        let id = subject.ok_or(TokenRefused("claim sub"))?;
        let scopes = Scopes::of(claims.get("scope")).ok_or(TokenRefused("claim scope"))?;
        // A client of the provider has no name.
        let name = name.or_else(|| (!scopes.is_empty()).then(|| id.to_string()));
        Ok(Identity {
            user: User { id, name: name.ok_or(TokenRefused("claim name"))? },
            is_admin: false,
            issued_at: seconds(issued_at, "claim iat")?,
            expires_at: seconds(end, "claim exp")?,
            scopes,
            token: TokenSubject::token(""),
        })
    }
}

/// The one algorithm that the key verifies: that of its type. None if the key names another.
fn algorithm_of(jwk: &Jwk) -> Option<Algorithm> {
    use AlgorithmParameters as Of;
    let implied = match &jwk.algorithm {
        Of::RSA(_) => Algorithm::RS256,
        Of::EllipticCurve(key) if key.curve == EllipticCurve::P256 => Algorithm::ES256,
        Of::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => Algorithm::EdDSA,
        _ => return None,
    };
    let named = jwk.common.key_algorithm;
    named.is_none_or(|named| named == implied.into()).then_some(implied)
}

/// The id of the provider's user: its `sub`, if that has the form of an id, else a hash of issuer and `sub`.
/// An id of a form that this server makes is hashed, too: no user of the provider has the id of a guest, or
/// the hash of another user. None: the `sub` is invalid.
fn user_id(issuer: &str, subject: &str) -> Option<UserId> {
    const HASHED: &str = "ext_";
    let length = subject.chars().take(SUBJECT_CHARACTERS_MAX + 1).count();
    if !(1..=SUBJECT_CHARACTERS_MAX).contains(&length) || subject.chars().any(char::is_control) {
        return None;
    }
    let own = subject.parse::<UserId>().ok();
    let is_ours =
        |id: &UserId| id.is_generated() || id.is_deleted() || id.as_str().starts_with(HASHED);
    let own = own.filter(|id| !is_ours(id));
    own.or_else(|| {
        let hash = digest(&SHA256, [issuer, "\0", subject].concat().as_bytes());
        format!("{HASHED}{}", URL_SAFE_NO_PAD.encode(hash)).parse().ok()
    })
}

fn claim_named(claim: &str) -> &'static str {
    match claim {
        "aud" => "claim aud",
        "exp" => "claim exp",
        "iss" => "claim iss",
        "nbf" => "claim nbf",
        _ => "claim sub",
    }
}

#[cfg(test)]
#[path = "host_keys_tests.rs"]
mod tests;
