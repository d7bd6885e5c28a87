//! The credential of a request: a bearer token, a cookie, the admin token or none.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use crate::domain::ids::UserId;
use crate::http::access::Access;
use crate::http::auth::cookie;
use crate::http::auth::named_user::NamedUser;
use crate::http::auth::tokens::{Identity, TokenRefused, Tokens};

/// A token that the browser adds by itself needs an `Origin` header as proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// `Authorization: Bearer`, which only code of the client sends.
    Bearer,
    /// The cookie, which a browser adds to requests of any page.
    Cookie,
}

#[derive(Clone, Debug)]
pub enum Credential {
    Nothing,
    Refused {
        cause: TokenRefused,
        by: CredentialSource,
    },
    AdminToken,
    Person {
        identity: Identity,
        by: CredentialSource,
        /// The server that acts in the user's name.
        server: Option<UserId>,
    },
    /// A server token. `named`: the user whom the header names.
    Server {
        identity: Identity,
        named: Option<UserId>,
    },
}

impl Credential {
    /// Reads the bearer token first, because client code sets it deliberately, and the cookie only
    /// without one.
    pub(crate) fn read(headers: &HeaderMap, tokens: &Tokens, access: &Access) -> Self {
        if headers.contains_key(AUTHORIZATION) {
            let Some(token) = bearer(headers) else {
                let cause = TokenRefused("header Authorization");
                return Self::Refused { cause, by: CredentialSource::Bearer };
            };
            return match Self::verified(tokens, token, CredentialSource::Bearer) {
                // The rare cases come last.
                Self::Refused { .. } if access.is_admin_token(token) => Self::AdminToken,
                Self::Server { identity, .. } => {
                    // Admission refuses a fault.
                    let named = NamedUser::read(headers).ok().flatten();
                    Self::Server { identity, named: named.map(|named| named.id) }
                }
                presented => presented,
            };
        }
        match cookie::token(headers, access.is_secure()) {
            Ok(None) => Self::Nothing,
            Ok(Some(found)) => match Self::verified(tokens, &found.token, CredentialSource::Cookie)
            {
                // Under https the server's own guests have the other cookie name. Another subdomain set
                // this cookie.
                Self::Person { identity, by, .. } if found.is_shared && identity.is_guest() => {
                    Self::Refused { cause: TokenRefused("cookie of another subdomain"), by }
                }
                // A browser adds a cookie to requests of any page.
                Self::Server { .. } => {
                    let cause = TokenRefused("server token in a cookie");
                    Self::Refused { cause, by: CredentialSource::Cookie }
                }
                presented => presented,
            },
            Err(cause) => Self::Refused { cause, by: CredentialSource::Cookie },
        }
    }

    /// Whom the call is charged to.
    pub(crate) fn user(&self) -> Option<&UserId> {
        match self {
            Self::Server { named: Some(named), .. } => Some(named),
            Self::Server { identity, .. } => Some(&identity.user.id),
            Self::Person { identity, .. } => Some(&identity.user.id),
            Self::Nothing | Self::Refused { .. } | Self::AdminToken => None,
        }
    }

    fn verified(tokens: &Tokens, token: &str, by: CredentialSource) -> Self {
        match tokens.verify_any(token) {
            Ok(identity) if !identity.scopes.is_empty() => Self::Server { identity, named: None },
            Ok(identity) => Self::Person { identity, by, server: None },
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::user::User;
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
        let access = Access::new(true, b"the admin's token");
        let user = User { id: "kim".parse().expect("an id"), name: "Kim".to_owned() };
        let hour = std::time::Duration::from_secs(3_600);
        let signed = tokens.sign(&user, false, hour, chrono::Utc::now()).expect("signed");
        let cookie = format!("galley_token={}", signed.token);
        let by_cookie = headers(&[("cookie", &cookie)]);
        assert!(matches!(
            Credential::read(&by_cookie, &tokens, &access),
            Credential::Person { by: CredentialSource::Cookie, .. }
        ));
        let both = headers(&[("cookie", &cookie), ("authorization", "Bearer x")]);
        assert!(matches!(Credential::read(&both, &tokens, &access), Credential::Refused { .. }));
        let admin = headers(&[("authorization", "Bearer the admin's token")]);
        assert!(matches!(Credential::read(&admin, &tokens, &access), Credential::AdminToken));
    }

    #[test]
    fn g14_under_https_a_guests_token_counts_only_in_the_cookie_of_this_host() {
        let tokens = Tokens::new(b"0123456789abcdef0123456789abcdef");
        let access = Access::new(true, b"the admin's token").under_https(true);
        let sign = |id: UserId, ttl| {
            let user = User { id, name: "Kim".to_owned() };
            tokens.sign(&user, false, ttl, chrono::Utc::now()).expect("signed").token
        };
        let guest = sign(UserId::generate(), GUEST_TTL);
        let month = sign("kim".parse().expect("an id"), GUEST_TTL);
        let read =
            |cookie: String| Credential::read(&headers(&[("cookie", &cookie)]), &tokens, &access);
        let is_user = |presented| {
            matches!(presented, Credential::Person { by: CredentialSource::Cookie, .. })
        };
        assert!(is_user(read(format!("__Host-galley_token={guest}"))));
        assert!(!is_user(read(format!("galley_token={guest}"))));
        assert!(is_user(read(format!("galley_token={month}"))), "a host application sets it");
    }
}
