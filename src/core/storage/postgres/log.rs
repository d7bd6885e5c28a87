//! Reading and compacting the update log, on PostgreSQL.

use std::collections::HashMap;

use bytes::Bytes;

use crate::domain::ids::DocumentId;
use crate::storage::decode::parse;
use crate::storage::error::StorageError;
use crate::storage::log::{Covers, Log, Row, Tail};
use crate::storage::postgres::Postgres;
use crate::storage::postgres::{WRITE, reading, transaction};
use crate::storage::tx_error::TxError;

impl Postgres {
    pub(crate) async fn log(&self, id: DocumentId) -> Result<Option<Log>, StorageError> {
        let read = reading!(self.others, connection => {
            // One statement sees one state.
            let rows: Vec<Row> = sqlx::query_as(
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
            Ok(rows)
        })
        .map_err(TxError::into_error)?;
        Log::of_rows(read)
    }

    pub(crate) async fn log_from(
        &self,
        id: DocumentId,
        seq: i64,
    ) -> Result<Option<Tail>, StorageError> {
        let read = reading!(self.others, connection => {
            let rows: Vec<(i16, i64, Option<Vec<u8>>)> = sqlx::query_as(
                "SELECT 0::int2, COALESCE(s.upto, 0), NULL::bytea \
                 FROM documents d LEFT JOIN snapshots s ON s.document_id = d.id WHERE d.id = $1 \
                 UNION ALL \
                 SELECT 1::int2, seq, bytes FROM updates WHERE document_id = $1 AND seq >= $2",
            )
            .bind(id.to_string())
            .bind(seq)
            .fetch_all(connection)
            .await?;
            Ok(rows)
        })
        .map_err(TxError::into_error)?;
        let mut rows = read;
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

    pub(crate) async fn last_numbers(
        &self,
        ids: &[DocumentId],
    ) -> Result<HashMap<DocumentId, i64>, StorageError> {
        let wanted: Vec<_> = ids.iter().map(ToString::to_string).collect();
        let read = reading!(self.others, connection => {
            let rows: Vec<(String, i64)> =
                sqlx::query_as("SELECT id, last_seq FROM documents WHERE id = ANY($1)")
                    .bind(wanted.as_slice())
                    .fetch_all(connection)
                    .await?;
            Ok(rows)
        })
        .map_err(TxError::into_error)?;
        let rows = read;
        rows.into_iter().map(|(id, last)| Ok((parse(&id)?, last))).collect()
    }

    pub(crate) async fn compact(
        &self,
        id: DocumentId,
        upto: i64,
        merged: &Bytes,
        covers: &Covers,
    ) -> Result<bool, StorageError> {
        let compacted = transaction!(self.others, WRITE, tx => {
            // Blocks a deletion of the document until the commit; edits do not wait for this lock.
            let last: Option<i64> =
                sqlx::query_scalar("SELECT last_seq FROM documents WHERE id = $1 FOR KEY SHARE")
                    .bind(id.to_string())
                    .fetch_optional(&mut *tx)
                    .await?;
            // (D5) Not beyond the stored updates, and further than the snapshot there.
            if last.is_none_or(|last| last < upto) {
                return Ok(true);
            }
            let replaced: Vec<Vec<u8>> =
                sqlx::query_scalar("SELECT bytes FROM updates WHERE document_id = $1 AND seq <= $2")
                    .bind(id.to_string())
                    .bind(upto)
                    .fetch_all(&mut *tx)
                    .await?;
            if !replaced.iter().all(|update| covers(update)) {
                return Ok(false);
            }
            let stored = sqlx::query(
                "INSERT INTO snapshots AS s (document_id, upto, bytes) VALUES ($1, $2, $3) \
                 ON CONFLICT (document_id) DO UPDATE \
                   SET upto = excluded.upto, bytes = excluded.bytes WHERE s.upto < excluded.upto",
            )
            .bind(id.to_string())
            .bind(upto)
            .bind(merged.as_ref())
            .execute(&mut *tx)
            .await?;
            if stored.rows_affected() == 0 {
                return Ok(true);
            }
            sqlx::query("DELETE FROM updates WHERE document_id = $1 AND seq <= $2")
                .bind(id.to_string())
                .bind(upto)
                .execute(tx)
                .await?;
            Ok(true)
        });
        compacted.map_err(TxError::into_error)
    }
}
