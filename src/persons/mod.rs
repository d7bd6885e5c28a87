//! Persons: all that the server has of a user, as a file, and the deletion of a user.
//!
//! # Deletion
//!
//! The call commits a receipt. From then on the user's tokens are refused: on this server at once, on the others
//! at their next look ([`Persons::looking`]). A job of one server then takes steps, each a transaction that may
//! run again: one document of the user; one share link of another owner, on which the user was the reviewer;
//! the rows of no document; the webhooks that are not delivered. Sessions end with the rows of their seats. The
//! last step deletes the row of the user, to which every other row refers, and the id in the receipt. So a
//! deletion is complete or goes on, also after a crash, and beside a server of the previous version, whose late
//! rows the database refuses or the next run finds.
//!
//! SQLite then has the bytes of deleted rows in its free space. It writes the file anew, unless that is too large.

pub mod export;
pub(crate) mod http;
pub mod store;
mod things;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::ids::{DeletionId, UserId};
use crate::http::auth::tokens::Tokens;
use crate::locks::Guard;
use crate::periodic::store::{JobCursors, JobOutcome, RatifiedRun};
use crate::periodic::{Job, Work};
use crate::persons::store::{Receipt, Running, Step};
use crate::rooms::texts::Texts;
use crate::sharing::invite::Invites;
use crate::storage::Storage;
use crate::storage::audit::AuditEntry;
use crate::storage::error::StorageError;
use crate::storage::guard::Guarded;
use crate::storage::persons::Forgotten;

/// The name of the job.
const USER_DELETIONS: &str = "user-deletions";
const TICK: Duration = Duration::from_secs(1);
/// Exports that a server streams at once: each holds a text at most.
const EXPORTS_AT_ONCE: usize = 4;
/// The pause after the file was written anew, in times of what that took: other writes wait meanwhile.
const REWRITE_PAUSE: u32 = 20;

#[derive(Debug, thiserror::Error)]
pub enum PersonsError {
    #[error("there is no such receipt")]
    NoReceipt,
    #[error("this is the id of a deleted user")]
    Deleted,
    #[error(
        "a deletion of this user runs that treats the reviews otherwise; repeat it when that is done"
    )]
    Running,
    #[error("this server writes as many exports as it may; repeat it in a minute")]
    Busy,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

#[derive(Clone)]
pub struct Persons {
    storage: Storage,
    texts: Texts,
    invites: Invites,
    tokens: Tokens,
    exports: Arc<Semaphore>,
    /// The earliest time to write the file anew.
    rewrite_at: Arc<Mutex<Instant>>,
}

/// Why a run ends early.
enum Stop {
    Outcome(JobOutcome),
    Storage(StorageError),
}

impl From<StorageError> for Stop {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

fn warn_of_look(error: &StorageError) {
    tracing::warn!(%error, "the deletions of users cannot be read; the next look repeats it");
}

impl Persons {
    #[must_use]
    pub fn new(storage: Storage, texts: Texts, invites: Invites, tokens: Tokens) -> Self {
        let exports = Arc::new(Semaphore::new(EXPORTS_AT_ONCE));
        let rewrite_at = Arc::new(Mutex::new(Instant::now()));
        Self { storage, texts, invites, tokens, exports, rewrite_at }
    }

    /// Begins the deletion of a user, or finds the running one. A user without a row has one too: it ends at once.
    pub async fn delete(
        &self,
        user: &UserId,
        with_reviews: bool,
        entry: &AuditEntry,
    ) -> Result<DeletionId, PersonsError> {
        if user.is_deleted() {
            return Err(PersonsError::Deleted);
        }
        let receipt = store::begin(&self.storage, user, with_reviews, entry).await?;
        self.tokens.deleting().add(user.clone());
        self.tokens.revocations().end_sockets_of(self.tokens.deleting());
        receipt.ok_or(PersonsError::Running)
    }

    pub async fn audit(&self, entry: &AuditEntry) -> Result<(), PersonsError> {
        Ok(self.storage.append_audit(entry, None).await?)
    }

    pub async fn receipt(&self, id: DeletionId) -> Result<Receipt, PersonsError> {
        store::receipt(&self.storage, id).await?.ok_or(PersonsError::NoReceipt)
    }

    /// Every server looks which users are being deleted, to refuse them.
    #[must_use]
    pub fn looking(&self, every: Duration) -> Work {
        let persons = self.clone();
        Work::new("deletions", every, move || {
            let persons = persons.clone();
            async move { persons.look().await.map_or_else(|error| warn_of_look(&error), drop) }
        })
    }

    async fn look(&self) -> Result<Vec<Running>, StorageError> {
        let running = store::running(&self.storage).await?;
        let users = running.iter().filter_map(|it| it.who.as_ref()).map(|who| who.user.clone());
        let deleting = self.tokens.deleting();
        deleting.set(users.collect(), !running.is_empty());
        self.tokens.revocations().end_sockets_of(deleting);
        Ok(running)
    }

    async fn run_all(&self, steps: &mut Steps<'_>) -> Result<(), Stop> {
        for Running { id, who } in store::running(&self.storage).await? {
            if let Some(who) = who {
                self.forget(id, &who, steps).await?;
            }
        }
        self.clear_file(steps.run).await?;
        self.look().await?;
        Ok(())
    }

    async fn forget(
        &self,
        id: DeletionId,
        who: &Forgotten,
        steps: &mut Steps<'_>,
    ) -> Result<(), Stop> {
        let (storage, run) = (&self.storage, steps.run);
        while steps.count("documents", store::delete_document(storage, run, (id, who)).await?)? {}
        loop {
            let about = (&self.invites, Utc::now());
            if !steps.count("links", store::leave_link(storage, run, (id, who), about).await?)? {
                break;
            }
        }
        let mut after = 0;
        while steps
            .count("webhooks", store::rewrite_webhooks(storage, run, who, &mut after).await?)?
        {
        }
        match store::finish(storage, run, (id, who), Utc::now()).await {
            Ok(Guarded::Done(step)) => steps.count("users", step).map(drop),
            // A row has come meanwhile: the next run finds it.
            Ok(_) | Err(StorageError::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the receipts whose users are forgotten, when the file has no byte of them, or cannot be cleared.
    async fn clear_file(&self, run: RatifiedRun) -> Result<(), Stop> {
        let is_due = |it: &Running| it.who.is_none();
        let mut rewrite_at = self.rewrite_at.lock().await;
        if Instant::now() < *rewrite_at || !store::running(&self.storage).await?.iter().any(is_due)
        {
            return Ok(());
        }
        let begun = Instant::now();
        let cleared = self.storage.clear_file().await;
        *rewrite_at = Instant::now() + begun.elapsed() * REWRITE_PAUSE;
        let is_clear = match cleared {
            // A reader needs the former state: the next run repeats it.
            Ok(None) => return Ok(()),
            Ok(Some(is_clear)) => is_clear,
            Err(error) => {
                tracing::warn!(%error, "the file of the database keeps bytes of deleted users; \
                     see config/PERSONAL_DATA.md");
                false
            }
        };
        store::end(&self.storage, run, is_clear, Utc::now()).await?;
        Ok(())
    }
}

/// The steps of a run.
struct Steps<'a> {
    guard: &'a Guard,
    run: RatifiedRun,
    stop: &'a CancellationToken,
    counts: BTreeMap<String, u64>,
}

impl Steps<'_> {
    /// Counts a step. True: there may be more, and the run may go on.
    fn count(&mut self, name: &str, step: Step) -> Result<bool, Stop> {
        if step == Step::Lost || !self.guard.is_held() {
            return Err(Stop::Outcome(JobOutcome::LockLost));
        }
        if self.stop.is_cancelled() {
            return Err(Stop::Outcome(JobOutcome::Stopped));
        }
        if step == Step::More || name == "users" {
            *self.counts.entry(name.to_owned()).or_default() += 1;
        }
        Ok(step == Step::More)
    }
}

impl Job for Persons {
    fn name(&self) -> &'static str {
        USER_DELETIONS
    }

    fn tick(&self) -> Duration {
        TICK
    }

    /// An idle server writes no run.
    fn is_ready(&self) -> bool {
        self.tokens.deleting().is_due()
    }

    fn run<'a>(
        &'a self,
        (guard, run): (&'a Guard, RatifiedRun),
        _cursors: &'a mut JobCursors,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, (JobOutcome, BTreeMap<String, u64>)> {
        Box::pin(async move {
            let mut steps = Steps { guard, run, stop, counts: BTreeMap::default() };
            let outcome = match self.run_all(&mut steps).await {
                Ok(()) => JobOutcome::Done,
                Err(Stop::Outcome(outcome)) => outcome,
                Err(Stop::Storage(error)) => {
                    tracing::warn!(%error, "a deletion of a user waits for the database");
                    JobOutcome::Failed
                }
            };
            (outcome, steps.counts)
        })
    }
}
