//! A few connections, each lent to one caller at a time.
//!
//! Ours and not sqlx's pool, because of what becomes of a connection whose caller goes away
//! half-way, or whose server does not answer: sqlx would queue a rollback and wait for it, here it
//! is closed, which undoes what it was at. And nothing is asked of a connection when it is lent or
//! given back: a dead one shows at the first statement, before anything is done, and then a new
//! one takes its place.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::storage::error::StorageError;
use crate::storage::postgres::parameters::Parameters;
use crate::storage::postgres::tx_error::Stop;

/// How long a new connection may take, TLS and password included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call waits for its turn at a connection.
const TURN_TIMEOUT: Duration = Duration::from_secs(8);
/// One that lay idle for longer may have been forgotten by a firewall.
const IDLE_MAX: Duration = Duration::from_secs(240);
/// How long a farewell may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Connections with the same settings. Cheap to clone.
#[derive(Clone)]
pub(super) struct Connections(Arc<Shared>);

struct Shared {
    parameters: Parameters,
    size: u32,
    turns: Arc<Semaphore>,
    /// Last given back, last.
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    connection: PgConnection,
    since: Instant,
}

/// A connection in use. Dropped instead of given back, it is closed.
pub(super) struct Lent {
    connection: PgConnection,
    is_new: bool,
    shared: Arc<Shared>,
    _turn: OwnedSemaphorePermit,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The parameters hold the password.
        f.debug_struct("Connections").field("size", &self.0.size).finish_non_exhaustive()
    }
}

impl Connections {
    /// At most `size` of them, opened when needed.
    pub(super) fn new(parameters: Parameters, size: u16) -> Self {
        let turns = Arc::new(Semaphore::new(usize::from(size)));
        Self(Arc::new(Shared { parameters, size: size.into(), turns, idle: Mutex::default() }))
    }

    /// A connection, which may turn out to be dead.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn take(&self) -> Result<Lent, Stop> {
        let turn = timeout(TURN_TIMEOUT, Arc::clone(&self.0.turns).acquire_owned()).await;
        let _turn = turn
            .map_err(|_late| unavailable("all connections to the database are in use"))?
            .map_err(|_closed| unavailable("the storage is closed"))?;
        let shared = Arc::clone(&self.0);
        if let Some(connection) = self.0.idle_one() {
            return Ok(Lent { connection, is_new: false, shared, _turn });
        }
        let connecting = timeout(CONNECT_TIMEOUT, self.0.parameters.connect()).await;
        let connected = connecting.map_err(|_late| unavailable("connecting took too long"))?;
        // Trying at once again would not help: not `Lost`.
        let connection = connected.map_err(StorageError::from)?;
        Ok(Lent { connection, is_new: true, shared, _turn })
    }

    /// A connection in a transaction that `begin` has begun.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn begin(&self, begin: &'static str) -> Result<Lent, Stop> {
        loop {
            let mut lent = self.take().await?;
            match lent.connection.execute(begin).await.map_err(Stop::from) {
                Ok(_) => return Ok(lent),
                // The server was started again meanwhile; the others will be dead too.
                Err(Stop::Lost(_)) if !lent.is_new => lent.shared.idle().clear(),
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Waits for what is under way, and closes.
    pub(super) async fn close(&self) {
        let all = timeout(TURN_TIMEOUT, self.0.turns.acquire_many(self.0.size)).await;
        self.0.turns.close();
        drop(all);
        let idle = std::mem::take(&mut *self.0.idle());
        for Idle { connection, .. } in idle {
            // The server notices in any case.
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

impl Lent {
    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// Ends the transaction as `outcome` wants it, and gives the connection back.
    pub(super) async fn end<T>(mut self, outcome: Result<T, Stop>) -> Result<T, Stop> {
        let end = match &outcome {
            Ok(_) => "COMMIT",
            Err(Stop::Lost(_)) => return self.give_back(outcome),
            Err(Stop::Again(_) | Stop::Locked(_) | Stop::Failed(_) | Stop::Refused(_)) => {
                "ROLLBACK"
            }
        };
        match (outcome, self.connection.execute(end).await) {
            (outcome, Ok(_)) => self.give_back(outcome),
            (Ok(_), Err(error)) => self.give_back(Err(error.into())),
            // Closing it undoes the transaction too.
            (Err(stop), Err(_)) => Err(stop),
        }
    }

    /// Gives the connection back, unless the outcome says that it is gone.
    pub(super) fn give_back<T>(self, outcome: Result<T, Stop>) -> Result<T, Stop> {
        let Self { connection, shared, .. } = self;
        if matches!(outcome, Err(Stop::Lost(_))) {
            shared.idle().clear();
        } else if !shared.turns.is_closed() {
            shared.idle().push(Idle { connection, since: Instant::now() });
        }
        outcome
    }
}

fn unavailable(why: &str) -> Stop {
    Stop::Failed(StorageError::Unavailable(why.to_owned()))
}
