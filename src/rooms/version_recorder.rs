//! Keeping versions: one task that looks where a point has fallen due, builds its text, and stores
//! it.
//!
//! Typing never waits for it. A point is a copy of the merged log, made under the room's lock; its
//! text is built and packed on a thread that may block, in one of the few places for that, and
//! versions of many documents go into one transaction. What cannot be stored is tried again, and
//! meanwhile nothing more is looked for. Texts of several documents are built side by side: one that
//! takes long delays no other (G16), also when the server stops. A short document waits for no long one:
//! its text is built in milliseconds, and so without a place.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

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

/// Orders that may wait. One that finds no place is given up: the next edit finds that text again.
const ORDERS_MAX: usize = 4_096;
/// Versions in one transaction.
const BATCH_MAX: usize = 32;
/// Documents whose versions are built side by side: more than there are places for the server's own
/// texts, so that no place stays empty.
const BUILT_AT_ONCE: usize = TEXTS_PER_ADDRESS_MAX + 1;
/// Longest document, in bytes of its merged log, that counts as short: some twenty pages. Its items are few
/// enough that no order of them takes longer than milliseconds.
const SHORT_BYTES: usize = 64 * 1_024;
/// Short documents that are built side by side, beside the long ones.
const SHORT_AT_ONCE: usize = 4;
/// Bytes of long documents that wait until those before them are built. A further one is waited for.
const BACKLOG_BYTES_MAX: usize = 32 * 1_024 * 1_024;
/// Points of one document that may be built and wait. Further ones are given up: each holds a copy of
/// the document.
const POINTS_AT_ONCE: usize = 4;
/// How often rooms are looked at, at most and at least.
const LOOK_MIN: Duration = Duration::from_millis(20);
const LOOK_MAX: Duration = Duration::from_secs(5);
/// How long a decision waits for its versions. They are kept all the same.
const KEEP_PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
enum VersionJob {
    /// The writer has left that room; it may be gone from the open ones.
    Left(Arc<Room>),
    /// Points from elsewhere, and whom to tell.
    Keep(Vec<Checkpoint>, oneshot::Sender<()>),
    /// Whatever is waiting, and whom to tell.
    Flush(oneshot::Sender<()>),
}

/// The end that gives orders. Cloning is shallow.
#[derive(Clone, Debug)]
pub struct History {
    orders: mpsc::Sender<VersionJob>,
}

/// The end that [`run`] serves.
#[derive(Debug)]
pub struct Orders(mpsc::Receiver<VersionJob>);

/// Both ends.
#[must_use]
pub fn history() -> (History, Orders) {
    let (orders, queue) = mpsc::channel(ORDERS_MAX);
    (History { orders }, Orders(queue))
}

impl History {
    /// The writer has left a room in which a point waits.
    pub fn left(&self, room: &Arc<Room>) {
        if self.orders.try_send(VersionJob::Left(Arc::clone(room))).is_err() {
            tracing::debug!(document = %room.document, "too many leave at once for each to be kept");
        }
    }

    /// Keeps points, in order. Waits for it a moment, and never fails: the text is what counts,
    /// and it is stored.
    pub async fn record(&self, points: Vec<Checkpoint>) {
        let (done, kept) = oneshot::channel();
        if self.orders.try_send(VersionJob::Keep(points, done)).is_ok() {
            let _too_slow = timeout(KEEP_PATIENCE, kept).await;
        }
    }

    /// Keeps what is waiting, within `patience`. False if it was too short.
    pub async fn flush(&self, patience: Duration) -> bool {
        let (done, flushed) = oneshot::channel();
        // The bound covers both waits: a full queue takes no order while storage is away.
        let flushing = async {
            self.orders.send(VersionJob::Flush(done)).await.ok()?;
            flushed.await.ok()
        };
        matches!(timeout(patience, flushing).await, Ok(Some(())))
    }
}

/// Keeps versions until `stop` fires.
pub async fn run(
    rooms: Rooms,
    storage: Storage,
    terms: HistoryTerms,
    mut orders: Orders,
    stop: CancellationToken,
) {
    let mut keeper = VersionRecorder::new(rooms, storage);
    let mut ticker = interval((terms.pause / 8).clamp(LOOK_MIN, LOOK_MAX));
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut waiting = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            received = orders.0.recv_many(&mut waiting, BATCH_MAX) => {
                if received == 0 {
                    return;
                }
                keeper.obey(waiting.drain(..), &terms).await;
            }
            Some(built) = keeper.building.next() => {
                keeper.take_built(built);
                // At once: a document that takes long may be built beside it.
                keeper.store().await;
                keeper.flushed().await;
            }
            _ = ticker.tick() => keeper.look(&terms).await,
        }
    }
}

/// A point whose version is to be built, and the orders that wait for it.
struct Due {
    point: Checkpoint,
    waiter: Option<Arc<Waiter>>,
    /// It takes one of the places of short documents.
    is_short: bool,
}

/// The caller of [`History::record`]: it is notified when this is dropped with its last point.
struct Waiter(Option<oneshot::Sender<()>>);

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            // The caller may have lost its patience.
            let _gone = done.send(());
        }
    }
}

/// What came of a point.
type Built = (Due, Result<Option<NewVersion>, RoomError>);

struct VersionRecorder {
    rooms: Rooms,
    storage: Storage,
    building: Lanes<DocumentId, Due, Built>,
    /// Long documents that wait for a lane.
    backlog: VecDeque<Due>,
    /// Short documents that are built now.
    short: usize,
    /// What is built and not yet stored: at most a batch, and what one room or order brought.
    pending: Vec<NewVersion>,
    /// The orders that wait for those.
    waiters: Vec<Arc<Waiter>>,
    /// The orders that wait for all that is due.
    flushing: Vec<oneshot::Sender<()>>,
    /// Points whose document could not be read about: the database is away.
    unbuilt: Vec<Checkpoint>,
    /// The last try to store failed.
    is_away: bool,
}

impl VersionRecorder {
    fn new(rooms: Rooms, storage: Storage) -> Self {
        let (reads, texts) = (storage.clone(), rooms.clone());
        let build = move |due: Due| {
            let (storage, rooms) = (reads.clone(), texts.clone());
            async move {
                let built = build(&rooms, &storage, &due.point).await;
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

    /// Carries out orders together: many leave at once.
    async fn obey(&mut self, orders: impl Iterator<Item = VersionJob>, terms: &HistoryTerms) {
        for order in orders {
            match order {
                VersionJob::Left(room) => {
                    self.take_in(room.due_points(terms, Instant::now()), None).await;
                }
                VersionJob::Keep(points, done) => {
                    let waiter = Arc::new(Waiter(Some(done)));
                    self.take_in(points, Some(&waiter)).await;
                }
                VersionJob::Flush(done) => {
                    self.look(terms).await;
                    self.flushing.push(done);
                }
            }
        }
        self.store().await;
        self.flushed().await;
    }

    /// Looks at every open room.
    async fn look(&mut self, terms: &HistoryTerms) {
        self.store().await;
        if !self.unbuilt.is_empty() {
            self.is_away = false;
            let points = std::mem::take(&mut self.unbuilt);
            self.take_in(points, None).await;
        }
        let now = Instant::now();
        for room in self.rooms.all() {
            if self.is_away {
                // The points wait in their rooms.
                return;
            }
            if self.jobs_of(room.document) == 0 {
                self.take_in(room.due_points(terms, now), None).await;
            }
        }
        self.store().await;
    }

    async fn take_in(&mut self, points: Vec<Checkpoint>, waiter: Option<&Arc<Waiter>>) {
        if self.is_away && BATCH_MAX <= self.pending.len().max(self.unbuilt.len()) {
            tracing::warn!(
                points = points.len(),
                "versions cannot be stored, and some are given up"
            );
            return;
        }
        for point in points {
            let document = point.document;
            let jobs = self.jobs_of(document);
            if POINTS_AT_ONCE <= jobs {
                tracing::warn!(%document, "a version is given up: those before it are still built");
                continue;
            }
            // The versions of one document are built in their order.
            let may_pass = is_short(&point) && self.building.jobs_of(document) == jobs;
            let due = Due { point, waiter: waiter.cloned(), is_short: may_pass && jobs == 0 };
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

    /// Waits until a version may be built, or stand in the backlog.
    async fn make_room(&mut self, due: &Due) {
        let is_full = |keeper: &Self| match due.is_short {
            true => SHORT_AT_ONCE <= keeper.short,
            false => keeper.is_backlog_full(&due.point),
        };
        while is_full(self)
            && let Some(built) = self.building.next().await
        {
            self.take_built(built);
            self.store_batch().await;
        }
    }

    /// Versions of a document that are built or wait for it.
    fn jobs_of(&self, document: DocumentId) -> usize {
        let waiting = self.backlog.iter().filter(|due| due.point.document == document).count();
        self.building.jobs_of(document).saturating_add(waiting)
    }

    /// Whether a further document has to wait outside of the backlog.
    fn is_backlog_full(&self, point: &Checkpoint) -> bool {
        let waiting: usize = self.backlog.iter().map(|due| due.point.snapshot.merged.len()).sum();
        !self.backlog.is_empty() && BACKLOG_BYTES_MAX < waiting + point.snapshot.merged.len()
    }

    /// Starts what may be built of the backlog.
    fn build_backlog(&mut self) {
        while !self.building.is_full(self.short)
            && let Some(due) = self.backlog.pop_front()
        {
            self.building.add(due.point.document, due);
        }
    }

    /// Takes a version that was built, to be stored with others.
    fn take_built(&mut self, (due, built): Built) {
        let Due { point, waiter, is_short } = due;
        self.short = self.short.saturating_sub(usize::from(is_short));
        self.build_backlog();
        let document = point.document;
        match built {
            Ok(version) => {
                self.pending.extend(version);
                self.waiters.extend(waiter);
            }
            Err(RoomError::Storage(error)) => {
                tracing::warn!(%document, %error, "a version cannot be built; trying again");
                self.unbuilt.push(point);
                self.is_away = true;
            }
            Err(error) => tracing::warn!(%document, %error, "a version cannot be built"),
        }
    }

    /// Notifies those who wait for all that was due, once it is stored.
    async fn flushed(&mut self) {
        if self.flushing.is_empty() || !self.building.is_empty() {
            return;
        }
        self.store().await;
        for done in self.flushing.drain(..) {
            let _gone = done.send(());
        }
    }

    async fn store_batch(&mut self) {
        if BATCH_MAX <= self.pending.len() {
            self.store().await;
        }
    }

    async fn store(&mut self) {
        // They wait for the attempt.
        let _waiters = std::mem::take(&mut self.waiters);
        if self.pending.is_empty() {
            return;
        }
        match self.storage.keep_versions(&self.pending).await {
            Ok(_kept) => {
                self.pending.clear();
                self.is_away = false;
            }
            // One of them is at fault, such as one of a document deleted just then.
            Err(StorageError::Refused(_)) => self.store_one_by_one().await,
            Err(error) => {
                if !std::mem::replace(&mut self.is_away, true) {
                    tracing::warn!(%error, "versions cannot be stored; trying again");
                }
            }
        }
    }
    async fn store_one_by_one(&mut self) {
        for version in std::mem::take(&mut self.pending) {
            let document = version.document;
            if let Err(error) = self.storage.keep_versions(&[version]).await {
                tracing::warn!(%document, %error, "a version was not kept");
            }
        }
    }
}

fn is_short(point: &Checkpoint) -> bool {
    point.snapshot.merged.len() <= SHORT_BYTES
}

/// The version of a point. `None`: there is one already, perhaps by another server.
async fn build(
    rooms: &Rooms,
    storage: &Storage,
    point: &Checkpoint,
) -> Result<Option<NewVersion>, RoomError> {
    let Checkpoint { document, kind, authors, snapshot } = point.clone();
    let seq = snapshot.seq;
    let newest = storage.versions(document, 1, None).await?;
    if newest.first().is_some_and(|newest| seq <= newest.seq) {
        return Ok(None);
    }
    let place = if is_short(point) { None } else { Some(rooms.place(document).await?) };
    let snapshot = Snapshot { place, ..snapshot };
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
