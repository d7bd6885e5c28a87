//! The webhooks of documents, their share links and their versions. Each has the title in its data.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::webhook::WebhookEvent;
use crate::storage::locks::lock;
use crate::storage::statement::sql;
use crate::storage::tx::Tx;
use crate::storage::tx_error::TxError;
use crate::storage::webhooks::{Subject, put};

/// `data` is an object, which gets the title. The transaction locks the document, if it has not.
pub(crate) async fn put_about(
    tx: &mut Tx,
    event: WebhookEvent,
    (document, link): (DocumentId, Option<ShareLinkId>),
    now: DateTime<Utc>,
    mut data: Value,
) -> Result<(), TxError> {
    if !tx.hooks.want(event) {
        return Ok(());
    }
    let Some(locked) = lock(tx, document).await? else { return Ok(()) };
    let title = sql!("SELECT title FROM documents WHERE id = {document}");
    let Some(title) = title.value::<String>(tx).await? else { return Ok(()) };
    if let Some(data) = data.as_object_mut() {
        data.insert("title".to_owned(), title.into());
    }
    put(tx, event, (Subject::document(locked, document, link), now), || data).await
}

/// Why a reviewer left a share link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Departure {
    /// The owner removed the reviewer, or let another in.
    Removed,
    /// The reviewer left.
    Own,
    /// The user is deleted.
    Deleted,
}

impl Departure {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Own => "left",
            Self::Deleted => "deleted",
        }
    }
}

pub(crate) async fn put_joined(
    tx: &mut Tx,
    link: ShareLinkId,
    reviewer: &UserId,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    put_about_link(tx, WebhookEvent::LinkJoined, link, now, json!({ "user_id": reviewer })).await
}

pub(crate) async fn put_left(
    tx: &mut Tx,
    link: ShareLinkId,
    reviewer: &UserId,
    why: Departure,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    let data = json!({ "user_id": reviewer, "reason": why.as_str() });
    put_about_link(tx, WebhookEvent::LinkLeft, link, now, data).await
}

async fn put_about_link(
    tx: &mut Tx,
    event: WebhookEvent,
    link: ShareLinkId,
    now: DateTime<Utc>,
    data: Value,
) -> Result<(), TxError> {
    if !tx.hooks.want(event) {
        return Ok(());
    }
    let document = sql!("SELECT document_id FROM share_links WHERE id = {link}");
    let Some(document) = document.value(tx).await? else { return Ok(()) };
    put_about(tx, event, (document, Some(link)), now, data).await
}
