//! `/api/admin`: lists sessions and locks of the whole cluster, explains a session, evicts it, and revokes
//! share links.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use chrono::Utc;
use serde::Deserialize;

use crate::admin::explain::SessionDetails;
use crate::admin::locks::{LockList, LockPage};
use crate::admin::series::Series;
use crate::admin::sessions::{SessionList, SessionPage, SessionScope};
use crate::admin::{Console, audit};
use crate::domain::ids::{DocumentId, SessionId, ShareLinkId, UserId};
use crate::http::auth::caller::Admin;
use crate::http::error::ApiError;
use crate::http::extract::{Limit, Path, Query};
use crate::http::peer::Peer;
use crate::http::routes::Routes;
use crate::seats::Seats;
use crate::sharing::Sharing;
use crate::storage::pagination::InvalidCursor;

pub(crate) fn routes() -> Routes {
    const ONE: &str = "/api/admin/sessions/{session_id}";
    Routes::default()
        .get("/api/admin/sessions", list)
        .get(ONE, show)
        .delete(ONE, evict)
        .delete("/api/admin/share-links/{id}", revoke)
        .get("/api/admin/locks", locks)
        .get("/api/admin/series", series)
        .get("/api/admin/audit", audit::list)
}

/// Sessions of a page, and of a request that names no limit.
const SESSIONS_MAX: u32 = 1_000;
const LOCKS_DEFAULT: u32 = 50;
const LOCKS_MAX: u32 = 100;

#[derive(Deserialize)]
struct ListQuery {
    node: Option<Node>,
    user: Option<UserId>,
    document: Option<DocumentId>,
    limit: Option<Limit>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Node {
    #[serde(rename = "self")]
    This,
}

/// `GET /api/admin/sessions`
async fn list(
    Extension(console): Extension<Console>,
    _admin: Admin,
    Query(query): Query<ListQuery>,
) -> Result<Json<SessionList>, ApiError> {
    let scope = match query.node {
        Some(Node::This) => SessionScope::ThisNode,
        None => SessionScope::Cluster,
    };
    let limit = query.limit.map_or(Ok(SESSIONS_MAX), |limit| limit.rows(SESSIONS_MAX))?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let after = query.cursor.map(|cursor| cursor.parse()).transpose();
    let after =
        after.map_err(|error: InvalidCursor| ApiError::Invalid(format!("cursor: {error}")))?;
    let ListQuery { user, document, .. } = query;
    Ok(Json(console.list(&SessionPage { scope, user, document, limit, after }).await?))
}

/// `GET /api/admin/sessions/{session_id}`: explains why the session holds its seat.
async fn show(
    Extension(console): Extension<Console>,
    _admin: Admin,
    Path(session): Path<SessionId>,
) -> Result<Json<SessionDetails>, ApiError> {
    let details = console.why(session).await?;
    details.map(Json).ok_or(ApiError::NotFound("session"))
}

/// `DELETE /api/admin/sessions/{session_id}`
async fn evict(
    Extension(console): Extension<Console>,
    admin: Admin,
    peer: Option<Extension<Peer>>,
    Path(session): Path<SessionId>,
) -> Result<StatusCode, ApiError> {
    let Some((seat, user)) = console.evict(session).await? else {
        return Err(ApiError::NotFound("session"));
    };
    // The id in the log grants nothing: the evicted session's lock value is no longer valid.
    let peer = peer.map_or_else(Peer::default, |Extension(peer)| peer).0;
    tracing::info!(%admin, %peer, %seat, %user, %session, "an administrator ended a session");
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/admin/share-links/{id}`
async fn revoke(
    State(sharing): State<Sharing>,
    State(seats): State<Seats>,
    admin: Admin,
    peer: Option<Extension<Peer>>,
    Path(link): Path<ShareLinkId>,
) -> Result<StatusCode, ApiError> {
    sharing.revoke_for_admin(link, Utc::now()).await?;
    seats.revoke(link).await;
    let peer = peer.map_or_else(Peer::default, |Extension(peer)| peer).0;
    tracing::info!(%admin, %peer, %link, "an administrator revoked a share link");
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/admin/series`
async fn series(Extension(console): Extension<Console>, _admin: Admin) -> Json<Series> {
    Json(console.series().await)
}

#[derive(Deserialize)]
struct LocksQuery {
    class: Option<String>,
    limit: Option<Limit>,
    cursor: Option<String>,
}

/// `GET /api/admin/locks`
async fn locks(
    Extension(console): Extension<Console>,
    _admin: Admin,
    Query(query): Query<LocksQuery>,
) -> Result<Json<LockList>, ApiError> {
    let limit = query.limit.map_or(Ok(LOCKS_DEFAULT), |limit| limit.rows(LOCKS_MAX))?;
    let after = query.cursor.map(|cursor| cursor.parse()).transpose();
    let after = after.map_err(|error| ApiError::Invalid(format!("cursor: {error}")))?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(Json(console.locks(&LockPage { class: query.class, limit, after }).await?))
}
