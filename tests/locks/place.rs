//! Where the locks of a test are kept.

use galley::locks::Locks;

use crate::server::Server;

pub(crate) struct Place {
    pub(crate) locks: Locks,
    /// Lives as long as the test.
    server: Option<Server>,
}

impl Place {
    pub(crate) async fn memory() -> Self {
        Self { locks: Locks::memory(), server: None }
    }

    pub(crate) async fn redis() -> Self {
        let server = Server::start().await;
        let locks = Locks::connect(&server.url()).await.expect("a good address");
        Self { locks, server: Some(server) }
    }

    /// All is forgotten, as when Redis comes back empty.
    pub(crate) async fn empty(&mut self) {
        match &self.server {
            Some(server) => drop(server.run::<redis::Value>("FLUSHALL").await),
            None => self.locks = Locks::memory(),
        }
    }

    /// The same locks, as another server sees them.
    pub(crate) async fn another(&self) -> Locks {
        match &self.server {
            Some(server) => Locks::connect(&server.url()).await.expect("a good address"),
            None => self.locks.clone(),
        }
    }
}
