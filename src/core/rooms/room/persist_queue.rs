//! The queue between the rooms and the persister's task, which bounds the pending updates.
//!
//! A room reserves a permit before it accepts an edit, so that it never accepts one that the queue
//! cannot hold. [`persister::run`](crate::rooms::persister::run) commits the queued updates.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::outbox::event::{NO_SPACE, NOT_SAVED, Problem};
use crate::rooms::room::Room;
use crate::sessions::session::Session;
use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::storage::log::Append;

/// Capacity of the queue, which all rooms share.
const QUEUE_MAX: usize = 16_384;
/// A room queues at most the free places divided by this before its writer's socket pauses: some 1,800
/// alone. A further room has an eighth of the rest, so that no room fills the queue for others.
const FREE_PART: usize = 8;

#[derive(Debug)]
pub struct PendingUpdate {
    pub room: Arc<Room>,
    pub session: Arc<Session>,
    pub append: Append,
}

pub(crate) enum PersistJob {
    Store(Box<PendingUpdate>),
    Flush(oneshot::Sender<()>),
}

#[derive(Clone, Debug)]
pub struct Persister {
    queue: mpsc::Sender<PersistJob>,
    health: Arc<StorageHealth>,
    storage: Storage,
}

/// The last error of storage, until a group is stored again.
#[derive(Debug, Default)]
pub(crate) struct StorageHealth {
    /// Whether there is an error. Each edit reads this flag without a lock.
    is_failing: AtomicBool,
    error: Mutex<Option<StorageError>>,
}

impl StorageHealth {
    pub(crate) fn set_error(&self, error: Option<StorageError>) {
        for (reason, is) in [
            ("full", matches!(error, Some(StorageError::Full(_)))),
            ("other", matches!(&error, Some(error) if !matches!(error, StorageError::Full(_)))),
        ] {
            metrics::gauge!("galley_storage_failing", "reason" => reason).set(u8::from(is));
        }
        self.is_failing.store(error.is_some(), Ordering::Release);
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    fn error(&self) -> Option<StorageError> {
        if !self.is_failing.load(Ordering::Acquire) {
            return None;
        }
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(crate) fn problem_of(error: &StorageError) -> Problem {
    if matches!(error, StorageError::Full(_)) { NO_SPACE } else { NOT_SAVED }
}

/// A permit for one place in the queue. Dropping it unused frees the place.
#[derive(Debug)]
pub struct QueuePermit<'a>(mpsc::Permit<'a, PersistJob>);

impl QueuePermit<'_> {
    pub fn store(self, update: PendingUpdate) {
        self.0.send(PersistJob::Store(Box::new(update)));
    }
}

/// The queue is full, or the database has spent its reserve.
#[derive(Debug)]
pub struct QueueFull;

#[derive(Debug)]
pub struct Queue {
    pub(crate) jobs: mpsc::Receiver<PersistJob>,
    pub(crate) health: Arc<StorageHealth>,
}

impl std::fmt::Debug for PersistJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(_) => f.write_str("Store"),
            Self::Flush(_) => f.write_str("Flush"),
        }
    }
}

#[must_use]
pub fn persister(storage: Storage) -> (Persister, Queue) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let health = Arc::<StorageHealth>::default();
    let queue = Queue { jobs: receiver, health: Arc::clone(&health) };
    (Persister { queue: sender, health, storage }, queue)
}

impl Persister {
    /// Fails when the queue is full or the database has spent its reserve (G17). The caller must then
    /// reject the update.
    pub fn reserve(&self) -> Result<QueuePermit<'_>, QueueFull> {
        if !self.storage.has_reserve() {
            return Err(QueueFull);
        }
        self.queue.try_reserve().map(QueuePermit).map_err(|_full| QueueFull)
    }

    /// Whether half of the queue is free, and the database has its reserve. Then a room requests its
    /// rejected edits again.
    pub(crate) fn has_room(&self) -> bool {
        self.queue.capacity() >= QUEUE_MAX / 2 && self.storage.has_reserve()
    }

    /// The places of the queue that one room may occupy at this moment.
    pub(crate) fn share(&self) -> usize {
        self.queue.capacity() / FREE_PART
    }

    pub(crate) fn problem(&self) -> Option<Problem> {
        self.health.error().as_ref().map(problem_of)
    }

    #[must_use]
    pub fn error(&self) -> Option<StorageError> {
        self.health.error()
    }

    /// Waits until the database has stored or rejected every update queued before this call. False
    /// after `limit`.
    pub async fn flush(&self, limit: Duration) -> bool {
        let (done, flushed) = oneshot::channel();
        // The bound covers both waits: a full queue accepts no job while storage is away.
        let flushing = async {
            self.queue.send(PersistJob::Flush(done)).await.ok()?;
            flushed.await.ok()
        };
        matches!(timeout(limit, flushing).await, Ok(Some(())))
    }
}
