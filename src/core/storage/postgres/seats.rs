//! The grant that PostgreSQL ratifies.
//!
//! A transaction that changes the rows of a guard also increments `documents.grants`, under the lock of
//! the document. So a group of edits detects the change in that row.

use crate::storage::statement::sql;
use crate::storage::tx::Tx;
use crate::storage::tx_error::TxError;
use crate::storage::webhook_seats::Grant;

/// Stores a grant if it exceeds the last fence of its seat, whose document is locked.
pub(crate) async fn accept(tx: &mut Tx, grant: &Grant) -> Result<bool, TxError> {
    let Grant { seat, fence, session, ref user, now } = *grant;
    let ratified = sql!(
        "WITH active AS ( \
           SELECT id, document_id FROM share_links WHERE id = {seat.link} AND revoked_at IS NULL \
           AND ({seat.role} <> 'reviewer' OR reviewer_id = {user}) \
         ), ratified AS ( \
           INSERT INTO seats AS s (link_id, role, fence, session_id, user_id, ratified_at) \
           SELECT a.id, {seat.role}, {fence}, {session}, {user}, {now} FROM active a \
           ON CONFLICT (link_id, role) DO UPDATE SET fence = excluded.fence, \
             session_id = excluded.session_id, user_id = excluded.user_id, \
             ratified_at = excluded.ratified_at \
           WHERE s.fence < excluded.fence \
             OR (s.fence = excluded.fence AND s.session_id = excluded.session_id) \
           RETURNING 1 \
         ) UPDATE documents d SET grants = d.grants + 1 FROM active a, ratified \
         WHERE d.id = a.document_id"
    );
    Ok(ratified.run(tx).await? > 0)
}
