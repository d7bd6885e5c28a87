//! The address of one Redis node: parsing it, and a client for it.

use std::fmt;

use redis::{Client, ConnectionAddr, RedisResult};

/// The address of a Redis node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// A host name or an IP address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl Address {
    /// Parses `host:port` as Redis writes it. A node that does not know its own host omits it; the
    /// host is then that of `seed`.
    pub(crate) fn read(text: &str, seed: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = if host.is_empty() { &seed.host } else { host };
        Some(Self { host: host.to_owned(), port: port.parse().ok()? })
    }

    pub(crate) fn of(client: &Client) -> Self {
        match client.get_connection_info().addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Self { host: host.clone(), port: *port }
            }
            other => Self { host: other.to_string(), port: 0 },
        }
    }

    /// A client for this address with the credentials and TLS settings of `other`.
    ///
    /// # Errors
    ///
    /// [`redis::RedisError`] when the crate rejects the address.
    pub fn client_like(&self, other: &Client) -> RedisResult<Client> {
        let info = other.get_connection_info().clone();
        let (host, port) = (self.host.clone(), self.port);
        let addr = match info.addr().clone() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure, tls_params }
            }
            _ => ConnectionAddr::Tcp(host, port),
        };
        Client::open(info.set_addr(addr))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
