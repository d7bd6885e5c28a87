//! Builds texts for reading: few at once, one for each user, each with a time-out (G13, G17).
//!
//! The cost of a build has a bound (`yjs::document_order`), so each build ends. A caller waits for it at
//! most [`BUILD_TIMEOUT`], for a slow machine. The build then still holds its permit until its end: the
//! permits bound the memory of all builds, and those of its user and address the share of others.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::bounds::permits::{Permits, Requester};
use crate::domain::ids::DocumentId;
use crate::domain::limits::{TEXTS_BUILT_MAX, TEXTS_PER_ADDRESS_MAX};
use crate::rooms::RoomError;
use crate::rooms::snapshot::{BuildPermit, Snapshot};
use crate::yjs::error::SyncError;
use crate::yjs::text::Text;

/// Time-out of a wait for a build. A text at the cost limit takes two seconds; a request may last thirty.
const BUILD_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone, Debug)]
pub(crate) struct TextBuilder {
    permits: Permits,
    build_timeout: Duration,
    tasks: TaskTracker,
}

impl TextBuilder {
    pub(crate) fn new(tasks: TaskTracker) -> Self {
        let permits = Permits::new(TEXTS_BUILT_MAX, TEXTS_PER_ADDRESS_MAX);
        Self { permits, build_timeout: BUILD_TIMEOUT, tasks }
    }

    /// Waits for a permit.
    ///
    /// A caller with a permit must not wait for another: it could wait for itself (F1).
    pub(crate) async fn permit(&self, requester: &Requester) -> Result<BuildPermit, RoomError> {
        let permit = self.permits.take(requester.clone()).await;
        permit.map(Arc::new).ok_or(RoomError::Busy)
    }

    /// The work frees its permit at its end, also after the caller dropped this future.
    pub(crate) async fn with_permit<T: Send + 'static>(
        &self,
        requester: &Requester,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RoomError> {
        let permit = self.permit(requester).await?;
        #[expect(clippy::disallowed_methods, reason = "under the permit")]
        let working = self.tasks.spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        working.await.map_err(|panicked| {
            tracing::error!(%panicked, "a text cannot be read");
            RoomError::Unreadable
        })
    }

    /// Builds the text on a blocking thread, applies `read` to it, and drops it. The build frees its
    /// permit at its end, also after the caller dropped this future.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        document: DocumentId,
        snapshot: Snapshot,
        read: impl FnOnce(&Text) -> T + Send + 'static,
    ) -> Result<T, RoomError> {
        let Snapshot { merged, permit, .. } = snapshot;
        #[expect(clippy::disallowed_methods, reason = "under the permit")]
        let build = self.tasks.spawn_blocking(move || {
            let _permit = permit;
            Text::build(&merged).map(|text| read(&text))
        });
        match timeout(self.build_timeout, build).await {
            Ok(Ok(Ok(seen))) => Ok(seen),
            Ok(Ok(Err(SyncError::TooCostly))) => {
                tracing::warn!(%document, "a text exceeds the cost limit of a build");
                Err(RoomError::TooCostly)
            }
            Ok(Ok(Err(error))) => {
                tracing::error!(%document, ?error, "a document's text cannot be built");
                Err(RoomError::Unreadable)
            }
            Ok(Err(panicked)) => {
                tracing::error!(%document, %panicked, "a document's text cannot be built");
                Err(RoomError::Unreadable)
            }
            Err(_elapsed) => {
                tracing::error!(
                    %document, timeout = ?self.build_timeout,
                    "a document's text takes too long to build; the machine is slow, or the document hostile"
                );
                Err(RoomError::TooCostly)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::yjs::text::document_from_text;

    fn builder(build_timeout: Duration) -> TextBuilder {
        TextBuilder { permits: Permits::new(1, 1), build_timeout, tasks: TaskTracker::new() }
    }

    async fn snapshot(builder: &TextBuilder) -> Snapshot {
        let merged = document_from_text("text", 7);
        let permit = builder.permit(&Requester::Server(DocumentId::generate())).await.ok();
        Snapshot { merged, seq: 1, is_durable: true, version: 0, permit }
    }

    /// A `read` that blocks until the sender is dropped.
    fn endless() -> (mpsc::Sender<()>, impl FnOnce(&Text) + Send + 'static) {
        let (ends, ended) = mpsc::channel::<()>();
        (ends, move |_: &Text| assert!(ended.recv().is_err()))
    }

    /// Goal (G17): the builds that run have a bound, whether or not their callers still wait.
    #[tokio::test]
    async fn g13_a_build_holds_its_permit_until_its_end_after_a_time_out_or_a_dropped_caller() {
        let (quick, patient) = (Duration::from_millis(20), Duration::from_secs(60));
        for build_timeout in [quick, patient] {
            let builder = builder(build_timeout);
            let (ends, read) = endless();
            let snapshot = snapshot(&builder).await;
            let read = builder.read(DocumentId::generate(), snapshot, read);
            match timeout(Duration::from_secs(1), read).await {
                Ok(timed_out) => assert!(matches!(timed_out, Err(RoomError::TooCostly))),
                Err(_dropped) => assert_eq!(build_timeout, patient),
            }
            assert_eq!(builder.permits.free(), 0);
            drop(ends);
            assert!(builder.permit(&Requester::Server(DocumentId::generate())).await.is_ok());
        }
    }

    #[tokio::test]
    async fn a_panic_or_a_broken_document_is_unreadable_and_frees_its_permit() {
        let builder = builder(Duration::from_secs(60));
        let snap = snapshot(&builder).await;
        let panics = builder.read(DocumentId::generate(), snap, |_| panic!("on purpose")).await;
        assert!(matches!(panics, Err::<(), _>(RoomError::Unreadable)));
        let snap = Snapshot { merged: vec![9, 9].into(), ..snapshot(&builder).await };
        let broken = builder.read(DocumentId::generate(), snap, Text::content).await;
        assert!(matches!(broken, Err(RoomError::Unreadable)));
        assert!(builder.permit(&Requester::Server(DocumentId::generate())).await.is_ok());
    }
}
