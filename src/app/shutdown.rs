//! The stop: from the first signal to the last closed connection.
//!
//! ```text
//!  SIGTERM ─► linger: /readyz is 503, sockets are refused with 1012, the listener stays open
//!          ─► drain: the listener closes, every socket is closed with 1012
//!          ─► flush, release, end: at most `AFTER_DRAIN_MAX` for all of it
//! ```
//!
//! Each stage has a bound, so the stop ends within `server.linger` + `server.drain` + 25 s. The
//! caller races it with the next signal: a second one ends the process at once, in any stage.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::http::health::Readiness;
use crate::seats::Sessions;
use crate::storage::Storage;

/// How long everything after the drain may take together. The stages below share it; README and
/// `config/default.toml` name the sum.
const AFTER_DRAIN_MAX: Duration = Duration::from_secs(25);
/// How long sockets that were told to close may take, beyond the drain.
const SOCKETS_MAX: Duration = Duration::from_secs(5);
/// How long storing what is owed may take at the end.
const FINISH_MAX: Duration = Duration::from_secs(10);
/// How long the remaining tasks may take after that, and then the releases that are still owed.
const TASKS_MAX: Duration = Duration::from_secs(5);

/// What a stop ends, from the top down.
pub(super) struct Stopping {
    /// How long the server announces its stop before it closes the listener.
    pub(super) linger: Duration,
    /// Over how long the closes of the sockets are spread.
    pub(super) drain: Duration,
    pub(super) readiness: Readiness,
    pub(super) sessions: Sessions,
    /// The connections.
    pub(super) sockets: TaskTracker,
    /// Closes the listener.
    pub(super) listening: CancellationToken,
    /// Every other task.
    pub(super) tasks: TaskTracker,
    pub(super) storage: Storage,
}

impl Stopping {
    pub(super) async fn run(self) {
        self.sessions.refuse();
        self.readiness.refuse();
        sleep(self.linger).await;
        self.listening.cancel();
        self.sessions.drain(self.drain).await;
        if timeout(AFTER_DRAIN_MAX, self.end()).await.is_err() {
            tracing::error!("the stop takes too long; the process ends as it is");
        }
        tracing::info!("stopped");
    }

    async fn end(&self) {
        let Self { sockets, sessions, tasks, storage, .. } = self;
        sockets.close();
        if timeout(SOCKETS_MAX, sockets.wait()).await.is_err() {
            tracing::warn!(left = sockets.len(), "some sockets did not close");
        }
        sessions.finish(FINISH_MAX).await;
        tasks.close();
        if timeout(TASKS_MAX, tasks.wait()).await.is_err() {
            tracing::warn!(left = tasks.len(), "some tasks did not end");
        }
        if timeout(TASKS_MAX, sessions.disconnect()).await.is_err() {
            tracing::warn!("releases are still owed; those seats come free within the lease");
        }
        storage.close().await;
    }
}
