//! The names under which the server answers, and the address of a client behind a proxy.
//!
//! A page of another site can resolve its own name to the address of a local server (DNS rebinding). The
//! browser then sends that name as `Host`. A server that knows its names therefore rejects others. It
//! knows them if it listens on the loopback interface or has a `server.public_url`. A numeric address
//! always passes, because no page of another site has it as its origin.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Version};
use ipnet::IpNet;
use serde::{Deserialize, Serialize, Serializer};

use crate::http::error::ApiError;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Addresses for load balancers and metrics, whose requests may carry the name of a service. Their
/// responses contain no user data.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

#[derive(Clone, Debug)]
pub struct Hosts {
    /// Names in lower case. `None`: the server does not know its names, and every name passes.
    names: Option<Arc<[String]>>,
    /// Whether only programs of this host reach the server.
    is_local: bool,
}

impl Hosts {
    /// The names of a server that listens at `listen`: those of its `public` origins, and `more`.
    #[must_use]
    pub fn new(listen: SocketAddr, public: &[&str], more: &[String]) -> Self {
        let is_local = listen.ip().to_canonical().is_loopback();
        let names = public.iter().copied().chain(more.iter().map(String::as_str));
        let names = names.filter_map(name_of).map(str::to_ascii_lowercase).collect();
        Self { names: (is_local || !public.is_empty()).then_some(names), is_local }
    }

    /// A missing or repeated header is [`ApiError::Malformed`], another host [`ApiError::WrongHost`].
    pub(crate) fn check(&self, request: &Request) -> Result<(), ApiError> {
        let mut hosts = request.headers().get_all(HOST).iter();
        let host = hosts.next();
        let is_missing = host.is_none() && request.version() != Version::HTTP_10;
        if is_missing || hosts.next().is_some() {
            let rule = "a request has exactly one Host header";
            return Err(ApiError::Malformed(rule.to_owned()));
        }
        let Some(names) = &self.names else { return Ok(()) };
        if !self.is_local && PROBES.contains(&request.uri().path()) {
            return Ok(());
        }
        let host = host.map(|host| host.to_str().unwrap_or_default());
        let named = [host, request.uri().authority().map(Authority::as_str)];
        let is_ours =
            |authority: &str| name_of(authority).is_some_and(|name| is_one_of(names, name));
        if named.into_iter().flatten().all(is_ours) { Ok(()) } else { Err(ApiError::WrongHost) }
    }
}

fn is_one_of(names: &[String], name: &str) -> bool {
    let is_number = match name.strip_prefix('[') {
        Some(v6) => v6.trim_end_matches(']').parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<IpAddr>().is_ok(),
    };
    is_number
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|ours| ours.eq_ignore_ascii_case(name))
}

/// Whether the text has the form `host[:port]`.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    name_of(text).is_some() && text.chars().all(is_part)
}

/// The host of `host[:port]`. `None` if it is neither a name nor an address.
fn name_of(authority: &str) -> Option<&str> {
    let end = match authority.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (name, port) = authority.split_at_checked(end)?;
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    (is_plain && !name.is_empty()).then_some(name)
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct Proxies(Arc<Networks>);

#[derive(Debug, Default)]
struct Networks {
    trusted: Vec<IpNet>,
    /// Whether the log has reported an untrusted header.
    has_warned: AtomicBool,
}

impl Proxies {
    /// Parses addresses and networks, separated by commas: `10.0.0.0/8, ::1`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let trusted = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let network =
            |text: &str| text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok();
        let trusted = trusted.map(network).collect::<Option<_>>()?;
        Some(Self(Arc::new(Networks { trusted, has_warned: AtomicBool::new(false) })))
    }

    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.trusted.iter().any(|network| network.contains(&address))
    }

    /// The address of the client. If the peer is a trusted proxy, it is the last address of
    /// `X-Forwarded-For` that belongs to no trusted proxy.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !headers.contains_key(FORWARDED_FOR) {
            return peer;
        }
        if !self.trusts(peer) {
            self.warn_once(peer);
            return peer;
        }
        let values = headers.get_all(FORWARDED_FOR).iter().rev();
        let mut client = peer;
        for part in values.flat_map(|value| value.to_str().unwrap_or_default().rsplit(',')) {
            let Some(address) = address_of(part.trim()) else { return client };
            client = address;
            if !self.trusts(address) {
                return client;
            }
        }
        client
    }

    /// Warns once: behind an untrusted proxy all users share one address.
    fn warn_once(&self, peer: IpAddr) {
        let is_near = match peer.to_canonical() {
            IpAddr::V4(v4) => v4.is_loopback() || v4.is_private(),
            IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local(),
        };
        if is_near && !self.0.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                %peer,
                "X-Forwarded-For comes from an address that is not in server.trusted_proxies; the \
                 limits by address count all users behind it as one"
            );
        }
    }
}

impl fmt::Display for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<_> = self.0.trusted.iter().map(IpNet::to_string).collect();
        f.write_str(&shown.join(", "))
    }
}

impl TryFrom<String> for Proxies {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
            .ok_or("must be addresses or networks separated by commas, like 10.0.0.0/8, ::1")
    }
}

impl Serialize for Proxies {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Parses an address with or without a port, as proxies write it.
fn address_of(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let in_brackets = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    text.parse().ok().or_else(with_port).or_else(in_brackets)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn check(hosts: &Hosts, path: &str, host: &str) -> Result<(), ApiError> {
        let request = Request::get(path).header(HOST, host);
        hosts.check(&request.body(Body::empty()).expect("a request"))
    }

    #[test]
    fn g14_a_server_that_knows_its_names_rejects_others() {
        let at = |text: &str| text.parse().expect("an address");
        let more = ["galley".to_owned()];
        let local = Hosts::new(at("127.0.0.1:8080"), &[], &more);
        let public = Hosts::new(at("0.0.0.0:8080"), &["galley.example:8443"], &[]);
        let unnamed = Hosts::new(at("0.0.0.0:8080"), &[], &[]);
        for host in ["localhost:8080", "127.0.0.1", "[::1]:9", "10.0.0.7:8080", "GALLEY:8080"] {
            assert!(check(&local, "/metrics", host).is_ok(), "{host}");
        }
        for host in ["evil.example", "", "localhost:x", "127.0.0.1:8080@evil.example", "[::1", "1"]
        {
            assert!(matches!(check(&local, "/metrics", host), Err(ApiError::WrongHost)), "{host}");
        }
        assert!(check(&public, "/", "galley.example").is_ok());
        assert!(check(&public, "/", "10.0.0.7").is_ok());
        assert!(matches!(check(&public, "/", "galley"), Err(ApiError::WrongHost)));
        assert!(check(&public, "/healthz", "galley").is_ok(), "a probe by the service's name");
        assert!(check(&unnamed, "/", "anything").is_ok());
    }

    #[test]
    fn g17_only_a_trusted_proxy_names_the_client() {
        let proxies = Proxies::parse("10.0.0.0/8, 2001:db8::1").expect("networks");
        let client = |peer: &str, values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(FORWARDED_FOR, value.parse().expect("a header"));
            }
            proxies.client(peer.parse().expect("an address"), &headers).to_string()
        };
        assert_eq!(client("10.1.2.3", &["203.0.113.9"]), "203.0.113.9");
        assert_eq!(client("::ffff:10.1.2.3", &["203.0.113.9:4711"]), "203.0.113.9");
        assert_eq!(client("203.0.113.1", &["203.0.113.9"]), "203.0.113.1");
        // A client may put any text before the address that the proxy appends.
        assert_eq!(client("10.1.2.3", &["1.1.1.1", "203.0.113.9, 10.9.9.9"]), "203.0.113.9");
        assert_eq!(client("10.1.2.3", &["junk"]), "10.1.2.3");
        assert_eq!(client("2001:db8::1", &["[2001:db8:7::5]"]), "2001:db8:7::5");
        for text in ["10.0.0.0/33", "x", "10.0.0.0/x", "::/129"] {
            assert!(Proxies::parse(text).is_none(), "{text}");
        }
        assert!(
            Proxies::parse("").is_some_and(|none| !none.trusts("10.0.0.1".parse().expect("one")))
        );
    }
}
