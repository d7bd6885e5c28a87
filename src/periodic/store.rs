//! Jobs: the fence of each job's lock, and its last runs.
//!
//! The lock of a job decides which server runs it; the database decides whose writes count.
//! [`begin_job`] ratifies the fence of a grant. From then on the database refuses the writes of an older one:
//! each statement that writes for a job demands its [`RatifiedRun`], and writes only while that
//! [holds](RatifiedRun::holds) the job. So a run that lost its lock writes nothing more.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use strum::{EnumString, IntoStaticStr};

use crate::domain::fence::Fence;
use crate::domain::ids::NodeId;
use crate::storage::statement::{Row, json, sql};
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::{Storage, StorageFuture};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
#[derive(EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum JobOutcome {
    /// It has not ended; or it panicked or its server died, and no later run has begun.
    Running,
    Done,
    /// It ended early, because its server stopped.
    Stopped,
    /// It ended early, because it lost its lock.
    LockLost,
    /// A dependency failed, it panicked, or its server died.
    Failed,
}

impl JobOutcome {
    /// The name in JSON, in metrics and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct JobRun {
    /// It rises from run to run.
    pub fence: Fence,
    pub node: NodeId,
    pub started_at: DateTime<Utc>,
    /// `null`: it runs, or its server died.
    pub ended_at: Option<DateTime<Utc>>,
    /// `stopped`: its server stopped. `failed`: a dependency failed, or its server died.
    pub outcome: JobOutcome,
    /// Of `reminders`: `candidates`, and of them: `sent`; `unsent`, which no browser received; `postponed` by
    /// quiet hours; `present`, whose writer is connected or whose seat is taken; `spent`, whose reason was
    /// gone.
    pub counts: BTreeMap<String, u64>,
}

/// Where a bounded batch continues, by the name of its part.
pub type JobCursors = BTreeMap<String, String>;

/// The proof that a fence was ratified: [`begin_job`] alone makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatifiedRun {
    job: &'static str,
    fence: Fence,
}

impl RatifiedRun {
    pub(crate) fn fence(self) -> Fence {
        self.fence
    }

    /// Whether no later run is ratified. The row is locked until the commit: none is before.
    pub(crate) async fn holds(self, tx: &mut Tx) -> Result<bool, TxError> {
        let Self { job, fence } = self;
        let held = sql!("UPDATE jobs SET fence = fence WHERE job = {job} AND fence = {fence}");
        Ok(held.run(tx).await? == 1)
    }
}

/// The last ratified fence of a job. A grant of its lock must exceed it.
pub fn job_fence<'a>(storage: &'a Storage, job: &'a str) -> StorageFuture<'a, Fence> {
    run!(storage, Read, tx => {
        let fence = sql!("SELECT fence FROM jobs WHERE job = {job}").value(tx).await?;
        Ok(fence.unwrap_or(Fence::ZERO))
    })
}

/// Ratifies the fence of a run, and stores the run. It keeps the newest `keep` runs of the job, and
/// returns the cursors of the last one. `None`: a later run is ratified.
pub fn begin_job<'a>(
    storage: &'a Storage,
    job: &'static str,
    run: &'a JobRun,
    keep: u32,
) -> StorageFuture<'a, Option<(RatifiedRun, JobCursors)>> {
    run!(storage, Write, tx => {
        let cursors = sql!(
            "INSERT INTO jobs (job, fence, cursors) VALUES ({job}, {run.fence}, '{{}}') \
             ON CONFLICT (job) DO UPDATE SET fence = excluded.fence \
             WHERE jobs.fence < excluded.fence RETURNING cursors"
        );
        let Some(cursors) = cursors.value::<String>(tx).await? else { return Ok(None) };
        // A run without an end panicked, or its server died, or its batch has lost its lock and says so later.
        sql!(
            "UPDATE job_runs SET outcome = {JobOutcome::Failed.as_str()} WHERE job = {job} \
             AND outcome = {JobOutcome::Running.as_str()}"
        )
        .run(tx)
        .await?;
        sql!(
            "INSERT INTO job_runs (job, fence, node, started_at, ended_at, outcome, counts) \
             VALUES ({job}, {run.fence}, {run.node}, {run.started_at}, NULL, \
             {run.outcome.as_str()}, {json(&run.counts)?})"
        )
        .run(tx)
        .await?;
        sql!(
            "DELETE FROM job_runs WHERE job = {job} AND fence NOT IN ( \
               SELECT fence FROM job_runs WHERE job = {job} ORDER BY fence DESC LIMIT {keep})"
        )
        .run(tx)
        .await?;
        // A later version may store others: a batch without cursors begins at the beginning.
        let ratified = RatifiedRun { job, fence: run.fence };
        Ok(Some((ratified, serde_json::from_str(&cursors).unwrap_or_default())))
    })
}

/// Stores the end of a run. The cursors count unless a later run is ratified.
pub fn end_job<'a>(
    storage: &'a Storage,
    RatifiedRun { job, fence }: RatifiedRun,
    run: &'a JobRun,
    cursors: &'a JobCursors,
) -> StorageFuture<'a, ()> {
    run!(storage, Write, tx => {
        sql!("UPDATE jobs SET cursors = {json(cursors)?} WHERE job = {job} AND fence = {fence}")
            .run(tx)
            .await?;
        sql!(
            "UPDATE job_runs SET ended_at = {run.ended_at}, outcome = {run.outcome.as_str()}, \
             counts = {json(&run.counts)?} WHERE job = {job} AND fence = {fence}"
        )
        .run(tx)
        .await?;
        Ok(())
    })
}

pub fn job_runs<'a>(storage: &'a Storage, job: &'a str) -> StorageFuture<'a, Vec<JobRun>> {
    run!(storage, Read, tx => {
        let runs = sql!(
            "SELECT fence, node, started_at, ended_at, outcome, counts FROM job_runs \
             WHERE job = {job} ORDER BY fence DESC"
        );
        runs.rows(tx).await?.iter().map(run_from).collect()
    })
}

fn run_from(row: &Row) -> Result<JobRun, TxError> {
    Ok(JobRun {
        fence: row.get("fence")?,
        node: row.get("node")?,
        started_at: row.get("started_at")?,
        ended_at: row.get("ended_at")?,
        // A later version may store others: they read as failures.
        outcome: row.get::<String>("outcome")?.parse().unwrap_or(JobOutcome::Failed),
        counts: serde_json::from_str(&row.get::<String>("counts")?).unwrap_or_default(),
    })
}
