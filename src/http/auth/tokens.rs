//! Access tokens: JWTs signed with the local secret, by HS256 only.
//!
//! The server fixes the algorithm, not the token: it rejects a header that names another algorithm
//! before it uses the key, and there is only one key. All claims except `admin` are required; `admin`
//! defaults to false. Each claim must have its own JSON type: the server rejects a number written as
//! text and substitutes no default.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, decode_header, encode,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::ids::{TokenId, UserId};
use crate::domain::line::Line;
use crate::domain::user::User;

const ISSUER: &str = "galley";
/// Lifetime of a guest's token. The guest's documents depend on it, so the server renews the token of an
/// active page.
pub const GUEST_TTL: Duration = Duration::from_secs(30 * 24 * 3_600);
/// Maximum length of a token in bytes; Galley's own have about 350.
const TOKEN_BYTES_MAX: usize = 4_096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub user: User,
    /// Whether the token grants access to `/api/admin`.
    pub is_admin: bool,
    pub issued_at: DateTime<Utc>,
    /// A websocket ends with it.
    pub expires_at: DateTime<Utc>,
}

impl Identity {
    /// Whether Galley signed the token for a guest. A token of an administrator or of a host application
    /// has another id or another lifetime.
    #[must_use]
    pub fn is_guest(&self) -> bool {
        let life = self.expires_at - self.issued_at;
        !self.is_admin && self.user.id.is_generated() && life.to_std() == Ok(GUEST_TTL)
    }
}

#[derive(Clone, Debug)]
pub struct Signed {
    /// The token itself, a secret.
    pub token: String,
    pub expires_at: DateTime<Utc>,
}

/// The token is not valid. The cause names the part at fault (`signature`, `claim iss`) and no value. It
/// shows an integrator what to correct, and gives an attacker no knowledge beyond a signer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token is not valid: {0}")]
pub struct TokenRefused(pub &'static str);

#[derive(Clone)]
pub struct Tokens(Arc<Keys>);

struct Keys {
    sign: EncodingKey,
    verify: DecodingKey,
    rules: Validation,
}

/// The claims. All are required but `admin`, which only an administrator's token has.
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
            name: user.name.clone(),
            iat: now.timestamp(),
            exp: expires_at.timestamp(),
            iss: ISSUER.to_owned(),
            jti: TokenId::generate().to_string(),
            admin: is_admin,
        };
        let token = encode(&Header::new(Algorithm::HS256), &claims, &self.0.sign);
        let token = token.map_err(|_unsignable| TokenRefused("signature"))?;
        Ok(Signed { token, expires_at: seconds(claims.exp, "claim exp")? })
    }

    /// The error names the part of the token that is at fault.
    pub fn verify(&self, token: &str) -> Result<Identity, TokenRefused> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenRefused("length"));
        }
        if demands_more(token) {
            return Err(TokenRefused("header crit"));
        }
        let claims = decode::<Claims>(token, &self.0.verify, &self.0.rules);
        let claims = claims.map_err(|error| TokenRefused(cause(&error, token)))?.claims;
        if claims.jti.is_empty() {
            return Err(TokenRefused("claim jti"));
        }
        // A token is invalid "on or after" its `exp` (RFC 7519 §4.1.4); the library accepts it one
        // second longer.
        if claims.exp <= claims.iat || claims.exp <= Utc::now().timestamp() {
            return Err(TokenRefused("claim exp"));
        }
        let name = Line::Name.parse(&claims.name).map_err(|_invalid| TokenRefused("claim name"))?;
        Ok(Identity {
            user: User { id: claims.sub, name },
            is_admin: claims.admin,
            issued_at: seconds(claims.iat, "claim iat")?,
            expires_at: seconds(claims.exp, "claim exp")?,
        })
    }
}

/// Names the part of the token that the library rejects.
fn cause(error: &Error, token: &str) -> &'static str {
    match error.kind() {
        ErrorKind::InvalidSignature => "signature",
        ErrorKind::InvalidAlgorithm
        | ErrorKind::InvalidAlgorithmName
        | ErrorKind::UnsupportedAlgorithm => "header alg",
        ErrorKind::ExpiredSignature => "claim exp",
        ErrorKind::ImmatureSignature => "claim nbf",
        ErrorKind::InvalidIssuer => "claim iss",
        ErrorKind::InvalidAudience => "claim aud",
        ErrorKind::InvalidSubject => "claim sub",
        ErrorKind::Json(_)
        | ErrorKind::MissingRequiredClaim(_)
        | ErrorKind::InvalidClaimFormat(_) => claim_at_fault(token),
        // The enum belongs to the library and may grow.
        _ => "form",
    }
}

/// Names the first claim that is missing or has another type. The library reads the header first, then
/// the signature, then the claims, and its error names no claim.
fn claim_at_fault(token: &str) -> &'static str {
    if decode_header(token).is_err() {
        return "header";
    }
    let claims = token.split('.').nth(1).unwrap_or_default();
    let claims = URL_SAFE_NO_PAD.decode(claims).unwrap_or_default();
    let Ok(claims) = serde_json::from_slice::<Map<String, Value>>(&claims) else { return "claims" };
    let is = |name: &str, check: fn(&Value) -> bool| claims.get(name).is_some_and(check);
    let is_id = |value: &Value| value.as_str().is_some_and(|id| id.parse::<UserId>().is_ok());
    match () {
        () if !is("iss", Value::is_string) => "claim iss",
        () if !is("sub", is_id) => "claim sub",
        () if !is("name", Value::is_string) => "claim name",
        () if !is("iat", Value::is_i64) => "claim iat",
        () if !is("exp", Value::is_i64) => "claim exp",
        () if !is("jti", Value::is_string) => "claim jti",
        () if claims.get("admin").is_some_and(|admin| !admin.is_boolean()) => "claim admin",
        () if claims.get("nbf").is_some_and(|nbf| !nbf.is_number()) => "claim nbf",
        () => "claims",
    }
}

/// Whether the token's header lists critical extensions (`crit`, RFC 7515 §4.1.11). The server supports
/// none and must reject such a token. A header that cannot be parsed is rejected by the library.
fn demands_more(token: &str) -> bool {
    let header = token.split('.').next().unwrap_or_default();
    let header = URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
    // `"crit": null` is no list of names, and therefore as invalid as an unknown extension.
    serde_json::from_slice::<Map<String, Value>>(&header)
        .is_ok_and(|header| header.contains_key("crit"))
}

fn seconds(timestamp: i64, claim: &'static str) -> Result<DateTime<Utc>, TokenRefused> {
    DateTime::from_timestamp(timestamp, 0).ok_or(TokenRefused(claim))
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
