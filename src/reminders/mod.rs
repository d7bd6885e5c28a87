//! Reminders: a push to a user whom a review, a seat or a request waits for.
//!
//! The job finds what is due in batches ([`batch`]); a user sets which reminders arrive, and when none does.

mod batch;
pub(crate) mod http;
pub mod reminder;
pub mod settings;
pub mod store;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::domain::ids::UserId;
use crate::domain::limits::OUTGOING_MAX;
use crate::domain::reminder::ReminderSettings;
use crate::domain::user::User;
use crate::locks::{Guard, Locks};
use crate::periodic::Job;
use crate::periodic::store::{JobCursors, JobOutcome, RatifiedRun};
use crate::push::Notify;
use crate::reminders::batch::Batch;
use crate::storage::Storage;
use crate::storage::error::StorageError;

/// Reminders that a batch sends at once: half of [`OUTGOING_MAX`].
pub const REMINDERS_AT_ONCE: usize = OUTGOING_MAX / 2;
/// How long a batch claims reminders of one kind. A push service without answers takes ten seconds for
/// each, and the other kinds wait meanwhile.
pub const REMINDER_KIND_MAX: Duration = Duration::from_secs(100);

pub const REMINDERS: &str = "reminders";

/// The tick, and the age from which something is due.
#[derive(Clone, Copy, Debug)]
pub struct ReminderTerms {
    pub tick: Duration,
    /// How long a review waits for an answer before its writer is reminded.
    pub review_unanswered_after: Duration,
    /// How long a request waits for an answer before its receiver is reminded.
    pub request_unanswered_after: Duration,
    pub at_once: usize,
    /// How long a batch claims reminders of one kind.
    pub kind_max: Duration,
}

impl ReminderTerms {
    #[must_use]
    pub fn new(tick: Duration, reviews: Duration, requests: Duration) -> Self {
        Self {
            tick,
            review_unanswered_after: reviews,
            request_unanswered_after: requests,
            at_once: REMINDERS_AT_ONCE,
            kind_max: REMINDER_KIND_MAX,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum RemindersError {
    #[error("{field}: {fault}")]
    Invalid { field: &'static str, fault: String },
    #[error("the server has no room for new settings")]
    StorageSpent,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

#[derive(Clone)]
pub struct Reminders {
    storage: Storage,
    locks: Locks,
    notify: Notify,
    terms: ReminderTerms,
}

impl Reminders {
    #[must_use]
    pub fn new(storage: Storage, locks: Locks, notify: Notify, terms: ReminderTerms) -> Self {
        batch::begin_at_zero();
        Self { storage, locks, notify, terms }
    }

    pub async fn settings_of(&self, user: &UserId) -> Result<ReminderSettings, StorageError> {
        store::reminder_settings(&self.storage, user).await
    }

    pub async fn set(
        &self,
        user: &User,
        settings: &ReminderSettings,
        now: DateTime<Utc>,
    ) -> Result<(), RemindersError> {
        if !self.storage.has_room() {
            return Err(RemindersError::StorageSpent);
        }
        Ok(store::put_reminder_settings(&self.storage, user, settings, now).await?)
    }
}

impl Job for Reminders {
    fn name(&self) -> &'static str {
        REMINDERS
    }

    fn tick(&self) -> Duration {
        self.terms.tick
    }

    /// A server without a push key sends none.
    fn is_ready(&self) -> bool {
        self.notify.push_key().is_ok()
    }

    fn run<'a>(
        &'a self,
        (guard, run): (&'a Guard, RatifiedRun),
        cursors: &'a mut JobCursors,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, (JobOutcome, BTreeMap<String, u64>)> {
        Box::pin(async move {
            let batch = Batch::new(self, guard, run, stop);
            let outcome = batch.send_all(cursors).await;
            (outcome, batch.counts())
        })
    }
}
