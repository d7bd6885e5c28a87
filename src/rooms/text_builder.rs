//! Texts that are built to be looked at: few at once, one for each user, and none for long (G13, G17).
//!
//! What a text costs to build has a bound (`yjs::document_order`). A thread may be slow all the same, and nothing
//! interrupts it. So nobody waits for a text longer than [`PATIENCE`]; until the work
//! comes to its end nobody begins it again for that document, and the texts of others are built in its
//! place.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dashmap::DashMap;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::domain::ids::DocumentId;
use crate::domain::limits::{TEXTS_BUILT_MAX, TEXTS_PER_ADDRESS_MAX};
use crate::rooms::RoomError;
use crate::rooms::permits::{Asker, Turn, Turns};
use crate::rooms::room::Snapshot;
use crate::yjs::error::SyncError;
use crate::yjs::text::Text;

/// How long anybody waits for a text. One at its limit takes two seconds; a request has thirty.
const PATIENCE: Duration = Duration::from_secs(20);
/// Texts that are being built although nobody waits for them any more. Further ones keep the place
/// they are built in: each takes a core.
const COSTLY_MAX: usize = 8;

/// A place in which a text may be built.
pub(crate) type BuildPermit = Arc<Turn>;

/// Where texts are built. Cloning is shallow.
#[derive(Clone, Debug)]
pub(crate) struct Readings {
    places: Turns,
    /// Documents whose text has been built for too long, and still is.
    costly: Arc<DashMap<DocumentId, ()>>,
    patience: Duration,
    tasks: TaskTracker,
}

impl Readings {
    /// None is being built yet.
    pub(crate) fn new(tasks: TaskTracker) -> Self {
        let places = Turns::new(TEXTS_BUILT_MAX, TEXTS_PER_ADDRESS_MAX);
        Self { places, costly: Arc::default(), patience: PATIENCE, tasks }
    }

    /// Waits for a place, for the user of the request in this task or for the server itself. Who has one
    /// must not wait for another.
    pub(crate) async fn place(&self, document: DocumentId) -> Result<BuildPermit, RoomError> {
        let turn = self.places.take(Asker::now(document)).await;
        turn.map(Arc::new).ok_or(RoomError::Busy)
    }

    /// Builds the text on a blocking thread, looks at it, and drops it again. Its place is given back
    /// when that is done, also if nobody waits for it any more.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        document: DocumentId,
        snapshot: Snapshot,
        look: impl FnOnce(&Text) -> T + Send + 'static,
    ) -> Result<T, RoomError> {
        if self.costly.contains_key(&document) {
            return Err(RoomError::TooCostly);
        }
        let Snapshot { merged, place, .. } = snapshot;
        let under = Arc::new(Mutex::new(BuildState { place, is_done: false }));
        let work =
            BuildGuard { document, costly: Arc::clone(&self.costly), under: Arc::clone(&under) };
        let reading = self
            .tasks
            .spawn_blocking(move || work.end(Text::build(&merged).map(|text| look(&text))));
        // A task, since whoever asked may go before it is known that it takes too long.
        let readings = self.clone();
        let watched = self.tasks.spawn(async move {
            let Ok(read) = timeout(readings.patience, reading).await else {
                readings.mark_stuck(document, &under);
                return Err(RoomError::TooCostly);
            };
            match read {
                Ok(Ok(seen)) => Ok(seen),
                Ok(Err(SyncError::TooCostly)) => {
                    tracing::warn!(%document, "a document was made so that it takes too long to build");
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

    /// Nobody waits any more for a text that is being built.
    fn mark_stuck(&self, document: DocumentId, under: &Mutex<BuildState>) {
        let mut under = under.lock().unwrap_or_else(PoisonError::into_inner);
        if under.is_done {
            return;
        }
        tracing::error!(
            %document, patience = ?self.patience,
            "a document's text takes too long to build: it cannot be read until that has come to its \
             end, and may have been made so on purpose"
        );
        if self.costly.len() < COSTLY_MAX {
            under.place = None;
        }
        self.costly.insert(document, ());
    }
}

/// A text that is being built.
#[derive(Debug)]
struct BuildState {
    place: Option<BuildPermit>,
    is_done: bool,
}

/// Its end, however it comes.
struct BuildGuard {
    document: DocumentId,
    costly: Arc<DashMap<DocumentId, ()>>,
    under: Arc<Mutex<BuildState>>,
}

impl BuildGuard {
    /// Hands on what came of it; it is over with that.
    fn end<T>(self, read: T) -> T {
        read
    }
}

impl Drop for BuildGuard {
    fn drop(&mut self) {
        let mut under = self.under.lock().unwrap_or_else(PoisonError::into_inner);
        under.is_done = true;
        under.place = None;
        self.costly.remove(&self.document);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::time::sleep;

    use super::*;
    use crate::yjs::text::document_from_text;

    fn readings(places: usize, patience: Duration) -> Readings {
        let places = Turns::new(places, places);
        Readings { places, costly: Arc::default(), patience, tasks: TaskTracker::new() }
    }

    async fn snapshot(readings: &Readings) -> Snapshot {
        let merged = document_from_text("text", 7);
        let place = readings.place(DocumentId::generate()).await.ok();
        Snapshot { merged, seq: 1, is_settled: true, version: 0, place }
    }

    async fn until(what: &str, is_so: impl Fn() -> bool) {
        let waits = async {
            while !is_so() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(60), waits).await.expect(what);
    }

    /// A look that lasts until the sender is dropped.
    fn endless() -> (mpsc::Sender<()>, impl FnOnce(&Text) + Send + 'static) {
        let (ends, ended) = mpsc::channel::<()>();
        (ends, move |_: &Text| assert!(ended.recv().is_err()))
    }

    #[tokio::test]
    async fn g13_a_text_that_takes_too_long_is_not_waited_for_nor_begun_again_and_others_are_built()
    {
        let readings = readings(1, Duration::from_millis(50));
        // The same, for what is to be had.
        let patient = Readings { patience: Duration::from_secs(60), ..readings.clone() };
        let (costly, other) = (DocumentId::generate(), DocumentId::generate());
        let (ends, look) = endless();
        let read = readings.read(costly, snapshot(&readings).await, look).await;
        assert!(matches!(read, Err(RoomError::TooCostly)), "{read:?}");
        // The only place was given back, and is taken for a moment only.
        for _ in 0..2 {
            let again = readings.read(costly, snapshot(&readings).await, |_| ()).await;
            assert!(matches!(again, Err(RoomError::TooCostly)), "{again:?}");
            let text = patient.read(other, snapshot(&readings).await, Text::content).await;
            assert_eq!(text.expect("another's"), "text");
        }
        drop(ends);
        until("it came to its end", || readings.costly.is_empty()).await;
        let text = patient.read(costly, snapshot(&readings).await, Text::content).await;
        assert_eq!(text.expect("it came to its end"), "text");
    }

    #[tokio::test]
    async fn g13_a_place_is_taken_for_as_long_as_a_text_is_built_also_if_nobody_waits_for_it() {
        let readings = readings(1, Duration::from_secs(60));
        let (ends, look) = endless();
        let snapshot = snapshot(&readings).await;
        let read = readings.read(DocumentId::generate(), snapshot, look);
        assert!(timeout(Duration::from_millis(20), read).await.is_err());
        assert!(
            timeout(Duration::from_millis(20), readings.place(DocumentId::generate()))
                .await
                .is_err()
        );
        drop(ends);
        assert!(readings.place(DocumentId::generate()).await.is_ok());
    }

    #[tokio::test]
    async fn g13_only_some_give_their_place_back_before_their_time() {
        let readings = readings(COSTLY_MAX + 1, Duration::from_millis(20));
        let mut all = Vec::new();
        for _ in 0..=COSTLY_MAX {
            let (ends, look) = endless();
            let read = readings.read(DocumentId::generate(), snapshot(&readings).await, look).await;
            assert!(matches!(read, Err(RoomError::TooCostly)), "{read:?}");
            all.push(ends);
        }
        assert_eq!(readings.places.free(), COSTLY_MAX);
        drop(all);
        until("all are given back", || COSTLY_MAX < readings.places.free()).await;
    }

    #[tokio::test]
    async fn what_panics_or_does_not_fit_together_is_unreadable_and_gives_its_place_back() {
        let readings = readings(1, Duration::from_secs(60));
        let snap = snapshot(&readings).await;
        let panics = readings.read(DocumentId::generate(), snap, |_| panic!("on purpose")).await;
        assert!(matches!(panics, Err::<(), _>(RoomError::Unreadable)));
        let snap = Snapshot { merged: vec![9, 9].into(), ..snapshot(&readings).await };
        let broken = readings.read(DocumentId::generate(), snap, Text::content).await;
        assert!(matches!(broken, Err(RoomError::Unreadable)));
        assert!(readings.place(DocumentId::generate()).await.is_ok() && readings.costly.is_empty());
    }
}
