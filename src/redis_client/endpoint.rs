//! The addresses at which a connection may be opened, one attempt after the other.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Client, ConnectionAddr, ErrorKind, RedisResult};
use tokio::time::sleep;

use crate::redis_client::sentinel::Sentinels;

/// How often Sentinels are asked whether the primary is still where it was.
const ASKED_EVERY: Duration = Duration::from_secs(2);

/// Where a Redis is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// A name, or a number.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

/// Where a connection may lead: each attempt goes to the next.
#[derive(Debug)]
pub struct Addresses {
    source: Source,
    last: Mutex<Option<Address>>,
}

#[derive(Debug)]
enum Source {
    Turns(Mutex<Turns>),
    Sentinels(Box<Sentinels>),
}

#[derive(Debug)]
struct Turns {
    clients: Vec<Client>,
    next: usize,
}

impl Address {
    /// Reads `host:port`, as Redis writes it; a node that does not know its own host leaves it out,
    /// and is where `asked` is.
    #[must_use]
    pub fn read(text: &str, asked: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = if host.is_empty() { &asked.host } else { host };
        Some(Self { host: host.to_owned(), port: port.parse().ok()? })
    }

    /// Where a client leads.
    #[must_use]
    pub fn of(client: &Client) -> Self {
        match client.get_connection_info().addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Self { host: host.clone(), port: *port }
            }
            other => Self { host: other.to_string(), port: 0 },
        }
    }

    /// A client for this address that is like `other` in all else: credentials, TLS.
    ///
    /// # Errors
    ///
    /// [`redis::RedisError`] when the client cannot be made.
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

impl Addresses {
    /// Each of these in turn.
    #[must_use]
    pub fn new(clients: Vec<Client>) -> Self {
        let source = Source::Turns(Mutex::new(Turns { clients, next: 0 }));
        Self { source, last: Mutex::default() }
    }

    /// Wherever Sentinels say.
    pub(crate) fn by(sentinels: Sentinels) -> Self {
        Self { source: Source::Sentinels(Box::new(sentinels)), last: Mutex::default() }
    }

    /// The one whose turn it is.
    ///
    /// # Errors
    ///
    /// [`redis::RedisError`] when there is none, or no Sentinel tells.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost but a turn.
    pub async fn next(&self) -> RedisResult<Client> {
        let client = match &self.source {
            Source::Turns(turns) => turn(turns).ok_or((ErrorKind::Io, "no node is known"))?,
            Source::Sentinels(sentinels) => sentinels.client().await?,
        };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Address::of(&client));
        Ok(client)
    }

    /// The one that was given last.
    #[must_use]
    pub fn last(&self) -> Option<Address> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// There are others now.
    pub fn replace(&self, clients: Vec<Client>) {
        if let Source::Turns(turns) = &self.source {
            lock(turns).clients = clients;
        }
    }

    /// Whether what was connected to is what was looked for. Where Sentinels lead, another may be
    /// just taking its place.
    ///
    /// # Errors
    ///
    /// [`redis::RedisError`] when it is not, or does not say.
    pub async fn approve(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        if matches!(self.source, Source::Turns(_)) {
            return Ok(());
        }
        // Not `ROLE`, which fewer accounts may ask.
        let info: String = redis::cmd("INFO").arg("replication").query_async(connection).await?;
        if info.lines().any(|line| line.trim_end() == "role:master") {
            return Ok(());
        }
        Err((ErrorKind::Io, "the primary of the Sentinels is a replica still").into())
    }

    /// Resolves when the primary is elsewhere than where the last connection was to lead. Never,
    /// where nobody is asked for it.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn moves(&self) {
        let Source::Sentinels(sentinels) = &self.source else {
            return std::future::pending().await;
        };
        loop {
            sleep(ASKED_EVERY).await;
            let told = sentinels.client().await.map(|client| Address::of(&client));
            // One that cannot be asked says nothing.
            if told.is_ok_and(|told| self.last().is_some_and(|last| last != told)) {
                return;
            }
        }
    }
}

fn turn(turns: &Mutex<Turns>) -> Option<Client> {
    let mut turns = lock(turns);
    let at = turns.next % turns.clients.len().max(1);
    turns.next = at + 1;
    turns.clients.get(at).cloned()
}

fn lock(turns: &Mutex<Turns>) -> MutexGuard<'_, Turns> {
    turns.lock().unwrap_or_else(PoisonError::into_inner)
}
