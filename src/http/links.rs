//! `/api/share-links`: a document's only valid invitation.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use chrono::{SubsecRound as _, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::ids::{DocumentId, ShareLinkId};
use crate::domain::progress::Progress;
use crate::domain::user::User;
use crate::http::auth::caller::Caller;
use crate::http::error::ApiError;
use crate::http::extract::{JsonBody, Path, Query};
use crate::http::origin::Origins;
use crate::http::pagination::PageQuery;
use crate::http::routes::Routes;
use crate::outbox::event::Event;
use crate::reviews::Reviews;
use crate::seats::Seats;
use crate::seats::view::SeatsView;
use crate::sharing::invite::Invite;
use crate::sharing::links::Joining;
use crate::sharing::{Sharing, SharingError};
use crate::storage::invites::InviteState;
use crate::storage::links::{FindOrCreate, ShareLink};

/// Default and maximum of rows on a page: the start page lists all.
const ROWS_MAX: u32 = 200;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/documents/{id}/share-link", share)
        .get("/api/share-links", list)
        .get("/api/share-links/{id}", show)
        .delete("/api/share-links/{id}", revoke)
        .post("/api/share-links/{id}/join", join)
}

#[derive(Serialize)]
pub(super) struct LinkBody {
    id: ShareLinkId,
    document_id: DocumentId,
    title: String,
    writer: User,
    reviewer: Option<User>,
    #[serde(flatten)]
    rest: Rest,
    #[serde(flatten)]
    invite_state: Option<InviteState>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Rest {
    /// The secret that opens the link: only for the writer, and only on demand.
    Invite(InviteBody),
    /// The link for one of its members.
    #[serde(untagged)]
    Member(MemberBody),
}

#[derive(Serialize)]
struct MemberBody {
    seats: SeatsView,
    #[serde(flatten)]
    progress: Progress,
}

#[derive(Serialize)]
struct InviteBody {
    token: String,
    url: String,
}

impl InviteBody {
    /// The invite stands behind the `#`: browsers send no fragment, so no log and no `Referer` contains
    /// it.
    fn new(origins: &Origins, link: ShareLinkId, invite: &Invite) -> Self {
        let token = invite.as_str();
        Self { token: token.to_owned(), url: format!("{}/s/{link}#{token}", origins.page()) }
    }
}

impl LinkBody {
    fn new(link: ShareLink, rest: Rest) -> Self {
        let ShareLink { id, document_id, title, writer, reviewer, .. } = link;
        Self { id, document_id, title, writer, reviewer, rest, invite_state: None }
    }

    pub(super) fn with_invite(
        link: ShareLink,
        invite: &Invite,
        invite_state: InviteState,
        origins: &Origins,
    ) -> Self {
        let invite = InviteBody::new(origins, link.id, invite);
        Self { invite_state: Some(invite_state), ..Self::new(link, Rest::Invite(invite)) }
    }
}

#[derive(Serialize)]
struct ListBody {
    share_links: Vec<LinkBody>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Join"))]
pub(crate) struct JoinBody {
    /// The token of the invite.
    pub(super) invite: String,
}

/// `POST /api/documents/{id}/share-link`
async fn share(
    State(sharing): State<Sharing>,
    State(origins): State<Origins>,
    caller: Caller,
    Path(document): Path<DocumentId>,
) -> Result<Response, ApiError> {
    caller.save_name(&sharing).await?;
    let shared = sharing.share(&caller.user().id, document, Utc::now()).await?;
    let status = match shared.found {
        FindOrCreate::Created => StatusCode::CREATED,
        FindOrCreate::Existing => StatusCode::OK,
    };
    let location = [(LOCATION, format!("/api/share-links/{}", shared.link.id))];
    let body = LinkBody::with_invite(shared.link, &shared.invite, shared.invite_state, &origins);
    Ok((status, location, Json(body)).into_response())
}

/// `GET /api/share-links`: the links in which the caller writes or reviews, newest first.
async fn list(
    State(sharing): State<Sharing>,
    State(seats): State<Seats>,
    State(reviews): State<Reviews>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<ListBody>, ApiError> {
    let request = query.parse(ROWS_MAX, ROWS_MAX)?;
    let mut links = sharing.links_of(&caller.user().id, &request.page()).await?;
    let next_cursor = request.cut(&mut links, ShareLink::cursor);
    let ids: Vec<_> = links.iter().map(|link| link.id).collect();
    let mut views = seats.seats_of(&ids).await.into_iter();
    let mut progress = reviews.progress_of(&caller.user().id, &ids).await?;
    let body = |link: ShareLink| {
        let progress = progress.remove(&link.id).unwrap_or_default();
        let seats = views.next().unwrap_or_default();
        LinkBody::new(link, Rest::Member(MemberBody { seats, progress }))
    };
    Ok(Json(ListBody { share_links: links.into_iter().map(body).collect(), next_cursor }))
}

/// `GET /api/share-links/{id}`
async fn show(
    State(sharing): State<Sharing>,
    State(seats): State<Seats>,
    State(reviews): State<Reviews>,
    caller: Caller,
    Path(id): Path<ShareLinkId>,
) -> Result<Json<LinkBody>, ApiError> {
    shown(&sharing, &seats, &reviews, &caller, id).await
}

/// `POST /api/share-links/{id}/join`
async fn join(
    State(sharing): State<Sharing>,
    State(seats): State<Seats>,
    State(reviews): State<Reviews>,
    caller: Caller,
    Path(id): Path<ShareLinkId>,
    JsonBody(body): JsonBody<JoinBody>,
) -> Result<Json<LinkBody>, ApiError> {
    caller.save_name(&sharing).await?;
    let user = caller.user();
    // The event has the time that the database stores.
    let now = Utc::now().trunc_subsecs(3);
    match sharing.join(user, id, &body.invite, now).await? {
        Joining::Reviewer(link) => for_member(link, None, &caller, &seats, &reviews).await,
        Joining::Refused { document, is_noted } => {
            if is_noted {
                let refused = Event::InviteRefused { user, at: now };
                seats.notify_writer(document, &refused).await;
            }
            Err(SharingError::ReviewerExists.into())
        }
    }
}

/// `DELETE /api/share-links/{id}`
async fn revoke(
    State(sharing): State<Sharing>,
    State(seats): State<Seats>,
    caller: Caller,
    Path(id): Path<ShareLinkId>,
) -> Result<StatusCode, ApiError> {
    sharing.revoke(&caller.user().id, id, Utc::now()).await?;
    seats.revoke(id).await;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn shown(
    sharing: &Sharing,
    seats: &Seats,
    reviews: &Reviews,
    caller: &Caller,
    id: ShareLinkId,
) -> Result<Json<LinkBody>, ApiError> {
    let (link, role) = sharing.link(&caller.user().id, id).await?;
    let invite_state = sharing.invite_state(id, role).await?;
    for_member(link, invite_state, caller, seats, reviews).await
}

async fn for_member(
    link: ShareLink,
    invite_state: Option<InviteState>,
    caller: &Caller,
    seats: &Seats,
    reviews: &Reviews,
) -> Result<Json<LinkBody>, ApiError> {
    let view = seats.seats_of(&[link.id]).await.pop().unwrap_or_default();
    let mut progress = reviews.progress_of(&caller.user().id, &[link.id]).await?;
    let progress = progress.remove(&link.id).unwrap_or_default();
    let rest = Rest::Member(MemberBody { seats: view, progress });
    Ok(Json(LinkBody { invite_state, ..LinkBody::new(link, rest) }))
}
