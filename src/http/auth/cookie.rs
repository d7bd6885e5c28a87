//! The cookie that carries the token: its name, its attributes, and which one counts.
//!
//! A page of any sibling subdomain can set a cookie for this host with `Domain=` and so sign a user in
//! as another user. Browsers let only this host itself set a cookie whose name begins with `__Host-`.
//! Under https the server therefore gives guests `__Host-galley_token`, which takes precedence over
//! `galley_token`. The plain name remains for tokens of a host application, which sets it for its whole
//! domain. Under the plain name the server rejects a guest's token.

use std::time::Duration;

use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName};
use axum::response::AppendHeaders;

use crate::http::auth::tokens::TokenRefused;
use crate::http::origin::Origins;

const PLAIN: &str = "galley_token";
const OF_THIS_HOST: &str = "__Host-galley_token";
/// The name of a sign-in under way at a provider, before its id.
const SIGN_IN: &str = "galley_sign_in_";
/// Sign-ins under way in one browser: a header of cookies has a bound.
const SIGN_INS_MAX: usize = 8;

pub(crate) type SetCookies = AppendHeaders<Vec<(HeaderName, String)>>;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) token: String,
    /// Whether another subdomain may have set the cookie.
    pub(crate) is_shared: bool,
}

/// Two cookies of the name are refused: their order depends on the browser and proves nothing.
pub(crate) fn token(headers: &HeaderMap, is_secure: bool) -> Result<Option<Found>, TokenRefused> {
    if !headers.contains_key(COOKIE) {
        return Ok(None);
    }
    if is_secure && let Some(token) = single(headers, OF_THIS_HOST)? {
        return Ok(Some(Found { token, is_shared: false }));
    }
    Ok(single(headers, PLAIN)?.map(|token| Found { token, is_shared: is_secure }))
}

/// Name and value of each cookie.
fn all(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let cookies = lines.flat_map(|line| line.split(';').filter_map(|part| part.split_once('=')));
    cookies.map(|(name, value)| (name.trim(), value))
}

fn single(headers: &HeaderMap, name: &str) -> Result<Option<String>, TokenRefused> {
    let mut named = all(headers).filter(|(other, _)| *other == name);
    match (named.next(), named.next()) {
        (_, Some(_)) => Err(TokenRefused("two cookies of one name")),
        (first, None) => Ok(first.map(|(_, value)| value.trim().to_owned())),
    }
}

pub(crate) fn of(token: &str, origins: &Origins, age: Duration) -> SetCookies {
    let name = if origins.own().is_secure() { OF_THIS_HOST } else { PLAIN };
    AppendHeaders(vec![cookie(name, token, origins, age)])
}

/// Cookies that remove the token from a browser, for each name that this server may have set.
pub(crate) fn none(origins: &Origins) -> SetCookies {
    let names = [PLAIN].into_iter().chain(origins.own().is_secure().then_some(OF_THIS_HOST));
    AppendHeaders(names.map(|name| cookie(name, "", origins, Duration::ZERO)).collect())
}

/// The value of the cookie of a sign-in under way.
pub(crate) fn of_sign_in(headers: &HeaderMap, id: &str, origins: &Origins) -> Option<String> {
    single(headers, &sign_in_name(id, origins)).ok()?
}

/// A browser with too many sign-ins under way forgets the earlier ones.
pub(crate) fn begin_sign_in(
    headers: &HeaderMap,
    id: &str,
    value: &str,
    origins: &Origins,
    age: Duration,
) -> SetCookies {
    let prefix = sign_in_name("", origins);
    let begun = all(headers).filter(|(name, _)| name.starts_with(&prefix));
    let mut begun: Vec<_> = begun.map(|(name, _)| top(name, "", origins, Duration::ZERO)).collect();
    if begun.len() < SIGN_INS_MAX {
        begun.clear();
    }
    begun.push(top(&sign_in_name(id, origins), value, origins, age));
    AppendHeaders(begun)
}

pub(crate) fn end_sign_in(id: &str, origins: &Origins) -> SetCookies {
    AppendHeaders(vec![top(&sign_in_name(id, origins), "", origins, Duration::ZERO)])
}

/// Under https no page of a sibling name can plant a sign-in of its own.
fn sign_in_name(id: &str, origins: &Origins) -> String {
    format!("{}{SIGN_IN}{id}", if origins.own().is_secure() { "__Host-" } else { "" })
}

/// A cookie of a sign-in: no frame shows the provider, and the browser comes back by a link to the top.
fn top(name: &str, value: &str, origins: &Origins, age: Duration) -> (HeaderName, String) {
    let secure = if origins.own().is_secure() { "; Secure" } else { "" };
    let age = age.as_secs();
    (SET_COOKIE, format!("{name}={value}; HttpOnly; SameSite=Lax{secure}; Path=/; Max-Age={age}"))
}

/// Where pages of another site show Galley's in a frame, the cookie belongs to the frame under that site
/// (`Partitioned`, CHIPS). The check of `Origin` replaces `SameSite` there.
fn cookie(name: &str, value: &str, origins: &Origins, age: Duration) -> (HeaderName, String) {
    let scope = match (origins.own().is_secure(), origins.frames()) {
        (false, _) => "SameSite=Lax",
        (true, []) => "SameSite=Lax; Secure",
        (true, _) => "SameSite=None; Secure; Partitioned",
    };
    let age = age.as_secs();
    (SET_COOKIE, format!("{name}={value}; HttpOnly; {scope}; Path=/; Max-Age={age}"))
}

#[cfg(test)]
mod tests {
    use crate::http::auth::tokens::GUEST_TTL;
    use crate::http::origin::Origin;

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
    fn a_cookie_is_read_between_spaces_and_up_to_the_semicolon() {
        let cases = [
            (" galley_token = a== ;x", Some("a==")),
            ("; ;x;galley_token=", Some("")),
            ("galley_token", None),
            ("GALLEY_TOKEN=a; =galley_token; x=galley_token=a", None),
        ];
        for (line, value) in cases {
            let value = value.map(|value| (value.to_owned(), false));
            assert_eq!(found(&[line], false), Ok(value), "{line}");
        }
    }

    #[test]
    fn a_cookie_is_set_for_every_path_of_this_host_and_hidden_from_scripts() {
        let [plain, secure] = ["http://galley.example", "https://galley.example"]
            .map(|origin| Origins::exactly(Origin::parse(origin).expect("an origin")));
        let texts = |cookies: SetCookies| -> Vec<String> {
            cookies.0.into_iter().map(|(name, text)| format!("{name}: {text}")).collect()
        };
        let http = "HttpOnly; SameSite=Lax; Path=/; Max-Age";
        let https = "HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age";
        let age = GUEST_TTL.as_secs();
        let set = format!("set-cookie: galley_token=a.b; {http}={age}");
        assert_eq!(texts(of("a.b", &plain, GUEST_TTL)), [set]);
        let set = format!("set-cookie: __Host-galley_token=a.b; {https}={age}");
        assert_eq!(texts(of("a.b", &secure, GUEST_TTL)), [set]);
        assert_eq!(texts(none(&plain)), [format!("set-cookie: galley_token=; {http}=0")]);
        let removed = ["galley_token", "__Host-galley_token"];
        let removed = removed.map(|name| format!("set-cookie: {name}=; {https}=0"));
        assert_eq!(texts(none(&secure)), removed);
        let host = [Origin::parse("https://app.example").expect("an origin")];
        let framed = secure.with_host(&[], &host);
        let set = "HttpOnly; SameSite=None; Secure; Partitioned; Path=/; Max-Age=60";
        let minute = Duration::from_secs(60);
        assert_eq!(
            texts(of("a.b", &framed, minute)),
            [format!("set-cookie: __Host-galley_token=a.b; {set}")]
        );
        assert!(texts(none(&framed)).iter().all(|text| text.contains("; Partitioned;")));
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
