//! Exports, on either engine.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::Row as _;

use crate::domain::export::ExportFailure;
use crate::domain::fence::Fence;
use crate::domain::webhook::WebhookEvent;
use crate::storage::decode::{corrupt, fence as fence_from, fence_column, parse};
use crate::storage::error::StorageError;
use crate::storage::exports::{
    ExportBounds, ExportBuild, ExportKey, ExportMark, ExportState, NewExport, StoredExport,
};
use crate::storage::webhooks::Subject;

use super::dialect::{
    Connection, Engine, Moment, Row, documents, encoded, lock_of, read, single, text, transact,
    user,
};
use super::webhooks::put;

/// Bytes of a file that one transaction stores: some 5 ms of SQLite's only writer.
const PIECE_BYTES_MAX: usize = 512 * 1024;

/// Stores the piece `$5` of the build with the fence `$4`, unless a later build is ratified.
const PUT_PIECE: &str = "INSERT INTO export_pieces (link_id, format, with_reviews, fence, number, bytes) \
     SELECT link_id, format, with_reviews, fence, $5, $6 FROM export_builds \
     WHERE link_id = $1 AND format = $2 AND with_reviews = $3 AND fence = $4 \
     ON CONFLICT (link_id, format, with_reviews, fence, number) DO UPDATE SET bytes = excluded.bytes";

/// The document of the link `$1` with the link's members, its file and its build.
const STATE: &str = concat!(
    "SELECT d.id, o.id AS writer_id, o.name AS writer_name, l.reviewer_id, (SELECT n.last_seq FROM ",
    documents!(),
    " n WHERE n.id = d.id) AS now_seq, d.review_changes, d.title AS now_title, \
     (SELECT string_agg(u.name, ', ' ORDER BY u.id) FROM users u JOIN ( \
        SELECT d.owner_id AS id \
        UNION SELECT r.author_id FROM reviews r WHERE $3 = 1 AND r.link_id = l.id \
        UNION SELECT p.author_id FROM replies p JOIN reviews r ON r.id = p.review_id \
        WHERE $3 = 1 AND r.link_id = l.id) a ON a.id = u.id) AS now_names, \
     e.seq, e.change, e.title, e.hash, e.length, e.took_ms, e.built_at, \
     b.fence, b.progress, b.failure, b.changed_at \
     FROM share_links l JOIN documents d ON d.id = l.document_id \
     JOIN users o ON o.id = d.owner_id \
     LEFT JOIN exports e ON e.link_id = l.id AND e.format = $2 AND e.with_reviews = $3 \
     LEFT JOIN export_builds b ON b.link_id = l.id AND b.format = $2 AND b.with_reviews = $3 \
     WHERE l.id = $1 AND l.revoked_at IS NULL AND d.deleted_at IS NULL"
);

impl Engine {
    pub(in crate::storage) async fn export_state(
        &self,
        key: ExportKey,
    ) -> Result<Option<ExportState>, StorageError> {
        read!(self, connection => {
            let row = sqlx::query(STATE)
                .bind(key.link.to_string())
                .bind(key.format.as_str())
                .bind(i64::from(key.has_reviews))
                .fetch_optional(connection)
                .await?;
            Ok(row.as_ref().map(|row| state_from(row, key)).transpose()?)
        })
    }

    pub(in crate::storage) async fn export_bytes(
        &self,
        key: ExportKey,
        hash: [u8; 32],
    ) -> Result<Option<Bytes>, StorageError> {
        read!(self, connection => {
            let pieces: Vec<Vec<u8>> = sqlx::query_scalar(
                "SELECT p.bytes FROM exports e JOIN export_pieces p ON p.link_id = e.link_id \
                 AND p.format = e.format AND p.with_reviews = e.with_reviews AND p.fence = e.fence \
                 WHERE e.link_id = $1 AND e.format = $2 AND e.with_reviews = $3 AND e.hash = $4 \
                 ORDER BY p.number",
            )
            .bind(key.link.to_string())
            .bind(key.format.as_str())
            .bind(i64::from(key.has_reviews))
            .bind(hash.as_slice())
            .fetch_all(connection)
            .await?;
            Ok((!pieces.is_empty()).then(|| Bytes::from(pieces.concat())))
        })
    }

    pub(in crate::storage) async fn begin_export(
        &self,
        key: ExportKey,
        fence: Fence,
        now: DateTime<Utc>,
    ) -> Result<bool, StorageError> {
        let number = fence_column(fence)?;
        // A second run finds its own fence and ends the build; the next request starts another.
        single!(self, tx => {
            let begun = sqlx::query(
                "INSERT INTO export_builds \
                 (link_id, format, with_reviews, fence, progress, failure, changed_at) \
                 SELECT l.id, $2, $3, $4, 0, NULL, $5 FROM share_links l \
                 JOIN documents d ON d.id = l.document_id \
                 WHERE l.id = $1 AND l.revoked_at IS NULL AND d.deleted_at IS NULL \
                 ON CONFLICT (link_id, format, with_reviews) DO UPDATE \
                 SET fence = excluded.fence, progress = 0, failure = NULL, \
                   changed_at = excluded.changed_at \
                 WHERE export_builds.fence < excluded.fence",
            )
            .bind(key.link.to_string())
            .bind(key.format.as_str())
            .bind(i64::from(key.has_reviews))
            .bind(number)
            .bind(Moment(now))
            .execute(tx)
            .await?;
            Ok(begun.rows_affected() == 1)
        })
    }

    pub(in crate::storage) async fn note_export(
        &self,
        key: ExportKey,
        build: &ExportBuild,
    ) -> Result<bool, StorageError> {
        let number = fence_column(build.fence)?;
        single!(self, tx => {
            let noted = sqlx::query(
                "UPDATE export_builds SET progress = $5, failure = $6, changed_at = $7 \
                 WHERE link_id = $1 AND format = $2 AND with_reviews = $3 AND fence = $4",
            )
            .bind(key.link.to_string())
            .bind(key.format.as_str())
            .bind(i64::from(key.has_reviews))
            .bind(number)
            .bind(i64::from(build.progress))
            .bind(build.failure.map(ExportFailure::as_str))
            .bind(Moment(build.changed_at))
            .execute(tx)
            .await?;
            Ok(noted.rows_affected() == 1)
        })
    }

    pub(in crate::storage) async fn store_export(
        &self,
        fence: Fence,
        new: &NewExport,
    ) -> Result<bool, StorageError> {
        let number = fence_column(fence)?;
        let NewExport { key, export, bytes } = new;
        let mark = &export.mark;
        let last_at = bytes.len().saturating_sub(1) / PIECE_BYTES_MAX;
        let (first, last) = bytes.split_at(last_at * PIECE_BYTES_MAX);
        for (at, piece) in (0_i64..).zip(first.chunks(PIECE_BYTES_MAX)) {
            let is_stored =
                single!(self, tx => { Ok(put_piece(tx, *key, number, at, piece).await?) })?;
            if !is_stored {
                return Ok(false);
            }
        }
        let last_at = i64::try_from(last_at).unwrap_or(i64::MAX);
        transact!(self, tx => {
            // The row of the build is locked until the commit: no later build is ratified before.
            let ended = sqlx::query(
                "UPDATE export_builds SET progress = 100, failure = NULL, changed_at = $5 \
                 WHERE link_id = $1 AND format = $2 AND with_reviews = $3 AND fence = $4",
            )
            .bind(key.link.to_string())
            .bind(key.format.as_str())
            .bind(i64::from(key.has_reviews))
            .bind(number)
            .bind(Moment(export.built_at))
            .execute(&mut *tx)
            .await?;
            if ended.rows_affected() == 0 {
                return Ok(false);
            }
            put_piece(&mut *tx, *key, number, last_at, last).await?;
            sqlx::query(
                "INSERT INTO exports (link_id, format, with_reviews, seq, change, title, hash, \
                 length, took_ms, built_at, fence) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
                 ON CONFLICT (link_id, format, with_reviews) DO UPDATE \
                 SET seq = excluded.seq, change = excluded.change, title = excluded.title, \
                   hash = excluded.hash, length = excluded.length, took_ms = excluded.took_ms, \
                   built_at = excluded.built_at, fence = excluded.fence",
            )
            .bind(key.link.to_string())
            .bind(key.format.as_str())
            .bind(i64::from(key.has_reviews))
            .bind(mark.seq)
            .bind(mark.change)
            .bind(encoded(&[&*mark.title, &mark.names, &mark.zone].join("\n")))
            .bind(export.hash.as_slice())
            .bind(export.length)
            .bind(export.took_ms)
            .bind(Moment(export.built_at))
            .bind(number)
            .execute(&mut *tx)
            .await?;
            if self.hooks.want(WebhookEvent::DocumentExported) {
                // Edits of the document wait for this lock, so it comes after the file.
                lock_of(tx, key.link).await?;
                let about = (Subject::link(key.link), export.built_at);
                let data = || {
                    let format = key.format.as_str();
                    json!({ "format": format, "reviews": key.has_reviews, "bytes": export.length })
                };
                put(tx, &self.hooks, WebhookEvent::DocumentExported, about, data).await?;
            }
            Ok(true)
        })
    }

    pub(in crate::storage) async fn trim_exports(
        &self,
        bounds: ExportBounds,
        newest: Option<ExportKey>,
    ) -> Result<u64, StorageError> {
        let link = newest.map(|key| key.link.to_string()).unwrap_or_default();
        let trimmed = single!(self, tx => {
            // The window counts the bytes of each file and of all later ones.
            let trimmed = sqlx::query(
                "DELETE FROM exports WHERE (link_id, format, with_reviews) IN ( \
                   SELECT r.link_id, r.format, r.with_reviews FROM ( \
                     SELECT link_id, format, with_reviews, built_at, \
                       ROW_NUMBER() OVER newer AS number, SUM(length) OVER newer AS bytes, \
                       SUM(length) OVER (PARTITION BY link_id ORDER BY built_at DESC, format, \
                         with_reviews ROWS UNBOUNDED PRECEDING) AS link_bytes \
                     FROM exports \
                     WINDOW newer AS (ORDER BY built_at DESC, link_id, format, with_reviews \
                       ROWS UNBOUNDED PRECEDING)) r \
                   WHERE $1 < r.number OR $2 < r.bytes OR $3 < r.link_bytes OR r.built_at < $4) \
                 AND NOT (link_id = $5 AND format = $6 AND with_reviews = $7)",
            )
            .bind(bounds.rows)
            .bind(bounds.bytes)
            .bind(bounds.link_bytes)
            .bind(Moment(bounds.built_after))
            .bind(link.as_str())
            .bind(newest.map_or("", |key| key.format.as_str()))
            .bind(newest.map_or(0, |key| i64::from(key.has_reviews)))
            .execute(tx)
            .await?;
            Ok(trimmed.rows_affected())
        })?;
        // The pieces of replaced and deleted files, and of builds that a later one has overtaken.
        single!(self, tx => {
            sqlx::query(
                "DELETE FROM export_pieces WHERE NOT EXISTS (SELECT 1 FROM exports e \
                   WHERE e.link_id = export_pieces.link_id AND e.format = export_pieces.format \
                   AND e.with_reviews = export_pieces.with_reviews \
                   AND e.fence = export_pieces.fence) \
                 AND NOT EXISTS (SELECT 1 FROM export_builds b \
                   WHERE b.link_id = export_pieces.link_id AND b.format = export_pieces.format \
                   AND b.with_reviews = export_pieces.with_reviews \
                   AND b.fence = export_pieces.fence AND b.progress < 100 AND $1 < b.changed_at)",
            )
            .bind(Moment(bounds.built_after))
            .execute(tx)
            .await?;
            Ok(trimmed)
        })
    }
}

/// Stores a piece of a build. False: a later build is ratified.
async fn put_piece(
    tx: &mut Connection,
    key: ExportKey,
    fence: i64,
    number: i64,
    bytes: &[u8],
) -> Result<bool, sqlx::Error> {
    let put = sqlx::query(PUT_PIECE)
        .bind(key.link.to_string())
        .bind(key.format.as_str())
        .bind(i64::from(key.has_reviews))
        .bind(fence)
        .bind(number)
        .bind(bytes)
        .execute(tx)
        .await?;
    Ok(put.rows_affected() == 1)
}

fn state_from(row: &Row, key: ExportKey) -> Result<ExportState, StorageError> {
    let number = |column: &str| row.try_get::<i64, _>(column);
    let hash: Option<Vec<u8>> = row.try_get("hash")?;
    let stored = match hash {
        None => None,
        Some(hash) => {
            let stored = text(row.try_get::<String, _>("title")?);
            // A file of an earlier version has no zone, and so is out of date.
            let mut parts = stored.split('\n').map(str::to_owned);
            let [title, names, zone] = [(); 3].map(|()| parts.next().unwrap_or_default());
            let Moment(built_at) = row.try_get("built_at")?;
            Some(StoredExport {
                mark: ExportMark {
                    seq: number("seq")?,
                    change: number("change")?,
                    title,
                    names,
                    zone,
                },
                hash: hash.try_into().map_err(|_| corrupt("a hash of another length"))?,
                length: number("length")?,
                took_ms: number("took_ms")?,
                built_at,
            })
        }
    };
    let fence: Option<i64> = row.try_get("fence")?;
    let build = match fence {
        None => None,
        Some(fence) => {
            let failure: Option<String> = row.try_get("failure")?;
            let Moment(changed_at) = row.try_get("changed_at")?;
            Some(ExportBuild {
                fence: fence_from(fence)?,
                progress: u8::try_from(number("progress")?).map_err(corrupt)?,
                failure: failure.as_deref().map(ExportFailure::from_name),
                changed_at,
            })
        }
    };
    let [title, names] = [row.try_get("now_title")?, row.try_get("now_names")?].map(text);
    let change = number("review_changes")?;
    let zone = key.zone.name().to_owned();
    let now = ExportMark { seq: number("now_seq")?, change, title, names, zone };
    let reviewer: Option<String> = row.try_get("reviewer_id")?;
    Ok(ExportState {
        document: parse(&row.try_get::<String, _>("id")?)?,
        writer: user(&row.try_get::<String, _>("writer_id")?, row.try_get("writer_name")?)?,
        reviewer: reviewer.as_deref().map(parse).transpose()?,
        now,
        stored,
        build,
    })
}
