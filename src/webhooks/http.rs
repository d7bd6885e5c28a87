//! `/api/admin/webhooks`: lists the outbox, and makes dead webhooks pending again.

use axum::{Extension, Json};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::ids::WebhookId;
use crate::domain::webhook::WebhookState;
use crate::http::auth::caller::Admin;
use crate::http::error::ApiError;
use crate::http::extract::{Limit, Path, Query};
use crate::http::pagination::PageQuery;
use crate::http::routes::Routes;
use crate::storage::webhooks::StoredWebhook;
use crate::webhooks::Webhooks;

const ROWS_DEFAULT: u32 = 50;
const ROWS_MAX: u32 = 100;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/admin/webhooks", list)
        .post("/api/admin/webhooks/replay", replay_all)
        .post("/api/admin/webhooks/{id}/replay", replay)
}

#[derive(Deserialize)]
struct ListQuery {
    state: Option<String>,
    limit: Option<Limit>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct ReplayQuery {
    /// RFC 3339.
    since: Option<DateTime<Utc>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WebhookList {
    webhooks: Vec<StoredWebhook>,
    next_cursor: Option<String>,
}

#[derive(Serialize)]
struct ReplayedBody {
    replayed: u64,
}

/// `GET /api/admin/webhooks`
async fn list(
    Extension(webhooks): Extension<Webhooks>,
    _admin: Admin,
    Query(query): Query<ListQuery>,
) -> Result<Json<WebhookList>, ApiError> {
    let ListQuery { state, limit, cursor } = query;
    let state = state.map(|state| state.parse::<WebhookState>()).transpose();
    let state = state.map_err(|error| ApiError::Invalid(format!("state: {error}")))?;
    let request = PageQuery { limit, cursor }.parse::<WebhookId>(ROWS_DEFAULT, ROWS_MAX)?;
    let mut found = webhooks.list(state, &request.page()).await?;
    let next_cursor = request.cut(&mut found, StoredWebhook::cursor);
    Ok(Json(WebhookList { webhooks: found, next_cursor }))
}

/// `POST /api/admin/webhooks/{id}/replay`
async fn replay(
    Extension(webhooks): Extension<Webhooks>,
    admin: Admin,
    Path(id): Path<WebhookId>,
) -> Result<Json<StoredWebhook>, ApiError> {
    let replayed = webhooks.replay(id).await?.ok_or(ApiError::NotFound("webhook"))?;
    tracing::info!(%admin, %id, "an administrator replayed a webhook");
    Ok(Json(replayed))
}

/// `POST /api/admin/webhooks/replay`
async fn replay_all(
    Extension(webhooks): Extension<Webhooks>,
    admin: Admin,
    Query(ReplayQuery { since }): Query<ReplayQuery>,
) -> Result<Json<ReplayedBody>, ApiError> {
    let replayed = webhooks.replay_all(since).await?;
    tracing::info!(%admin, replayed, "an administrator replayed the dead webhooks");
    Ok(Json(ReplayedBody { replayed }))
}
