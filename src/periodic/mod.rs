//! Periodic work: what the server does without a caller.
//!
//! # Every server
//!
//! A [`Work`] is a row of the table in `app`: its name, its period and its run. The table starts each row,
//! and the end of a row by itself stops the server. The loop of the jobs is watched in the same way.
//!
//! # One server of all
//!
//! A [`Job`] has the same tick on every server ([`tick`]). At each one a server tries once to acquire the
//! lock of the job (class `job`, fails at once); the others skip the tick. The lease of the lock follows the
//! length of earlier runs of the class, of all jobs together, and the renewal actor extends it every half of
//! this estimate: so a run that takes longer keeps its lock, and a server that died blocks the job for one
//! and a half estimates. A run that panics counts as failed, and the next tick tries again. The database
//! ratifies the fence of each run, and what the run writes names it: a run that lost its lock, because its
//! server froze, writes nothing after the next run has begun.

pub(crate) mod http;
pub mod store;
pub mod tick;
pub mod work;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::{BoxFuture, try_join_all};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::domain::fence::Fence;
use crate::domain::ids::NodeId;
use crate::locks::{AcquireOptions, Guard, Lease, LockError, LockName, Locks, LocksError};
use crate::periodic::store::{JobCursors, JobOutcome, JobRun, RatifiedRun};
use crate::periodic::tick::next_tick;
pub use crate::periodic::work::Work;
use crate::storage::Storage;
use crate::storage::error::StorageError;

const CLASS: &str = "job";
/// Estimated length of a run before enough runs are known: a sixth of the tick, within these bounds. A
/// server that dies in its first run blocks the job for one and a half of it.
const JOB_ESTIMATES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// Stored runs of a job.
const JOB_RUNS_STORED: u32 = 20;

/// Work that one server of all does at each tick.
pub trait Job: Send + Sync + 'static {
    /// Its name, in the lock, in the database and on the page of administrators.
    fn name(&self) -> &'static str;

    /// From 100 ms to an hour. A server that restarts more often than every two ticks runs the job never;
    /// another server does.
    fn tick(&self) -> Duration;

    fn is_ready(&self) -> bool {
        true
    }

    /// Begins at `cursors`, and sets them to where it ended. The counts are for the administrator. It
    /// ends early when the guard is lost, or at `stop`.
    fn run<'a>(
        &'a self,
        held: (&'a Guard, RatifiedRun),
        cursors: &'a mut JobCursors,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, (JobOutcome, BTreeMap<String, u64>)>;
}

#[derive(Debug, thiserror::Error)]
pub enum JobsError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Locks(#[from] LocksError),
    #[error("the lock was lost at once")]
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct RunningJob {
    pub node: NodeId,
    pub since: DateTime<Utc>,
    pub fence: Fence,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct JobReport {
    #[cfg_attr(test, schemars(example = &"reminders"))]
    pub job: &'static str,
    /// The run under way, and its server.
    pub running: Option<RunningJob>,
    pub last_runs: Vec<JobRun>,
    /// The next tick.
    pub next_at: DateTime<Utc>,
    /// The estimated length of a run of any job. The lease of its lock is one and a half times as long.
    pub estimate_ms: u64,
}

#[derive(Clone)]
pub struct Jobs(Arc<Inner>);

struct Inner {
    storage: Storage,
    locks: Locks,
    node: NodeId,
    jobs: Vec<Box<dyn Job>>,
}

impl Jobs {
    #[must_use]
    pub fn new(storage: Storage, locks: Locks, node: NodeId, jobs: Vec<Box<dyn Job>>) -> Self {
        for job in &jobs {
            for outcome in ["done", "stopped", "lock-lost", "failed", "skipped"] {
                count(job.as_ref(), outcome, 0);
            }
        }
        Self(Arc::new(Inner { storage, locks, node, jobs }))
    }

    pub async fn report(&self) -> Result<Vec<JobReport>, JobsError> {
        try_join_all(self.0.jobs.iter().map(|job| self.report_of(job.as_ref()))).await
    }

    async fn report_of(&self, job: &dyn Job) -> Result<JobReport, JobsError> {
        let Inner { storage, locks, .. } = &*self.0;
        let (name, lock) = (job.name(), lock_of(job));
        let last_runs = async { Ok(store::job_runs(storage, name).await?) };
        let holder = async { Ok::<_, JobsError>(locks.holder(&lock).await?) };
        let (last_runs, holder) = tokio::try_join!(last_runs, holder)?;
        // After a run the lock stays closed for the rest of its minimum hold.
        let runs = |fence: Fence| {
            last_runs.iter().any(|run| run.fence == fence && run.outcome == JobOutcome::Running)
        };
        let running = holder.filter(|holder| runs(holder.fence)).map(|holder| RunningJob {
            node: holder.owner.node,
            since: holder.since,
            fence: holder.fence,
        });
        let next_at = next_tick(Utc::now(), job.tick());
        let estimate = locks.estimate(CLASS, guess(job)).as_millis();
        let estimate_ms = u64::try_from(estimate).unwrap_or(u64::MAX);
        Ok(JobReport { job: name, running, last_runs, next_at, estimate_ms })
    }

    /// Runs each job once, unless another server runs it. A missing run: another server does it, or this
    /// one cannot.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: what a dropped run has claimed stays undone. `stop` ends the runs.
    pub async fn run(&self, stop: &CancellationToken) -> Result<Vec<JobRun>, JobsError> {
        let runs = self.0.jobs.iter().map(|job| self.run_job(job.as_ref(), stop));
        Ok(try_join_all(runs).await?.into_iter().flatten().collect())
    }

    async fn run_job(
        &self,
        job: &dyn Job,
        stop: &CancellationToken,
    ) -> Result<Option<JobRun>, JobsError> {
        let ran = self.try_run(job, stop).await;
        let outcome = match &ran {
            Ok(Some(run)) => run.outcome.as_str(),
            Ok(None) => "skipped",
            Err(_) => "failed",
        };
        count(job, outcome, 1);
        ran
    }

    async fn try_run(
        &self,
        job: &dyn Job,
        stop: &CancellationToken,
    ) -> Result<Option<JobRun>, JobsError> {
        let Inner { storage, locks, node, .. } = &*self.0;
        if !job.is_ready() {
            return Ok(None);
        }
        let floor = store::job_fence(storage, job.name()).await?;
        let Some(guard) = acquire(locks, job, floor).await? else { return Ok(None) };
        let mut run = JobRun {
            fence: guard.fence(),
            node: *node,
            started_at: Utc::now(),
            ended_at: None,
            outcome: JobOutcome::Running,
            counts: BTreeMap::default(),
        };
        let begun = store::begin_job(storage, job.name(), &run, JOB_RUNS_STORED).await?;
        let Some((ratified, mut cursors)) = begun else {
            tracing::warn!(fence = %run.fence, "a later run of a job has begun");
            return Ok(None);
        };
        (run.outcome, run.counts) = job.run((&guard, ratified), &mut cursors, stop).await;
        run.ended_at = Some(Utc::now());
        store::end_job(storage, ratified, &run, &cursors).await?;
        if let Err(error) = guard.release().await {
            tracing::debug!(%error, "the lock of a job is released later");
        }
        Ok(Some(run))
    }
}

fn count(job: &dyn Job, outcome: &'static str, ticks: u64) {
    metrics::counter!("galley_jobs_total", "job" => job.name(), "outcome" => outcome)
        .increment(ticks);
}

/// The estimated length of a run before enough runs are known.
fn guess(job: &dyn Job) -> Duration {
    (job.tick() / 6).clamp(JOB_ESTIMATES.0, JOB_ESTIMATES.1)
}

fn lock_of(job: &dyn Job) -> LockName {
    LockName::named(&format!("{CLASS}:{}", job.name()))
}

async fn acquire(locks: &Locks, job: &dyn Job, floor: Fence) -> Result<Option<Guard>, JobsError> {
    // The ticks of servers with slightly different clocks then cause one run.
    let min_hold = job.tick() / 2;
    let options =
        AcquireOptions::new(Lease::Learnt(guess(job))).above(floor).for_at_least(min_hold);
    match locks.lock(&lock_of(job), &options).await {
        Ok(guard) => Ok(Some(guard)),
        Err(LockError::Busy(_) | LockError::WaitTimeout(_)) => Ok(None),
        Err(LockError::Unavailable(error)) => Err(error.into()),
        Err(LockError::Lost(_)) => Err(JobsError::Lost),
    }
}
