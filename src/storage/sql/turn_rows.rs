//! Turns and their webhook, on either engine.

use serde_json::json;

use crate::domain::ids::{DocumentId, ShareLinkId};
use crate::domain::progress::Turn;
use crate::domain::webhook::WebhookEvent;
use crate::storage::decode::parse;
use crate::storage::error::StorageError;
use crate::storage::progress::StoredTurn;
use crate::storage::webhooks::{Hooks, Subject};

use super::dialect::{Connection, Moment, TxError, text, user};
use super::webhooks::put;

type TurnRow = (String, Moment, String, String, i64);

/// The turn of a link. `None`: no user has passed it.
pub(super) async fn turn_of(
    connection: &mut Connection,
    link: ShareLinkId,
) -> Result<Option<StoredTurn>, TxError> {
    let row: Option<TurnRow> = sqlx::query_as(
        "SELECT t.role, t.since, u.id, u.name, t.change \
         FROM turns t JOIN users u ON u.id = t.by_id WHERE t.link_id = $1",
    )
    .bind(link.to_string())
    .fetch_optional(connection)
    .await?;
    Ok(row.map(turn_from).transpose()?)
}

/// The turn of a document's active link, if it was passed after change number `after`.
pub(super) async fn turn_after(
    connection: &mut Connection,
    document: DocumentId,
    after: i64,
) -> Result<Option<StoredTurn>, TxError> {
    let row: Option<TurnRow> = sqlx::query_as(
        "SELECT t.role, t.since, u.id, u.name, t.change FROM share_links l \
         JOIN turns t ON t.link_id = l.id JOIN users u ON u.id = t.by_id \
         WHERE l.document_id = $1 AND l.revoked_at IS NULL AND t.change > $2",
    )
    .bind(document.to_string())
    .bind(after)
    .fetch_optional(connection)
    .await?;
    Ok(row.map(turn_from).transpose()?)
}

/// Writes the webhook of a passed turn, in its transaction.
pub(super) async fn put_turn(
    connection: &mut Connection,
    hooks: &Hooks,
    link: ShareLinkId,
    turn: &Turn,
) -> Result<(), TxError> {
    if !hooks.want(WebhookEvent::TurnChanged) {
        return Ok(());
    }
    let title: String = sqlx::query_scalar(
        "SELECT d.title FROM documents d JOIN share_links l ON l.document_id = d.id \
         WHERE l.id = $1",
    )
    .bind(link.to_string())
    .fetch_one(&mut *connection)
    .await?;
    let Turn { role, since, by } = turn;
    let data = || json!({ "role": role, "since": since, "by": by, "title": text(title) });
    let about = (Subject::link(link), turn.since);
    put(connection, hooks, WebhookEvent::TurnChanged, about, data).await
}

fn turn_from(row: TurnRow) -> Result<StoredTurn, StorageError> {
    let (role, Moment(since), by_id, by_name, change) = row;
    let turn = Turn { role: parse(&role)?, since, by: user(&by_id, by_name)? };
    Ok(StoredTurn { turn, change })
}
