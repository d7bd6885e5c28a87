//! A user as a whole: `/api/users/{id}` for the host product and administrators, `/api/me` for the user, and
//! `/api/user-deletions/{receipt}`.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};

use crate::bounds::permits::Requester;
use crate::domain::ids::{DeletionId, UserId};
use crate::http::auth::admission::Audited;
use crate::http::auth::caller::{Admin, Caller};
use crate::http::auth::cookie;
use crate::http::error::{ApiError, Contract, Failure};
use crate::http::extract::{Path, Query};
use crate::http::origin::Origins;
use crate::http::peer::{Peer, network};
use crate::http::routes::Routes;
use crate::persons::store::Receipt;
use crate::persons::{Persons, PersonsError};
use crate::storage::audit::AuditEntry;

/// The data that a deletion does not reach; `config/PERSONAL_DATA.md` says how it ends.
const NOT_REACHED: [&str; 4] = ["backups", "logs", "browsers", "webhooks"];
/// The file of the database has bytes of deleted rows in its free space.
const DATABASE_FILE: &str = "database-file";

pub(crate) fn routes() -> Routes {
    Routes::default()
        .delete("/api/users/{id}", delete)
        .get("/api/users/{id}/export", export)
        .delete("/api/me", delete_me)
        .get("/api/me/export", export_me)
        .get("/api/user-deletions/{receipt}", receipt)
}

#[derive(Deserialize)]
struct DeletionQuery {
    #[serde(default)]
    reviews: Reviews,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Reviews {
    /// Without a name.
    #[default]
    Keep,
    Delete,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "UserDeletionBegun"))]
pub(crate) struct BegunBody {
    id: DeletionId,
    #[cfg_attr(test, schemars(extend("enum" = ["running"])))]
    state: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "UserDeletion"))]
pub(crate) struct ReceiptBody {
    id: DeletionId,
    #[cfg_attr(test, schemars(extend("enum" = ["running", "done"])))]
    state: &'static str,
    done: CountsBody,
    left: CountsBody,
    /// `webhooks`: those that were delivered. `database-file`: free space of the database may have bytes of
    /// deleted rows.
    #[cfg_attr(test, schemars(extend("items" = {"enum": ["backups", "logs", "browsers", "webhooks", "database-file"]})))]
    not_reached: Vec<&'static str>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "UserDeletionCounts"))]
struct CountsBody {
    /// Documents of the user.
    documents: u64,
    /// Share links of others that name the user.
    share_links: u64,
}

impl CountsBody {
    fn of((documents, share_links): (u64, u64)) -> Self {
        Self { documents, share_links }
    }
}

impl From<Receipt> for ReceiptBody {
    fn from(receipt: Receipt) -> Self {
        let of_file = (!receipt.is_file_clear).then_some(DATABASE_FILE);
        Self {
            id: receipt.id,
            state: if receipt.is_done { "done" } else { "running" },
            done: CountsBody::of(receipt.done),
            left: CountsBody::of(receipt.left),
            not_reached: NOT_REACHED.into_iter().chain(of_file).collect(),
        }
    }
}

/// `DELETE /api/users/{id}`
async fn delete(
    Extension(persons): Extension<Persons>,
    _admin: Admin,
    Path(user): Path<UserId>,
    Query(query): Query<DeletionQuery>,
    Audited(entry): Audited,
) -> Result<Response, ApiError> {
    begin(&persons, &user, query, &entry).await
}

/// `DELETE /api/me`: the browser loses the cookie, too.
async fn delete_me(
    Extension(persons): Extension<Persons>,
    State(origins): State<Origins>,
    caller: Caller,
    Query(query): Query<DeletionQuery>,
    Audited(entry): Audited,
) -> Result<Response, ApiError> {
    let begun = begin(&persons, &caller.user().id, query, &entry).await?;
    Ok((cookie::none(&origins), begun).into_response())
}

async fn begin(
    persons: &Persons,
    user: &UserId,
    DeletionQuery { reviews }: DeletionQuery,
    entry: &AuditEntry,
) -> Result<Response, ApiError> {
    let id = persons.delete(user, matches!(reviews, Reviews::Delete), entry).await?;
    Ok((StatusCode::ACCEPTED, Json(BegunBody { id, state: "running" })).into_response())
}

/// `GET /api/user-deletions/{receipt}`: for all who know the receipt, which names no user. The deleted user has
/// no token.
async fn receipt(
    Extension(persons): Extension<Persons>,
    Path(receipt): Path<DeletionId>,
) -> Result<Json<ReceiptBody>, ApiError> {
    Ok(Json(persons.receipt(receipt).await?.into()))
}

/// `GET /api/users/{id}/export`
async fn export(
    Extension(persons): Extension<Persons>,
    peer: Option<Extension<Peer>>,
    _admin: Admin,
    Path(user): Path<UserId>,
    Audited(entry): Audited,
) -> Result<Response, ApiError> {
    // No line leaves the server without it.
    persons.audit(&entry).await?;
    let address = network(peer.map_or_else(Peer::default, |Extension(peer)| peer).0);
    let requester = Requester::User(user.clone(), address);
    Ok(streamed(&persons, user, requester)?)
}

/// `GET /api/me/export`
async fn export_me(
    Extension(persons): Extension<Persons>,
    caller: Caller,
) -> Result<Response, ApiError> {
    Ok(streamed(&persons, caller.user().id.clone(), caller.requester())?)
}

fn streamed(
    persons: &Persons,
    user: UserId,
    requester: Requester,
) -> Result<Response, PersonsError> {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson")),
        (CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"galley.ndjson\"")),
        (CACHE_CONTROL, HeaderValue::from_static("private, no-store")),
    ];
    Ok((headers, Body::from_stream(persons.export(user, requester)?)).into_response())
}

impl Failure for PersonsError {
    fn contract(&self) -> Contract {
        use StatusCode as Is;
        match self {
            Self::NoReceipt | Self::Deleted => (Is::NOT_FOUND, "not-found", "Not found"),
            Self::Running => (Is::CONFLICT, "deletion-running", "A deletion of this user runs"),
            Self::Busy => (Is::SERVICE_UNAVAILABLE, "unavailable", "Try again"),
            Self::Storage(error) => error.contract(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        matches!(self, Self::Busy).then_some(Duration::from_mins(1))
    }
}
