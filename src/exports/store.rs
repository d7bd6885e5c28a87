//! Exports: the last file of each format of a share link, and the builds of these files.
//!
//! The lock of a build carries a fence. [`begin_export`] ratifies it; from then on the database rejects the file of
//! every earlier build. So of two builds that overlap, because a server froze beyond its lease, only the later
//! one stores its file.

use crate::domain::export::{ExportFailure, ExportFormat};
use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::reminder::TimeZone;
use crate::domain::user::User;
use crate::domain::webhook::WebhookEvent;
use crate::storage::decode::corrupt;
use crate::storage::locks::lock_of;
use crate::storage::statement::{Row, sql};
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::webhooks::{Subject, put};
use crate::storage::{Storage, StorageFuture};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde_json::json;

/// The name of a file among all exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExportKey {
    pub link: ShareLinkId,
    pub format: ExportFormat,
    pub has_reviews: bool,
    /// The zone of its times. The database stores the file of one zone, the last that was asked for.
    pub zone: TimeZone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportMark {
    pub seq: i64,
    /// The number of the last change of the reviews.
    pub change: i64,
    pub title: String,
    /// The names of its writer and of the authors of its reviews.
    pub names: String,
    pub zone: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredExport {
    pub mark: ExportMark,
    /// SHA-256 of the bytes.
    pub hash: [u8; 32],
    pub length: i64,
    /// Milliseconds.
    pub took_ms: i64,
    pub built_at: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportBuild {
    pub fence: Fence,
    /// 0 to 100.
    pub progress: u8,
    /// Why it produced no file. `None`: it runs, it has stored its file, or its server died.
    pub failure: Option<ExportFailure>,
    pub changed_at: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportState {
    pub document: DocumentId,
    pub writer: User,
    pub reviewer: Option<UserId>,
    pub now: ExportMark,
    pub stored: Option<StoredExport>,
    pub build: Option<ExportBuild>,
}

impl ExportState {
    #[must_use]
    pub fn has_member(&self, user: &UserId) -> bool {
        self.writer.id == *user || self.reviewer.as_ref() == Some(user)
    }
}

#[derive(Clone, Debug)]
pub struct NewExport {
    pub key: ExportKey,
    pub export: StoredExport,
    pub bytes: Bytes,
}

/// The bounds of all stored files.
#[derive(Clone, Copy, Debug)]
pub struct ExportBounds {
    pub rows: i64,
    pub bytes: i64,
    pub link_bytes: i64,
    /// Files that were built before this time are deleted.
    pub built_after: DateTime<Utc>,
}

/// Bytes of a file that one transaction stores: some 5 ms of SQLite's only writer.
const PIECE_BYTES_MAX: usize = 512 * 1024;

/// `None`: there is no such link.
pub fn export_state(storage: &Storage, key: ExportKey) -> StorageFuture<'_, Option<ExportState>> {
    run!(storage, Read, tx => {
        let state = sql!(
            "SELECT d.id, o.id AS writer_id, o.name AS writer_name, l.reviewer_id, \
             (SELECT n.last_seq FROM {@documents} n WHERE n.id = d.id) AS now_seq, \
             d.review_changes, d.title AS now_title, \
             (SELECT string_agg(u.name, ', ' ORDER BY u.id) FROM users u JOIN ( \
                SELECT d.owner_id AS id \
                UNION SELECT r.author_id FROM reviews r WHERE {reviews} = 1 AND r.link_id = l.id \
                UNION SELECT p.author_id FROM replies p JOIN reviews r ON r.id = p.review_id \
                WHERE {reviews} = 1 AND r.link_id = l.id) a ON a.id = u.id) AS now_names, \
             e.seq, e.change, e.title, e.hash, e.length, e.took_ms, e.built_at, \
             b.fence, b.progress, b.failure, b.changed_at \
             FROM share_links l JOIN documents d ON d.id = l.document_id \
             JOIN users o ON o.id = d.owner_id \
             LEFT JOIN exports e ON e.link_id = l.id AND e.format = {key.format} \
             AND e.with_reviews = {reviews} LEFT JOIN export_builds b \
             ON b.link_id = l.id AND b.format = {key.format} AND b.with_reviews = {reviews} \
             WHERE l.id = {key.link} AND l.revoked_at IS NULL AND d.deleted_at IS NULL",
            reviews = i64::from(key.has_reviews)
        );
        state.row(tx).await?.map(|row| state_from(&row, key)).transpose()
    })
}

/// `None`: it is deleted, or another one has replaced it.
pub fn export_bytes(
    storage: &Storage,
    key: ExportKey,
    hash: [u8; 32],
) -> StorageFuture<'_, Option<Bytes>> {
    run!(storage, Read, tx => {
        let pieces = sql!(
            "SELECT p.bytes FROM exports e JOIN export_pieces p ON p.link_id = e.link_id \
             AND p.format = e.format AND p.with_reviews = e.with_reviews AND p.fence = e.fence \
             WHERE e.link_id = {key.link} AND e.format = {key.format} \
             AND e.with_reviews = {reviews} AND e.hash = {hash} ORDER BY p.number",
            reviews = i64::from(key.has_reviews)
        );
        let pieces: Vec<Vec<u8>> = pieces.values(tx).await?;
        Ok((!pieces.is_empty()).then(|| Bytes::from(pieces.concat())))
    })
}

/// Ratifies the fence of a build. False: a later build is ratified, or the link has ended.
pub fn begin_export(
    storage: &Storage,
    key: ExportKey,
    fence: Fence,
    now: DateTime<Utc>,
) -> StorageFuture<'_, bool> {
    // A second run finds its own fence and ends the build; the next request starts another.
    run!(storage, One, tx => {
        let begun = sql!(
            "INSERT INTO export_builds \
             (link_id, format, with_reviews, fence, progress, failure, changed_at) \
             SELECT l.id, {key.format}, {reviews}, {fence}, 0, NULL, {now} FROM share_links l \
             JOIN documents d ON d.id = l.document_id \
             WHERE l.id = {key.link} AND l.revoked_at IS NULL AND d.deleted_at IS NULL \
             ON CONFLICT (link_id, format, with_reviews) DO UPDATE \
             SET fence = excluded.fence, progress = 0, failure = NULL, \
               changed_at = excluded.changed_at \
             WHERE export_builds.fence < excluded.fence",
            reviews = i64::from(key.has_reviews)
        );
        Ok(begun.run(tx).await? == 1)
    })
}

/// Stores the progress or the failure of a build. False: a later build is ratified.
pub fn note_export<'a>(
    storage: &'a Storage,
    key: ExportKey,
    build: &'a ExportBuild,
) -> StorageFuture<'a, bool> {
    run!(storage, One, tx => { note(tx, key, build).await })
}

/// False: a later build is ratified, and the file is not stored.
pub fn store_export<'a>(
    storage: &'a Storage,
    fence: Fence,
    new: &'a NewExport,
) -> StorageFuture<'a, bool> {
    let NewExport { key, bytes, .. } = new;
    let last_at = bytes.len().saturating_sub(1) / PIECE_BYTES_MAX;
    let (first, last) = bytes.split_at(last_at * PIECE_BYTES_MAX);
    Box::pin(async move {
        let mut is_current = true;
        for (at, piece) in first.chunks(PIECE_BYTES_MAX).enumerate() {
            is_current = is_current && store_piece(storage, *key, fence, at, piece).await?;
        }
        Ok(is_current && end_export(storage, fence, new, last_at, last).await?)
    })
}

fn end_export<'a>(
    storage: &'a Storage,
    fence: Fence,
    new: &'a NewExport,
    number: usize,
    piece: &'a [u8],
) -> StorageFuture<'a, bool> {
    let NewExport { key, export, .. } = new;
    run!(storage, Write, tx => {
        // The row of the build is locked until the commit: no later build is ratified before.
        let changed_at = export.built_at;
        let build = ExportBuild { fence, progress: 100, failure: None, changed_at };
        if !note(tx, *key, &build).await? {
            return Ok(false);
        }
        put_piece(tx, *key, fence, number, piece).await?;
        put_file(tx, *key, export, fence).await?;
        put_exported(tx, *key, export).await?;
        Ok(true)
    })
}

fn store_piece<'a>(
    storage: &'a Storage,
    key: ExportKey,
    fence: Fence,
    number: usize,
    bytes: &'a [u8],
) -> StorageFuture<'a, bool> {
    run!(storage, One, tx => { put_piece(tx, key, fence, number, bytes).await })
}

/// Oldest first, and never that of `newest`. Returns the number.
pub fn trim_exports(
    storage: &Storage,
    bounds: ExportBounds,
    newest: Option<ExportKey>,
) -> StorageFuture<'_, u64> {
    let link = newest.map(|key| key.link.to_string()).unwrap_or_default();
    Box::pin(async move {
        let trimmed = run!(storage, One, tx => {
            // The window counts the bytes of each file and of all later ones.
            let trimmed = sql!(
                "DELETE FROM exports WHERE (link_id, format, with_reviews) IN ( \
                   SELECT r.link_id, r.format, r.with_reviews FROM ( \
                     SELECT link_id, format, with_reviews, built_at, \
                       ROW_NUMBER() OVER newer AS number, SUM(length) OVER newer AS bytes, \
                       SUM(length) OVER (PARTITION BY link_id ORDER BY built_at DESC, format, \
                         with_reviews ROWS UNBOUNDED PRECEDING) AS link_bytes \
                     FROM exports \
                     WINDOW newer AS (ORDER BY built_at DESC, link_id, format, with_reviews \
                       ROWS UNBOUNDED PRECEDING)) r \
                   WHERE {bounds.rows} < r.number OR {bounds.bytes} < r.bytes \
                   OR {bounds.link_bytes} < r.link_bytes OR r.built_at < {bounds.built_after}) \
                 AND NOT (link_id = {link} AND format = {format} AND with_reviews = {reviews})",
                format = newest.map_or("", |key| key.format.as_str()),
                reviews = newest.map_or(0, |key| i64::from(key.has_reviews))
            );
            trimmed.run(tx).await
        });
        let trimmed: Result<u64, _> = trimmed.await;
        let trimmed = trimmed?;
        // The pieces of replaced and deleted files, and of builds that a later one has overtaken.
        let pieces = run!(storage, One, tx => {
            let pieces = sql!(
                "DELETE FROM export_pieces WHERE NOT EXISTS (SELECT 1 FROM exports e \
                   WHERE e.link_id = export_pieces.link_id AND e.format = export_pieces.format \
                   AND e.with_reviews = export_pieces.with_reviews \
                   AND e.fence = export_pieces.fence) \
                 AND NOT EXISTS (SELECT 1 FROM export_builds b \
                   WHERE b.link_id = export_pieces.link_id AND b.format = export_pieces.format \
                   AND b.with_reviews = export_pieces.with_reviews \
                   AND b.fence = export_pieces.fence AND b.progress < 100 \
                   AND {bounds.built_after} < b.changed_at)"
            );
            pieces.run(tx).await
        });
        pieces.await?;
        Ok(trimmed)
    })
}

async fn note(tx: &mut Tx, key: ExportKey, build: &ExportBuild) -> Result<bool, TxError> {
    let noted = sql!(
        "UPDATE export_builds SET progress = {i64::from(build.progress)}, failure = {failure}, \
         changed_at = {build.changed_at} WHERE link_id = {key.link} AND format = {key.format} \
         AND with_reviews = {reviews} AND fence = {build.fence}",
        reviews = i64::from(key.has_reviews),
        failure = build.failure.map(ExportFailure::as_str)
    );
    Ok(noted.run(tx).await? == 1)
}

/// Stores a piece of a build. False: a later build is ratified.
async fn put_piece(
    tx: &mut Tx,
    key: ExportKey,
    fence: Fence,
    number: usize,
    bytes: &[u8],
) -> Result<bool, TxError> {
    let put = sql!(
        "INSERT INTO export_pieces (link_id, format, with_reviews, fence, number, bytes) \
         SELECT link_id, format, with_reviews, fence, {number}, {bytes} FROM export_builds \
         WHERE link_id = {key.link} AND format = {key.format} AND with_reviews = {reviews} \
         AND fence = {fence} ON CONFLICT (link_id, format, with_reviews, fence, number) \
         DO UPDATE SET bytes = excluded.bytes",
        reviews = i64::from(key.has_reviews)
    );
    Ok(put.run(tx).await? == 1)
}

async fn put_file(
    tx: &mut Tx,
    key: ExportKey,
    export: &StoredExport,
    fence: Fence,
) -> Result<(), TxError> {
    let mark = &export.mark;
    sql!(
        "INSERT INTO exports (link_id, format, with_reviews, seq, change, title, hash, \
         length, took_ms, built_at, fence) \
         VALUES ({key.link}, {key.format}, {reviews}, {mark.seq}, {mark.change}, {title}, \
         {export.hash}, {export.length}, {export.took_ms}, {export.built_at}, {fence}) \
         ON CONFLICT (link_id, format, with_reviews) DO UPDATE \
         SET seq = excluded.seq, change = excluded.change, title = excluded.title, \
           hash = excluded.hash, length = excluded.length, took_ms = excluded.took_ms, \
           built_at = excluded.built_at, fence = excluded.fence",
        reviews = i64::from(key.has_reviews),
        title = [&*mark.title, &mark.names, &mark.zone].join("\n")
    )
    .run(tx)
    .await?;
    Ok(())
}

/// Writes the webhooks of a file. Edits of the document wait for this lock, so it comes after the file.
async fn put_exported(tx: &mut Tx, key: ExportKey, export: &StoredExport) -> Result<(), TxError> {
    if !tx.hooks.want(WebhookEvent::DocumentExported) {
        return Ok(());
    }
    let locked = lock_of(tx, key.link).await?;
    let about = (Subject::link(locked, key.link), export.built_at);
    let data = || {
        let format = key.format.as_str();
        json!({ "format": format, "reviews": key.has_reviews, "bytes": export.length })
    };
    put(tx, WebhookEvent::DocumentExported, about, data).await
}

fn state_from(row: &Row, key: ExportKey) -> Result<ExportState, TxError> {
    let stored = match row.get::<Option<[u8; 32]>>("hash")? {
        None => None,
        Some(hash) => {
            let stored: String = row.get("title")?;
            // A file of an earlier version has no zone, and so is out of date.
            let mut parts = stored.split('\n').map(str::to_owned);
            let [title, names, zone] = [(); 3].map(|()| parts.next().unwrap_or_default());
            let (seq, change) = (row.get("seq")?, row.get("change")?);
            Some(StoredExport {
                mark: ExportMark { seq, change, title, names, zone },
                hash,
                length: row.get("length")?,
                took_ms: row.get("took_ms")?,
                built_at: row.get("built_at")?,
            })
        }
    };
    let build = match row.get("fence")? {
        None => None,
        Some(fence) => {
            let failure: Option<String> = row.get("failure")?;
            Some(ExportBuild {
                fence,
                progress: u8::try_from(row.get::<i64>("progress")?).map_err(corrupt)?,
                failure: failure.as_deref().map(ExportFailure::from_name),
                changed_at: row.get("changed_at")?,
            })
        }
    };
    let now = ExportMark {
        seq: row.get("now_seq")?,
        change: row.get("review_changes")?,
        title: row.get("now_title")?,
        names: row.get("now_names")?,
        zone: key.zone.name().to_owned(),
    };
    Ok(ExportState {
        document: row.get("id")?,
        writer: row.user("writer_id", "writer_name")?,
        reviewer: row.get("reviewer_id")?,
        now,
        stored,
        build,
    })
}
