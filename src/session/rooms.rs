//! The rooms that are open in this process.
//!
//! A room is opened by the first session that joins it and leaves memory with the last one, once
//! the database is owed nothing. Asking for a document's text or anchors does not open a room.

use std::collections::HashMap;
use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;

use crate::domain::ids::DocumentId;
use crate::relay::Relay;
use crate::session::SessionError;
use crate::session::holding::Holding;
use crate::session::options::RoomLimits;
use crate::session::persist::Persister;
use crate::session::room::{Opening, Room, Snapshot};
use crate::storage::Storage;
use crate::sync::log::UpdateLog;

/// How often a join tries again when the room is given up under its feet.
const JOIN_TRIES: usize = 16;

/// A handle on the open rooms. Cloning is shallow.
#[derive(Clone, Debug)]
pub struct Rooms {
    open: Arc<DashMap<DocumentId, Arc<OnceCell<Arc<Room>>>>>,
    storage: Storage,
    relay: Relay,
    persister: Persister,
    limits: RoomLimits,
    tasks: TaskTracker,
}

impl Rooms {
    /// No room is open yet.
    #[must_use]
    pub fn new(
        storage: Storage,
        relay: Relay,
        persister: Persister,
        limits: RoomLimits,
        tasks: TaskTracker,
    ) -> Self {
        Self { open: Arc::default(), storage, relay, persister, limits, tasks }
    }

    /// Brings a session into the room of its document, opening it if need be.
    ///
    /// # Errors
    ///
    /// [`SessionError`] when the document cannot be read, is gone, or the room is full.
    pub async fn join(&self, holding: &Arc<Holding>) -> Result<Arc<Room>, SessionError> {
        for _ in 0..JOIN_TRIES {
            let room = self.find_or_open(holding.sitter.document).await?;
            if room.join(holding).is_ok() {
                return Ok(room);
            }
            self.forget(&room);
        }
        Err(SessionError::RoomFull)
    }

    /// The room of a document, if it is open. One that was given up is not: what stands in its log
    /// may be in no database.
    #[must_use]
    pub fn find(&self, document: DocumentId) -> Option<Arc<Room>> {
        let room = self.open.get(&document)?.value().get().cloned();
        room.filter(|room| !room.retired.is_cancelled())
    }

    /// A look at the whole document, from its room or from the database.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSuchDocument`], or storage's failure.
    pub async fn snapshot(&self, document: DocumentId) -> Result<Snapshot, SessionError> {
        if let Some(room) = self.find(document) {
            return Ok(room.snapshot());
        }
        let (mut log, seq) = self.read(document).await?;
        Ok(Snapshot { merged: log.merged(), seq, is_settled: true, version: 0, place: None })
    }

    /// Gives a room up if nobody is in it.
    pub fn close_if_unused(&self, room: &Room) {
        if room.retire_if_unused() {
            self.forget(room);
        }
    }

    /// Every open room.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Room>> {
        self.open.iter().filter_map(|entry| entry.value().get().cloned()).collect()
    }

    /// Buries presence that nobody renews, and gives up rooms that nobody is in.
    pub fn tidy(&self, now: tokio::time::Instant) {
        for room in self.all() {
            room.expire_presence(now);
            self.close_if_unused(&room);
        }
        // Cells in which several tried to open a room, and all failed.
        self.open.retain(|_, cell| cell.get().is_some() || 1 < Arc::strong_count(cell));
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a float; rooms are few")]
        metrics::gauge!("galley_rooms").set(self.open.len() as f64);
    }

    async fn find_or_open(&self, document: DocumentId) -> Result<Arc<Room>, SessionError> {
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

    async fn load(&self, document: DocumentId) -> Result<Arc<Room>, SessionError> {
        let (log, seq) = self.read(document).await?;
        let owners: HashMap<_, _> =
            self.storage.client_owners(document).await?.into_iter().collect();
        let opening = Opening { document, log, seq, owners };
        let (room, to_say) = Room::open(opening, self.limits, self.persister.clone());
        let room = Arc::new(room);
        let following = Arc::clone(&room).follow(self.relay.clone(), self.storage.clone(), to_say);
        self.tasks.spawn(following);
        Ok(room)
    }

    async fn read(&self, document: DocumentId) -> Result<(UpdateLog, i64), SessionError> {
        let log = self.storage.log(document).await?.ok_or(SessionError::NoSuchDocument)?;
        let seq = log.seq;
        let opened = UpdateLog::open(log.parts).map_err(|error| {
            tracing::error!(%document, ?error, "a stored document cannot be opened");
            SessionError::Unreadable
        })?;
        Ok((opened, seq))
    }

    fn forget(&self, room: &Room) {
        self.open.remove_if(&room.document, |_, cell| {
            cell.get().is_some_and(|open| open.retired.is_cancelled())
        });
    }
}
