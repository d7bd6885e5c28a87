//! The statements of jobs and their runs.

use crate::domain::fence::Fence;
use crate::storage::jobs::{JobCursors, JobOutcome, JobRun};
use crate::storage::statement::{Row, json, sql};
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::{Storage, StorageFuture};

impl Storage {
    /// The last ratified fence of a job. A grant of its lock must exceed it.
    pub fn job_fence<'a>(&'a self, job: &'a str) -> StorageFuture<'a, Fence> {
        run!(self, Read, tx => {
            let fence = sql!("SELECT fence FROM jobs WHERE job = $1", job).value(tx).await?;
            Ok(fence.unwrap_or(Fence::ZERO))
        })
    }

    /// Ratifies the fence of a run, and stores the run. It keeps the newest `keep` runs of the job, and
    /// returns the cursors of the last one. `None`: a later run is ratified.
    pub fn begin_job<'a>(
        &'a self,
        job: &'a str,
        run: &'a JobRun,
        keep: u32,
    ) -> StorageFuture<'a, Option<JobCursors>> {
        run!(self, Write, tx => {
            let cursors = sql!(
                "INSERT INTO jobs (job, fence, cursors) VALUES ($1, $2, '{}') \
                 ON CONFLICT (job) DO UPDATE SET fence = excluded.fence \
                 WHERE jobs.fence < excluded.fence RETURNING cursors",
                job,
                run.fence
            );
            let Some(cursors) = cursors.value::<String>(tx).await? else { return Ok(None) };
            // The server of a run without an end died, or its batch has lost its lock and says so later.
            sql!(
                "UPDATE job_runs SET outcome = $2 WHERE job = $1 AND outcome = $3",
                job,
                JobOutcome::Failed,
                JobOutcome::Running
            )
            .run(tx)
            .await?;
            sql!(
                "INSERT INTO job_runs (job, fence, node, started_at, ended_at, outcome, counts) \
                 VALUES ($1, $2, $3, $4, NULL, $5, $6)",
                job,
                run.fence,
                run.node,
                run.started_at,
                run.outcome,
                json(&run.counts)?
            )
            .run(tx)
            .await?;
            sql!(
                "DELETE FROM job_runs WHERE job = $1 AND fence NOT IN ( \
                   SELECT fence FROM job_runs WHERE job = $1 ORDER BY fence DESC LIMIT $2)",
                job,
                keep
            )
            .run(tx)
            .await?;
            // A later version may store others: a batch without cursors begins at the beginning.
            Ok(Some(serde_json::from_str(&cursors).unwrap_or_default()))
        })
    }

    /// Stores the end of a run. The cursors count unless a later run is ratified.
    pub fn end_job<'a>(
        &'a self,
        job: &'a str,
        run: &'a JobRun,
        cursors: &'a JobCursors,
    ) -> StorageFuture<'a, ()> {
        run!(self, Write, tx => {
            sql!(
                "UPDATE jobs SET cursors = $3 WHERE job = $1 AND fence = $2",
                job,
                run.fence,
                json(cursors)?
            )
            .run(tx)
            .await?;
            sql!(
                "UPDATE job_runs SET ended_at = $3, outcome = $4, counts = $5 \
                 WHERE job = $1 AND fence = $2",
                job,
                run.fence,
                run.ended_at,
                run.outcome,
                json(&run.counts)?
            )
            .run(tx)
            .await?;
            Ok(())
        })
    }

    /// The stored runs of a job, the newest first.
    pub fn job_runs<'a>(&'a self, job: &'a str) -> StorageFuture<'a, Vec<JobRun>> {
        run!(self, Read, tx => {
            let runs = sql!(
                "SELECT fence, node, started_at, ended_at, outcome, counts FROM job_runs \
                 WHERE job = $1 ORDER BY fence DESC",
                job
            );
            runs.rows(tx).await?.iter().map(run_from).collect()
        })
    }
}

fn run_from(row: &Row) -> Result<JobRun, TxError> {
    Ok(JobRun {
        fence: row.get("fence")?,
        node: row.get("node")?,
        started_at: row.get("started_at")?,
        ended_at: row.get("ended_at")?,
        outcome: row.get("outcome")?,
        counts: serde_json::from_str(&row.get::<String>("counts")?).unwrap_or_default(),
    })
}

/// Whether `fence` is the last ratified one of the job. The row is locked until the commit: no later run
/// is ratified before.
pub(super) async fn holds_job(tx: &mut Tx, job: &str, fence: Fence) -> Result<bool, TxError> {
    let held = sql!("UPDATE jobs SET fence = fence WHERE job = $1 AND fence = $2", job, fence);
    Ok(held.run(tx).await? == 1)
}
