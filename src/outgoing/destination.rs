//! The addresses to which the server sends requests.

use std::net::IpAddr;

use url::{Host, Position, Url, form_urlencoded};

use crate::outgoing::address::is_public;

/// Ports of a public host: that of https, and those without a well-known service behind them.
const HTTPS: u16 = 443;
const SYSTEM_PORTS: u16 = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostScope {
    /// https to public addresses: a client named the host.
    Public,
    /// Any address, with or without TLS: the operator named the host.
    Anywhere,
    /// Any address with TLS, or this host without: the server trusts the response.
    Authentic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidDestination(pub(crate) &'static str);

#[derive(Clone)]
pub struct Destination {
    url: Url,
    scope: HostScope,
}

/// The path may be a secret.
impl std::fmt::Debug for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.origin())
    }
}

impl Destination {
    /// The parser also reads the numeric forms of an IPv4 address that a browser reads (`0x7f.1`), so no
    /// form passes the check of the address.
    pub fn parse(text: &str, scope: HostScope) -> Result<Self, InvalidDestination> {
        let url = Url::parse(text).map_err(|_error| InvalidDestination("it is no URL"))?;
        match (url.scheme(), scope) {
            ("https", _) | ("http", HostScope::Anywhere) => {}
            ("http", HostScope::Authentic) if is_this_host(&url) => {}
            _ => return Err(InvalidDestination("its scheme is not https")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(InvalidDestination("it has a user or a password"));
        }
        let destination = Self { url, scope };
        let (port, literal) = (destination.port(), destination.literal());
        if scope == HostScope::Public {
            if port != HTTPS && port < SYSTEM_PORTS {
                return Err(InvalidDestination("its port belongs to another service"));
            }
            if literal.is_some_and(|address| !is_public(address)) {
                return Err(InvalidDestination("its host is not public"));
            }
        }
        Ok(destination)
    }

    #[must_use]
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// As the URL has it.
    #[must_use]
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The address with further parameters in its query, for a browser.
    #[must_use]
    pub fn with_query(&self, pairs: &[(&str, &str)]) -> String {
        let mut url = self.url.clone();
        url.query_pairs_mut().extend_pairs(pairs);
        url.into()
    }

    pub(super) fn scope(&self) -> HostScope {
        self.scope
    }

    pub(super) fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(HTTPS)
    }

    pub(super) fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.literal().is_some()
    }

    pub(super) fn literal(&self) -> Option<IpAddr> {
        match self.url.host()? {
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
            Host::Domain(_) => None,
        }
    }

    pub(super) fn authority(&self) -> &str {
        &self.url[Position::BeforeHost..Position::AfterPort]
    }

    pub(super) fn path(&self) -> &str {
        &self.url[Position::BeforePath..Position::AfterQuery]
    }
}

/// The body of a form (`application/x-www-form-urlencoded`), or a query.
#[must_use]
pub fn form(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn is_this_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_of_a_client_is_https_to_a_public_host() {
        let parse = |text| Destination::parse(text, HostScope::Public);
        for text in [
            "https://fcm.googleapis.com/fcm/send/abc",
            "https://push.example:8443/x?y=1",
            "https://[2606:4700::1111]/",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
        for text in [
            "http://fcm.googleapis.com/x",
            "ftp://fcm.googleapis.com/x",
            "file:///etc/passwd",
            "https://user@push.example/x",
            "https://user:word@push.example/x",
            "https://push.example:22/x",
            "https://127.0.0.1/x",
            "https://0x7f.1/x",
            "https://2130706433/x",
            "https://0177.0.0.1/x",
            "https://127.1/x",
            "https://[::1]/x",
            "https://[::ffff:10.0.0.1]/x",
            "https://[fd00:ec2::254]/latest/meta-data",
            "https://169.254.169.254/latest/meta-data",
            "https://",
            "push.example",
            "",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_operator_names_any_host() {
        let parse = |text| Destination::parse(text, HostScope::Anywhere);
        assert!(parse("http://127.0.0.1:9000/hook").is_ok());
        assert!(parse("http://app.internal/hook").is_ok());
        assert!(parse("unix:/run/hook").is_err());
    }

    #[test]
    fn a_response_that_the_server_trusts_comes_by_tls_or_from_this_host() {
        let parse = |text| Destination::parse(text, HostScope::Authentic);
        for text in [
            "https://id.example/jwks.json",
            "https://10.0.0.7:8443/keys",
            "http://127.0.0.1:9000/keys",
            "http://[::1]/keys",
            "http://localhost:9000/keys",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
        for text in [
            "http://id.example/jwks.json",
            "http://10.0.0.7/keys",
            "http://127.0.0.1.example/keys",
            "http://localhost.example/keys",
            "https://kim:word@id.example/keys",
            "file:///etc/keys",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_destination_has_an_origin_a_host_and_a_path() {
        let to = Destination::parse("https://Push.Example:8443/a/b?c=d#e", HostScope::Public);
        let to = to.expect("valid");
        assert_eq!(to.origin(), "https://push.example:8443");
        assert_eq!((to.host(), to.authority()), ("push.example", "push.example:8443"));
        assert_eq!(to.path(), "/a/b?c=d");
        assert_eq!(format!("{to:?}"), "https://push.example:8443");
        let to = Destination::parse("https://push.example", HostScope::Public).expect("valid");
        assert_eq!((to.authority(), to.path(), to.port()), ("push.example", "/", 443));
    }
}
