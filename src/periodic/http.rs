//! `/api/admin/jobs`: the jobs of all servers with their last runs.

use std::collections::BTreeMap;

use axum::{Extension, Json};
use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::domain::fence::Fence;
use crate::domain::ids::NodeId;
use crate::http::auth::caller::Admin;
use crate::http::error::{ApiError, Contract, Failure, UNAVAILABLE};
use crate::http::routes::Routes;
use crate::periodic::store::JobRun;
use crate::periodic::{JobReport, Jobs, JobsError};

pub(crate) fn routes() -> Routes {
    Routes::default().get("/api/admin/jobs", list)
}

#[derive(Serialize)]
struct JobsBody {
    jobs: Vec<JobBody>,
}

#[derive(Serialize)]
struct JobBody {
    job: &'static str,
    running: Option<RunningBody>,
    last_runs: Vec<RunBody>,
    next_at: DateTime<Utc>,
    estimate_ms: u64,
}

#[derive(Serialize)]
struct RunningBody {
    node: NodeId,
    since: DateTime<Utc>,
    fence: Fence,
}

#[derive(Serialize)]
struct RunBody {
    started_at: DateTime<Utc>,
    ended_at: Option<DateTime<Utc>>,
    node: NodeId,
    fence: Fence,
    outcome: &'static str,
    counts: BTreeMap<String, u64>,
}

impl From<JobRun> for RunBody {
    fn from(run: JobRun) -> Self {
        let JobRun { fence, node, started_at, ended_at, outcome, counts } = run;
        Self { started_at, ended_at, node, fence, outcome: outcome.as_str(), counts }
    }
}

impl From<JobReport> for JobBody {
    fn from(report: JobReport) -> Self {
        let JobReport { job, running, last_runs, next_at, estimate } = report;
        Self {
            job,
            running: running.map(|it| RunningBody {
                node: it.node,
                since: it.since,
                fence: it.fence,
            }),
            last_runs: last_runs.into_iter().map(Into::into).collect(),
            next_at,
            estimate_ms: u64::try_from(estimate.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// `GET /api/admin/jobs`
async fn list(Extension(jobs): Extension<Jobs>, _admin: Admin) -> Result<Json<JobsBody>, ApiError> {
    let jobs = jobs.report().await?.into_iter().map(Into::into).collect();
    Ok(Json(JobsBody { jobs }))
}

impl Failure for JobsError {
    fn contract(&self) -> Contract {
        match self {
            Self::Storage(error) => error.contract(),
            Self::Locks(_) | Self::Lost => UNAVAILABLE,
        }
    }
}
