//! `/api/admin/jobs`: the jobs of all servers with their last runs.

use axum::{Extension, Json};
use serde::Serialize;

use crate::http::auth::caller::Admin;
use crate::http::error::{ApiError, Contract, Failure, UNAVAILABLE};
use crate::http::routes::Routes;
use crate::periodic::{JobReport, Jobs, JobsError};

pub(crate) fn routes() -> Routes {
    Routes::default().get("/api/admin/jobs", list)
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Jobs"))]
pub(crate) struct JobsBody {
    jobs: Vec<JobReport>,
}

/// `GET /api/admin/jobs`
async fn list(Extension(jobs): Extension<Jobs>, _admin: Admin) -> Result<Json<JobsBody>, ApiError> {
    Ok(Json(JobsBody { jobs: jobs.report().await? }))
}

impl Failure for JobsError {
    fn contract(&self) -> Contract {
        match self {
            Self::Storage(error) => error.contract(),
            Self::Locks(_) | Self::Lost => UNAVAILABLE,
        }
    }
}
