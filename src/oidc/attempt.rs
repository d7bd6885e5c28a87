//! One sign-in under way: its secret in a cookie of the browser, and what its requests carry of that.
//!
//! `state`, `nonce` and the verifier of PKCE are hashes of the secret under different names, so the cookie is short,
//! and none of them shows another. The name of the cookie has the beginning of `state`: each tab has its own.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::http::auth::cookie::{self, SetCookies};
use crate::http::origin::Origins;

/// How long a user may take at the provider.
const TTL: Duration = Duration::from_mins(10);
/// Letters of `state` in the name of the cookie.
const ID_LENGTH: usize = 16;

#[derive(Debug)]
pub(super) struct Attempt {
    secret: String,
    /// The path of Galley's page to which the user returns.
    pub(super) return_to: String,
}

impl Attempt {
    pub(super) fn begin(return_to: String) -> Result<Self, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self { secret: URL_SAFE_NO_PAD.encode(secret), return_to })
    }

    /// The sign-in of `state`, if this browser began it.
    pub(super) fn find(state: &str, headers: &HeaderMap, origins: &Origins) -> Option<Self> {
        let value = cookie::of_sign_in(headers, state.get(..ID_LENGTH)?, origins)?;
        let (secret, return_to) = value.split_once('.')?;
        let return_to = String::from_utf8(URL_SAFE_NO_PAD.decode(return_to).ok()?).ok()?;
        // A page of a sibling name can set a cookie where the server has no https.
        let return_to = origins.own_path(&return_to)?;
        let found = Self { secret: secret.to_owned(), return_to };
        (found.state() == state).then_some(found)
    }

    pub(super) fn state(&self) -> String {
        self.derived("state")
    }

    pub(super) fn nonce(&self) -> String {
        self.derived("nonce")
    }

    /// The verifier of PKCE: 43 letters, the least that RFC 7636 takes.
    pub(super) fn verifier(&self) -> String {
        self.derived("verifier")
    }

    /// The challenge of that verifier by `S256`.
    pub(super) fn challenge(&self) -> String {
        hash(&self.verifier())
    }

    fn derived(&self, name: &str) -> String {
        hash(&format!("{name}.{}", self.secret))
    }

    pub(super) fn cookie(&self, headers: &HeaderMap, origins: &Origins) -> SetCookies {
        let value = format!("{}.{}", self.secret, URL_SAFE_NO_PAD.encode(&self.return_to));
        cookie::begin_sign_in(headers, &self.id(), &value, origins, TTL)
    }

    /// Removes the cookie: a sign-in ends once.
    pub(super) fn ended(&self, origins: &Origins) -> SetCookies {
        cookie::end_sign_in(&self.id(), origins)
    }

    fn id(&self) -> String {
        self.state().chars().take(ID_LENGTH).collect()
    }
}

fn hash(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use axum::http::header::COOKIE;

    use super::*;
    use crate::http::origin::Origin;

    fn origins(text: &str) -> Origins {
        Origins::exactly(Origin::parse(text).expect("an origin"))
    }

    /// The headers of a browser that has the cookies of these sign-ins.
    fn headers(attempts: &[&Attempt], origins: &Origins) -> HeaderMap {
        let set = attempts.iter().flat_map(|it| it.cookie(&HeaderMap::new(), origins).0);
        let pairs = set.filter_map(|(_, line)| Some(line.split_once(';')?.0.to_owned()));
        let line = pairs.collect::<Vec<_>>().join("; ");
        HeaderMap::from_iter([(COOKIE, line.parse().expect("a header"))])
    }

    #[test]
    fn a_browser_finds_each_of_its_sign_ins_and_no_other() {
        let begin = |path: &str| Attempt::begin(path.to_owned()).expect("random bytes");
        let (one, two, foreign) = (begin("/d/doc_1?a=b;c"), begin("/"), begin("/"));
        for text in ["https://galley.example", "http://127.0.0.1:8080"] {
            let origins = origins(text);
            let headers = headers(&[&one, &two], &origins);
            let found = |state: &str| Attempt::find(state, &headers, &origins);
            assert_eq!(found(&one.state()).map(|it| it.return_to), Some(one.return_to.clone()));
            assert_eq!(found(&two.state()).map(|it| it.verifier()), Some(two.verifier()));
            let same_beginning = format!("{}x", &one.state()[..42]);
            for state in ["", "x", "é", &foreign.state(), &same_beginning] {
                assert!(found(state).is_none(), "{state}");
            }
        }
    }

    #[test]
    fn a_cookie_of_another_form_is_no_sign_in() {
        let origins = origins("http://127.0.0.1:8080");
        let attempt = Attempt::begin("/".to_owned()).expect("random bytes");
        let id = &attempt.state()[..ID_LENGTH];
        let of = |path: &str| format!("{}.{}", attempt.secret, URL_SAFE_NO_PAD.encode(path));
        let find = |value: &str| {
            let line = format!("galley_sign_in_{id}={value}");
            let headers = HeaderMap::from_iter([(COOKIE, line.parse().expect("a header"))]);
            Attempt::find(&attempt.state(), &headers, &origins)
        };
        assert!(find(&of("/d/x")).is_some());
        for value in
            ["", ".", &attempt.secret, "x.Lw", &of("//evil.example"), &format!("{}!", of("/"))]
        {
            assert!(find(value).is_none(), "{value}");
        }
    }

    #[test]
    fn the_parameters_of_a_sign_in_show_neither_its_secret_nor_one_another() {
        let attempt = Attempt::begin("/".to_owned()).expect("random bytes");
        let all = [attempt.state(), attempt.nonce(), attempt.verifier(), attempt.challenge()];
        for (index, text) in all.iter().enumerate() {
            assert_eq!(text.len(), 43);
            assert!(*text != attempt.secret && !all[..index].contains(text));
        }
    }
}
