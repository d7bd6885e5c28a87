//! Access tokens: JWTs signed with the local secret, HS256 and nothing else.
//!
//! The algorithm is ours, not the token's: a header that names another is refused before any key is
//! touched, and there is only one key. All claims are required (but `admin`, which is false when
//! it is not there) and each must have its own JSON type: a number written as text is a refusal
//! and not a default.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::ids::{TokenId, UserId};
use crate::domain::user::{User, parse_name};

/// Who signs.
const ISSUER: &str = "galley";
/// Longest token that is looked at, in bytes: ours have about 350.
const TOKEN_BYTES_MAX: usize = 4_096;

/// Who is asking, by a token that was valid when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The person.
    pub user: User,
    /// Whether the token opens `/api/admin`.
    pub is_admin: bool,
    /// When the token was signed.
    pub issued_at: DateTime<Utc>,
    /// When the token ends. A websocket ends with it.
    pub expires_at: DateTime<Utc>,
}

/// A fresh token.
#[derive(Clone, Debug)]
pub struct Signed {
    /// The token itself; a secret.
    pub token: String,
    /// When it ends.
    pub expires_at: DateTime<Utc>,
}

/// The token does not say who is asking. Why not is no business of whoever sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token is not valid")]
pub struct TokenRefused;

/// Signs and checks tokens. A cheap handle.
#[derive(Clone)]
pub struct Tokens(Arc<Keys>);

struct Keys {
    sign: EncodingKey,
    verify: DecodingKey,
    rules: Validation,
}

/// The claims, all of them required but the last, which nobody has who was not given it.
#[derive(Serialize, Deserialize)]
struct Claims {
    sub: UserId,
    name: String,
    iat: i64,
    exp: i64,
    iss: String,
    jti: String,
    #[serde(default)]
    admin: bool,
}

impl Tokens {
    /// Tokens signed with `secret`.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        let mut rules = Validation::new(Algorithm::HS256);
        rules.leeway = 0;
        rules.validate_nbf = true;
        rules.set_required_spec_claims(&["exp", "iss", "sub"]);
        rules.set_issuer(&[ISSUER]);
        Self(Arc::new(Keys {
            sign: EncodingKey::from_secret(secret),
            verify: DecodingKey::from_secret(secret),
            rules,
        }))
    }

    /// A token for `user` that ends `ttl` after `now`.
    ///
    /// # Errors
    ///
    /// Fails when the end lies beyond what a calendar can name, or signing does.
    pub fn sign(
        &self,
        user: &User,
        is_admin: bool,
        ttl: Duration,
        now: DateTime<Utc>,
    ) -> Result<Signed, TokenRefused> {
        let expires_at = now.checked_add_signed(
            chrono::TimeDelta::from_std(ttl).map_err(|_out_of_range| TokenRefused)?,
        );
        let expires_at = expires_at.ok_or(TokenRefused)?;
        let claims = Claims {
            sub: user.id.clone(),
            name: user.name.clone(),
            iat: now.timestamp(),
            exp: expires_at.timestamp(),
            iss: ISSUER.to_owned(),
            jti: TokenId::generate().to_string(),
            admin: is_admin,
        };
        let token = encode(&Header::new(Algorithm::HS256), &claims, &self.0.sign);
        let token = token.map_err(|_unsignable| TokenRefused)?;
        Ok(Signed { token, expires_at: seconds(claims.exp)? })
    }

    /// Who `token` speaks for, if it is valid now.
    ///
    /// # Errors
    ///
    /// [`TokenRefused`] for every reason there is.
    pub fn verify(&self, token: &str) -> Result<Identity, TokenRefused> {
        if TOKEN_BYTES_MAX < token.len() || demands_more(token) {
            return Err(TokenRefused);
        }
        let claims = decode::<Claims>(token, &self.0.verify, &self.0.rules)
            .map_err(|_reason| TokenRefused)?
            .claims;
        // "On or after" its time it is accepted no more (RFC 7519 §4.1.4); the library's second goes on.
        let is_over = claims.exp <= Utc::now().timestamp();
        if claims.jti.is_empty() || claims.exp <= claims.iat || is_over {
            return Err(TokenRefused);
        }
        let name = parse_name(&claims.name).map_err(|_invalid| TokenRefused)?;
        Ok(Identity {
            user: User { id: claims.sub, name },
            is_admin: claims.admin,
            issued_at: seconds(claims.iat)?,
            expires_at: seconds(claims.exp)?,
        })
    }
}

/// Whether the token's header says that whoever does not understand some extension must refuse it
/// (RFC 7515 §4.1.11). We understand none. A header that cannot be read is refused elsewhere.
fn demands_more(token: &str) -> bool {
    let header = token.split('.').next().unwrap_or_default();
    let header = URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
    // `"crit": null` is no list of names, and so as wrong as an unknown one.
    serde_json::from_slice::<Map<String, Value>>(&header)
        .is_ok_and(|header| header.contains_key("crit"))
}

fn seconds(timestamp: i64) -> Result<DateTime<Utc>, TokenRefused> {
    DateTime::from_timestamp(timestamp, 0).ok_or(TokenRefused)
}

#[cfg(test)]
mod tests;
