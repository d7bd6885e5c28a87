//! The backend of a test's locks.

use std::sync::{Arc, Weak};

use galley::locks::Locks;
use tokio::sync::Mutex;

use crate::support::redis_cluster::ClusterServer;
use crate::support::redis_server::{Server, VALKEY};

#[derive(Clone)]
pub(crate) struct TestBackend {
    pub(crate) locks: Locks,
    server: At,
}

/// A Cluster takes two seconds to start (Redis lets no primary serve sooner), so concurrent tests
/// share one. It ends with the last of them.
static SHARED: Mutex<Weak<ClusterServer>> = Mutex::const_new(Weak::new());
static SHARED_VALKEY: Mutex<Weak<ClusterServer>> = Mutex::const_new(Weak::new());

/// Lives as long as the test.
#[derive(Clone)]
enum At {
    Memory,
    Redis(Arc<Server>),
    Cluster(Arc<ClusterServer>),
}

impl At {
    fn url(&self) -> Option<String> {
        match self {
            Self::Memory => None,
            Self::Redis(server) => Some(server.url()),
            Self::Cluster(cluster) => Some(cluster.url()),
        }
    }
}

impl TestBackend {
    pub(crate) async fn memory() -> Self {
        Self { locks: Locks::memory(), server: At::Memory }
    }

    pub(crate) async fn redis() -> Self {
        Self::at(At::Redis(Arc::new(Server::start().await))).await
    }

    pub(crate) async fn valkey() -> Self {
        Self::at(At::Redis(Arc::new(Server::start_with(&[VALKEY]).await))).await
    }

    pub(crate) async fn cluster() -> Self {
        Self::shared(&SHARED, 3, &[]).await
    }

    pub(crate) async fn valkey_cluster() -> Self {
        Self::shared(&SHARED_VALKEY, 1, &[VALKEY]).await
    }

    async fn shared(at: &Mutex<Weak<ClusterServer>>, primaries: usize, arguments: &[&str]) -> Self {
        let mut shared = at.lock().await;
        let cluster = match shared.upgrade() {
            Some(cluster) => cluster,
            None => Arc::new(ClusterServer::start_with(primaries, 0, arguments).await),
        };
        *shared = Arc::downgrade(&cluster);
        drop(shared);
        Self::at(At::Cluster(cluster)).await
    }

    async fn at(server: At) -> Self {
        let url = server.url().expect("an address");
        let locks = Locks::connect(&url).await.expect("a good address");
        Self { locks, server }
    }

    /// Empties the backend, as an empty restart of Redis does.
    pub(crate) async fn empty(&mut self) {
        match &self.server {
            At::Redis(server) => drop(server.run::<redis::Value>("FLUSHALL").await),
            At::Memory => self.locks = Locks::memory(),
            At::Cluster(_) => panic!("it is shared with other tests"),
        }
    }

    /// The backend through another server's client.
    pub(crate) async fn another(&self) -> Locks {
        match self.server.url() {
            Some(url) => Locks::connect(&url).await.expect("a good address"),
            None => self.locks.clone(),
        }
    }

    /// A client that the test may close, and another that reads the freed locks.
    pub(crate) async fn to_close(&self) -> [Locks; 2] {
        match &self.server {
            At::Memory => {
                let locks = Locks::memory();
                [locks.clone(), locks]
            }
            At::Redis(_) | At::Cluster(_) => [self.another().await, self.locks.clone()],
        }
    }
}
