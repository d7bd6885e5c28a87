//! Group commit: updates of all rooms go to the database together, in the order they came.
//!
//! Alone an edit waits for nobody: it is committed as it comes. While one transaction is being made
//! durable the next updates queue up, and all of them go into the next one, which does not begin
//! before [`GROUPS_APART`] after the last one did: a commit costs about the same however many share
//! it. Where commits take longer they are further apart, so that storing takes a share of the
//! machine and not all of it. Nobody waits for a commit to see what was typed; it is relayed before.
//!
//! # Invariants
//!
//! - **P1** (G7) A room hears that an update is stored only after the commit that stored it.
//! - **P2** Nothing taken from a room is given up because storage is away: it is tried again until
//!   it is stored or refused by a fence. What a room may owe is bounded (G13).
//! - **P3** Once an update of a room is refused, none that the room took after it is stored: it may
//!   stand on the refused one, and would leave a gap in the log for ever. The room is reset, and
//!   clients send again what the database has not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::domain::fence::Fence;
use crate::relay::Relay;
use crate::relay::{Message, Topic};
use crate::session::Sessions;
use crate::session::close::LostReason;
use crate::session::event::{NO_SPACE, NOT_SAVED, Problem};
use crate::session::holding::Holding;
use crate::session::room::{Debt, Room};
use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::storage::log::{Append, Appended};

/// Updates that may wait for the database, over all rooms.
const QUEUE_MAX: usize = 16_384;
/// From the beginning of one transaction to that of the next, at least. Typing is called saved that
/// much later under load, which nobody sees, and a fast disk is not worn by a commit for each key.
const GROUPS_APART: Duration = Duration::from_millis(5);
/// The same, in times of what the last one took, and when it is apart enough all the same.
const GROUPS_REST: u32 = 4;
const GROUPS_APART_MAX: Duration = Duration::from_millis(25);
/// Updates in one transaction: some 20 ms of work.
const BATCH_MAX: usize = 4_096;
/// How long to wait before a failed transaction is tried again, at first and at most.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// An update on its way to the database.
#[derive(Debug)]
pub struct Owed {
    /// The room it was relayed in.
    pub room: Arc<Room>,
    /// Who wrote it.
    pub holding: Arc<Holding>,
    /// The row to be.
    pub append: Append,
    /// What the room books as owed.
    pub debt: Debt,
}

enum Order {
    Store(Box<Owed>),
    Flush(oneshot::Sender<()>),
}

/// The rooms' end of the queue.
#[derive(Clone, Debug)]
pub struct Persister {
    queue: mpsc::Sender<Order>,
    trouble: Arc<Trouble>,
}

/// Why nothing can be stored, as long as that is so.
#[derive(Debug, Default)]
struct Trouble {
    /// Looked at with each edit.
    is: AtomicBool,
    error: Mutex<Option<StorageError>>,
}

impl Trouble {
    fn is_now(&self, error: Option<StorageError>) {
        for (reason, is) in [
            ("full", matches!(error, Some(StorageError::Full(_)))),
            ("other", matches!(&error, Some(error) if !matches!(error, StorageError::Full(_)))),
        ] {
            metrics::gauge!("galley_storage_failing", "reason" => reason).set(u8::from(is));
        }
        self.is.store(error.is_some(), Ordering::Release);
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    fn error(&self) -> Option<StorageError> {
        if !self.is.load(Ordering::Acquire) {
            return None;
        }
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What people are told of it.
fn problem_of(error: &StorageError) -> Problem {
    if matches!(error, StorageError::Full(_)) { NO_SPACE } else { NOT_SAVED }
}

/// A place in the queue. Unused, it is given back on drop.
#[derive(Debug)]
pub struct Place<'a>(mpsc::Permit<'a, Order>);

impl Place<'_> {
    /// Queues the update.
    pub fn store(self, owed: Owed) {
        self.0.send(Order::Store(Box::new(owed)));
    }
}

/// The queue is full: storage has been away for long.
#[derive(Debug)]
pub struct QueueFull;

/// The queue's other end, for [`run`].
#[derive(Debug)]
pub struct Queue {
    orders: mpsc::Receiver<Order>,
    trouble: Arc<Trouble>,
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(_) => f.write_str("Store"),
            Self::Flush(_) => f.write_str("Flush"),
        }
    }
}

/// A persister and the queue that [`run`] serves.
#[must_use]
pub fn persister() -> (Persister, Queue) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let trouble = Arc::<Trouble>::default();
    let queue = Queue { orders: receiver, trouble: Arc::clone(&trouble) };
    (Persister { queue: sender, trouble }, queue)
}

impl Persister {
    /// Reserves a place for one update.
    ///
    /// # Errors
    ///
    /// [`QueueFull`] when too many wait; the caller must not take the update then.
    pub fn reserve(&self) -> Result<Place<'_>, QueueFull> {
        self.queue.try_reserve().map(Place).map_err(|_full| QueueFull)
    }

    /// Whether so many may wait again that it is worth while to ask for what was refused.
    pub(super) fn has_room(&self) -> bool {
        QUEUE_MAX / 2 <= self.queue.capacity()
    }

    /// What people are to be told of why nothing can be stored right now.
    pub(super) fn problem(&self) -> Option<Problem> {
        self.trouble.error().as_ref().map(problem_of)
    }

    /// Waits until everything queued before this call is stored, at most `patience`.
    pub async fn flush(&self, patience: Duration) -> bool {
        let (done, flushed) = oneshot::channel();
        if self.queue.send(Order::Flush(done)).await.is_err() {
            return false;
        }
        matches!(tokio::time::timeout(patience, flushed).await, Ok(Ok(())))
    }
}

impl Sessions {
    /// Why no edit can be stored right now, if that is so.
    #[must_use]
    pub fn storage_trouble(&self) -> Option<StorageError> {
        self.shared.persister.trouble.error()
    }
}

/// Stores until `stop` fires and the queue is empty.
pub async fn run(storage: Storage, relay: Relay, mut queue: Queue, stop: CancellationToken) {
    let mut orders = Vec::new();
    let mut next_group_at = Instant::now();
    loop {
        // A server that stops does not wait: what comes of it makes no difference here.
        let _gathered = stop.run_until_cancelled(sleep_until(next_group_at)).await;
        let received = tokio::select! {
            biased;
            received = queue.orders.recv_many(&mut orders, BATCH_MAX) => received,
            () = stop.cancelled() => 0,
        };
        if received == 0 {
            return;
        }
        let mut batch = Vec::new();
        let mut flushed = Vec::new();
        for order in orders.drain(..) {
            match order {
                // (P3)
                Order::Store(owed) if owed.room.was_reset() => {}
                Order::Store(owed) => batch.push(*owed),
                Order::Flush(done) => flushed.push(done),
            }
        }
        if !batch.is_empty() {
            let began = Instant::now();
            store(&storage, &relay, batch, &queue.trouble, &stop).await;
            let rest = began.elapsed() * GROUPS_REST;
            next_group_at = began + rest.clamp(GROUPS_APART, GROUPS_APART_MAX);
        }
        for done in flushed {
            // The asker may have lost its patience.
            let _gone = done.send(());
        }
    }
}

/// Stores one batch, however long it takes (P2); only a stopping server gives up.
async fn store(
    storage: &Storage,
    relay: &Relay,
    batch: Vec<Owed>,
    trouble: &Trouble,
    stop: &CancellationToken,
) {
    let started = Instant::now();
    let (appends, rest): (Vec<_>, Vec<_>) = batch
        .into_iter()
        .map(|Owed { room, holding, append, debt }| (append, (room, holding, debt)))
        .unzip();
    let mut wait = RETRY_FIRST;
    let outcomes = loop {
        match storage.append(&appends).await {
            Ok(outcomes) => break outcomes,
            Err(error) => {
                complain(&error, &rest, wait == RETRY_FIRST);
                trouble.is_now(Some(error));
                let pause = tokio::time::sleep(wait);
                if stop.run_until_cancelled(pause).await.is_none() {
                    tracing::error!(updates = appends.len(), "stopping with updates not stored");
                    return;
                }
                wait = (wait * 2).min(RETRY_MAX);
            }
        }
    };
    if RETRY_FIRST < wait {
        let seconds = started.elapsed().as_secs();
        tracing::info!(updates = appends.len(), seconds, "updates can be stored again");
        trouble.is_now(None);
    }
    metrics::histogram!("galley_document_persist_seconds").record(started.elapsed().as_secs_f64());
    for ((append, (room, holding, debt)), outcome) in appends.iter().zip(rest).zip(outcomes) {
        match outcome {
            Appended::Stored { seq } => {
                room.stored(seq, &debt);
                let fence = append.guard.as_ref().map_or(Fence::ZERO, |guard| guard.fence);
                let update = append.update.clone();
                publish(relay, append, Message::Update { seq, fence, update }).await;
            }
            Appended::Fenced
            | Appended::Stale
            | Appended::ForeignClient { .. }
            | Appended::Gone => {
                tracing::warn!(document = %append.document, ?outcome, "an edit was refused by the database");
                holding.lose(LostReason::Expired);
                room.reset();
            }
            // Its holder has done nothing wrong (P3).
            Appended::Orphaned => room.reset(),
        }
    }
}

async fn publish(relay: &Relay, append: &Append, message: Message) {
    if let Err(error) = relay.publish(Topic::Room(append.document), &message).await {
        // The other servers see a gap and read the database.
        tracing::debug!(%error, "an update was stored but not relayed");
    }
}

fn complain(error: &StorageError, owed: &[(Arc<Room>, Arc<Holding>, Debt)], is_first: bool) {
    if is_first {
        tracing::error!(%error, updates = owed.len(), "updates cannot be stored; trying again");
    }
    for (room, _, _) in owed {
        room.not_saved(problem_of(error));
    }
}
