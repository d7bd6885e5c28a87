//! The credential of a request and the rights that it grants.
//!
//! [`identify`] verifies the token once, before every handler, and stores the result in the request.
//! Handlers then demand rights by type: [`Caller`] for a user, [`Admin`] for an administrator. A handler
//! gets a `User` in no other way, so it cannot omit the check.

use std::fmt;

use axum::extract::{FromRef, FromRequestParts, Request, State};
use axum::http::header::{AUTHORIZATION, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::domain::ids::UserId;
use crate::domain::user::User;
use crate::http::access::Access;
use crate::http::auth::cookie;
use crate::http::auth::tokens::{Identity, TokenRefused, Tokens};
use crate::http::error::ApiError;
use crate::http::limit::{Limiter, Peer, network};
use crate::http::origin::{OriginCheck, Origins};
use crate::http::security_log::SecurityLog;
use crate::rooms::permits::in_the_name_of;
use crate::sharing::Sharing;

/// How the request carried the token. A token that the browser adds by itself needs an `Origin` header
/// as proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// `Authorization: Bearer`, which only code of the client sends.
    Bearer,
    /// The cookie, which a browser adds to requests of any page.
    Cookie,
}

/// The credential that a request carried.
#[derive(Clone, Debug)]
pub enum Credential {
    /// Neither bearer token nor cookie.
    Nothing,
    /// A token that is not valid now.
    Refused {
        /// The part of the token that is at fault.
        cause: TokenRefused,
        /// How the request carried it.
        by: CredentialSource,
    },
    /// The admin token.
    AdminToken,
    /// A user.
    Person {
        /// The user, and the token's lifetime.
        identity: Identity,
        /// How the request carried the token.
        by: CredentialSource,
    },
}

impl Credential {
    /// Reads the bearer token first, because client code sets it deliberately, and the cookie only
    /// without one.
    pub(crate) fn read(headers: &HeaderMap, tokens: &Tokens, gate: &Access) -> Self {
        if headers.contains_key(AUTHORIZATION) {
            let Some(token) = bearer(headers) else {
                let cause = TokenRefused("header Authorization");
                return Self::Refused { cause, by: CredentialSource::Bearer };
            };
            return match Self::verified(tokens, token, CredentialSource::Bearer) {
                // The rare case comes last.
                Self::Refused { .. } if gate.is_admin_token(token) => Self::AdminToken,
                presented => presented,
            };
        }
        match cookie::token(headers, gate.is_secure()) {
            Ok(None) => Self::Nothing,
            Ok(Some(found)) => match Self::verified(tokens, &found.token, CredentialSource::Cookie)
            {
                // Under https the server's own guests have the other cookie name. Another subdomain set
                // this cookie.
                Self::Person { identity, by } if found.is_shared && identity.is_guest() => {
                    Self::Refused { cause: TokenRefused("cookie of another subdomain"), by }
                }
                presented => presented,
            },
            Err(cause) => Self::Refused { cause, by: CredentialSource::Cookie },
        }
    }

    /// The user, if the credential names one.
    pub(crate) fn user(&self) -> Option<&UserId> {
        match self {
            Self::Person { identity, .. } => Some(&identity.user.id),
            Self::Nothing | Self::Refused { .. } | Self::AdminToken => None,
        }
    }

    fn verified(tokens: &Tokens, token: &str, by: CredentialSource) -> Self {
        match tokens.verify(token) {
            Ok(identity) => Self::Person { identity, by },
            Err(cause) => Self::Refused { cause, by },
        }
    }
}

/// The token of the only `Authorization: Bearer` header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (first, None) = (values.next()?, values.next()) else { return None };
    let (scheme, token) = first.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The state that [`identify`] uses.
pub(crate) type Checks = (Tokens, Access, Limiter, Origins, SecurityLog);

/// Verifies the token, counts the request, and logs a refusal.
pub(crate) async fn identify(
    State((tokens, gate, limiter, origins, log)): State<Checks>,
    mut request: Request,
    next: Next,
) -> Response {
    let presented = Credential::read(request.headers(), &tokens, &gate);
    let peer = request.extensions().get::<Peer>().copied().unwrap_or_default();
    // The websocket handler counts its own requests after the upgrade, when it can answer with a close
    // code.
    let is_socket = request.uri().path().starts_with("/ws/");
    if !is_socket && let Err(retry_after) = limiter.check(&presented, peer) {
        return ApiError::TooManyRequests { retry_after }.into_response();
    }
    if let Credential::Refused { by: CredentialSource::Bearer, .. } = presented
        && let Err(retry_after) = limiter.check_refused_bearer(peer)
    {
        return ApiError::TooManyRequests { retry_after }.into_response();
    }
    let origin = request.headers().get(ORIGIN).cloned();
    let user = presented.user().cloned();
    request.extensions_mut().insert(presented);
    let response = match user.clone() {
        Some(user) => in_the_name_of(user, network(peer.0), next.run(request)).await,
        None => next.run(request).await,
    };
    log.refused(&response, peer, user.as_ref(), (origin.as_ref(), &origins));
    response
}

/// A user with a valid token. An unsafe method with a cookie also carries one of the server's origins.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The user and the token's lifetime.
    pub identity: Identity,
    /// How the request carried the token.
    pub by: CredentialSource,
}

impl Caller {
    /// The user.
    #[must_use]
    pub fn user(&self) -> &User {
        &self.identity.user
    }

    /// Stores the name in the token, unless a newer token carried another. The first write that refers
    /// to a guest stores the guest's name, which never changes.
    pub(crate) async fn save_name(&self, sharing: &Sharing) -> Result<(), ApiError> {
        if self.identity.is_guest() {
            return Ok(());
        }
        Ok(sharing.save_name(self.user(), self.identity.issued_at).await?)
    }
}

impl<S> FromRequestParts<S> for Caller
where
    S: Send + Sync,
    Origins: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match parts.extensions.get::<Credential>() {
            None | Some(Credential::Nothing | Credential::AdminToken) => {
                Err(ApiError::Unauthenticated("this needs a token"))
            }
            Some(Credential::Refused { cause, .. }) => Err(ApiError::TokenRefused(cause.0)),
            Some(Credential::Person { identity, by }) => {
                let caller = Self { identity: identity.clone(), by: *by };
                witness(caller.by, parts, &Origins::from_ref(state))?;
                Ok(caller)
            }
        }
    }
}

/// An administrator: the admin token, or a user's token with the `admin` claim.
#[derive(Clone, Debug)]
pub enum Admin {
    /// The holder of the admin token.
    Token,
    /// A user.
    Person(UserId),
}

/// The form for log lines.
impl fmt::Display for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token => f.write_str("the admin token"),
            Self::Person(id) => id.fmt(f),
        }
    }
}

impl<S> FromRequestParts<S> for Admin
where
    S: Send + Sync,
    Origins: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match parts.extensions.get::<Credential>() {
            None | Some(Credential::Nothing) => {
                Err(ApiError::Unauthenticated("this needs the admin token"))
            }
            Some(Credential::Refused { cause, .. }) => Err(ApiError::TokenRefused(cause.0)),
            Some(Credential::AdminToken) => Ok(Self::Token),
            Some(Credential::Person { identity, .. }) if !identity.is_admin => {
                Err(ApiError::NotAdmin)
            }
            Some(Credential::Person { by, identity }) => {
                witness(*by, parts, &Origins::from_ref(state))?;
                Ok(Self::Person(identity.user.id.clone()))
            }
        }
    }
}

/// Rejects a cookie without one of the server's origins; a missing `Origin` proves nothing.
fn witness(by: CredentialSource, parts: &Parts, origins: &Origins) -> Result<(), ApiError> {
    let is_safe = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
    match (by, origins.check(&parts.headers)) {
        (CredentialSource::Bearer, _) | (CredentialSource::Cookie, OriginCheck::Ours) => Ok(()),
        (CredentialSource::Cookie, OriginCheck::Missing | OriginCheck::Foreign) if is_safe => {
            Ok(())
        }
        (CredentialSource::Cookie, OriginCheck::Missing | OriginCheck::Foreign) => {
            Err(ApiError::ForeignOrigin)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::auth::tokens::GUEST_TTL;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            Some((
                axum::http::HeaderName::try_from(*name).ok()?,
                axum::http::HeaderValue::try_from(*value).ok()?,
            ))
        };
        pairs.iter().filter_map(pair).collect()
    }

    #[test]
    fn the_bearer_is_one_word_after_its_scheme() {
        assert_eq!(bearer(&headers(&[("authorization", "Bearer a.b.c")])), Some("a.b.c"));
        assert_eq!(bearer(&headers(&[("authorization", "bearer a.b.c")])), Some("a.b.c"));
        assert_eq!(bearer(&headers(&[("authorization", "Basic a.b.c")])), None);
        assert_eq!(bearer(&headers(&[("authorization", "Bearer")])), None);
    }

    #[test]
    fn a_bad_bearer_is_not_rescued_by_a_good_cookie() {
        let tokens = Tokens::new(b"0123456789abcdef0123456789abcdef");
        let gate = Access::new(true, b"the admin's token");
        let user = User { id: "kim".parse().expect("an id"), name: "Kim".to_owned() };
        let hour = std::time::Duration::from_secs(3_600);
        let signed = tokens.sign(&user, false, hour, chrono::Utc::now()).expect("signed");
        let cookie = format!("galley_token={}", signed.token);
        let by_cookie = headers(&[("cookie", &cookie)]);
        assert!(matches!(
            Credential::read(&by_cookie, &tokens, &gate),
            Credential::Person { by: CredentialSource::Cookie, .. }
        ));
        let both = headers(&[("cookie", &cookie), ("authorization", "Bearer x")]);
        assert!(matches!(Credential::read(&both, &tokens, &gate), Credential::Refused { .. }));
        let admin = headers(&[("authorization", "Bearer the admin's token")]);
        assert!(matches!(Credential::read(&admin, &tokens, &gate), Credential::AdminToken));
    }
    #[test]
    fn g14_under_https_a_guests_token_counts_only_in_the_cookie_of_this_host() {
        let tokens = Tokens::new(b"0123456789abcdef0123456789abcdef");
        let gate = Access::new(true, b"the admin's token").under_https(true);
        let sign = |id: UserId, ttl| {
            let user = User { id, name: "Kim".to_owned() };
            tokens.sign(&user, false, ttl, chrono::Utc::now()).expect("signed").token
        };
        let guest = sign(UserId::generate(), GUEST_TTL);
        let month = sign("kim".parse().expect("an id"), GUEST_TTL);
        let read =
            |cookie: String| Credential::read(&headers(&[("cookie", &cookie)]), &tokens, &gate);
        let is_user = |presented| {
            matches!(presented, Credential::Person { by: CredentialSource::Cookie, .. })
        };
        assert!(is_user(read(format!("__Host-galley_token={guest}"))));
        assert!(!is_user(read(format!("galley_token={guest}"))));
        assert!(is_user(read(format!("galley_token={month}"))), "a host application sets it");
    }
}
