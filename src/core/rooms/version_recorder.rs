//! Recording of versions: one task polls the rooms for due checkpoints, builds their texts and stores
//! them.
//!
//! An edit never waits for this task. A checkpoint is a copy of the merged log, made under the room's
//! lock. The task builds and packs its text on a blocking thread under a build permit. One transaction
//! stores versions of many documents. After a failed transaction the task retries the versions and polls
//! no room until the database stores them. Texts of several documents are built concurrently: a slow
//! build delays no other document (G16), also when the server stops. A short document needs no build
//! permit and waits for no long one: its build takes milliseconds.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::bounds::permits::Requester;
use crate::domain::ids::{DocumentId, VersionId};
use crate::domain::limits::TEXTS_PER_ADDRESS_MAX;
use crate::rooms::RoomError;
use crate::rooms::Rooms;
use crate::rooms::ordered_work::Lanes;
use crate::rooms::room::{Checkpoint, Room, Snapshot};
use crate::sessions::options::HistoryTerms;
use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::storage::versions::{NewVersion, Packed};
use crate::yjs::text::Text;

/// Queued jobs. The sender drops a job that finds the queue full: the next edit makes that text due
/// again.
const JOBS_MAX: usize = 4_096;
const BATCH_MAX: usize = 32;
/// Documents whose versions are built concurrently: one more than the build permits of the server
/// itself, so that no permit stays unused.
const BUILT_AT_ONCE: usize = TEXTS_PER_ADDRESS_MAX + 1;
/// Longest short document, in bytes of its merged log: some twenty pages. It has so few items that any
/// order of them builds in milliseconds.
const SHORT_BYTES: usize = 64 * 1_024;
/// Short documents that are built concurrently, besides the long ones.
const SHORT_AT_ONCE: usize = 4;
/// Bytes of long documents in the backlog. When it is full, the task waits for a build to end before
/// it accepts a further one.
const BACKLOG_BYTES_MAX: usize = 32 * 1_024 * 1_024;
/// Running and waiting checkpoints of one document. The task drops further ones: each holds a copy of
/// the document.
const CHECKPOINTS_AT_ONCE: usize = 4;
const POLL_MIN: Duration = Duration::from_millis(20);
const POLL_MAX: Duration = Duration::from_secs(5);
/// Time-out of a caller that waits for its versions. After it the task still stores them.
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

pub async fn run(
    rooms: Rooms,
    storage: Storage,
    terms: HistoryTerms,
    mut jobs: VersionJobs,
    stop: CancellationToken,
) {
    let mut recorder = VersionRecorder::new(rooms, storage);
    let mut ticker = interval((terms.pause / 8).clamp(POLL_MIN, POLL_MAX));
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut waiting = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            received = jobs.0.recv_many(&mut waiting, BATCH_MAX) => {
                if received == 0 {
                    return;
                }
                recorder.run_jobs(waiting.drain(..), &terms).await;
            }
            Some(built) = recorder.building.next() => {
                recorder.take_built(built);
                // Stores at once: a slow build of another document may still run.
                recorder.store().await;
                recorder.flushed().await;
            }
            _ = ticker.tick() => recorder.poll(&terms).await,
        }
    }
}

struct Due {
    checkpoint: Checkpoint,
    waiter: Option<Arc<Waiter>>,
    /// Its build counts towards [`SHORT_AT_ONCE`].
    is_short: bool,
}

/// The caller of [`History::record`]. The drop with its last checkpoint notifies it.
struct Waiter(Option<oneshot::Sender<()>>);

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            // The caller may have timed out.
            let _gone = done.send(());
        }
    }
}

type Built = (Due, Result<Option<NewVersion>, RoomError>);

struct VersionRecorder {
    rooms: Rooms,
    storage: Storage,
    building: Lanes<DocumentId, Due, Built>,
    backlog: VecDeque<Due>,
    short: usize,
    /// Versions built and not yet stored: at most a batch and the checkpoints of one room or job.
    pending: Vec<NewVersion>,
    waiters: Vec<Arc<Waiter>>,
    /// The callers that wait for all due checkpoints.
    flushing: Vec<oneshot::Sender<()>>,
    /// Checkpoints whose build failed at the database; the next poll retries them.
    unbuilt: Vec<Checkpoint>,
    /// The last operation on the database failed.
    is_away: bool,
}

impl VersionRecorder {
    fn new(rooms: Rooms, storage: Storage) -> Self {
        let (reads, texts) = (storage.clone(), rooms.clone());
        let build = move |due: Due| {
            let (storage, rooms) = (reads.clone(), texts.clone());
            async move {
                let built = build(&rooms, &storage, &due.checkpoint).await;
                (due, built)
            }
        };
        Self {
            rooms,
            storage,
            building: Lanes::new(BUILT_AT_ONCE, build),
            backlog: VecDeque::new(),
            short: 0,
            pending: Vec::new(),
            waiters: Vec::new(),
            flushing: Vec::new(),
            unbuilt: Vec::new(),
            is_away: false,
        }
    }

    /// Runs queued jobs together and stores their versions: many writers may leave at once.
    async fn run_jobs(&mut self, jobs: impl Iterator<Item = VersionJob>, terms: &HistoryTerms) {
        for job in jobs {
            match job {
                VersionJob::Left(room) => {
                    self.take_in(room.due_checkpoints(terms, Instant::now()), None).await;
                }
                VersionJob::Record(checkpoints, done) => {
                    let waiter = Arc::new(Waiter(Some(done)));
                    self.take_in(checkpoints, Some(&waiter)).await;
                }
                VersionJob::Flush(done) => {
                    self.poll(terms).await;
                    self.flushing.push(done);
                }
            }
        }
        self.store().await;
        self.flushed().await;
    }

    /// Retries failed checkpoints, then polls every open room for due ones.
    async fn poll(&mut self, terms: &HistoryTerms) {
        self.store().await;
        if !self.unbuilt.is_empty() {
            self.is_away = false;
            let checkpoints = std::mem::take(&mut self.unbuilt);
            self.take_in(checkpoints, None).await;
        }
        let now = Instant::now();
        for room in self.rooms.all() {
            if self.is_away {
                // The checkpoints remain in their rooms.
                return;
            }
            if self.jobs_of(room.document) == 0 {
                self.take_in(room.due_checkpoints(terms, now), None).await;
            }
        }
        self.store().await;
    }

    async fn take_in(&mut self, checkpoints: Vec<Checkpoint>, waiter: Option<&Arc<Waiter>>) {
        if self.is_away && self.pending.len().max(self.unbuilt.len()) >= BATCH_MAX {
            tracing::warn!(
                checkpoints = checkpoints.len(),
                "versions cannot be stored, and some are dropped"
            );
            return;
        }
        for checkpoint in checkpoints {
            let document = checkpoint.document;
            let jobs = self.jobs_of(document);
            if jobs >= CHECKPOINTS_AT_ONCE {
                tracing::warn!(%document, "a version is dropped: earlier ones of the document still run");
                continue;
            }
            // A short checkpoint passes the backlog only if its own document has none there: the
            // versions of one document are built in order.
            let may_pass = is_short(&checkpoint) && self.building.jobs_of(document) == jobs;
            let due = Due { checkpoint, waiter: waiter.cloned(), is_short: may_pass && jobs == 0 };
            if due.is_short || !may_pass {
                self.make_room(&due).await;
            }
            if may_pass {
                self.short += usize::from(due.is_short);
                self.building.add(document, due);
            } else {
                self.backlog.push_back(due);
                self.build_backlog();
            }
        }
    }

    async fn make_room(&mut self, due: &Due) {
        let is_full = |recorder: &Self| match due.is_short {
            true => recorder.short >= SHORT_AT_ONCE,
            false => recorder.is_backlog_full(&due.checkpoint),
        };
        while is_full(self)
            && let Some(built) = self.building.next().await
        {
            self.take_built(built);
            if self.pending.len() >= BATCH_MAX {
                self.store().await;
            }
        }
    }

    fn jobs_of(&self, document: DocumentId) -> usize {
        let waiting = self.backlog.iter().filter(|due| due.checkpoint.document == document).count();
        self.building.jobs_of(document).saturating_add(waiting)
    }

    /// Whether the backlog has no capacity for the checkpoint. An empty backlog accepts any.
    fn is_backlog_full(&self, checkpoint: &Checkpoint) -> bool {
        let waiting: usize =
            self.backlog.iter().map(|due| due.checkpoint.snapshot.merged.len()).sum();
        !self.backlog.is_empty() && waiting + checkpoint.snapshot.merged.len() > BACKLOG_BYTES_MAX
    }

    fn build_backlog(&mut self) {
        while !self.building.is_full(self.short)
            && let Some(due) = self.backlog.pop_front()
        {
            self.building.add(due.checkpoint.document, due);
        }
    }

    /// Accepts the result of a build: queues the version for the next transaction.
    fn take_built(&mut self, (due, built): Built) {
        let Due { checkpoint, waiter, is_short } = due;
        self.short = self.short.saturating_sub(usize::from(is_short));
        self.build_backlog();
        let document = checkpoint.document;
        match built {
            Ok(version) => {
                self.pending.extend(version);
                self.waiters.extend(waiter);
            }
            Err(RoomError::Storage(error)) => {
                tracing::warn!(%document, %error, "a version cannot be built; retrying");
                self.unbuilt.push(checkpoint);
                self.is_away = true;
            }
            Err(error) => tracing::warn!(%document, %error, "a version cannot be built"),
        }
    }

    /// Notifies the callers of [`History::flush`] after the last build is stored.
    async fn flushed(&mut self) {
        if self.flushing.is_empty() || !self.building.is_empty() {
            return;
        }
        self.store().await;
        for done in self.flushing.drain(..) {
            let _gone = done.send(());
        }
    }

    async fn store(&mut self) {
        // The drop at the end of this attempt notifies them, also after a failure.
        let _waiters = std::mem::take(&mut self.waiters);
        if self.pending.is_empty() {
            return;
        }
        match self.storage.store_versions(&self.pending).await {
            Ok(_outcomes) => {
                self.pending.clear();
                self.is_away = false;
            }
            // One version is rejected, for example that of a document deleted meanwhile.
            Err(StorageError::Refused(_)) => self.store_one_by_one().await,
            Err(error) => {
                if !std::mem::replace(&mut self.is_away, true) {
                    tracing::warn!(%error, "versions cannot be stored; retrying");
                }
            }
        }
    }

    async fn store_one_by_one(&mut self) {
        for version in std::mem::take(&mut self.pending) {
            let document = version.document;
            if let Err(error) = self.storage.store_versions(&[version]).await {
                tracing::warn!(%document, %error, "a version was not stored");
            }
        }
    }
}

fn is_short(checkpoint: &Checkpoint) -> bool {
    checkpoint.snapshot.merged.len() <= SHORT_BYTES
}

/// Builds the version of a checkpoint. `None`: the database has one already, perhaps by another server.
async fn build(
    rooms: &Rooms,
    storage: &Storage,
    checkpoint: &Checkpoint,
) -> Result<Option<NewVersion>, RoomError> {
    let Checkpoint { document, kind, authors, snapshot } = checkpoint.clone();
    let seq = snapshot.seq;
    let newest = storage.versions(document, 1, None).await?;
    if newest.first().is_some_and(|newest| seq <= newest.seq) {
        return Ok(None);
    }
    let permit = if is_short(checkpoint) {
        None
    } else {
        Some(rooms.permit(&Requester::Server(document)).await?)
    };
    let snapshot = Snapshot { permit, ..snapshot };
    let pack = |text: &Text| Packed::of(&text.content());
    let text = rooms.read_text(document, snapshot, pack).await?;
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
