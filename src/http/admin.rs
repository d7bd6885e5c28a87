//! `/api/admin`: who sits where in the whole cluster, and making somebody get up.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;

use crate::domain::ids::SessionId;
use crate::http::caller::Admin;
use crate::http::error::ApiError;
use crate::http::extract::{Path, Query};
use crate::http::routes::Routes;
use crate::session::Sessions;
use crate::session::admin::{Scope, SessionList};

/// The routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes.get("/api/admin/sessions", list).delete("/api/admin/sessions/{session_id}", evict)
}

#[derive(Deserialize)]
struct ListQuery {
    node: Option<Node>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Node {
    /// The process that answers.
    #[serde(rename = "self")]
    This,
}

/// `GET /api/admin/sessions`
async fn list(
    State(sessions): State<Sessions>,
    _admin: Admin,
    Query(query): Query<ListQuery>,
) -> Result<Json<SessionList>, ApiError> {
    let scope = match query.node {
        Some(Node::This) => Scope::ThisNode,
        None => Scope::Cluster,
    };
    Ok(Json(sessions.list(scope).await?))
}

/// `DELETE /api/admin/sessions/{session_id}`
async fn evict(
    State(sessions): State<Sessions>,
    _admin: Admin,
    Path(session): Path<SessionId>,
) -> Result<StatusCode, ApiError> {
    if sessions.evict(session).await? {
        tracing::info!("an administrator ended a session");
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(ApiError::NotFound("session"))
}
