//! Access tokens: JWTs signed with the local secret, by HS256 only. A token that names another algorithm
//! is one of the host's provider ([`host_keys`](crate::http::auth::host_keys)), if the settings name one.
//!
//! The server fixes the algorithm, not the token: it rejects a header that names another algorithm
//! before it uses a key, and all keys are for this one. All claims except `admin` are required; `admin`
//! defaults to false. Each claim must have its own JSON type: the server rejects a number written as
//! text and substitutes no default.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, decode_header, encode,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::ids::{TokenId, UserId};
use crate::domain::line::Line;
use crate::domain::user::User;
use crate::http::auth::deleting::Deleting;
use crate::http::auth::host_keys::HostKeys;
use crate::http::auth::identity::{cause, demands_more, seconds, subject_of};
use crate::http::auth::revocations::Revocations;
use crate::http::auth::scopes::Scopes;
use crate::storage::revocations::TokenSubject;

pub use crate::http::auth::identity::{GUEST_TTL, Identity, TokenRefused};
pub(crate) use crate::http::auth::identity::{KEYS_UNAVAILABLE, SERVER_TOKEN, USER_DELETED};

const ISSUER: &str = "galley";
/// Maximum length of a token in bytes; Galley's own have about 350.
const TOKEN_BYTES_MAX: usize = 4_096;

#[derive(Clone, Debug)]
pub struct Signed {
    /// The token itself, a secret.
    pub token: String,
    pub expires_at: DateTime<Utc>,
}

#[derive(Clone)]
pub struct Tokens {
    own: Arc<OwnKeys>,
    of_provider: Option<HostKeys>,
    revocations: Revocations,
    deleting: Deleting,
}

struct OwnKeys {
    /// The first one signs.
    keys: Vec<OwnKey>,
    rules: Validation,
}

struct OwnKey {
    /// None: the server has no other secret.
    id: Option<String>,
    sign: EncodingKey,
    verify: DecodingKey,
}

/// The claims. All are required but `admin`, which only an administrator's token has, and `scope`; a server has no
/// `name`.
#[derive(Serialize, Deserialize)]
struct Claims {
    sub: UserId,
    #[serde(default)]
    name: Option<String>,
    iat: i64,
    exp: i64,
    iss: String,
    jti: String,
    #[serde(default)]
    admin: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<Value>,
}

impl Tokens {
    /// Signs and verifies by one secret.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        Self::of([(None, secret)])
    }

    /// The first of the secrets signs, and all verify. Each has an id, which a token may name.
    #[must_use]
    pub fn of<'a>(secrets: impl IntoIterator<Item = (Option<String>, &'a [u8])>) -> Self {
        let mut rules = Validation::new(Algorithm::HS256);
        rules.leeway = 0;
        rules.validate_nbf = true;
        rules.set_required_spec_claims(&["exp", "iss", "sub"]);
        rules.set_issuer(&[ISSUER]);
        let key = |(id, secret)| OwnKey {
            id,
            sign: EncodingKey::from_secret(secret),
            verify: DecodingKey::from_secret(secret),
        };
        let keys = secrets.into_iter().map(key).collect();
        Self {
            own: Arc::new(OwnKeys { keys, rules }),
            of_provider: None,
            revocations: Revocations::default(),
            deleting: Deleting::default(),
        }
    }

    /// Also accepts the tokens of a provider.
    #[must_use]
    pub fn with_provider(self, of_provider: Option<HostKeys>) -> Self {
        Self { of_provider, ..self }
    }

    /// Refuses the tokens of `revocations`.
    #[must_use]
    pub fn with_revocations(self, revocations: Revocations) -> Self {
        Self { revocations, ..self }
    }

    pub(crate) fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    /// Fails when the end exceeds the calendar's range, or when signing fails.
    pub fn sign(
        &self,
        user: &User,
        is_admin: bool,
        ttl: Duration,
        now: DateTime<Utc>,
    ) -> Result<Signed, TokenRefused> {
        let expires_at = now.checked_add_signed(
            chrono::TimeDelta::from_std(ttl).map_err(|_out_of_range| TokenRefused("claim exp"))?,
        );
        let expires_at = expires_at.ok_or(TokenRefused("claim exp"))?;
        let claims = Claims {
            sub: user.id.clone(),
            name: Some(user.name.clone()),
            iat: now.timestamp(),
            exp: expires_at.timestamp(),
            iss: ISSUER.to_owned(),
            jti: TokenId::generate().to_string(),
            admin: is_admin,
            scope: None,
        };
        let OwnKey { id, sign, .. } = self.own.keys.first().ok_or(TokenRefused("signature"))?;
        let header = Header { kid: id.clone(), ..Header::new(Algorithm::HS256) };
        let token = encode(&header, &claims, sign);
        let token = token.map_err(|_unsignable| TokenRefused("signature"))?;
        Ok(Signed { token, expires_at: seconds(claims.exp, "claim exp")? })
    }

    /// The users whose tokens are refused.
    pub(crate) fn deleting(&self) -> &Deleting {
        &self.deleting
    }

    /// The user of a token. The error names the part of the token that is at fault.
    pub fn verify(&self, token: &str) -> Result<Identity, TokenRefused> {
        let identity = self.verify_any(token)?;
        if identity.scopes.is_empty() { Ok(identity) } else { Err(SERVER_TOKEN) }
    }

    /// The user of a token, or the server.
    pub(crate) fn verify_any(&self, token: &str) -> Result<Identity, TokenRefused> {
        let identity = Identity { token: subject_of(token), ..self.identity(token)? };
        if self.deleting.contains(&identity.user.id) {
            return Err(USER_DELETED);
        }
        if self.revocations.include(&identity) {
            return Err(TokenRefused("revoked"));
        }
        Ok(identity)
    }

    fn identity(&self, token: &str) -> Result<Identity, TokenRefused> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenRefused("length"));
        }
        if demands_more(token) {
            return Err(TokenRefused("header crit"));
        }
        let header = decode_header(token);
        let header = header.map_err(|error| TokenRefused(cause(&error, token)))?;
        if let Some(keys) = &self.of_provider
            && header.alg != Algorithm::HS256
        {
            return keys.verify(token, &header);
        }
        let claims = self.own.claims(token, header.kid.as_deref())?;
        if claims.jti.is_empty() {
            return Err(TokenRefused("claim jti"));
        }
        // A token is invalid "on or after" its `exp` (RFC 7519 §4.1.4); the library accepts it one
        // second longer.
        if claims.exp <= claims.iat || claims.exp <= Utc::now().timestamp() {
            return Err(TokenRefused("claim exp"));
        }
        if claims.sub.is_deleted() {
            return Err(TokenRefused("claim sub"));
        }
        let is_text = claims.scope.as_ref().is_none_or(Value::is_string);
        let scopes = Scopes::of(claims.scope.as_ref()).filter(|_| is_text);
        let scopes = scopes.ok_or(TokenRefused("claim scope"))?;
        let named = match claims.name {
            None if !scopes.is_empty() => claims.sub.to_string(),
            name => name.unwrap_or_default(),
        };
        let name = Line::Name.parse(&named).map_err(|_invalid| TokenRefused("claim name"))?;
        let identity = Identity {
            user: User { id: claims.sub, name },
            is_admin: claims.admin && scopes.is_empty(),
            issued_at: seconds(claims.iat, "claim iat")?,
            expires_at: seconds(claims.exp, "claim exp")?,
            scopes,
            token: TokenSubject::token(""),
        };
        // Galley signs it without a scope.
        match identity.is_guest() && !scopes.is_empty() {
            true => Err(TokenRefused("claim scope")),
            false => Ok(identity),
        }
    }
}

impl OwnKeys {
    fn claims(&self, token: &str, id: Option<&str>) -> Result<Claims, TokenRefused> {
        let is_named = |key: &&OwnKey| id.is_none() || key.id.is_none() || key.id.as_deref() == id;
        let mut refused = TokenRefused("header kid");
        for OwnKey { verify, .. } in self.keys.iter().filter(is_named) {
            match decode::<Claims>(token, verify, &self.rules) {
                Ok(found) => return Ok(found.claims),
                Err(error) => refused = TokenRefused(cause(&error, token)),
            }
            // Another secret may have signed it.
            if refused != TokenRefused("signature") {
                break;
            }
        }
        Err(refused)
    }
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
