//! Group commit: one task commits the updates of all rooms together, in order of arrival.
//!
//! A single edit is committed at once. While the database commits one transaction, further updates queue;
//! the next transaction takes all of them. It begins at least [`GROUPS_APART`] after the start of the
//! last one, since a commit costs about the same for one update as for many. After a slow commit the
//! pause is longer, so that storage takes a share of the machine only. Members see an edit before
//! its commit: the room broadcasts it first.
//!
//! # Invariants
//!
//! - **P1** (G7) The task notifies a room of a stored update only after the commit.
//! - **P2** The task drops no update because storage is away. It retries until the database stores
//!   or rejects the update. The unsaved bytes of a room have a bound (G13).
//! - **P3** After the database rejects an update, the task stores no later update of that room: it may
//!   depend on the rejected one and would leave a permanent gap in the log. The room resets itself,
//!   and its clients send again what the database lacks.
//! - **P4** (G16) An update that the database cannot store now delays its own document only. The
//!   task sets that document aside ([`set_aside`]), in order, and retries it on its own schedule.

#[cfg(test)]
pub(super) mod reset_tests;
pub(super) mod set_aside;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::domain::fence::Fence;
use crate::domain::ids::DocumentId;
use crate::outbox::event::{NOT_SAVED, Problem};
use crate::pubsub::Pubsub;
use crate::pubsub::Topic;
use crate::rooms::persister::set_aside::{Aside, Why};
use crate::rooms::room::persist_queue::{PersistJob, StorageHealth, problem_of};
use crate::rooms::room::replication::StoredUpdates;
use crate::rooms::room::{ResetCause, Room};
use crate::sessions::session::Session;
use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::storage::log::{Append, Appended};

pub use crate::rooms::room::persist_queue::{
    PendingUpdate, Persister, Queue, QueueFull, QueuePermit, persister,
};

/// Minimum time between the starts of two transactions. It saves a fast disk a commit for each key.
/// The cost: under load `document.saved` comes that much later, which users do not notice.
const GROUPS_APART: Duration = Duration::from_millis(5);
/// Minimum time between those starts as a multiple of the last transaction's duration.
const GROUPS_REST: u32 = 4;
const GROUPS_APART_MAX: Duration = Duration::from_millis(25);
/// Updates in one transaction: some 20 ms of work.
const BATCH_MAX: usize = 4_096;
/// First and longest pause before the task retries a failed transaction.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);

pub async fn run(storage: Storage, pubsub: Pubsub, queue: Queue, stop: CancellationToken) {
    let Queue { jobs: mut queued, health } = queue;
    let mut writer = Writer { storage, pubsub, health, stop, aside: Aside::default() };
    let (mut jobs, mut flushed) = (Vec::new(), Vec::new());
    let mut next_group_at = Instant::now();
    loop {
        // A stopping server skips the pause; both outcomes continue here.
        let _paused = writer.stop.run_until_cancelled(sleep_until(next_group_at)).await;
        tokio::select! {
            biased;
            received = queued.recv_many(&mut jobs, BATCH_MAX) => {
                if received == 0 {
                    return;
                }
            }
            () = writer.aside.wait_until_due() => {}
            () = writer.stop.cancelled() => return writer.aside.give_up(),
        }
        let mut group = Group::default();
        for job in jobs.drain(..) {
            match job {
                // Drops the update of a room with a rejected update (P3).
                PersistJob::Store(update) if update.room.takes_no_more() => {}
                PersistJob::Store(update) => {
                    let PendingUpdate { room, session, append } = *update;
                    group.put_after(append, UpdateSource { room, session });
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
                // The caller may have timed out.
                let _gone = done.send(());
            }
        }
    }
}

/// Updates for one transaction: the rows and, at the same index, the origin of each row.
#[derive(Debug, Default)]
struct Group {
    appends: Vec<Append>,
    sources: Vec<UpdateSource>,
}

#[derive(Debug)]
struct UpdateSource {
    room: Arc<Room>,
    session: Arc<Session>,
}

impl Group {
    /// Appends an update with a condition: the database has every update that the room knows as
    /// stored. The new update may depend on them.
    fn put_after(&mut self, mut append: Append, source: UpdateSource) {
        append.after = source.room.last_number();
        self.put(append, source);
    }

    fn put(&mut self, append: Append, source: UpdateSource) {
        self.appends.push(append);
        self.sources.push(source);
    }

    fn is_empty(&self) -> bool {
        self.appends.is_empty()
    }

    fn len(&self) -> usize {
        self.appends.len()
    }

    fn updates(self) -> impl Iterator<Item = (Append, UpdateSource)> {
        self.appends.into_iter().zip(self.sources)
    }

    /// Splits the group into two with half of the documents each. `Err` is the group itself: it has a
    /// single document.
    fn halves(self) -> Result<(Self, Self), Self> {
        let documents: BTreeSet<DocumentId> = self.appends.iter().map(|it| it.document).collect();
        let Some(middle) = documents.iter().nth(documents.len() / 2).copied() else {
            return Err(self);
        };
        if documents.len() == 1 {
            return Err(self);
        }
        let (mut low, mut high) = (Self::default(), Self::default());
        for (append, source) in self.updates() {
            let half = if append.document < middle { &mut low } else { &mut high };
            half.put(append, source);
        }
        Ok((low, high))
    }

    fn not_saved(&self, problem: Problem) {
        for UpdateSource { room, .. } in &self.sources {
            room.not_saved(problem);
        }
    }
}

/// Whether single rows may cause the error, so that other documents can be stored.
fn is_of_some_rows(error: &StorageError) -> bool {
    matches!(error, StorageError::Corrupt(_) | StorageError::Refused(_))
}

struct Writer {
    storage: Storage,
    pubsub: Pubsub,
    health: Arc<StorageHealth>,
    stop: CancellationToken,
    aside: Aside,
}

impl Writer {
    /// Stores one group and retries without limit (P2). Only a stopping server drops it.
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
            self.record_outage(&group, error, wait);
            let pause = self.stop.run_until_cancelled(tokio::time::sleep(wait));
            if pause.await.is_none() {
                let updates = group.appends.len();
                return tracing::error!(updates, "stopping with unsaved updates");
            }
            wait = (wait * 2).min(RETRY_MAX);
        };
        if wait > RETRY_FIRST {
            let seconds = started.elapsed().as_secs();
            tracing::info!(updates = group.appends.len(), seconds, "updates can be stored again");
            self.health.set_error(None);
        }
        metrics::histogram!("galley_document_persist_seconds")
            .record(started.elapsed().as_secs_f64());
        self.complete(group, outcomes).await;
    }

    fn record_outage(&self, group: &Group, error: StorageError, wait: Duration) {
        if wait == RETRY_FIRST {
            let updates = group.appends.len();
            tracing::error!(%error, updates, "updates cannot be stored; retrying");
        }
        group.not_saved(problem_of(&error));
        self.health.set_error(Some(error));
    }

    /// Stores a group with a faulty row in halves, until the row's document is alone. Then the task
    /// sets that document aside (P4).
    async fn store_apart(&mut self, group: Group, error: StorageError) {
        // The database replied: an outage before this is over.
        self.health.set_error(None);
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

    /// Retries the due documents of those set aside, without waiting for row locks.
    async fn retry(&mut self) {
        let due = self.aside.take_due(Instant::now(), BATCH_MAX);
        if !due.is_empty() {
            match self.storage.append_unlocked(&due.appends).await {
                Ok(outcomes) => self.complete(due, outcomes).await,
                Err(error) => {
                    tracing::debug!(%error, "documents set aside cannot be stored yet");
                    self.aside.put(due, Why::of(&error));
                }
            }
        }
        self.aside.forget_stored();
    }

    async fn complete(&mut self, group: Group, outcomes: Vec<Appended>) {
        let mut busy = Group::default();
        let mut published = HashMap::<DocumentId, StoredUpdates>::new();
        for ((append, source), outcome) in group.updates().zip(outcomes) {
            let UpdateSource { room, session } = &source;
            let cause = match outcome {
                Appended::Stored { seq } => {
                    let fence = append.guard.as_ref().map_or(Fence::ZERO, |guard| guard.fence);
                    let is_published = room.stored(seq, append.update.len());
                    let of_room =
                        is_published.then(|| published.entry(append.document).or_default());
                    of_room.into_iter().for_each(|it| it.push(seq, fence, append.update.clone()));
                    continue;
                }
                Appended::Busy => {
                    room.not_saved(NOT_SAVED);
                    busy.put(append, source);
                    continue;
                }
                Appended::Fenced | Appended::Stale | Appended::ForeignClient { .. } => {
                    ResetCause::Refused(Arc::clone(session))
                }
                Appended::Gone => ResetCause::Gone,
                Appended::SetBack { .. } => ResetCause::SetBack,
                Appended::Damaged => ResetCause::Damaged,
                // An earlier update holds the cause. The session behind this one is not at fault (P3).
                Appended::Orphaned => ResetCause::Orphaned,
            };
            tracing::warn!(document = %append.document, ?outcome, "the database rejected an edit");
            room.request_reset(cause);
        }
        self.aside.put(busy, Why::Locked);
        for (document, stored) in published {
            let message = stored.into_message();
            if let Err(error) = self.pubsub.publish(Topic::Room(document), &message).await {
                // Other servers detect a gap and read the database.
                tracing::debug!(%error, "a stored update was not published");
            }
        }
    }
}
