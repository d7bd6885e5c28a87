//! The locks of a transaction: a document's row, the history of its versions, the rows of two users.

use sqlx::PgConnection;

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::storage::decode::parse;
use crate::storage::tx_error::TxError;

/// "VERS": separates the advisory locks of version histories from others.
const LOCK_SEED: i64 = 0x5645_5253;

pub(crate) async fn lock(connection: &mut PgConnection, id: DocumentId) -> Result<bool, TxError> {
    let query = sqlx::query("SELECT 1 FROM documents WHERE id = $1 FOR NO KEY UPDATE");
    let row = query.bind(id.to_string()).fetch_optional(connection).await?;
    Ok(row.is_some())
}

/// Locks the document of a link, and returns it. `None`: there is no such link.
pub(crate) async fn lock_of(
    connection: &mut PgConnection,
    link: ShareLinkId,
) -> Result<Option<DocumentId>, TxError> {
    let id: Option<String> = sqlx::query_scalar(
        "SELECT d.id FROM share_links l JOIN documents d ON d.id = l.document_id \
         WHERE l.id = $1 FOR NO KEY UPDATE OF d",
    )
    .bind(link.to_string())
    .fetch_optional(connection)
    .await?;
    Ok(id.map(|id| parse(&id)).transpose()?)
}

pub(crate) async fn change_guards(
    connection: &mut PgConnection,
    id: DocumentId,
) -> Result<(), TxError> {
    let query = sqlx::query("UPDATE documents SET grants = grants + 1 WHERE id = $1");
    query.bind(id.to_string()).execute(connection).await?;
    Ok(())
}

/// Locks two users for a change of what both share, the lower id first. A transaction that also locks a
/// document has locked it before. Rows that refer to the users do not wait for it.
pub(crate) async fn lock_users(
    connection: &mut PgConnection,
    one: &UserId,
    other: &UserId,
) -> Result<(), TxError> {
    sqlx::query("SELECT 1 FROM users WHERE id IN ($1, $2) ORDER BY id FOR NO KEY UPDATE")
        .bind(one.as_str())
        .bind(other.as_str())
        .fetch_all(connection)
        .await?;
    Ok(())
}

/// Takes the advisory locks of these documents' histories; `documents` is sorted. It does not lock the
/// rows: an edit would wait for them, and through its group the edits of other documents. A decision on
/// versions still stays valid until the commit: only transactions under the advisory lock change
/// versions, and `last_seq` only rises.
pub(crate) async fn lock_histories(
    connection: &mut PgConnection,
    documents: &[String],
) -> Result<(), TxError> {
    for document in documents {
        sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, $2))")
            .bind(document)
            .bind(LOCK_SEED)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Waits for the transactions that append to the audit, and lets none begin: their rows are invisible until
/// they commit.
pub(crate) async fn lock_audit(connection: &mut PgConnection) -> Result<(), TxError> {
    sqlx::query("LOCK TABLE audit IN SHARE ROW EXCLUSIVE MODE").execute(connection).await?;
    Ok(())
}
