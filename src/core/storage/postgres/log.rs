//! Reading the update log, on PostgreSQL.

use bytes::Bytes;
use sqlx::PgConnection;

use crate::domain::ids::DocumentId;
use crate::storage::log::{DocumentRow, Log, Tail};
use crate::storage::tx_error::TxError;

pub(crate) async fn log(
    connection: &mut PgConnection,
    id: DocumentId,
) -> Result<Option<Log>, TxError> {
    // One statement sees one state.
    let rows: Vec<DocumentRow> = sqlx::query_as(
        "SELECT 0::int8, last_seq, NULL::bytea, NULL::text FROM documents WHERE id = $1 \
         UNION ALL \
         SELECT 1::int8, upto, bytes, NULL FROM snapshots WHERE document_id = $1 \
         UNION ALL \
         SELECT 2::int8, seq, bytes, NULL FROM updates WHERE document_id = $1 \
         UNION ALL \
         SELECT 3::int8, client, NULL, user_id FROM clients \
         WHERE document_id = $1 AND user_id IS NOT NULL \
         UNION ALL \
         SELECT 4::int8, review_changes, NULL, NULL FROM documents WHERE id = $1",
    )
    .bind(id.to_string())
    .fetch_all(connection)
    .await?;
    Ok(Log::of_rows(rows)?)
}

pub(crate) async fn log_from(
    connection: &mut PgConnection,
    id: DocumentId,
    seq: i64,
) -> Result<Option<Tail>, TxError> {
    let mut rows: Vec<(i16, i64, Option<Vec<u8>>)> = sqlx::query_as(
        "SELECT 0::int2, COALESCE(s.upto, 0), NULL::bytea \
         FROM documents d LEFT JOIN snapshots s ON s.document_id = d.id WHERE d.id = $1 \
         UNION ALL \
         SELECT 1::int2, seq, bytes FROM updates WHERE document_id = $1 AND seq >= $2",
    )
    .bind(id.to_string())
    .bind(seq)
    .fetch_all(connection)
    .await?;
    // Sorted here, like the rows of a log, and for the same reason.
    rows.sort_unstable_by_key(|(kind, seq, _)| (*kind, *seq));
    let mut rows = rows.into_iter();
    let Some((0, merged_upto, _)) = rows.next() else {
        return Ok(None);
    };
    if seq < merged_upto {
        return Ok(None);
    }
    let updates = rows.filter_map(|(_, seq, bytes)| Some((seq, Bytes::from(bytes?))));
    Ok(Some(Tail { updates: updates.collect() }))
}
