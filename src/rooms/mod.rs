//! The rooms that are open in this process.
//!
//! A room is opened by the first session that joins it and leaves memory with the last one, once
//! the database is owed nothing. Asking for a document's text or anchors does not open a room.

pub(crate) mod error;
pub(crate) mod ordered_work;
pub mod permits;
pub mod persister;
pub mod room;
pub(crate) mod server_edit;
#[cfg(test)]
pub(crate) mod stored_document;
pub(crate) mod text_builder;
pub mod version_recorder;

use std::sync::Arc;

use bytes::Bytes;
use dashmap::DashMap;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::domain::ids::{DocumentId, UserId};
use crate::domain::text::count_characters;
use crate::outbox::event::Event;
use crate::pubsub::Pubsub;
pub use crate::rooms::error::RoomError;
use crate::rooms::persister::Persister;
use crate::rooms::room::review_events::Missed;
use crate::rooms::room::{Maintenance, Opening, Room, Snapshot, Trigger};
use crate::rooms::text_builder::{BuildPermit, Readings};
use crate::sessions::options::RoomLimits;
use crate::sessions::session::Session;
use crate::storage::Storage;
use crate::yjs::log::UpdateLog;
use crate::yjs::text::Text;

/// How often a join tries again when the room is given up under its feet.
const JOIN_TRIES: usize = 16;

/// Largest document, in bytes, that is walked through by a worker of the runtime: some 0.2 ms.
const WALKED_HERE_MAX: usize = 64 * 1024;

/// A handle on the open rooms. Cloning is shallow.
#[derive(Clone, Debug)]
pub struct Rooms {
    open: Arc<DashMap<DocumentId, Arc<OnceCell<Arc<Room>>>>>,
    storage: Storage,
    relay: Pubsub,
    persister: Persister,
    missed_reviews: Missed,
    limits: RoomLimits,
    tasks: TaskTracker,
    readings: Readings,
}

/// A document as it was read.
struct Opened {
    log: UpdateLog,
    /// The number of the last update in it.
    seq: i64,
    rows: usize,
    /// Which user each client id belongs to.
    owners: Vec<(u64, UserId)>,
    /// The number of the last change of its reviews.
    review_changes: i64,
    /// There is more, which cannot be read.
    is_damaged: bool,
}

impl Rooms {
    /// No room is open yet.
    #[must_use]
    pub fn new(
        (storage, relay): (Storage, Pubsub),
        (persister, missed_reviews): (Persister, Missed),
        limits: RoomLimits,
        tasks: TaskTracker,
    ) -> Self {
        let readings = Readings::new(tasks.clone());
        let open = Arc::default();
        Self { open, storage, relay, persister, missed_reviews, limits, tasks, readings }
    }

    /// Brings a session into the room of its document, opening it if need be. The session is told
    /// that it was `granted` when the room is there, so that it is told all at once.
    ///
    /// # Errors
    ///
    /// [`RoomError`] when the document cannot be read, is gone, or the room is full.
    pub async fn join(
        &self,
        holding: &Arc<Session>,
        granted: &Event<'_>,
    ) -> Result<Arc<Room>, RoomError> {
        for number in 0..JOIN_TRIES {
            let room = self.find_or_open(holding.identity.document).await?;
            if number == 0 {
                holding.tell(granted);
            }
            if room.join(holding).is_ok() {
                return Ok(room);
            }
            self.forget(&room);
        }
        Err(RoomError::RoomFull)
    }

    /// The room of a document, if it is open. One that was given up is not: what stands in its log
    /// may be in no database.
    #[must_use]
    pub fn find(&self, document: DocumentId) -> Option<Arc<Room>> {
        let room = self.open.get(&document)?.value().get().cloned();
        room.filter(|room| !room.retired.is_cancelled())
    }

    /// A look at the whole document, from its room or from the database, once there is a place to
    /// build its text in. Whoever waits for one holds no document in memory, and leaves no work
    /// behind when they stop waiting.
    ///
    /// # Errors
    ///
    /// [`RoomError::NoSuchDocument`], [`RoomError::Busy`] when too many requests wait, or storage's
    /// failure.
    pub async fn snapshot(&self, document: DocumentId) -> Result<Snapshot, RoomError> {
        let place = Some(self.place(document).await?);
        // Whoever reads half of it may take it for the whole. In the room it is said.
        if let Some(room) = self.find(document) {
            if room.is_damaged() {
                return Err(RoomError::Unreadable);
            }
            let snapshot = self.beside(room.bytes(), move || room.snapshot()).await?;
            return Ok(Snapshot { place, ..snapshot });
        }
        let Opened { mut log, seq, is_damaged, .. } = self.read(document).await?;
        if is_damaged {
            return Err(RoomError::Unreadable);
        }
        let merged = self.beside(log.bytes(), move || log.merged()).await?;
        Ok(Snapshot { merged, seq, is_settled: true, version: 0, place })
    }

    pub(crate) async fn place(&self, document: DocumentId) -> Result<BuildPermit, RoomError> {
        self.readings.place(document).await
    }

    /// Builds the text on a blocking thread, looks at it, and drops it again.
    ///
    /// # Errors
    ///
    /// [`RoomError::Unreadable`] when the document does not fit together,
    /// [`RoomError::TooCostly`] when that takes too long.
    pub async fn read_text<T: Send + 'static>(
        &self,
        document: DocumentId,
        snapshot: Snapshot,
        look: impl FnOnce(&Text) -> T + Send + 'static,
    ) -> Result<T, RoomError> {
        self.readings.read(document, snapshot, look).await
    }

    /// Gives a room up if nobody is in it, and leaves its document tidy.
    pub fn close_if_unused(&self, room: &Arc<Room>) {
        if room.retire_if_unused() {
            self.forget(room);
            let (rooms, room) = (self.clone(), Arc::clone(room));
            self.tasks.spawn(async move { rooms.do_chores(&room, Trigger::Leaving).await });
        }
    }

    /// Counts the document's characters and merges its rows, if that is due.
    pub async fn do_chores(&self, room: &Room, occasion: Trigger) {
        let Some(chores) = room.chores(occasion, Instant::now()) else { return };
        let done = async {
            let Maintenance { snapshot, merge } = chores;
            if merge {
                self.storage.compact(room.document, snapshot.seq, &snapshot.merged).await?;
            }
            let count = |text: &Text| count_characters(&text.content());
            let snapshot = Snapshot { place: Some(self.place(room.document).await?), ..snapshot };
            let characters = self.read_text(room.document, snapshot, count).await?;
            self.storage.set_characters(room.document, characters).await?;
            Ok::<_, RoomError>(())
        };
        if let Err(error) = done.await {
            // Nothing is lost: the rows are all there, and the next occasion comes.
            tracing::warn!(document = %room.document, %error, "a document was left untidy");
        }
    }

    /// Every open room.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Room>> {
        self.open.iter().filter_map(|entry| entry.value().get().cloned()).collect()
    }

    /// Buries presence that nobody renews, and gives up rooms that nobody is in.
    pub fn tidy(&self, now: Instant) {
        for room in self.all() {
            room.expire_presence(now);
            room.update_quota(now);
            room.ask_for_refused();
            self.close_if_unused(&room);
            let rooms = self.clone();
            self.tasks.spawn(async move { rooms.do_chores(&room, Trigger::Working).await });
        }
        // Cells in which several tried to open a room, and all failed.
        self.open.retain(|_, cell| cell.get().is_some() || 1 < Arc::strong_count(cell));
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a float; rooms are few")]
        metrics::gauge!("galley_rooms").set(self.open.len() as f64);
    }

    async fn find_or_open(&self, document: DocumentId) -> Result<Arc<Room>, RoomError> {
        // The guard ends with the statement: nothing is locked while the log is read.
        let cell = Arc::clone(self.open.entry(document).or_default().value());
        let opened = cell.get_or_try_init(|| self.load(document)).await.cloned();
        if opened.is_err() {
            // Whoever else waits at this cell tries next, and may open the room in it: a cell that
            // was taken out of the map would hold a second room of the same document. Under the
            // map's own lock nobody new can come to it.
            self.open.remove_if(&document, |_, held| {
                held.get().is_none() && Arc::ptr_eq(held, &cell) && Arc::strong_count(held) == 2
            });
        }
        opened
    }

    async fn load(&self, document: DocumentId) -> Result<Arc<Room>, RoomError> {
        let Opened { log, seq, rows, owners, review_changes, is_damaged } =
            self.read(document).await?;
        let owners = owners.into_iter().collect();
        let opening = Opening { document, log, seq, rows, owners, review_changes, is_damaged };
        let room = Arc::new(Room::open(
            opening,
            self.limits,
            self.persister.clone(),
            self.missed_reviews.clone(),
        ));
        let following = Arc::clone(&room).follow(self.relay.clone(), self.storage.clone());
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
        // What comes after the first row that is missing, or does not fit, is left alone: it may
        // stand on that one.
        let damage = match (broken, hole) {
            (Some((at, error)), _) => Some((at, error.to_string())),
            (None, Some((at, missing))) => Some((at, format!("number {missing} is missing"))),
            // All of the text is there, and cannot be added to.
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
            "a stored document is damaged, and open for reading only, up to the damage: put back \
             its rows of `updates`, `snapshots` and `clients` from a backup, then have its people \
             leave and come back"
        );
        Ok(Opened { log, seq, rows, owners, review_changes, is_damaged: true })
    }

    /// Walks through a document of so many bytes: a large one on a thread that may block, since a worker
    /// serves the rooms of others meanwhile.
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
