//! A small pool of connections, each in use by one caller at a time.
//!
//! This pool replaces that of sqlx because of cancelled callers and silent servers. There, sqlx would
//! queue a rollback and wait for it; this pool closes the connection, which rolls back. The pool also
//! sends no test query when a caller takes or returns a connection. The first statement detects a
//! dead connection before any effect, and a new connection replaces it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::gauge;
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use crate::storage::error::StorageError;
use crate::storage::postgres::parameters::Parameters;
use crate::storage::tx_error::TxError;
use crate::telemetry::counted::Counted;

/// Begins a transaction whose statements see every commit before each.
pub(crate) const WRITE: &str = "BEGIN READ WRITE";
/// Begins a transaction whose statements all see the same state.
pub(crate) const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// The most runs of a call that conflicts with others.
pub(crate) const TRIES: u32 = 6;
/// The base of the pause before a retry, which doubles each time.
const RETRY_FIRST: Duration = Duration::from_millis(4);
/// The bound of a call after it has its connection. It exceeds the statement time-out, so that
/// PostgreSQL's own error arrives first if it can reply at all.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(15);
/// The bound of opening a connection, with TLS and authentication.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const PERMIT_TIMEOUT: Duration = Duration::from_secs(8);
/// A firewall may have dropped a connection that is idle for longer.
const IDLE_MAX: Duration = Duration::from_secs(240);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Connections with the same settings. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connections(Arc<Shared>);

struct Shared {
    parameters: Parameters,
    size: u32,
    permits: Arc<Semaphore>,
    /// The most recently used connection is the last.
    idle: Mutex<Vec<Idle>>,
    /// A connection was opened after the last comparison of the schema.
    is_reconnected: AtomicBool,
}

struct Idle {
    connection: PgConnection,
    _counted: Counted,
    since: Instant,
}

/// A connection in use. Dropping it without returning it closes it.
pub(crate) struct PooledConn {
    connection: PgConnection,
    is_new: bool,
    shared: Arc<Shared>,
    _permit: OwnedSemaphorePermit,
    _counted: Counted,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The parameters contain the password.
        f.debug_struct("Connections").field("size", &self.0.size).finish_non_exhaustive()
    }
}

impl Connections {
    /// At most `size` connections; the pool opens them on demand.
    pub(super) fn new(parameters: Parameters, size: u16) -> Self {
        let permits = Arc::new(Semaphore::new(usize::from(size)));
        let is_reconnected = AtomicBool::default();
        let (size, idle) = (size.into(), Mutex::default());
        Self(Arc::new(Shared { parameters, size, permits, idle, is_reconnected }))
    }

    /// Whether a connection was opened after the last comparison of the schema, which resets it.
    pub(super) fn reconnected(&self) -> &AtomicBool {
        &self.0.is_reconnected
    }

    /// Takes a connection, which may turn out to be dead. Cancel safe.
    pub(crate) async fn take(&self) -> Result<PooledConn, TxError> {
        let waiting = Counted::new(gauge!("galley_database_waiting"));
        let permit = timeout(PERMIT_TIMEOUT, Arc::clone(&self.0.permits).acquire_owned()).await;
        let _permit = permit
            .map_err(|_late| unavailable("all connections to the database are in use"))?
            .map_err(|_closed| unavailable("the storage is closed"))?;
        drop(waiting);
        let shared = Arc::clone(&self.0);
        let _counted = counted("in_use");
        if let Some(connection) = self.0.idle_one() {
            return Ok(PooledConn { connection, is_new: false, shared, _permit, _counted });
        }
        let connecting = timeout(CONNECT_TIMEOUT, self.0.parameters.connect()).await;
        let connected = connecting.map_err(|_late| unavailable("connecting timed out"))?;
        // An immediate retry would not help: not `Lost`.
        let connection = connected.map_err(StorageError::from)?;
        shared.is_reconnected.store(true, Ordering::Release);
        Ok(PooledConn { connection, is_new: true, shared, _permit, _counted })
    }

    /// Takes a connection, and begins a transaction with `begin`. Cancel safe.
    pub(crate) async fn open(&self, begin: &'static str) -> Result<PooledConn, TxError> {
        loop {
            let mut conn = self.take().await?;
            match conn.connection.execute(begin).await.map_err(TxError::from) {
                Ok(_) => return Ok(conn),
                // PostgreSQL was restarted meanwhile; the other idle connections are dead too.
                Err(TxError::Lost(_)) if !conn.is_new => conn.shared.idle().clear(),
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Bounds a call. A time-out drops the future, and so closes its connection. The idle ones may be as silent: the
    /// next calls open others.
    pub(crate) async fn bounded<T>(
        &self,
        run: impl Future<Output = Result<T, TxError>>,
    ) -> Result<T, TxError> {
        let late = |_| {
            self.0.idle().clear();
            unavailable("the database did not answer in time")
        };
        timeout(CALL_TIMEOUT, run).await.map_err(late)?
    }

    pub(super) async fn close(&self) {
        let all = timeout(PERMIT_TIMEOUT, self.0.permits.acquire_many(self.0.size)).await;
        self.0.permits.close();
        drop(all);
        let idle = std::mem::take(&mut *self.0.idle());
        for Idle { connection, .. } in idle {
            // PostgreSQL detects the closed socket in any case.
            let _gone = timeout(CLOSE_TIMEOUT, connection.close()).await;
        }
    }
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle_one(&self) -> Option<PgConnection> {
        let mut idle = self.idle();
        idle.retain(|one| one.since.elapsed() < IDLE_MAX);
        idle.pop().map(|one| one.connection)
    }
}

impl PooledConn {
    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// Commits or rolls back as `outcome` says, and returns the connection.
    pub(crate) async fn end<T>(mut self, outcome: Result<T, TxError>) -> Result<T, TxError> {
        let end = match &outcome {
            Ok(_) => "COMMIT",
            Err(TxError::Lost(_)) => return self.give_back(outcome),
            Err(
                TxError::Again(_) | TxError::Locked(_) | TxError::Failed(_) | TxError::Refused(_),
            ) => "ROLLBACK",
        };
        match (outcome, self.connection.execute(end).await) {
            (outcome, Ok(_)) => self.give_back(outcome),
            (Ok(_), Err(error)) => self.give_back(Err(error.into())),
            // Closing the connection rolls the transaction back too.
            (Err(stop), Err(_)) => Err(stop),
        }
    }

    /// Returns the connection, unless the outcome says that it is lost.
    pub(crate) fn give_back<T>(self, outcome: Result<T, TxError>) -> Result<T, TxError> {
        let Self { connection, shared, .. } = self;
        if matches!(outcome, Err(TxError::Lost(_))) {
            shared.idle().clear();
        } else if !shared.permits.is_closed() {
            let since = Instant::now();
            shared.idle().push(Idle { connection, _counted: counted("idle"), since });
        }
        outcome
    }
}

pub async fn pause(tries: u32) {
    sleep(RETRY_FIRST * 2_u32.saturating_pow(tries)).await;
}

fn counted(state: &'static str) -> Counted {
    Counted::new(gauge!("galley_database_connections", "state" => state))
}

fn unavailable(why: &str) -> TxError {
    TxError::Failed(StorageError::Unavailable(why.to_owned()))
}
