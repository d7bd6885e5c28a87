//! Jobs and their runs, on either engine.

use crate::domain::fence::Fence;
use crate::storage::decode::{corrupt, fence as fence_from, fence_column, parse};
use crate::storage::error::StorageError;
use crate::storage::jobs::{JobCursors, JobOutcome, JobRun};

use super::dialect::{Connection, Engine, Moment, TxError, read, transact};

/// The columns of a run.
type RunRow = (i64, String, Moment, Option<Moment>, String, String);

impl Engine {
    pub(in crate::storage) async fn job_fence(&self, job: &str) -> Result<Fence, StorageError> {
        read!(self, connection => {
            let fence: Option<i64> = sqlx::query_scalar("SELECT fence FROM jobs WHERE job = $1")
                .bind(job)
                .fetch_optional(connection)
                .await?;
            Ok(fence.map_or(Ok(Fence::ZERO), fence_from)?)
        })
    }

    pub(in crate::storage) async fn begin_job(
        &self,
        job: &str,
        run: &JobRun,
        keep: u32,
    ) -> Result<Option<JobCursors>, StorageError> {
        let fence = fence_column(run.fence)?;
        let counts = serde_json::to_string(&run.counts).map_err(corrupt)?;
        transact!(self, tx => {
            let cursors: Option<String> = sqlx::query_scalar(
                "INSERT INTO jobs (job, fence, cursors) VALUES ($1, $2, '{}') \
                 ON CONFLICT (job) DO UPDATE SET fence = excluded.fence \
                 WHERE jobs.fence < excluded.fence RETURNING cursors",
            )
            .bind(job)
            .bind(fence)
            .fetch_optional(&mut *tx)
            .await?;
            let Some(cursors) = cursors else { return Ok(None) };
            // The server of a run without an end died, or its batch has lost its lock and says so later.
            sqlx::query("UPDATE job_runs SET outcome = $2 WHERE job = $1 AND outcome = $3")
                .bind(job)
                .bind(JobOutcome::Failed.as_str())
                .bind(JobOutcome::Running.as_str())
                .execute(&mut *tx)
                .await?;
            sqlx::query(
                "INSERT INTO job_runs (job, fence, node, started_at, ended_at, outcome, counts) \
                 VALUES ($1, $2, $3, $4, NULL, $5, $6)",
            )
            .bind(job)
            .bind(fence)
            .bind(run.node.to_string())
            .bind(Moment(run.started_at))
            .bind(run.outcome.as_str())
            .bind(counts.as_str())
            .execute(&mut *tx)
            .await?;
            sqlx::query(
                "DELETE FROM job_runs WHERE job = $1 AND fence NOT IN ( \
                   SELECT fence FROM job_runs WHERE job = $1 ORDER BY fence DESC LIMIT $2)",
            )
            .bind(job)
            .bind(i64::from(keep))
            .execute(tx)
            .await?;
            // A later version may store others: a batch without cursors begins at the beginning.
            Ok(Some(serde_json::from_str(&cursors).unwrap_or_default()))
        })
    }

    pub(in crate::storage) async fn end_job(
        &self,
        job: &str,
        run: &JobRun,
        cursors: &JobCursors,
    ) -> Result<(), StorageError> {
        let fence = fence_column(run.fence)?;
        let counts = serde_json::to_string(&run.counts).map_err(corrupt)?;
        let cursors = serde_json::to_string(cursors).map_err(corrupt)?;
        transact!(self, tx => {
            sqlx::query("UPDATE jobs SET cursors = $3 WHERE job = $1 AND fence = $2")
                .bind(job)
                .bind(fence)
                .bind(cursors.as_str())
                .execute(&mut *tx)
                .await?;
            sqlx::query(
                "UPDATE job_runs SET ended_at = $3, outcome = $4, counts = $5 \
                 WHERE job = $1 AND fence = $2",
            )
            .bind(job)
            .bind(fence)
            .bind(run.ended_at.map(Moment))
            .bind(run.outcome.as_str())
            .bind(counts.as_str())
            .execute(tx)
            .await?;
            Ok(())
        })
    }

    pub(in crate::storage) async fn job_runs(
        &self,
        job: &str,
    ) -> Result<Vec<JobRun>, StorageError> {
        read!(self, connection => {
            let rows: Vec<RunRow> = sqlx::query_as(
                "SELECT fence, node, started_at, ended_at, outcome, counts FROM job_runs \
                 WHERE job = $1 ORDER BY fence DESC",
            )
            .bind(job)
            .fetch_all(connection)
            .await?;
            Ok(rows.into_iter().map(run_from).collect::<Result<_, _>>()?)
        })
    }
}

fn run_from(row: RunRow) -> Result<JobRun, StorageError> {
    let (fence, node, Moment(started_at), ended_at, outcome, counts) = row;
    Ok(JobRun {
        fence: fence_from(fence)?,
        node: parse(&node)?,
        started_at,
        ended_at: ended_at.map(|Moment(at)| at),
        outcome: JobOutcome::from_name(&outcome),
        counts: serde_json::from_str(&counts).unwrap_or_default(),
    })
}

/// Whether `fence` is the last ratified one of the job. The row is locked until the commit: no later run
/// is ratified before.
pub(super) async fn holds_job(
    connection: &mut Connection,
    job: &str,
    fence: i64,
) -> Result<bool, TxError> {
    let held = sqlx::query("UPDATE jobs SET fence = fence WHERE job = $1 AND fence = $2")
        .bind(job)
        .bind(fence)
        .execute(connection)
        .await?;
    Ok(held.rows_affected() == 1)
}
