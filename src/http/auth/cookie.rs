//! The cookie that carries the token: its name, its attributes, and which one counts.
//!
//! A page of any sibling subdomain can set a cookie for this host with `Domain=` and so sign a user in
//! as another user. Browsers let only this host itself set a cookie whose name begins with `__Host-`.
//! Under https the server therefore gives guests `__Host-galley_token`, which takes precedence over
//! `galley_token`. The plain name remains for tokens of a host application, which sets it for its whole
//! domain. Under the plain name the server rejects a guest's token.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};

use crate::http::auth::tokens::{GUEST_TTL, TokenRefused};
use crate::http::origin::Origin;

/// The name without https, and the one that a host application sets.
const PLAIN: &str = "galley_token";
/// The name under https.
const OF_THIS_HOST: &str = "__Host-galley_token";

/// A token from a cookie.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) token: String,
    /// Whether another subdomain may have set the cookie.
    pub(crate) is_shared: bool,
}

/// The token in the request's cookies, if any.
///
/// # Errors
///
/// [`TokenRefused`] if two cookies have the name: their order depends on the browser and proves nothing.
pub(crate) fn token(headers: &HeaderMap, is_secure: bool) -> Result<Option<Found>, TokenRefused> {
    if !headers.contains_key(COOKIE) {
        return Ok(None);
    }
    if is_secure && let Some(token) = single(headers, OF_THIS_HOST)? {
        return Ok(Some(Found { token, is_shared: false }));
    }
    Ok(single(headers, PLAIN)?.map(|token| Found { token, is_shared: is_secure }))
}

fn single(headers: &HeaderMap, name: &str) -> Result<Option<String>, TokenRefused> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let cookies = lines.flat_map(Cookie::split_parse).filter_map(Result::ok);
    let mut named = cookies.filter(|cookie| cookie.name() == name);
    match (named.next(), named.next()) {
        (_, Some(_)) => Err(TokenRefused("two cookies of one name")),
        (first, None) => Ok(first.map(|cookie| cookie.value().to_owned())),
    }
}

/// The cookie of a guest who reaches the server at `own`.
pub(crate) fn of_guest(token: &str, own: &Origin) -> CookieJar {
    let name = if own.is_secure() { OF_THIS_HOST } else { PLAIN };
    CookieJar::new().add(cookie(name, token, own.is_secure(), GUEST_TTL))
}

/// Cookies that remove the token from a browser, for each name that this server may have set.
pub(crate) fn none(own: &Origin) -> CookieJar {
    let removed = |name| cookie(name, "", own.is_secure(), Duration::ZERO);
    let jar = CookieJar::new().add(removed(PLAIN));
    if own.is_secure() { jar.add(removed(OF_THIS_HOST)) } else { jar }
}

fn cookie(name: &'static str, value: &str, is_secure: bool, age: Duration) -> Cookie<'static> {
    Cookie::build((name, value.to_owned()))
        .path("/")
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(is_secure)
        .max_age(age.try_into().unwrap_or_default())
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(cookies: &[&str], is_secure: bool) -> Result<Option<(String, bool)>, TokenRefused> {
        let mut headers = HeaderMap::new();
        for line in cookies {
            headers.append(COOKIE, line.parse().expect("a header"));
        }
        Ok(token(&headers, is_secure)?.map(|found| (found.token, found.is_shared)))
    }

    #[test]
    fn g14_a_cookie_of_a_sibling_subdomain_does_not_win() {
        let own = Ok(Some(("own".to_owned(), false)));
        for cookies in [
            &["__Host-galley_token=own"][..],
            &["galley_token=theirs; __Host-galley_token=own"],
            &["__Host-galley_token=own; galley_token=theirs; galley_token=more"],
            &["galley_token=theirs", "x=y; __Host-galley_token=own"],
        ] {
            assert_eq!(found(cookies, true), own, "{cookies:?}");
        }
        let shared = Ok(Some(("theirs".to_owned(), true)));
        assert_eq!(found(&["a=b; galley_token=theirs"], true), shared);
        assert_eq!(found(&["a=b"], true), Ok(None));
    }

    #[test]
    fn two_cookies_of_one_name_are_refused() {
        for (cookies, is_secure) in [
            (&["galley_token=a; galley_token=b"][..], false),
            (&["galley_token=a", "galley_token=a"], true),
            (&["__Host-galley_token=a; __Host-galley_token=b"], true),
        ] {
            assert!(found(cookies, is_secure).is_err(), "{cookies:?}");
        }
        let plain = Ok(Some(("a".to_owned(), false)));
        assert_eq!(found(&["galley_token=a; __Host-galley_token=b"], false), plain);
    }
}
