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
//! - **P4** (G16) An update that the database cannot store now delays its own document only. The
//!   task sets that document aside ([`set_aside`]), in order, and retries it on its own schedule.

#[cfg(test)]
pub(super) mod reset_tests;
pub(super) mod set_aside;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::domain::fence::Fence;
use crate::domain::ids::DocumentId;
use crate::outbox::event::{NO_SPACE, NOT_SAVED, Problem};
use crate::pubsub::Pubsub;
use crate::pubsub::{Message, Topic};
use crate::rooms::persister::set_aside::{Aside, Why};
use crate::rooms::room::{Ailment, Debt, Room};
use crate::sessions::session::Session;
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
pub struct PendingUpdate {
    /// The room it was relayed in.
    pub room: Arc<Room>,
    /// Who wrote it.
    pub holding: Arc<Session>,
    /// The row to be.
    pub append: Append,
    /// What the room books as owed.
    pub debt: Debt,
}

enum PersistJob {
    Store(Box<PendingUpdate>),
    Flush(oneshot::Sender<()>),
}

/// The rooms' end of the queue.
#[derive(Clone, Debug)]
pub struct Persister {
    queue: mpsc::Sender<PersistJob>,
    trouble: Arc<StorageHealth>,
    storage: Storage,
}

/// Why nothing can be stored, as long as that is so.
#[derive(Debug, Default)]
struct StorageHealth {
    /// Looked at with each edit.
    is: AtomicBool,
    error: Mutex<Option<StorageError>>,
}

impl StorageHealth {
    fn set_error(&self, error: Option<StorageError>) {
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
pub struct QueuePermit<'a>(mpsc::Permit<'a, PersistJob>);

impl QueuePermit<'_> {
    /// Queues the update.
    pub fn store(self, owed: PendingUpdate) {
        self.0.send(PersistJob::Store(Box::new(owed)));
    }
}

/// The queue is full: storage has been away for long.
#[derive(Debug)]
pub struct QueueFull;

/// The queue's other end, for [`run`].
#[derive(Debug)]
pub struct Queue {
    orders: mpsc::Receiver<PersistJob>,
    trouble: Arc<StorageHealth>,
}

impl std::fmt::Debug for PersistJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(_) => f.write_str("Store"),
            Self::Flush(_) => f.write_str("Flush"),
        }
    }
}

/// A persister and the queue that [`run`] serves.
#[must_use]
pub fn persister(storage: Storage) -> (Persister, Queue) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let trouble = Arc::<StorageHealth>::default();
    let queue = Queue { orders: receiver, trouble: Arc::clone(&trouble) };
    (Persister { queue: sender, trouble, storage }, queue)
}

impl Persister {
    /// Reserves a place for one update.
    ///
    /// # Errors
    ///
    /// [`QueueFull`] when too many wait or the database has used its reserve (G17); the caller must
    /// not take the update then.
    pub fn reserve(&self) -> Result<QueuePermit<'_>, QueueFull> {
        if !self.storage.has_reserve() {
            return Err(QueueFull);
        }
        self.queue.try_reserve().map(QueuePermit).map_err(|_full| QueueFull)
    }

    /// Whether so many may wait again that it is worth while to ask for what was refused.
    pub(crate) fn has_room(&self) -> bool {
        QUEUE_MAX / 2 <= self.queue.capacity() && self.storage.has_reserve()
    }

    /// What people are to be told of why nothing can be stored right now.
    pub(crate) fn problem(&self) -> Option<Problem> {
        self.trouble.error().as_ref().map(problem_of)
    }

    /// The error of storage, while no edit can be stored.
    #[must_use]
    pub fn error(&self) -> Option<StorageError> {
        self.trouble.error()
    }

    /// Waits until everything queued before this call is stored, at most `patience`.
    pub async fn flush(&self, patience: Duration) -> bool {
        let (done, flushed) = oneshot::channel();
        // The bound covers both waits: a full queue takes no order while storage is away.
        let flushing = async {
            self.queue.send(PersistJob::Flush(done)).await.ok()?;
            flushed.await.ok()
        };
        matches!(timeout(patience, flushing).await, Ok(Some(())))
    }
}

/// Stores until `stop` fires and the queue is empty.
pub async fn run(storage: Storage, relay: Pubsub, queue: Queue, stop: CancellationToken) {
    let Queue { orders: mut queued, trouble } = queue;
    let mut writer = Writer { storage, relay, trouble, stop, aside: Aside::default() };
    let (mut orders, mut flushed) = (Vec::new(), Vec::new());
    let mut next_group_at = Instant::now();
    loop {
        // A server that stops does not wait: what comes of it makes no difference here.
        let _gathered = writer.stop.run_until_cancelled(sleep_until(next_group_at)).await;
        tokio::select! {
            biased;
            received = queued.recv_many(&mut orders, BATCH_MAX) => {
                if received == 0 {
                    return;
                }
            }
            () = writer.aside.is_due() => {}
            () = writer.stop.cancelled() => return writer.aside.give_up(),
        }
        let mut group = Group::default();
        for order in orders.drain(..) {
            match order {
                // (P3)
                PersistJob::Store(owed) if owed.room.takes_no_more() => {}
                PersistJob::Store(owed) => {
                    let PendingUpdate { room, holding, append, debt } = *owed;
                    group.put_after(append, Owing { room, holding, debt });
                }
                PersistJob::Flush(done) => flushed.push(done),
            }
        }
        let group = writer.aside.queue_behind(group);
        if !group.is_empty() {
            let began = Instant::now();
            writer.store(group).await;
            let rest = began.elapsed() * GROUPS_REST;
            next_group_at = began + rest.clamp(GROUPS_APART, GROUPS_APART_MAX);
        }
        if !writer.aside.is_empty() {
            writer.retry().await;
        }
        if writer.aside.is_empty() {
            for done in flushed.drain(..) {
                // The asker may have lost its patience.
                let _gone = done.send(());
            }
        }
    }
}

/// Updates that go to the database together: the rows, and by position what is owed for each.
#[derive(Debug, Default)]
struct Group {
    appends: Vec<Append>,
    owing: Vec<Owing>,
}

/// What is known of an update besides its row.
#[derive(Debug)]
struct Owing {
    room: Arc<Room>,
    holding: Arc<Session>,
    debt: Debt,
}

impl Group {
    /// Puts an update behind the others, on the condition that the database has all that its room
    /// knows to be stored: the update may stand on it.
    fn put_after(&mut self, mut append: Append, owing: Owing) {
        append.after = owing.room.known_number();
        self.put(append, owing);
    }

    fn put(&mut self, append: Append, owing: Owing) {
        self.appends.push(append);
        self.owing.push(owing);
    }

    fn is_empty(&self) -> bool {
        self.appends.is_empty()
    }

    fn len(&self) -> usize {
        self.appends.len()
    }

    fn updates(self) -> impl Iterator<Item = (Append, Owing)> {
        self.appends.into_iter().zip(self.owing)
    }

    /// Two groups with half of the documents each. None of a single document.
    fn halves(self) -> Result<(Self, Self), Self> {
        let documents: BTreeSet<DocumentId> = self.appends.iter().map(|it| it.document).collect();
        let Some(middle) = documents.iter().nth(documents.len() / 2).copied() else {
            return Err(self);
        };
        if documents.len() == 1 {
            return Err(self);
        }
        let (mut low, mut high) = (Self::default(), Self::default());
        for (append, owing) in self.updates() {
            let half = if append.document < middle { &mut low } else { &mut high };
            half.put(append, owing);
        }
        Ok((low, high))
    }

    fn not_saved(&self, problem: Problem) {
        for Owing { room, .. } in &self.owing {
            room.not_saved(problem);
        }
    }
}

/// Whether the error may be the fault of single rows, and other documents can be stored.
fn is_of_some_rows(error: &StorageError) -> bool {
    matches!(error, StorageError::Corrupt(_) | StorageError::Refused(_))
}

/// The task's own hands.
struct Writer {
    storage: Storage,
    relay: Pubsub,
    trouble: Arc<StorageHealth>,
    stop: CancellationToken,
    aside: Aside,
}

impl Writer {
    /// Stores one group, however long it takes (P2); only a stopping server gives up.
    async fn store(&mut self, group: Group) {
        let started = Instant::now();
        let mut wait = RETRY_FIRST;
        let outcomes = loop {
            let error = match self.storage.append(&group.appends).await {
                Ok(outcomes) => break outcomes,
                Err(error) => error,
            };
            if is_of_some_rows(&error) {
                return self.store_apart(group, error).await;
            }
            self.is_away(&group, error, wait);
            let pause = self.stop.run_until_cancelled(tokio::time::sleep(wait));
            if pause.await.is_none() {
                let updates = group.appends.len();
                return tracing::error!(updates, "stopping with updates not stored");
            }
            wait = (wait * 2).min(RETRY_MAX);
        };
        if RETRY_FIRST < wait {
            let seconds = started.elapsed().as_secs();
            tracing::info!(updates = group.appends.len(), seconds, "updates can be stored again");
            self.trouble.set_error(None);
        }
        metrics::histogram!("galley_document_persist_seconds")
            .record(started.elapsed().as_secs_f64());
        self.settle(group, outcomes).await;
    }

    /// Storage does not answer, and the group is retried after `wait`.
    fn is_away(&self, group: &Group, error: StorageError, wait: Duration) {
        if wait == RETRY_FIRST {
            let updates = group.appends.len();
            tracing::error!(%error, updates, "updates cannot be stored; trying again");
        }
        group.not_saved(problem_of(&error));
        self.trouble.set_error(Some(error));
    }

    /// Stores a group of which some row is at fault, in halves, until that row's document is alone.
    /// It is set aside then (P4).
    async fn store_apart(&mut self, group: Group, error: StorageError) {
        match group.halves() {
            Ok((low, high)) => {
                Box::pin(self.store(low)).await;
                Box::pin(self.store(high)).await;
            }
            Err(group) => {
                let document = group.appends.first().map(|append| append.document);
                tracing::error!(?document, %error, "a document cannot be stored; it is set aside");
                group.not_saved(problem_of(&error));
                self.aside.put(group, Why::Faulty);
            }
        }
    }

    /// Tries to store the documents that were set aside and are due. Waits for no lock.
    async fn retry(&mut self) {
        let due = self.aside.take_due(Instant::now(), BATCH_MAX);
        if !due.is_empty() {
            match self.storage.append_unlocked(&due.appends).await {
                Ok(outcomes) => self.settle(due, outcomes).await,
                Err(error) => {
                    tracing::debug!(%error, "documents that were set aside cannot be stored yet");
                    self.aside.put(due, Why::of(&error));
                }
            }
        }
        self.aside.forget_stored();
    }

    /// Tells each room what became of its updates.
    async fn settle(&mut self, group: Group, outcomes: Vec<Appended>) {
        let mut busy = Group::default();
        for ((append, owing), outcome) in group.updates().zip(outcomes) {
            let Owing { room, holding, debt } = &owing;
            let ailment = match outcome {
                Appended::Stored { seq } => {
                    room.stored(seq, debt);
                    self.publish(append, seq).await;
                    continue;
                }
                Appended::Busy => {
                    room.not_saved(NOT_SAVED);
                    busy.put(append, owing);
                    continue;
                }
                Appended::Fenced | Appended::Stale | Appended::ForeignClient { .. } => {
                    Ailment::Refused(Arc::clone(holding))
                }
                Appended::Gone => Ailment::Gone,
                Appended::SetBack { .. } => Ailment::SetBack,
                Appended::Damaged => Ailment::Damaged,
                // The update before it has said why. Its holder has done nothing wrong (P3).
                Appended::Orphaned => Ailment::Orphaned,
            };
            tracing::warn!(document = %append.document, ?outcome, "an edit was refused by the database");
            room.ails(ailment);
        }
        self.aside.put(busy, Why::Locked);
    }

    async fn publish(&self, append: Append, seq: i64) {
        let fence = append.guard.as_ref().map_or(Fence::ZERO, |guard| guard.fence);
        let message = Message::Update { seq, fence, update: append.update };
        if let Err(error) = self.relay.publish(Topic::Room(append.document), &message).await {
            // The other servers see a gap and read the database.
            tracing::debug!(%error, "an update was stored but not relayed");
        }
    }
}
