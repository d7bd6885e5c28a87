//! Recording of versions: polls the rooms for due checkpoints, builds their texts and stores them.
//!
//! An edit never waits for a version. A checkpoint is a copy of the merged log, made under the room's
//! lock. A mutex of each document orders its builds, and a slow build delays no other document (G16),
//! also when the server stops. A long document is built under a build permit. A short one needs none and
//! waits for no long one: its build takes milliseconds. One transaction stores versions of many documents.
//!
//! While the database is away, each build and each transaction is retried. They hold their capacity, so the
//! recorder soon accepts no further checkpoint, and those of open rooms remain in their rooms.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::Utc;
use futures_util::stream::{StreamExt as _, poll_fn};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::bounds::permits::Requester;
use crate::domain::ids::{DocumentId, VersionId};
use crate::rooms::RoomError;
use crate::rooms::Rooms;
use crate::rooms::room::{Checkpoint, Room};
use crate::rooms::snapshot::Snapshot;
use crate::sessions::options::HistoryTerms;
use crate::storage::error::StorageError;
use crate::storage::packed::Packed;
use crate::storage::version_plan::NewVersion;
use crate::yjs::text::Text;

/// Queued jobs. The sender drops a job that finds the queue full: the next edit makes that text due
/// again.
const JOBS_MAX: usize = 4_096;
const BATCH_MAX: usize = 32;
/// Longest short document, in bytes of its merged log: some twenty pages. It has so few items that any
/// order of them builds in milliseconds.
const SHORT_BYTES: usize = 64 * 1_024;
/// Short documents that are built concurrently, besides the long ones.
const SHORT_AT_ONCE: usize = 4;
/// KiB of long documents that are built or wait for a build permit. When they are spent, the recorder waits
/// for a build to end before it accepts a further checkpoint.
const LONG_KIB_MAX: u32 = 32 * 1_024;
/// Running and waiting checkpoints of one document. The recorder drops further ones: each holds a copy of
/// the document.
const CHECKPOINTS_AT_ONCE: usize = 4;
const POLL_MIN: Duration = Duration::from_millis(20);
const POLL_MAX: Duration = Duration::from_secs(5);
/// Time-out of a caller that waits for its versions. After it the recorder still stores them.
const RECORD_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
enum VersionJob {
    /// The writer has left that room; the room may already be closed.
    Left(Arc<Room>),
    Record(Vec<Checkpoint>, oneshot::Sender<()>),
    Flush(oneshot::Sender<()>),
}

#[derive(Clone, Debug)]
pub struct History {
    jobs: mpsc::Sender<VersionJob>,
}

#[derive(Debug)]
pub struct VersionJobs(mpsc::Receiver<VersionJob>);

#[must_use]
pub fn history() -> (History, VersionJobs) {
    let (jobs, queue) = mpsc::channel(JOBS_MAX);
    (History { jobs }, VersionJobs(queue))
}

impl History {
    pub fn left(&self, room: &Arc<Room>) {
        if self.jobs.try_send(VersionJob::Left(Arc::clone(room))).is_err() {
            tracing::debug!(document = %room.document, "the queue of version jobs is full; a job is dropped");
        }
    }

    /// Records checkpoints in order. Waits at most [`RECORD_TIMEOUT`] for them and never fails: the
    /// text itself is stored without its version.
    pub async fn record(&self, checkpoints: Vec<Checkpoint>) {
        let (done, recorded) = oneshot::channel();
        if self.jobs.try_send(VersionJob::Record(checkpoints, done)).is_ok() {
            let _too_slow = timeout(RECORD_TIMEOUT, recorded).await;
        }
    }

    /// Stores all due checkpoints. False after `limit`.
    pub async fn flush(&self, limit: Duration) -> bool {
        let (done, flushed) = oneshot::channel();
        // The bound covers both waits: a full queue accepts no job while storage is away.
        let flushing = async {
            self.jobs.send(VersionJob::Flush(done)).await.ok()?;
            flushed.await.ok()
        };
        matches!(timeout(limit, flushing).await, Ok(Some(())))
    }
}

pub async fn run(rooms: Rooms, terms: HistoryTerms, jobs: VersionJobs, stop: CancellationToken) {
    let recorder = VersionRecorder {
        rooms,
        poll_every: (terms.pause / 8).clamp(POLL_MIN, POLL_MAX),
        terms,
        documents: Mutex::default(),
        short: Arc::new(Semaphore::new(SHORT_AT_ONCE)),
        long: Arc::new(Semaphore::new(LONG_KIB_MAX as usize)),
    };
    // The capacity that each holds bounds their number.
    let (due, mut queue) = mpsc::channel(1);
    let (built, versions) = mpsc::channel(BATCH_MAX);
    let builds = poll_fn(|context| queue.poll_recv(context))
        .for_each_concurrent(None, |due| recorder.build(due, &built));
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = recorder.accept(jobs.0, &due, &built) => {}
        () = builds => {}
        () = recorder.store(versions) => {}
    }
}

/// A checkpoint to build, or none: the end of those before it.
struct Due {
    checkpoint: Option<Checkpoint>,
    waiter: Option<Arc<Waiter>>,
    document: Arc<Order>,
    _capacity: Option<OwnedSemaphorePermit>,
}

/// Orders the builds of one document.
type Order = tokio::sync::Mutex<()>;

/// The caller of [`History::record`] or [`History::flush`]. The drop with its last checkpoint notifies it.
struct Waiter(Option<oneshot::Sender<()>>);

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            // The caller may have timed out.
            let _gone = done.send(());
        }
    }
}

type Built = (Option<NewVersion>, Option<Arc<Waiter>>);

struct VersionRecorder {
    rooms: Rooms,
    poll_every: Duration,
    terms: HistoryTerms,
    /// The documents with checkpoints. Each checkpoint holds a reference to its document's entry.
    documents: Mutex<HashMap<DocumentId, Arc<Order>>>,
    short: Arc<Semaphore>,
    long: Arc<Semaphore>,
}

impl VersionRecorder {
    /// Accepts the checkpoints of jobs, and at each tick those of the open rooms.
    async fn accept(
        &self,
        mut jobs: mpsc::Receiver<VersionJob>,
        due: &mpsc::Sender<Due>,
        built: &mpsc::Sender<Built>,
    ) {
        let mut ticker = interval(self.poll_every);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let job = tokio::select! {
                biased;
                job = jobs.recv() => job,
                _ = ticker.tick() => {
                    self.poll(due).await;
                    continue;
                }
            };
            match job {
                Some(VersionJob::Left(room)) => {
                    let checkpoints = room.due_checkpoints(&self.terms, Instant::now());
                    self.take_in(checkpoints, None, due).await;
                }
                Some(VersionJob::Record(checkpoints, done)) => {
                    let waiter = Arc::new(Waiter(Some(done)));
                    self.take_in(checkpoints, Some(&waiter), due).await;
                }
                Some(VersionJob::Flush(done)) => {
                    self.poll(due).await;
                    self.flush(done, due, built).await;
                }
                None => return,
            }
        }
    }

    /// Notifies the caller behind the queued builds of each document and the built versions.
    async fn flush(
        &self,
        done: oneshot::Sender<()>,
        due: &mpsc::Sender<Due>,
        built: &mpsc::Sender<Built>,
    ) {
        let waiter = Some(Arc::new(Waiter(Some(done))));
        let documents: Vec<_> = self.documents().values().cloned().collect();
        for document in documents {
            let waiter = waiter.clone();
            let end = Due { checkpoint: None, waiter, document, _capacity: None };
            let _closed = due.send(end).await;
        }
        let _closed = built.send((None, waiter)).await;
    }

    /// Accepts the due checkpoints of each open room without one.
    async fn poll(&self, due: &mpsc::Sender<Due>) {
        self.documents().retain(|_, document| Arc::strong_count(document) > 1);
        let now = Instant::now();
        for room in self.rooms.all() {
            let is_idle = !self.documents().contains_key(&room.document);
            if is_idle {
                self.take_in(room.due_checkpoints(&self.terms, now), None, due).await;
            }
        }
    }

    async fn take_in(
        &self,
        checkpoints: Vec<Checkpoint>,
        waiter: Option<&Arc<Waiter>>,
        due: &mpsc::Sender<Due>,
    ) {
        for checkpoint in checkpoints {
            let document = Arc::clone(self.documents().entry(checkpoint.document).or_default());
            // Besides the map and this function.
            let others = Arc::strong_count(&document) - 2;
            if CHECKPOINTS_AT_ONCE <= others {
                let document = checkpoint.document;
                tracing::warn!(%document, "a version is dropped: earlier ones of the document still run");
                continue;
            }
            // A short checkpoint behind a long one of its document waits for a long build.
            let capacity = if is_short(&checkpoint) && others == 0 {
                Arc::clone(&self.short).acquire_owned().await
            } else {
                let kib = u32::try_from(checkpoint.snapshot.merged.len() / 1_024);
                let kib = kib.map_or(LONG_KIB_MAX, |kib| kib.min(LONG_KIB_MAX));
                Arc::clone(&self.long).acquire_many_owned(kib).await
            };
            let waiter = waiter.cloned();
            let checkpoint = Some(checkpoint);
            let next = Due { checkpoint, waiter, document, _capacity: capacity.ok() };
            let _closed = due.send(next).await;
        }
    }

    /// Builds the version of a checkpoint and queues it for the next transaction.
    async fn build(&self, due: Due, built: &mpsc::Sender<Built>) {
        let Due { checkpoint, mut waiter, document, _capacity } = due;
        let _order = document.lock().await;
        let mut is_retried = false;
        let version = loop {
            let Some(checkpoint) = &checkpoint else { break None };
            let error = match build(&self.rooms, checkpoint).await {
                Ok(version) => break version,
                Err(error) => error,
            };
            let is_repeatable = matches!(error, RoomError::Storage(_));
            if !is_repeatable || !is_retried {
                let document = checkpoint.document;
                tracing::warn!(%document, %error, is_repeatable, "a version cannot be built");
            }
            if !is_repeatable {
                break None;
            }
            (is_retried, waiter) = (true, None);
            sleep(self.poll_every).await;
        };
        let _closed = built.send((version, waiter)).await;
    }

    /// Stores the built versions of all documents, up to a batch in a transaction.
    async fn store(&self, mut built: mpsc::Receiver<Built>) {
        let mut batch = Vec::new();
        while 0 < built.recv_many(&mut batch, BATCH_MAX).await {
            let (versions, waiters): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
            let versions: Vec<_> = versions.into_iter().flatten().collect();
            self.store_until_stored(&versions, waiters).await;
        }
    }

    async fn store_until_stored<T>(&self, versions: &[NewVersion], waiters: Vec<T>) {
        let mut waiters = Some(waiters);
        while let Err(error) = self.store_batch(versions).await {
            // A failed attempt notifies the callers too.
            if waiters.take().is_some() {
                tracing::warn!(%error, "versions cannot be stored; retrying");
            }
            sleep(self.poll_every).await;
        }
    }

    async fn store_batch(&self, versions: &[NewVersion]) -> Result<(), StorageError> {
        let stored = self.rooms.storage.store_versions(versions).await;
        let Err(StorageError::Refused(_)) = stored else { return stored.map(drop) };
        // One version is rejected, for example that of a document deleted meanwhile.
        for version in versions {
            let stored = self.rooms.storage.store_versions(std::slice::from_ref(version)).await;
            if let Err(error) = stored {
                let document = version.document;
                tracing::warn!(%document, %error, "a version was not stored");
            }
        }
        Ok(())
    }

    fn documents(&self) -> MutexGuard<'_, HashMap<DocumentId, Arc<Order>>> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_short(checkpoint: &Checkpoint) -> bool {
    checkpoint.snapshot.merged.len() <= SHORT_BYTES
}

/// Builds the version of a checkpoint. `None`: the database has one already, perhaps by another server.
async fn build(rooms: &Rooms, checkpoint: &Checkpoint) -> Result<Option<NewVersion>, RoomError> {
    let Checkpoint { document, kind, authors, snapshot } = checkpoint.clone();
    let seq = snapshot.seq;
    let newest = rooms.storage.versions(document, 1, None).await?;
    if newest.first().is_some_and(|newest| seq <= newest.seq) {
        return Ok(None);
    }
    let permit = if is_short(checkpoint) {
        None
    } else {
        Some(rooms.text_builder.permit(&Requester::Server(document)).await?)
    };
    let snapshot = Snapshot { permit, ..snapshot };
    let pack = |text: &Text| Packed::of(&text.content());
    let text = rooms.text_builder.read(document, snapshot, pack).await?;
    Ok(Some(NewVersion {
        id: VersionId::generate(),
        document,
        kind,
        label: None,
        authors,
        restored_from: None,
        seq,
        text,
        now: Utc::now(),
    }))
}
