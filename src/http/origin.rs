//! Origins: the site of the page that sent a request, and whether it may use the cookie.
//!
//! A browser adds the cookie to requests that pages of other sites cause. Those pages cannot forge the
//! `Origin` header. An unsafe request with a cookie must therefore name one of the server's origins, and
//! so must every websocket handshake with an `Origin`. The comparison is of whole origins, never of
//! prefixes: `https://galley.example.evil.com` is not `https://galley.example`.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::ORIGIN;
use serde::{Deserialize, Serialize};
use url::Url;

/// Longest path to which a user returns. It stands in a cookie meanwhile.
const PATH_BYTES_MAX: usize = 512;

/// Scheme, host and port, in lower case, without the scheme's default port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String")]
pub struct Origin(String);

impl Origin {
    /// Parses `https://host[:port]`, with nothing after it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let origin = Url::parse(&text).ok()?.origin().ascii_serialization();
        // A URL may also have a user, a path, another spelling of its host, and its scheme's own port.
        let rest = text.strip_prefix(&origin).filter(|_| origin.starts_with("http"));
        rest.is_some_and(|rest| matches!(rest, "" | ":80" | ":443")).then_some(Self(origin))
    }

    /// The origin of a server that listens at `address` and has no `public_url`. A browser cannot open
    /// the address of all interfaces, so that becomes `localhost`.
    #[must_use]
    pub fn of_listener(address: SocketAddr) -> Self {
        let host = if address.ip().is_unspecified() {
            "localhost".to_owned()
        } else {
            match address {
                SocketAddr::V4(v4) => v4.ip().to_string(),
                SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
            }
        };
        let port = match address.port() {
            80 => String::new(),
            port => format!(":{port}"),
        };
        Self(format!("http://{host}{port}"))
    }

    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.0.starts_with("https:")
    }

    /// The host, with its port.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.split_once("://").map_or("", |(_scheme, host)| host)
    }

    /// The origin of websockets, as `connect-src` names it.
    #[must_use]
    pub fn websocket(&self) -> String {
        self.0.replacen("http", "ws", 1)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Origin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for Origin {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("must be an origin, like https://galley.example.com: scheme, host and port, nothing after \
             it")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginCheck {
    /// No header: a browser adds it to every cross-site request, but another client may omit it.
    Missing,
    Ours,
    /// One of `server.allowed_origins`: its pages present a token, and never the cookie.
    Allowed,
    /// A foreign origin, an unreadable one, or `null`.
    Foreign,
}

/// The server's origins, and those of the host application.
#[derive(Clone, Debug)]
pub struct Origins {
    own: Origin,
    /// The base of links: Galley's page, where it has another name.
    page: Origin,
    aliases: Arc<[Origin]>,
    allowed: Arc<[Origin]>,
    frames: Arc<[Origin]>,
}

impl Origins {
    #[must_use]
    pub fn exactly(own: Origin) -> Self {
        Self::of(own, [])
    }

    fn of(own: Origin, aliases: impl IntoIterator<Item = Origin>) -> Self {
        let (page, aliases) = (own.clone(), aliases.into_iter().collect());
        Self { own, page, aliases, allowed: Arc::default(), frames: Arc::default() }
    }

    /// With `server.page_url`, one more origin of Galley's own pages.
    #[must_use]
    pub fn with_page(mut self, page: Option<&Origin>) -> Self {
        if let Some(page) = page {
            self.page = page.clone();
            self.aliases = self.aliases.iter().chain([page]).cloned().collect();
        }
        self
    }

    /// With the origins of the host application: those that use the API, and those that show Galley's pages
    /// in a frame.
    #[must_use]
    pub fn with_host(self, allowed: &[Origin], frames: &[Origin]) -> Self {
        Self { allowed: allowed.into(), frames: frames.into(), ..self }
    }

    #[must_use]
    pub fn page(&self) -> &Origin {
        &self.page
    }

    #[must_use]
    pub fn allowed(&self) -> &[Origin] {
        &self.allowed
    }

    #[must_use]
    pub fn frames(&self) -> &[Origin] {
        &self.frames
    }

    /// The origins of a server without a `public_url`: the address it listens at and, on the loopback
    /// interface, the local host's other names, because users type `localhost`.
    #[must_use]
    pub fn of_listener(address: SocketAddr) -> Self {
        let own = Origin::of_listener(address);
        if !address.ip().is_loopback() && !address.ip().is_unspecified() {
            return Self::exactly(own);
        }
        let port = address.port();
        let names = ["127.0.0.1", "localhost", "[::1]"];
        let aliases =
            names.iter().filter_map(|name| Origin::parse(&format!("http://{name}:{port}")));
        Self::of(own, aliases)
    }

    /// Decides whether cookies are `Secure`.
    #[must_use]
    pub fn own(&self) -> &Origin {
        &self.own
    }

    /// Every origin of the server itself, each once.
    pub fn all(&self) -> impl Iterator<Item = &Origin> {
        let others = self.aliases.iter().filter(|alias| **alias != self.own);
        std::iter::once(&self.own).chain(others)
    }

    /// The path of an address of the server's own pages, for a redirect behind [`Self::page`]. None for any other
    /// text, also for one that a browser could read as another host.
    #[must_use]
    pub fn own_path(&self, text: &str) -> Option<String> {
        let of_ours = self.all().find_map(|origin| text.strip_prefix(&origin.0));
        let path = of_ours.unwrap_or(text);
        let rest = path.strip_prefix('/')?;
        let is_path =
            !rest.starts_with('/') && path.bytes().all(|it| it.is_ascii_graphic() && it != b'\\');
        (is_path && path.len() <= PATH_BYTES_MAX).then(|| path.to_owned())
    }

    #[must_use]
    pub fn check(&self, headers: &HeaderMap) -> OriginCheck {
        let mut values = headers.get_all(ORIGIN).iter();
        let Some(value) = values.next() else { return OriginCheck::Missing };
        if values.next().is_some() {
            return OriginCheck::Foreign;
        }
        let origin = value.to_str().ok().and_then(Origin::parse);
        match origin {
            Some(origin) if self.all().any(|ours| *ours == origin) => OriginCheck::Ours,
            Some(origin) if self.allowed.contains(&origin) => OriginCheck::Allowed,
            Some(_) | None => OriginCheck::Foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ours: &str, theirs: &str) -> OriginCheck {
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, theirs.parse().expect("a header"));
        Origins::exactly(Origin::parse(ours).expect("an origin")).check(&headers)
    }

    #[test]
    fn twelve_origins_and_only_ours_is_let_in() {
        let ours = "https://good.example";
        for theirs in ["https://good.example", "HTTPS://GOOD.EXAMPLE", "https://good.example:443"] {
            assert_eq!(check(ours, theirs), OriginCheck::Ours, "{theirs}");
        }
        for theirs in [
            "null",
            "",
            "https://evil.example",
            "https://good.example.evil.com",
            "https://evilgood.example",
            "https://good.example:8443",
            "http://good.example",
            "https://good.example/",
            "https://good.example@evil.com",
            "https://sub.good.example",
            "https://good.example https://evil.example",
            "good.example",
        ] {
            assert_eq!(check(ours, theirs), OriginCheck::Foreign, "{theirs}");
        }
        let nothing = HeaderMap::new();
        let origins = Origins::exactly(Origin::parse(ours).expect("an origin"));
        assert_eq!(origins.check(&nothing), OriginCheck::Missing);
    }

    #[test]
    fn an_allowed_origin_is_not_ours() {
        let [own, page, host] =
            ["https://galley.example", "https://desk.example", "https://app.example"]
                .map(|text| Origin::parse(text).expect("an origin"));
        let origins = Origins::exactly(own.clone()).with_page(Some(&page)).with_host(&[host], &[]);
        assert_eq!((origins.page(), origins.own()), (&page, &own));
        for (origin, found) in [
            ("https://galley.example", OriginCheck::Ours),
            ("https://desk.example", OriginCheck::Ours),
            ("https://app.example", OriginCheck::Allowed),
            ("https://app.example:8443", OriginCheck::Foreign),
            ("http://app.example", OriginCheck::Foreign),
            ("null", OriginCheck::Foreign),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, origin.parse().expect("a header"));
            assert_eq!(origins.check(&headers), found, "{origin}");
        }
    }

    #[test]
    fn two_origin_headers_are_refused() {
        let mut headers = HeaderMap::new();
        headers.append(ORIGIN, "https://good.example".parse().expect("a header"));
        headers.append(ORIGIN, "https://evil.example".parse().expect("a header"));
        let origins = Origins::exactly(Origin::parse("https://good.example").expect("an origin"));
        assert_eq!(origins.check(&headers), OriginCheck::Foreign);
    }

    #[test]
    fn a_local_server_answers_to_all_names_of_the_local_host() {
        let origins = Origins::of_listener("127.0.0.1:8080".parse().expect("an address"));
        assert_eq!(origins.own().to_string(), "http://127.0.0.1:8080");
        let all: Vec<_> = origins.all().map(ToString::to_string).collect();
        assert_eq!(all, ["http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"]);
        let everywhere = Origins::of_listener("0.0.0.0:80".parse().expect("an address"));
        assert_eq!(everywhere.own().to_string(), "http://localhost");
        let elsewhere = Origins::of_listener("192.0.2.7:8080".parse().expect("an address"));
        assert_eq!(elsewhere.all().count(), 1);
    }

    #[test]
    fn an_origin_is_read_strictly() {
        for text in [
            "https://",
            "https://:1",
            "https://a:b",
            "https://a:70000",
            "https://[::1",
            "https://a b",
            "https://[x]",
        ] {
            assert_eq!(Origin::parse(text), None, "{text}");
        }
        let v6 = Origin::parse("https://[::1]:8443").expect("an origin");
        assert_eq!(v6.websocket(), "wss://[::1]:8443");
    }
}
