//! The rows of requests, on either engine.

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, RequestId, UserId};
use crate::domain::review_request::RequestState;
use crate::storage::decode::parse;
use crate::storage::error::StorageError;
use crate::storage::review_requests::{Decided, ReviewRequest};

use super::dialect::{Connection, Moment, TxError, text, user};

/// Selects requests as [`Row`]s. After a refusal the other user no longer reads the document's title.
macro_rules! select_requests {
    ($rest:literal) => {
        concat!(
            "SELECT r.id, f.id, f.name, t.id, t.name, r.sender_role, r.message, r.document_id, \
             d.title, r.state, r.created_at, r.decided_at, r.expires_at FROM review_requests r \
             JOIN users f ON f.id = r.sender_id JOIN users t ON t.id = r.receiver_id \
             LEFT JOIN documents d ON d.id = r.document_id AND d.deleted_at IS NULL \
             AND r.state IN ('pending', 'accepted') ",
            $rest
        )
    };
}
pub(super) use select_requests;

pub(super) type Row = (
    String,
    String,
    String,
    String,
    String,
    String,
    Option<String>,
    Option<String>,
    Option<String>,
    String,
    Moment,
    Option<Moment>,
    Moment,
);

/// The facts of a request that do not change, but for a purged document.
pub(super) struct Facts {
    pub(super) sender: UserId,
    pub(super) receiver: UserId,
    pub(super) document: Option<DocumentId>,
}

impl Facts {
    /// The outcome for a caller who may not decide.
    pub(super) fn no_decider<T>(&self, caller: &UserId) -> Decided<T> {
        let is_party = *caller == self.sender || *caller == self.receiver;
        if is_party { Decided::OtherSide } else { Decided::Gone }
    }
}

pub(super) async fn facts_of(
    connection: &mut Connection,
    id: RequestId,
) -> Result<Option<Facts>, TxError> {
    let select = "SELECT sender_id, receiver_id, document_id FROM review_requests WHERE id = $1";
    let row: Option<(String, String, Option<String>)> =
        sqlx::query_as(select).bind(id.to_string()).fetch_optional(connection).await?;
    let Some((sender, receiver, document)) = row else { return Ok(None) };
    let document = document.as_deref().map(parse).transpose()?;
    Ok(Some(Facts { sender: parse(&sender)?, receiver: parse(&receiver)?, document }))
}

pub(super) async fn fetch(
    connection: &mut Connection,
    id: RequestId,
    now: DateTime<Utc>,
) -> Result<Option<ReviewRequest>, TxError> {
    let row: Option<Row> = sqlx::query_as(select_requests!("WHERE r.id = $1"))
        .bind(id.to_string())
        .fetch_optional(connection)
        .await?;
    Ok(row.map(|row| request_from(row, now)).transpose()?)
}

pub(super) async fn fetch_stored(
    connection: &mut Connection,
    id: RequestId,
    now: DateTime<Utc>,
) -> Result<ReviewRequest, TxError> {
    Ok(fetch(connection, id, now).await?.ok_or(sqlx::Error::RowNotFound)?)
}

pub(super) fn request_from(row: Row, now: DateTime<Utc>) -> Result<ReviewRequest, StorageError> {
    let (
        id,
        from,
        from_name,
        to,
        to_name,
        sender_role,
        message,
        document,
        title,
        state,
        Moment(created_at),
        decided_at,
        Moment(expires_at),
    ) = row;
    let stored: RequestState = parse(&state)?;
    let is_expired = stored == RequestState::Pending && expires_at <= now;
    let decided_at = decided_at.map(|Moment(at)| at);
    Ok(ReviewRequest {
        id: parse(&id)?,
        from: user(&from, from_name)?,
        to: user(&to, to_name)?,
        sender_role: parse(&sender_role)?,
        message: message.map(text),
        document: document.as_deref().map(parse).transpose()?,
        title: title.map(text),
        state: if is_expired { RequestState::Expired } else { stored },
        created_at,
        decided_at: if is_expired { Some(expires_at) } else { decided_at },
        expires_at,
    })
}
