//! The user whom a token names, and the parts for which a token is refused.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use jsonwebtoken::decode_header;
use jsonwebtoken::errors::{Error, ErrorKind};
use serde_json::{Map, Value};

use crate::domain::ids::UserId;
use crate::domain::user::User;
use crate::http::auth::scopes::Scopes;
use crate::storage::revocations::TokenSubject;

/// Lifetime of a guest's token. The guest's documents depend on it, so the server renews the token of an
/// active page.
pub const GUEST_TTL: Duration = Duration::from_secs(30 * 24 * 3_600);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub user: User,
    /// Whether the token grants access to `/api/admin`.
    pub is_admin: bool,
    pub issued_at: DateTime<Utc>,
    /// A websocket ends with it.
    pub expires_at: DateTime<Utc>,
    /// Empty for the token of a user. Else `user` is the server, by its `sub`.
    pub scopes: Scopes,
    pub token: TokenSubject,
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

/// The token is not valid. The cause names the part at fault (`signature`, `claim iss`) and no value. It
/// shows an integrator what to correct, and gives an attacker no knowledge beyond a signer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token is not valid: {0}")]
pub struct TokenRefused(pub &'static str);

/// The server has no key to verify the token with now, and reads the key set again: the token may be valid.
pub(crate) const KEYS_UNAVAILABLE: TokenRefused = TokenRefused("keys-unavailable");

/// The deletion of its user runs.
pub(crate) const USER_DELETED: TokenRefused = TokenRefused("user-deleted");

/// A server token where only a user's counts.
pub(crate) const SERVER_TOKEN: TokenRefused = TokenRefused("server-token");

/// The token by the hash of what is signed.
pub(super) fn subject_of(token: &str) -> TokenSubject {
    let signed = token.rsplit_once('.').map_or(token, |(signed, _)| signed);
    TokenSubject::token(&URL_SAFE_NO_PAD.encode(digest(&SHA256, signed.as_bytes())))
}

/// Names the part of the token that the library rejects.
pub(super) fn cause(error: &Error, token: &str) -> &'static str {
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
        () if claims.get("name").is_some_and(|name| !name.is_string()) => "claim name",
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
pub(super) fn demands_more(token: &str) -> bool {
    let header = token.split('.').next().unwrap_or_default();
    let header = URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
    // `"crit": null` is no list of names, and therefore as invalid as an unknown extension.
    serde_json::from_slice::<Map<String, Value>>(&header)
        .is_ok_and(|header| header.contains_key("crit"))
}

pub(super) fn seconds(timestamp: i64, claim: &'static str) -> Result<DateTime<Utc>, TokenRefused> {
    DateTime::from_timestamp(timestamp, 0).ok_or(TokenRefused(claim))
}
