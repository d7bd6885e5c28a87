//! The statements of update logs. [`log`](super::log) has their types; what an engine does its own way stands in
//! its folder.

use std::collections::HashMap;
use std::slice;

use bytes::Bytes;

use crate::domain::ids::DocumentId;
use crate::storage::decode::corrupt;
use crate::storage::error::StorageError;
use crate::storage::guard::Guarded;
use crate::storage::log::{Append, Appended, Covers, LastNumbers, Log, Tail};
use crate::storage::statement::{Row, json, sql};
use crate::storage::tx::{Conn, Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::{Engine, Storage, StorageFuture, postgres, sqlite};

impl Storage {
    /// Reads the whole log of a document. `None`: there is no such document.
    pub fn log(&self, id: DocumentId) -> StorageFuture<'_, Option<Log>> {
        match &self.engine {
            Engine::Sqlite(engine) => Box::pin(engine.log(id)),
            Engine::Postgres(_) => {
                run!(self, Read, tx => { postgres::log::log(tx.postgres()?, id).await })
            }
        }
    }

    /// Reads the updates after number `seq`, and that update itself unless a compaction merged it: the
    /// caller compares it. `None`: a compaction merged later ones, or the document is deleted; the
    /// caller loads the whole log.
    pub fn log_from(&self, id: DocumentId, seq: i64) -> StorageFuture<'_, Option<Tail>> {
        match &self.engine {
            Engine::Sqlite(engine) => Box::pin(engine.log_from(id, seq)),
            Engine::Postgres(_) => {
                run!(self, Read, tx => { postgres::log::log_from(tx.postgres()?, id, seq).await })
            }
        }
    }

    /// The last numbers of each of these documents, read in one statement. Missing documents are left out.
    pub fn last_numbers<'a>(
        &'a self,
        ids: &'a [DocumentId],
    ) -> StorageFuture<'a, HashMap<DocumentId, LastNumbers>> {
        run!(self, Read, tx => {
            // SQLite scans the journal once, for any number of documents.
            let numbers = sql!(
                sqlite: [
                    "WITH journaled (id, last) AS MATERIALIZED ( \
                       SELECT document_id, MAX(seq) FROM journal GROUP BY document_id) \
                     SELECT d.id, MAX(d.last_seq, COALESCE(j.last, 0)), d.review_changes \
                     FROM json_each({ids}) w CROSS JOIN documents d ON d.id = w.value \
                     LEFT JOIN journaled j ON j.id = d.id",
                ],
                postgres: ["SELECT id, last_seq, review_changes FROM documents \
                            WHERE id = ANY(ARRAY(SELECT w.value FROM {@list:{ids}}))"],
                ids = json(ids)?
            );
            let numbers_of = |row: &Row| {
                Ok((row.get(0)?, LastNumbers { update: row.get(1)?, review_change: row.get(2)? }))
            };
            numbers.rows(tx).await?.iter().map(numbers_of).collect()
        })
    }

    /// Stores a group of updates in one transaction, with one outcome for each, by position. A refused
    /// update also refuses the later ones on the same document, and no others. After an error none is
    /// stored; if the reply to the commit was lost, all may be. Dropped before the commit, it stores
    /// nothing. Dropped during the commit, the outcome is unknown. Updates are idempotent, so the
    /// caller retries.
    pub async fn append(&self, batch: &[Append]) -> Result<Vec<Appended>, StorageError> {
        match &self.engine {
            Engine::Sqlite(engine) => engine.append(batch).await,
            // Boxed: otherwise the future of every caller contains the space of this one.
            Engine::Postgres(engine) => Box::pin(engine.append(batch)).await,
        }
    }

    /// Stores a group as [`append`](Self::append) does, without waiting for the locks of other
    /// transactions: an update of a locked document returns `Busy` at once. Cancel safe as `append` is. SQLite
    /// locks the file and no rows: no document waits for the lock of another.
    pub async fn append_unlocked(&self, batch: &[Append]) -> Result<Vec<Appended>, StorageError> {
        match &self.engine {
            Engine::Sqlite(engine) => engine.append(batch).await,
            Engine::Postgres(engine) => Box::pin(engine.append_unlocked(batch)).await,
        }
    }

    /// Replaces all updates up to number `upto` by a snapshot. Later updates stay; so does a snapshot
    /// that reaches as far or further (D5). False, and nothing changes, if the snapshot does not cover
    /// an update that it would replace: the database was set back, and gave the number again.
    pub fn compact<'a>(
        &'a self,
        id: DocumentId,
        upto: i64,
        merged: &'a Bytes,
        covers: &'a Covers,
    ) -> StorageFuture<'a, bool> {
        run!(self, Write, tx => {
            if let Conn::Sqlite(conn) = tx.conn() {
                sqlite::journal::clear(conn, Some(id)).await?;
            }
            let replaced =
                sql!("SELECT bytes FROM updates WHERE document_id = {id} AND seq <= {upto}");
            if !replaced.values::<Vec<u8>>(tx).await?.iter().all(|update| covers(update)) {
                return Ok(false);
            }
            // (D5) Inserts no row unless it reaches further than the snapshot there, and only stored updates. The
            // lock blocks a deletion of the document until the commit; edits do not wait for it.
            let stored = sql!(
                "INSERT INTO snapshots AS s (document_id, upto, bytes) \
                 SELECT d.id, {upto}, {merged} FROM documents d WHERE d.id = {id} \
                 AND {upto} <= d.last_seq{@key share} \
                 ON CONFLICT (document_id) DO UPDATE \
                   SET upto = excluded.upto, bytes = excluded.bytes WHERE s.upto < excluded.upto"
            );
            if stored.run(tx).await? > 0 {
                sql!("DELETE FROM updates WHERE document_id = {id} AND seq <= {upto}")
                    .run(tx)
                    .await?;
            }
            Ok(true)
        })
    }
}

/// Stores an edit of the server under the lock of its document, or refuses.
pub(crate) async fn store_edit(tx: &mut Tx, edit: &Append) -> Result<i64, TxError> {
    let batch = slice::from_ref(edit);
    let appended = match tx.conn() {
        Conn::Sqlite(conn) => sqlite::log::append_in(conn, batch).await?,
        Conn::Postgres(conn) => postgres::append::append_in(conn, batch).await?,
    };
    let refused = match appended.into_iter().next() {
        Some(Appended::Stored { seq }) => return Ok(seq),
        Some(Appended::Fenced) => Guarded::Fenced,
        Some(
            Appended::Stale
            | Appended::ForeignClient { .. }
            | Appended::Orphaned
            | Appended::SetBack { .. }
            | Appended::Busy,
        ) => Guarded::Stale,
        Some(Appended::Damaged) => {
            return Err(TxError::Failed(corrupt("a seat or an owner does not parse")));
        }
        Some(Appended::Gone) | None => Guarded::NotFound,
    };
    Err(TxError::Refused(refused))
}
