//! The addresses of a connection, one for each attempt.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Client, ErrorKind, RedisResult};
use tokio::time::sleep;

use crate::redis_client::address::Address;
use crate::redis_client::sentinel::Sentinels;

/// Interval of the queries to Sentinels for the current primary.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The addresses of a connection; each attempt uses the next one.
#[derive(Debug)]
pub struct Addresses {
    source: Source,
    last: Mutex<Option<Address>>,
}

#[derive(Debug)]
enum Source {
    RoundRobin(Mutex<RoundRobin>),
    Sentinels(Box<Sentinels>),
}

#[derive(Debug)]
struct RoundRobin {
    clients: Vec<Client>,
    next: usize,
}

impl Addresses {
    /// These clients in turn.
    #[must_use]
    pub fn new(clients: Vec<Client>) -> Self {
        let source = Source::RoundRobin(Mutex::new(RoundRobin { clients, next: 0 }));
        Self { source, last: Mutex::default() }
    }

    pub(crate) fn by(sentinels: Sentinels) -> Self {
        Self { source: Source::Sentinels(Box::new(sentinels)), last: Mutex::default() }
    }

    /// The client for the next attempt.
    ///
    /// # Errors
    ///
    /// [`redis::RedisError`] when no address is known, or no Sentinel replies.
    ///
    /// # Cancel safety
    ///
    /// A dropped call may skip one address.
    pub async fn next(&self) -> RedisResult<Client> {
        let client = match &self.source {
            Source::RoundRobin(nodes) => {
                next_node(nodes).ok_or((ErrorKind::Io, "no node is known"))?
            }
            Source::Sentinels(sentinels) => sentinels.client().await?,
        };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Address::of(&client));
        Ok(client)
    }

    /// The address of the last attempt.
    pub fn last(&self) -> Option<Address> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace(&self, clients: Vec<Client>) {
        if let Source::RoundRobin(nodes) = &self.source {
            lock(nodes).clients = clients;
        }
    }

    /// Checks that the connection leads to a primary, where Sentinels name it: during a failover it
    /// may lead to a replica before its promotion.
    ///
    /// # Errors
    ///
    /// [`redis::RedisError`] when it is a replica, or `INFO` fails.
    pub async fn approve(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        if matches!(self.source, Source::RoundRobin(_)) {
            return Ok(());
        }
        // `INFO` and not `ROLE`: fewer accounts may call the latter.
        let info: String = redis::cmd("INFO").arg("replication").query_async(connection).await?;
        if info.lines().any(|line| line.trim_end() == "role:master") {
            return Ok(());
        }
        Err((ErrorKind::Io, "the primary that Sentinels name is still a replica").into())
    }

    /// Resolves when Sentinels name another primary than that of the last attempt. Without
    /// Sentinels it never resolves.
    ///
    /// # Cancel safety
    ///
    /// A dropped call loses nothing.
    pub async fn moves(&self) {
        let Source::Sentinels(sentinels) = &self.source else {
            return std::future::pending().await;
        };
        loop {
            sleep(POLL_INTERVAL).await;
            let named = sentinels.client().await.map(|client| Address::of(&client));
            // An unreachable Sentinel is no reason to move.
            if named.is_ok_and(|named| self.last().is_some_and(|last| last != named)) {
                return;
            }
        }
    }
}

fn next_node(nodes: &Mutex<RoundRobin>) -> Option<Client> {
    let mut nodes = lock(nodes);
    let at = nodes.next % nodes.clients.len().max(1);
    nodes.next = at + 1;
    nodes.clients.get(at).cloned()
}

fn lock(nodes: &Mutex<RoundRobin>) -> MutexGuard<'_, RoundRobin> {
    nodes.lock().unwrap_or_else(PoisonError::into_inner)
}
