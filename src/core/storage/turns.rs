//! The turn of a share link, and the webhook of a passed one.

use serde_json::json;

use crate::domain::ids::{DocumentId, ShareLinkId};
use crate::domain::progress::ReviewTurn;
use crate::domain::webhook::WebhookEvent;
use crate::storage::locks::Locked;
use crate::storage::statement::{Row, sql};
use crate::storage::tx::Tx;
use crate::storage::tx_error::TxError;
use crate::storage::webhooks::{Subject, put};

/// The turn of a link, and the number of the change that set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTurn {
    pub turn: ReviewTurn,
    pub change: i64,
}

/// The turn of a link. `None`: no user has passed it.
pub(crate) async fn turn_of(tx: &mut Tx, link: ShareLinkId) -> Result<Option<StoredTurn>, TxError> {
    let turn = sql!(
        "SELECT t.role, t.since, u.id AS by_id, u.name AS by_name, t.change \
         FROM turns t JOIN users u ON u.id = t.by_id WHERE t.link_id = {link}"
    );
    turn.row(tx).await?.as_ref().map(stored_turn).transpose()
}

/// The turn of a document's active link, if it was passed after change number `after`.
pub(crate) async fn turn_after(
    tx: &mut Tx,
    document: DocumentId,
    after: i64,
) -> Result<Option<StoredTurn>, TxError> {
    let turn = sql!(
        "SELECT t.role, t.since, u.id AS by_id, u.name AS by_name, t.change FROM share_links l \
         JOIN turns t ON t.link_id = l.id JOIN users u ON u.id = t.by_id \
         WHERE l.document_id = {document} AND l.revoked_at IS NULL AND t.change > {after}"
    );
    turn.row(tx).await?.as_ref().map(stored_turn).transpose()
}

/// Writes the webhook of a passed turn, in its transaction.
pub(crate) async fn put_turn(
    tx: &mut Tx,
    locked: Locked,
    link: ShareLinkId,
    turn: &ReviewTurn,
) -> Result<(), TxError> {
    if !tx.hooks.want(WebhookEvent::TurnChanged) {
        return Ok(());
    }
    let title = sql!(
        "SELECT d.title FROM documents d JOIN share_links l ON l.document_id = d.id \
         WHERE l.id = {link}"
    );
    let title: String = title.one(tx).await?.get(0)?;
    let ReviewTurn { role, since, by } = turn;
    let data = || json!({ "role": role, "since": since, "by": by, "title": title });
    put(tx, WebhookEvent::TurnChanged, (Subject::link(locked, link), turn.since), data).await
}

fn stored_turn(row: &Row) -> Result<StoredTurn, TxError> {
    let by = row.user("by_id", "by_name")?;
    let turn = ReviewTurn { role: row.get("role")?, since: row.get("since")?, by };
    Ok(StoredTurn { turn, change: row.get("change")? })
}
