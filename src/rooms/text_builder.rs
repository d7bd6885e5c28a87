//! Builds texts for reading: few at once, one for each user, each with a time-out (G13, G17).
//!
//! The cost of a build has a bound (`yjs::document_order`). Its thread may still be slow, and the server
//! cannot interrupt it. So a caller waits for a text at most [`BUILD_TIMEOUT`]. Until the stuck build
//! ends, the server rejects further builds of that document and reuses the permit for other texts.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dashmap::DashMap;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::domain::ids::DocumentId;
use crate::domain::limits::{TEXTS_BUILT_MAX, TEXTS_PER_ADDRESS_MAX};
use crate::rooms::RoomError;
use crate::rooms::permits::{Requester, Turn, Turns};
use crate::rooms::room::Snapshot;
use crate::yjs::error::SyncError;
use crate::yjs::text::Text;

/// Time-out of a wait for a build. A text at the cost limit takes two seconds; a request may last thirty.
const BUILD_TIMEOUT: Duration = Duration::from_secs(20);
/// Stuck builds that run without a permit. Further stuck builds retain their permits: each build
/// occupies a core.
const COSTLY_MAX: usize = 8;

/// The right to run one build.
pub(crate) type BuildPermit = Arc<Turn>;

/// A handle to the builder of texts. Clones share permits and stuck builds.
#[derive(Clone, Debug)]
pub(crate) struct Readings {
    permits: Turns,
    /// Documents whose build timed out and still runs.
    costly: Arc<DashMap<DocumentId, ()>>,
    build_timeout: Duration,
    tasks: TaskTracker,
}

impl Readings {
    /// Builds the handle with all permits free.
    pub(crate) fn new(tasks: TaskTracker) -> Self {
        let permits = Turns::new(TEXTS_BUILT_MAX, TEXTS_PER_ADDRESS_MAX);
        Self { permits, costly: Arc::default(), build_timeout: BUILD_TIMEOUT, tasks }
    }

    /// Waits for a permit, for the user of the request in this task or for the server itself.
    ///
    /// A caller with a permit must not wait for another: it could wait for itself (F1).
    pub(crate) async fn permit(&self, document: DocumentId) -> Result<BuildPermit, RoomError> {
        let turn = self.permits.take(Requester::now(document)).await;
        turn.map(Arc::new).ok_or(RoomError::Busy)
    }

    /// Builds the text on a blocking thread, applies `look` to it, and drops it. The build frees its
    /// permit at its end, also after the caller dropped this future.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        document: DocumentId,
        snapshot: Snapshot,
        look: impl FnOnce(&Text) -> T + Send + 'static,
    ) -> Result<T, RoomError> {
        if self.costly.contains_key(&document) {
            return Err(RoomError::TooCostly);
        }
        let Snapshot { merged, permit, .. } = snapshot;
        let under = Arc::new(Mutex::new(BuildState { permit, is_done: false }));
        let work =
            BuildGuard { document, costly: Arc::clone(&self.costly), under: Arc::clone(&under) };
        let reading = self
            .tasks
            .spawn_blocking(move || work.end(Text::build(&merged).map(|text| look(&text))));
        // A task of its own: the caller may drop this future before the time-out.
        let readings = self.clone();
        let watched = self.tasks.spawn(async move {
            let Ok(read) = timeout(readings.build_timeout, reading).await else {
                readings.mark_stuck(document, &under);
                return Err(RoomError::TooCostly);
            };
            match read {
                Ok(Ok(seen)) => Ok(seen),
                Ok(Err(SyncError::TooCostly)) => {
                    tracing::warn!(%document, "a text exceeds the cost limit of a build");
                    Err(RoomError::TooCostly)
                }
                Ok(Err(error)) => {
                    tracing::error!(%document, ?error, "a document's text cannot be built");
                    Err(RoomError::Unreadable)
                }
                Err(panicked) => {
                    tracing::error!(%document, %panicked, "a document's text cannot be built");
                    Err(RoomError::Unreadable)
                }
            }
        });
        watched.await.unwrap_or(Err(RoomError::Unreadable))
    }

    /// Marks a build as stuck after its time-out, and frees its permit below [`COSTLY_MAX`].
    fn mark_stuck(&self, document: DocumentId, under: &Mutex<BuildState>) {
        let mut under = under.lock().unwrap_or_else(PoisonError::into_inner);
        if under.is_done {
            return;
        }
        tracing::error!(
            %document, build_timeout = ?self.build_timeout,
            "a document's text takes too long to build: it cannot be read until that build ends; \
             the document may be hostile"
        );
        if self.costly.len() < COSTLY_MAX {
            under.permit = None;
        }
        self.costly.insert(document, ());
    }
}

/// A running build.
#[derive(Debug)]
struct BuildState {
    permit: Option<BuildPermit>,
    is_done: bool,
}

/// Ends a build on drop, also after a panic.
struct BuildGuard {
    document: DocumentId,
    costly: Arc<DashMap<DocumentId, ()>>,
    under: Arc<Mutex<BuildState>>,
}

impl BuildGuard {
    /// Returns the result and drops the guard, which ends the build.
    fn end<T>(self, read: T) -> T {
        read
    }
}

impl Drop for BuildGuard {
    fn drop(&mut self) {
        let mut under = self.under.lock().unwrap_or_else(PoisonError::into_inner);
        under.is_done = true;
        under.permit = None;
        self.costly.remove(&self.document);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::time::sleep;

    use super::*;
    use crate::yjs::text::document_from_text;

    fn readings(permits: usize, build_timeout: Duration) -> Readings {
        let permits = Turns::new(permits, permits);
        Readings { permits, costly: Arc::default(), build_timeout, tasks: TaskTracker::new() }
    }

    async fn snapshot(readings: &Readings) -> Snapshot {
        let merged = document_from_text("text", 7);
        let permit = readings.permit(DocumentId::generate()).await.ok();
        Snapshot { merged, seq: 1, is_durable: true, version: 0, permit }
    }

    async fn until(what: &str, is_so: impl Fn() -> bool) {
        let waits = async {
            while !is_so() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(60), waits).await.expect(what);
    }

    /// A `look` that blocks until the sender is dropped.
    fn endless() -> (mpsc::Sender<()>, impl FnOnce(&Text) + Send + 'static) {
        let (ends, ended) = mpsc::channel::<()>();
        (ends, move |_: &Text| assert!(ended.recv().is_err()))
    }

    #[tokio::test]
    async fn g13_a_stuck_build_times_out_rejects_its_document_and_frees_its_permit() {
        let readings = readings(1, Duration::from_millis(50));
        // The same builder with a time-out that no quick build reaches.
        let patient = Readings { build_timeout: Duration::from_secs(60), ..readings.clone() };
        let (costly, other) = (DocumentId::generate(), DocumentId::generate());
        let (ends, look) = endless();
        let read = readings.read(costly, snapshot(&readings).await, look).await;
        assert!(matches!(read, Err(RoomError::TooCostly)), "{read:?}");
        // The stuck build has freed the only permit; each of these builds holds it briefly.
        for _ in 0..2 {
            let again = readings.read(costly, snapshot(&readings).await, |_| ()).await;
            assert!(matches!(again, Err(RoomError::TooCostly)), "{again:?}");
            let text = patient.read(other, snapshot(&readings).await, Text::content).await;
            assert_eq!(text.expect("the text of another document"), "text");
        }
        drop(ends);
        until("the stuck build ends", || readings.costly.is_empty()).await;
        let text = patient.read(costly, snapshot(&readings).await, Text::content).await;
        assert_eq!(text.expect("a text after the stuck build"), "text");
    }

    #[tokio::test]
    async fn g13_a_build_holds_its_permit_until_its_end_after_its_caller_is_dropped() {
        let readings = readings(1, Duration::from_secs(60));
        let (ends, look) = endless();
        let snapshot = snapshot(&readings).await;
        let read = readings.read(DocumentId::generate(), snapshot, look);
        assert!(timeout(Duration::from_millis(20), read).await.is_err());
        assert!(
            timeout(Duration::from_millis(20), readings.permit(DocumentId::generate()))
                .await
                .is_err()
        );
        drop(ends);
        assert!(readings.permit(DocumentId::generate()).await.is_ok());
    }

    #[tokio::test]
    async fn g13_a_bounded_number_of_stuck_builds_free_their_permits_early() {
        let readings = readings(COSTLY_MAX + 1, Duration::from_millis(20));
        let mut all = Vec::new();
        for _ in 0..=COSTLY_MAX {
            let (ends, look) = endless();
            let read = readings.read(DocumentId::generate(), snapshot(&readings).await, look).await;
            assert!(matches!(read, Err(RoomError::TooCostly)), "{read:?}");
            all.push(ends);
        }
        assert_eq!(readings.permits.free(), COSTLY_MAX);
        drop(all);
        until("all permits are free", || COSTLY_MAX < readings.permits.free()).await;
    }

    #[tokio::test]
    async fn a_panic_or_a_broken_document_is_unreadable_and_frees_its_permit() {
        let readings = readings(1, Duration::from_secs(60));
        let snap = snapshot(&readings).await;
        let panics = readings.read(DocumentId::generate(), snap, |_| panic!("on purpose")).await;
        assert!(matches!(panics, Err::<(), _>(RoomError::Unreadable)));
        let snap = Snapshot { merged: vec![9, 9].into(), ..snapshot(&readings).await };
        let broken = readings.read(DocumentId::generate(), snap, Text::content).await;
        assert!(matches!(broken, Err(RoomError::Unreadable)));
        assert!(
            readings.permit(DocumentId::generate()).await.is_ok() && readings.costly.is_empty()
        );
    }
}
