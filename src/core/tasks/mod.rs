//! The tasks of a server: critical ones, whose end stops it, and those that run to their end without their caller.

use std::panic::resume_unwind;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::storage::trace;

#[derive(Clone, Debug, Default)]
pub struct Tasks {
    pub tracker: TaskTracker,
    /// Fires after the last release and the last flush.
    pub(crate) finished: CancellationToken,
    /// Fires when a critical task ends before `finished`. Then the server renews no seats or stores no edits, so
    /// the process must stop.
    pub died: CancellationToken,
}

/// Guard of a critical task. Its drop before `finished` stops the server.
struct CriticalTask {
    name: &'static str,
    tasks: Tasks,
}

impl Drop for CriticalTask {
    fn drop(&mut self) {
        if !self.tasks.finished.is_cancelled() {
            tracing::error!(task = self.name, "a critical task has ended");
            self.tasks.died.cancel();
        }
    }
}

impl Tasks {
    pub(crate) fn spawn_critical(
        &self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let guard = CriticalTask { name, tasks: self.clone() };
        #[expect(clippy::disallowed_methods, reason = "a few, at the start")]
        self.tracker.spawn(async move {
            // The task drops the guard when it returns or panics.
            let _guard = guard;
            task.await;
        });
    }

    /// Runs `work` to its end, even if the caller drops the returned future. So a commit and its messages are one
    /// task: a client that disconnects, and a request whose time is over, drop the answer alone (G15). Panics if
    /// `work` panics.
    #[expect(clippy::disallowed_methods, reason = "one for each request")]
    pub async fn complete<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let work = trace::within(trace::current(), work.in_current_span());
        match self.tracker.spawn(work).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // Tokio cancels tasks only when the process exits.
                Err(_cancelled) => std::future::pending().await,
            },
        }
    }
}
