//! `GET /api/admin/audit`: the acts of administrators, servers and users on their accounts, the latest first.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::accounts::Accounts;
use crate::domain::ids::UserId;
use crate::http::auth::caller::Admin;
use crate::http::error::ApiError;
use crate::http::extract::{Limit, Query};
use crate::storage::audit::{AuditQuery, AuditRow};

const ROWS_DEFAULT: u32 = 50;
const ROWS_MAX: u32 = 100;
/// Longest beginning of an action, in bytes: the longest route is shorter.
const ACTION_BYTES_MAX: usize = 200;

#[derive(Deserialize)]
pub(super) struct Selected {
    user: Option<UserId>,
    #[serde(default)]
    action: String,
    since: Option<DateTime<Utc>>,
    limit: Option<Limit>,
    cursor: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AuditPage {
    audit: Vec<AuditRow>,
    next_cursor: Option<String>,
}

pub(super) async fn list(
    State(accounts): State<Accounts>,
    _admin: Admin,
    Query(Selected { user, action, since, limit, cursor }): Query<Selected>,
) -> Result<Json<AuditPage>, ApiError> {
    let invalid = |what: &str| ApiError::Invalid(what.to_owned());
    let before = cursor.map(|cursor| cursor.parse::<u64>()).transpose();
    let before = before.map_err(|_malformed| invalid("cursor: not a valid cursor"))?;
    if ACTION_BYTES_MAX < action.len() {
        return Err(invalid("action: the beginning of a method and a route, at most 200 bytes"));
    }
    let rows = limit.map_or(Ok(ROWS_DEFAULT), |limit| limit.rows(ROWS_MAX))?;
    // One more row tells whether another page follows.
    let query = AuditQuery { user, action, since, before, limit: rows + 1 };
    let mut audit = accounts.audit(&query).await?;
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    let has_more = rows < audit.len();
    audit.truncate(rows);
    let next_cursor = audit.last().filter(|_| has_more).map(|last| last.id.to_string());
    Ok(Json(AuditPage { audit, next_cursor }))
}
