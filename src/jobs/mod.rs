//! Jobs: work that one server of all does at each tick.
//!
//! Every server has the same tick ([`tick`]). At each one a server tries once to acquire the lock of the
//! job (class `job`, fails at once); the others skip the tick. The lease of the lock follows the length of
//! earlier runs, and the renewal actor extends it every half of the estimate: so a run that takes longer
//! keeps its lock, and a server that died blocks the job for one and a half runs.
//!
//! The only job so far sends reminders ([`reminders`]). The database ratifies the fence of each run, and
//! every claim of a reminder names it. So a run that lost its lock, because its server froze, sends
//! nothing after the next run has begun.

pub mod reminders;
pub mod tick;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

use crate::domain::fence::Fence;
use crate::domain::ids::{NodeId, UserId};
use crate::domain::limits::{JOB_ESTIMATES, JOB_RUNS_STORED, REMINDER_KIND_MAX, REMINDERS_AT_ONCE};
use crate::domain::reminder::ReminderSettings;
use crate::domain::user::User;
use crate::jobs::reminders::Batch;
use crate::jobs::tick::next_tick;
use crate::locks::{AcquireOptions, Guard, Lease, LockError, LockName, Locks, LocksError};
use crate::notify::Notify;
use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::storage::jobs::{JobOutcome, JobRun};

/// The job that sends reminders.
pub const REMINDERS: &str = "reminders";
/// The class of the locks of jobs.
const CLASS: &str = "job";

/// The tick, and the age from which something is due.
#[derive(Clone, Copy, Debug)]
pub struct JobTerms {
    /// The interval of the ticks.
    pub tick: Duration,
    /// How long a review waits for an answer before its writer is reminded.
    pub review_unanswered_after: Duration,
    /// How long a request waits for an answer before its receiver is reminded.
    pub request_unanswered_after: Duration,
    /// Reminders that a run sends at the same time.
    pub at_once: usize,
    /// How long a run claims reminders of one kind.
    pub kind_max: Duration,
}

impl JobTerms {
    /// Terms with the usual number of reminders at a time.
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

/// A run did not take place, or its end was not stored.
#[derive(Debug, thiserror::Error)]
pub enum JobsError {
    /// The database failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The locks failed.
    #[error(transparent)]
    Locks(#[from] LocksError),
    /// The database is above its bound.
    #[error("the server has no room for new settings")]
    StorageSpent,
    /// The lock was lost during its acquisition.
    #[error("the lock was lost at once")]
    Lost,
}

/// The run of a job under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningJob {
    /// The server.
    pub node: NodeId,
    /// The time of the grant.
    pub since: DateTime<Utc>,
    /// The fence of the grant.
    pub fence: Fence,
}

/// A job with its last runs.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// Its name.
    pub job: &'static str,
    /// The run under way.
    pub running: Option<RunningJob>,
    /// The newest runs, the newest first.
    pub last_runs: Vec<JobRun>,
    /// The next tick, by the clock of this server.
    pub next_at: DateTime<Utc>,
    /// The length of a run, as this server estimates it.
    pub estimate: Duration,
}

/// The jobs of this server. Cheap to clone.
#[derive(Clone)]
pub struct Jobs(Arc<Inner>);

struct Inner {
    storage: Storage,
    locks: Locks,
    notify: Notify,
    node: NodeId,
    terms: JobTerms,
}

impl Jobs {
    /// The jobs of the server `node`.
    #[must_use]
    pub fn new(
        storage: Storage,
        locks: Locks,
        notify: Notify,
        node: NodeId,
        terms: JobTerms,
    ) -> Self {
        Self(Arc::new(Inner { storage, locks, notify, node, terms }))
    }

    /// The settings of a user.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn settings_of(&self, user: &UserId) -> Result<ReminderSettings, StorageError> {
        self.0.storage.reminder_settings(user).await
    }

    /// Stores the settings of a user.
    ///
    /// # Errors
    ///
    /// [`JobsError`] when the database is above its bound, or cannot commit.
    pub async fn set(
        &self,
        user: &User,
        settings: &ReminderSettings,
        now: DateTime<Utc>,
    ) -> Result<(), JobsError> {
        if !self.0.storage.has_room() {
            return Err(JobsError::StorageSpent);
        }
        Ok(self.0.storage.put_reminder_settings(user, settings, now).await?)
    }

    /// All jobs with their last runs.
    ///
    /// # Errors
    ///
    /// [`JobsError`] when the database or the locks do not reply.
    pub async fn report(&self) -> Result<Vec<JobReport>, JobsError> {
        let Inner { storage, locks, terms, .. } = &*self.0;
        let (last_runs, holder) =
            tokio::try_join!(runs_of(storage, REMINDERS), holder_of(locks, REMINDERS))?;
        // After a run the lock stays closed for the rest of its minimum hold.
        let runs = |fence: Fence| {
            last_runs.iter().any(|run| run.fence == fence && run.outcome == JobOutcome::Running)
        };
        let running = holder.filter(|running| runs(running.fence));
        let next_at = next_tick(Utc::now(), terms.tick);
        Ok(vec![JobReport {
            job: REMINDERS,
            running,
            last_runs,
            next_at,
            estimate: self.estimate(),
        }])
    }

    /// Runs the job once, unless another server runs it. `None`: another one does, or this server sends
    /// no pushes.
    ///
    /// # Errors
    ///
    /// [`JobsError`] when the run cannot begin, or its end cannot be stored.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a reminder whose claim is committed would not be sent. `stop` ends the run.
    pub async fn run(&self, stop: &CancellationToken) -> Result<Option<JobRun>, JobsError> {
        let ran = self.try_run(stop).await;
        let outcome = match &ran {
            Ok(Some(run)) => run.outcome.as_str(),
            Ok(None) => "skipped",
            Err(_) => "failed",
        };
        metrics::counter!("galley_jobs_total", "job" => REMINDERS, "outcome" => outcome)
            .increment(1);
        ran
    }

    async fn try_run(&self, stop: &CancellationToken) -> Result<Option<JobRun>, JobsError> {
        let Inner { storage, locks, notify, node, .. } = &*self.0;
        if notify.push_key().is_err() {
            return Ok(None);
        }
        let floor = storage.job_fence(REMINDERS).await?;
        let Some(guard) = acquire(locks, &self.options(floor)).await? else { return Ok(None) };
        let mut run = JobRun {
            fence: guard.fence(),
            node: *node,
            started_at: Utc::now(),
            ended_at: None,
            outcome: JobOutcome::Running,
            counts: Default::default(),
        };
        let Some(mut cursors) = storage.begin_job(REMINDERS, &run, JOB_RUNS_STORED).await? else {
            tracing::warn!(fence = %run.fence, "a later run of a job has begun");
            return Ok(None);
        };
        let batch = Batch::new(&self.0, &guard, stop);
        run.outcome = batch.send_all(&mut cursors).await;
        run.counts = batch.counts();
        run.ended_at = Some(Utc::now());
        storage.end_job(REMINDERS, &run, &cursors).await?;
        if let Err(error) = guard.release().await {
            tracing::debug!(%error, "the lock of a job is released later");
        }
        Ok(Some(run))
    }

    fn options(&self, floor: Fence) -> AcquireOptions {
        // The ticks of servers with slightly different clocks then cause one run.
        let min_hold = self.0.terms.tick / 2;
        AcquireOptions::new(Lease::Learnt(self.guess())).above(floor).for_at_least(min_hold)
    }

    /// The estimated length of a run before enough runs are known.
    fn guess(&self) -> Duration {
        (self.0.terms.tick / 6).clamp(JOB_ESTIMATES.0, JOB_ESTIMATES.1)
    }

    fn estimate(&self) -> Duration {
        self.0.locks.estimate(CLASS, self.guess())
    }
}

fn lock_of(job: &str) -> LockName {
    LockName::named(&format!("{CLASS}:{job}"))
}

async fn runs_of(storage: &Storage, job: &str) -> Result<Vec<JobRun>, JobsError> {
    Ok(storage.job_runs(job).await?)
}

async fn holder_of(locks: &Locks, job: &str) -> Result<Option<RunningJob>, JobsError> {
    let holder = locks.holder(&lock_of(job)).await?;
    Ok(holder.map(|it| RunningJob { node: it.owner.node, since: it.since, fence: it.fence }))
}

async fn acquire(locks: &Locks, options: &AcquireOptions) -> Result<Option<Guard>, JobsError> {
    match locks.lock(&lock_of(REMINDERS), options).await {
        Ok(guard) => Ok(Some(guard)),
        Err(LockError::Busy(_) | LockError::WaitTimeout(_)) => Ok(None),
        Err(LockError::Unavailable(error)) => Err(error.into()),
        Err(LockError::Lost(_)) => Err(JobsError::Lost),
    }
}
