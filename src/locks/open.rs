//! From `locks.url` to clients of Redis.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use crate::domain::redis_url::RedisUrl;
use crate::locks::fault::explain;
use crate::locks::words::LocksError;

/// An idle connection is probed after this long, and each probe repeated after a third of it.
const PROBED_AFTER: Duration = Duration::from_secs(6);
/// The kernel gives a connection up when its peer acknowledged nothing for this long.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);

/// What `locks.url` leads to.
#[derive(Debug)]
pub(super) enum Target {
    Single(Box<Client>),
    /// At least one node.
    Cluster(Vec<Client>),
}

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

/// Where a link may lead: each attempt goes to the next.
#[derive(Debug)]
pub(super) struct Addresses(Mutex<Turns>);

#[derive(Debug)]
struct Turns {
    clients: Vec<Client>,
    next: usize,
    last: Option<Client>,
}

/// What is at `url`. Opens nothing.
pub(super) fn target(url: &str) -> Result<Target, LocksError> {
    let url = RedisUrl::parse(url)
        .map_err(|fault| LocksError::Unsupported(format!("`locks.url` is of no use: {fault}")))?;
    match url {
        RedisUrl::Single(url) => Ok(Target::Single(Box::new(client(&url)?))),
        RedisUrl::Cluster(nodes) => {
            let nodes = nodes.iter().map(|url| client(url)).collect::<Result<_, _>>()?;
            Ok(Target::Cluster(nodes))
        }
    }
}

fn client(url: &str) -> Result<Client, LocksError> {
    if url.starts_with("rediss:") {
        // The process has one provider of cryptography; somebody else may have named it already.
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    }
    let info = url.into_connection_info().map_err(|error| explain(&error))?;
    Client::open(tuned(info)).map_err(|error| explain(&error))
}

fn tuned(info: ConnectionInfo) -> ConnectionInfo {
    let keepalive =
        TcpKeepalive::new().with_time(PROBED_AFTER).with_interval(PROBED_AFTER / 3).with_retries(2);
    // The crate leaves Nagle's algorithm on, which holds small requests back for 40 ms.
    let tcp = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive)
        .set_user_timeout(UNACKNOWLEDGED_MAX);
    // RESP3, for with it the end of a connection is told and not found out.
    let redis =
        info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3).set_skip_set_lib_name();
    info.set_tcp_settings(tcp).set_redis_settings(redis)
}

impl Address {
    /// Reads `host:port`, as Redis writes it; a node that does not know its own host leaves it out,
    /// and is where `asked` is.
    pub(super) fn read(text: &str, asked: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = if host.is_empty() { &asked.host } else { host };
        Some(Self { host: host.to_owned(), port: port.parse().ok()? })
    }

    /// Where a client leads.
    pub(super) fn of(client: &Client) -> Self {
        match client.get_connection_info().addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Self { host: host.clone(), port: *port }
            }
            other => Self { host: other.to_string(), port: 0 },
        }
    }

    /// A client for this address that is like `other` in all else: credentials, TLS.
    pub(super) fn client_like(&self, other: &Client) -> Result<Client, LocksError> {
        let info = other.get_connection_info().clone();
        let (host, port) = (self.host.clone(), self.port);
        let addr = match info.addr().clone() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure, tls_params }
            }
            _ => ConnectionAddr::Tcp(host, port),
        };
        Client::open(info.set_addr(addr)).map_err(|error| explain(&error))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Addresses {
    pub(super) fn new(clients: Vec<Client>) -> Self {
        Self(Mutex::new(Turns { clients, next: 0, last: None }))
    }

    /// The one whose turn it is.
    pub(super) fn next(&self) -> Result<Client, LocksError> {
        let mut turns = self.turns();
        let next = turns.next % turns.clients.len().max(1);
        turns.next = next + 1;
        turns.last = turns.clients.get(next).cloned();
        let nowhere = || LocksError::Unavailable("no node of the Cluster is known".to_owned());
        turns.last.clone().ok_or_else(nowhere)
    }

    /// The one that was given last.
    pub(super) fn last(&self) -> Option<Address> {
        self.turns().last.as_ref().map(Address::of)
    }

    /// There are others now.
    pub(super) fn replace(&self, clients: Vec<Client>) {
        self.turns().clients = clients;
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_spoken_is_refused_in_one_line() {
        for url in ["redis+sentinel://a:1,b:2/main/0", "http://a", "a", ""] {
            let Err(LocksError::Unsupported(why)) = target(url) else { panic!("{url} was taken") };
            assert_eq!(why.lines().count(), 1, "{why}");
        }
    }

    #[test]
    fn a_broken_url_is_a_setting_to_change_and_its_password_is_not_shown() {
        for url in ["redis://:hunter2@a:x/", "redis+cluster://:hunter2@a:1,b:x"] {
            let Err(LocksError::Misconfigured(why)) = target(url) else {
                panic!("it was taken");
            };
            assert!(!why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn good_urls_are_taken() {
        for url in ["redis://127.0.0.1", "redis://u:p@localhost:7/3", "rediss://cache.example:6380"]
        {
            assert!(matches!(target(url), Ok(Target::Single(_))), "{url}");
        }
        let Ok(Target::Cluster(nodes)) = target("rediss+cluster://u:p%40@a:1,[::1]:2") else {
            panic!("it was refused");
        };
        let nodes: Vec<_> = nodes.iter().map(|node| Address::of(node).to_string()).collect();
        assert_eq!(nodes, ["a:1", "::1:2"]);
    }

    #[test]
    fn a_node_that_is_told_of_has_the_credentials_of_the_one_that_told() {
        let Ok(Target::Cluster(nodes)) = target("redis+cluster://u:p%40@a:1") else {
            panic!("it was refused");
        };
        let asked = Address::of(&nodes[0]);
        for (told, expected) in [("b:2", "b:2"), (":3", "a:3"), ("fe80::1:4", "fe80::1:4")] {
            let address = Address::read(told, &asked).expect("an address");
            let client = address.client_like(&nodes[0]).expect("a client");
            assert_eq!(Address::of(&client).to_string(), expected);
            assert_eq!(client.get_connection_info().redis_settings().password(), Some("p@"));
        }
    }

    #[test]
    fn each_attempt_goes_to_the_next_address() {
        let Ok(Target::Cluster(nodes)) = target("redis+cluster://a:1,b:2") else {
            panic!("it was refused");
        };
        let addresses = Addresses::new(nodes);
        let turns = [1, 2, 3].map(|_| Address::of(&addresses.next().expect("a client")).port);
        assert_eq!(turns, [1, 2, 1]);
        assert_eq!(addresses.last().map(|address| address.port), Some(1));
    }
}
