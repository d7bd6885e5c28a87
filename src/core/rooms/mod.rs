//! The rooms that are open in this process.
//!
//! The first session that joins a document opens its room. The room leaves memory with its last
//! session, once the persister has stored all its updates. A read of a text ([`texts`]) opens no room.

pub(crate) mod error;
pub mod memory;
pub mod persister;
pub mod room;
pub mod server_edit;
pub mod snapshot;
#[cfg(test)]
pub(crate) mod stored_document;
pub(crate) mod text_builder;
pub mod texts;
pub mod version_recorder;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dashmap::DashMap;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::bounds::permits::Requester;
use crate::domain::ids::{DocumentId, UserId};
use crate::domain::text::count_characters;
use crate::outbox::event::Event;
use crate::pubsub::Pubsub;
pub use crate::rooms::error::RoomError;
use crate::rooms::memory::RoomMemory;
use crate::rooms::persister::{Persister, persister};
use crate::rooms::room::review_events::{Missed, MissedQueue, missed};
use crate::rooms::room::{Maintenance, NotJoined, Opening, ResetCause, Room, Trigger};
use crate::rooms::snapshot::Snapshot;
use crate::rooms::text_builder::TextBuilder;
use crate::rooms::version_recorder::{History, history};
use crate::sessions::options::{HistoryTerms, RoomLimits};
use crate::sessions::session::Session;
use crate::storage::Storage;
use crate::tasks::Tasks;
use crate::yjs::log::{Origin, UpdateLog};
use crate::yjs::text::Text;

/// Attempts of one join: another task may retire the room between lookup and join.
const JOIN_TRIES: usize = 16;

/// Largest document, in bytes, that a worker of Tokio processes itself: some 0.2 ms.
const WALKED_HERE_MAX: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub struct Rooms {
    open: Arc<DashMap<DocumentId, Arc<OnceCell<Arc<Room>>>>>,
    storage: Storage,
    pubsub: Pubsub,
    pub(crate) persister: Persister,
    pub(crate) history: History,
    missed_reviews: Missed,
    pub(crate) limits: RoomLimits,
    memory: RoomMemory,
    /// The interval of the seat tick.
    tick: Duration,
    tasks: TaskTracker,
    text_builder: TextBuilder,
}

struct Opened {
    log: UpdateLog,
    seq: i64,
    rows: usize,
    owners: Vec<(u64, UserId)>,
    review_changes: i64,
    /// The log ends at damage: the database has further rows that cannot be read.
    is_damaged: bool,
}

impl Rooms {
    /// Starts the persister and the recorder of versions. The queue contains the rooms that missed a change of a
    /// review; [`Reviews::start`] consumes it.
    ///
    /// [`Reviews::start`]: crate::reviews::Reviews::start
    #[must_use]
    pub fn start(
        storage: &Storage,
        pubsub: &Pubsub,
        limits: RoomLimits,
        terms: HistoryTerms,
        tick: Duration,
        tasks: &Tasks,
    ) -> (Self, MissedQueue) {
        let (persister, queue) = persister(storage.clone());
        let (history, jobs) = history();
        let (missed_reviews, missed_queue) = missed();
        let finished = tasks.finished.clone();
        let storing = persister::run(storage.clone(), pubsub.clone(), queue, finished.clone());
        let rooms = Self {
            open: Arc::default(),
            storage: storage.clone(),
            pubsub: pubsub.clone(),
            persister,
            history,
            missed_reviews,
            limits,
            memory: RoomMemory::new(limits.room_bytes),
            tick,
            tasks: tasks.tracker.clone(),
            text_builder: TextBuilder::new(tasks.tracker.clone()),
        };
        let recording = version_recorder::run(rooms.clone(), terms, jobs, finished);
        tasks.spawn_critical("group commit", storing);
        tasks.spawn_critical("history", recording);
        (rooms, missed_queue)
    }

    /// The session receives `granted` only once the room is open. So the grant and the room's first
    /// messages arrive together.
    pub async fn join(
        &self,
        session: &Arc<Session>,
        granted: &Event<'_>,
    ) -> Result<Arc<Room>, RoomError> {
        for number in 0..JOIN_TRIES {
            let room = self.find_or_open(session.identity.document).await?;
            if number == 0 {
                session.notify(granted);
            }
            match room.join(session) {
                Ok(()) => return Ok(room),
                Err(NotJoined::Full) => break,
                Err(NotJoined::Retired) => self.forget(&room),
            }
        }
        Err(RoomError::RoomFull)
    }

    /// The open room of a document. A retired room is not returned: its log may hold updates that
    /// no database has.
    #[must_use]
    pub fn find(&self, document: DocumentId) -> Option<Arc<Room>> {
        let room = self.open.get(&document)?.value().get().cloned();
        room.filter(|room| !room.retired.is_cancelled())
    }

    /// Retires a room without sessions and runs its last maintenance.
    pub fn close_if_unused(&self, room: &Arc<Room>) {
        if room.retire_if_unused() {
            self.forget(room);
            let (rooms, room) = (self.clone(), Arc::clone(room));
            #[expect(clippy::disallowed_methods, reason = "one for each room")]
            self.tasks.spawn(async move { rooms.maintain(&room, Trigger::Leaving).await });
        }
    }

    /// Counts the document's characters and merges its rows, if maintenance is due.
    pub async fn maintain(&self, room: &Room, occasion: Trigger) {
        let Some(due) = room.due_maintenance(occasion, Instant::now()) else { return };
        let done = async {
            let Maintenance { snapshot, merge } = due;
            if merge {
                self.compact(room, &snapshot).await?;
            }
            let count = |text: &Text| count_characters(&text.content());
            let builder = &self.text_builder;
            let permit = Some(builder.permit(&Requester::Server(room.document)).await?);
            let snapshot = Snapshot { permit, ..snapshot };
            let characters = builder.read(room.document, snapshot, count).await?;
            self.storage.set_characters(room.document, characters).await?;
            Ok::<_, RoomError>(())
        };
        if let Err(error) = done.await {
            // All rows remain stored; the next trigger repeats the maintenance.
            tracing::warn!(document = %room.document, %error, "the maintenance of a document failed");
        }
    }

    /// Merges the rows of a document. Rows that the room does not have show that the database was set
    /// back, and gave their numbers again (decision 40).
    async fn compact(&self, room: &Room, snapshot: &Snapshot) -> Result<(), RoomError> {
        let merged = snapshot.merged.clone();
        let opened = self.beside(merged.len(), move || UpdateLog::open(vec![merged])).await?;
        let log = opened.map_err(|_| RoomError::Unreadable)?;
        let covers = move |update: &[u8]| {
            log.check(update, Origin::Server).is_ok_and(|checked| !checked.is_new)
        };
        if !self.storage.compact(room.document, snapshot.seq, &snapshot.merged, &covers).await? {
            tracing::error!(document = %room.document, "the database has rows that its room lacks");
            room.request_reset(ResetCause::SetBack);
        }
        Ok(())
    }

    #[must_use]
    pub fn all(&self) -> Vec<Arc<Room>> {
        let mut rooms = Vec::with_capacity(self.open.len());
        rooms.extend(self.open.iter().filter_map(|entry| entry.value().get().cloned()));
        rooms
    }

    /// Runs the periodic work of every room: expires presence without renewal, updates the quota,
    /// requests refused edits again, frees spare memory, closes an unused room, and runs maintenance.
    pub fn tidy(&self, now: Instant) {
        let mut unsaved = 0;
        for room in self.all() {
            unsaved += room.unsaved_bytes();
            room.expire_presence(now);
            room.update_quota(now);
            room.request_refused();
            room.shrink_idle();
            self.close_if_unused(&room);
            // A task takes 5 KiB, and the allocator retains what thousands of them took at once.
            if !room.is_maintenance_due(Trigger::Working, now) {
                continue;
            }
            let rooms = self.clone();
            #[expect(clippy::disallowed_methods, reason = "one for each room")]
            self.tasks.spawn(async move { rooms.maintain(&room, Trigger::Working).await });
        }
        // Removes the cells in which every caller failed to open a room.
        self.open.retain(|_, cell| cell.get().is_some() || Arc::strong_count(cell) > 1);
        for (name, value) in [("galley_rooms", self.open.len()), ("galley_unsaved_bytes", unsaved)]
        {
            #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
            metrics::gauge!(name).set(value as f64);
        }
    }

    async fn find_or_open(&self, document: DocumentId) -> Result<Arc<Room>, RoomError> {
        // The guard ends with the statement: the map is not locked while the log is read.
        let cell = Arc::clone(self.open.entry(document).or_default().value());
        let opened = cell.get_or_try_init(|| self.load(document)).await.cloned();
        if opened.is_err() {
            // Another caller that waits at this cell tries next and may open the room in it. Removing
            // that cell would allow a second room of the document. So the cell is removed only when
            // the map and this call alone hold it; the map's lock excludes further callers.
            self.open.remove_if(&document, |_, held| {
                held.get().is_none() && Arc::ptr_eq(held, &cell) && Arc::strong_count(held) == 2
            });
        }
        opened
    }

    async fn load(&self, document: DocumentId) -> Result<Arc<Room>, RoomError> {
        let Opened { log, seq, rows, owners, review_changes, is_damaged } =
            self.read(document).await?;
        if self.memory.is_short_of(log.bytes()) {
            return Err(RoomError::MemorySpent);
        }
        let owners = owners.into_iter().collect();
        let memory = self.memory.charge(log.bytes());
        let opening =
            Opening { document, log, memory, seq, rows, owners, review_changes, is_damaged };
        let room = Arc::new(Room::open(
            opening,
            self.limits,
            self.persister.clone(),
            self.missed_reviews.clone(),
        ));
        let following =
            Arc::clone(&room).follow(self.pubsub.clone(), self.storage.clone(), self.tick);
        #[expect(clippy::disallowed_methods, reason = "one for each room")]
        self.tasks.spawn(following);
        Ok(room)
    }

    async fn read(&self, document: DocumentId) -> Result<Opened, RoomError> {
        let stored = self.storage.log(document).await?.ok_or(RoomError::NoSuchDocument)?;
        let (last, rows, hole) = (stored.seq, stored.parts.len(), stored.hole());
        let review_changes = stored.review_changes;
        let beside = stored.damage.clone();
        let (mut parts, owners) = (stored.parts, stored.owners);
        if let Some((sound, _)) = hole {
            parts.truncate(sound);
        }
        let bytes = parts.iter().map(Bytes::len).sum();
        let (log, broken) = self.beside(bytes, move || UpdateLog::open_up_to(parts)).await?;
        // The room ignores all rows after the first missing or invalid row: they may depend on it.
        let damage = match (broken, hole) {
            (Some((at, error)), _) => Some((at, error.to_string())),
            (None, Some((at, missing))) => Some((at, format!("number {missing} is missing"))),
            // The log is complete, but the room can accept no edit.
            (None, None) => beside.map(|why| (rows, why)),
        };
        let Some((sound, why)) = damage else {
            return Ok(Opened { log, seq: last, rows, owners, review_changes, is_damaged: false });
        };
        let number = |at: usize| stored.numbers.get(at).copied();
        let seq = sound.checked_sub(1).and_then(number).unwrap_or(0);
        metrics::counter!("galley_documents_damaged_total").increment(1);
        tracing::error!(
            %document, why, readable_up_to = seq, first_bad = number(sound), last,
            "a stored document is damaged; its room is read-only and ends at the damage: restore \
             its rows of `updates`, `snapshots` and `clients` from a backup, then let all its \
             clients disconnect and reconnect"
        );
        Ok(Opened { log, seq, rows, owners, review_changes, is_damaged: true })
    }

    /// Runs `walk` over a document of `bytes`. A large document runs on a blocking thread, so that
    /// the worker serves other rooms meanwhile.
    #[expect(clippy::disallowed_methods, reason = "one for each room or permit")]
    async fn beside<T: Send + 'static>(
        &self,
        bytes: usize,
        walk: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RoomError> {
        if bytes <= WALKED_HERE_MAX {
            return Ok(walk());
        }
        self.tasks.spawn_blocking(walk).await.map_err(|panicked| {
            tracing::error!(%panicked, "a document cannot be read");
            RoomError::Unreadable
        })
    }

    fn forget(&self, room: &Room) {
        self.open.remove_if(&room.document, |_, cell| {
            cell.get().is_some_and(|open| open.retired.is_cancelled())
        });
    }
}
