//! The stop: from the first signal to the last closed connection.
//!
//! ```text
//!  SIGTERM ─► linger: /readyz is 503, sockets are refused with 1012, the listener stays open
//!          ─► drain: the listener closes, every socket is closed with 1012
//!          ─► flush, release, end: at most `AFTER_DRAIN_MAX` for all of it
//! ```
//!
//! Each stage has a time limit, so the stop ends within `server.linger` + `server.drain` + 25 s. The
//! caller races it with the next signal: a second signal ends the process at once, in any stage.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::http::readiness::Readiness;
use crate::runtime::Runtime;
use crate::storage::Storage;

/// Time limit of everything after the drain. The stages below share it; `config/OPERATIONS.md` and
/// `config/default.toml` name the sum.
const AFTER_DRAIN_MAX: Duration = Duration::from_secs(25);
/// Time limit for closing the sockets that are left after the drain.
const SOCKETS_MAX: Duration = Duration::from_secs(5);
/// Time limit for committing pending edits at the end.
const FINISH_MAX: Duration = Duration::from_secs(10);
/// Time limit of the remaining tasks, and again of the pending releases.
const TASKS_MAX: Duration = Duration::from_secs(5);

/// The parts that a stop ends, from the top down.
pub(super) struct Stopping {
    /// How long the server announces its stop before it closes the listener.
    pub(super) linger: Duration,
    /// The period over which the server spreads the closes of its sockets.
    pub(super) drain: Duration,
    pub(super) readiness: Readiness,
    pub(super) runtime: Runtime,
    pub(super) sockets: TaskTracker,
    pub(super) listening: CancellationToken,
    pub(super) storage: Storage,
}

impl Stopping {
    pub(super) async fn run(self) {
        self.runtime.seats.refuse();
        self.readiness.refuse();
        sleep(self.linger).await;
        self.listening.cancel();
        self.runtime.seats.drain(self.drain).await;
        if timeout(AFTER_DRAIN_MAX, self.end()).await.is_err() {
            tracing::error!("the stop timed out; the process exits with tasks still running");
        }
        tracing::info!("stopped");
    }

    async fn end(&self) {
        let Self { sockets, runtime, storage, .. } = self;
        let tasks = &runtime.tasks.tracker;
        sockets.close();
        if timeout(SOCKETS_MAX, sockets.wait()).await.is_err() {
            tracing::warn!(left = sockets.len(), "sockets did not close in time");
        }
        runtime.finish(FINISH_MAX).await;
        tasks.close();
        if timeout(TASKS_MAX, tasks.wait()).await.is_err() {
            tracing::warn!(left = tasks.len(), "tasks did not end in time");
        }
        if timeout(TASKS_MAX, runtime.disconnect()).await.is_err() {
            tracing::warn!("releases are still pending; those seats expire within the lease");
        }
        storage.close().await;
    }
}
