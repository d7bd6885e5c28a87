//! Reviews, on `SQLite`.

use std::slice;

use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;

use crate::domain::anchor::RelativeRange;
use crate::domain::ids::{ReviewId, ShareLinkId};
use crate::domain::limits::{REPLIES_PER_REVIEW_MAX, REVIEWS_PER_LINK_MAX};
use crate::domain::review::ReviewStatus;
use crate::storage::decode::corrupt;
use crate::storage::error::StorageError;
use crate::storage::log::{Append, Appended};
use crate::storage::pagination::Cursor;
use crate::storage::reviews::{
    NewReply, NewReview, ReviewChange, ReviewPage, StoredReview, is_too_large,
};
use crate::storage::seats::{FenceGuard, GuardError, Guarded, finish};
use crate::storage::sqlite::Sqlite;
use crate::storage::sqlite::log::{append_in, refresh_cache};
use crate::storage::sqlite::review_changes::{note_change, note_deletion};
use crate::storage::sqlite::review_rows::{fetch_one, fetch_page, status};
use crate::storage::sqlite::seats::require_seat;
use crate::storage::sqlite::users::put_user;
use crate::storage::sqlite::write_cache::{CachedRows, Invalidate};

/// The columns of a review that decide whether a change is allowed.
struct ReviewRow {
    version: i64,
    status: ReviewStatus,
    bytes: i64,
}

impl Sqlite {
    pub(in crate::storage) async fn create_review(
        &self,
        new: &NewReview,
        guard: FenceGuard,
    ) -> Result<Guarded<StoredReview>, StorageError> {
        finish(self.try_create_review(new, guard).await)
    }

    async fn try_create_review(
        &self,
        new: &NewReview,
        guard: FenceGuard,
    ) -> Result<StoredReview, GuardError> {
        let mut tx = self.write(Invalidate::Nothing).await?;
        admit(&mut tx, new.link, guard).await?;
        let reviews: i64 = sqlx::query_scalar("SELECT count(*) FROM reviews WHERE link_id = $1")
            .bind(new.link.to_string())
            .fetch_one(&mut *tx)
            .await?;
        if REVIEWS_PER_LINK_MAX <= reviews {
            return Err(GuardError::Refused(Guarded::Full));
        }
        put_user(&mut tx, &new.author, new.now).await?;
        sqlx::query(
            "INSERT INTO reviews (id, link_id, author_id, anchor_start, anchor_end, quote, \
             prefix, suffix, current_start, current_end, body, suggestion, status, version, \
             created_at, updated_at, bytes) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 1, $14, $14, $15)",
        )
        .bind(new.id.to_string())
        .bind(new.link.to_string())
        .bind(new.author.id.as_str())
        .bind(new.origin.range.start)
        .bind(new.origin.range.end)
        .bind(new.origin.quote.as_str())
        .bind(new.origin.prefix.as_str())
        .bind(new.origin.suffix.as_str())
        .bind(new.current.start.as_slice())
        .bind(new.current.end.as_slice())
        .bind(new.body.as_str())
        .bind(new.suggestion.as_deref())
        .bind(ReviewStatus::Open.as_str())
        .bind(new.now.timestamp_millis())
        .bind(new.bytes())
        .execute(&mut *tx)
        .await?;
        weigh(&mut tx, new.link, new.id, 0).await?;
        let review = the_review(&mut tx, new.link, new.id).await?;
        tx.commit().await?;
        Ok(review)
    }

    pub(in crate::storage) async fn reviews(
        &self,
        link: ShareLinkId,
        after: Option<Cursor<ReviewId>>,
        rows: u32,
    ) -> Result<ReviewPage, StorageError> {
        fetch_page(&mut *self.read().await?, link, after, rows).await
    }

    pub(in crate::storage) async fn review(
        &self,
        link: ShareLinkId,
        id: ReviewId,
    ) -> Result<Option<StoredReview>, StorageError> {
        fetch_one(&mut *self.read().await?, link, id).await
    }

    pub(in crate::storage) async fn change_review(
        &self,
        link: ShareLinkId,
        id: ReviewId,
        change: &ReviewChange,
        expected_version: Option<i64>,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> Result<Guarded<StoredReview>, StorageError> {
        let changing = async {
            let mut tx = self.write(Invalidate::Nothing).await?;
            admit(&mut tx, link, guard).await?;
            let row = lock_for_update(&mut tx, link, id, expected_version).await?;
            if !change.fits(row.status) {
                let current = row.version;
                return Err(GuardError::Refused(Guarded::VersionMismatch { current }));
            }
            update(&mut tx, id, change, now).await?;
            weigh(&mut tx, link, id, row.bytes).await?;
            let review = the_review(&mut tx, link, id).await?;
            tx.commit().await?;
            Ok(review)
        };
        finish(changing.await)
    }

    pub(in crate::storage) async fn delete_review(
        &self,
        link: ShareLinkId,
        id: ReviewId,
        expected_version: Option<i64>,
        guard: FenceGuard,
    ) -> Result<Guarded<i64>, StorageError> {
        let deleting = async {
            let mut tx = self.write(Invalidate::Nothing).await?;
            admit(&mut tx, link, guard).await?;
            lock_for_update(&mut tx, link, id, expected_version).await?;
            sqlx::query("DELETE FROM reviews WHERE id = $1")
                .bind(id.to_string())
                .execute(&mut *tx)
                .await?;
            let change = note_deletion(&mut tx, link, id).await?;
            tx.commit().await?;
            Ok(change)
        };
        finish(deleting.await)
    }

    pub(in crate::storage) async fn add_reply(
        &self,
        link: ShareLinkId,
        review: ReviewId,
        reply: &NewReply,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> Result<Guarded<StoredReview>, StorageError> {
        let replying = async {
            let mut tx = self.write(Invalidate::Nothing).await?;
            admit(&mut tx, link, guard).await?;
            let row = lock_for_update(&mut tx, link, review, None).await?;
            insert_reply(&mut tx, review, row.version + 1, reply, now).await?;
            update(&mut tx, review, &ReviewChange::default(), now).await?;
            weigh(&mut tx, link, review, row.bytes).await?;
            let review = the_review(&mut tx, link, review).await?;
            tx.commit().await?;
            Ok(review)
        };
        finish(replying.await)
    }

    pub(in crate::storage) async fn relocate(
        &self,
        review: ReviewId,
        current: &RelativeRange,
    ) -> Result<(), StorageError> {
        let mut tx = self.write(Invalidate::Nothing).await?;
        sqlx::query("UPDATE reviews SET current_start = $2, current_end = $3 WHERE id = $1")
            .bind(review.to_string())
            .bind(current.start.as_slice())
            .bind(current.end.as_slice())
            .execute(&mut *tx)
            .await?;
        Ok(tx.commit().await?)
    }

    pub(in crate::storage) async fn accept_review(
        &self,
        link: ShareLinkId,
        id: ReviewId,
        expected_version: Option<i64>,
        edit: &Append,
        now: DateTime<Utc>,
    ) -> Result<Guarded<(StoredReview, i64)>, StorageError> {
        let accepting = async {
            let mut tx = self.write(Invalidate::Document(edit.document)).await?;
            let guard = edit.guard.ok_or(GuardError::Refused(Guarded::Fenced))?;
            admit(&mut tx, link, guard).await?;
            let row = lock_for_update(&mut tx, link, id, expected_version).await?;
            if row.status != ReviewStatus::Open {
                let current = row.version;
                return Err(GuardError::Refused(Guarded::VersionMismatch { current }));
            }
            let seq = store_edit(&mut tx, edit).await?;
            let status = Some(ReviewStatus::Accepted);
            update(&mut tx, id, &ReviewChange { status, ..ReviewChange::default() }, now).await?;
            let review = the_review(&mut tx, link, id).await?;
            tx.commit().await?;
            Ok((review, seq))
        };
        finish(accepting.await)
    }
}

/// Refuses unless the guard is of that link, and holds.
async fn admit(
    connection: &mut SqliteConnection,
    link: ShareLinkId,
    guard: FenceGuard,
) -> Result<(), GuardError> {
    if guard.seat.link != link {
        return Err(GuardError::Refused(Guarded::Fenced));
    }
    require_seat(connection, guard).await
}

/// Refuses unless the review exists in the version that the caller has read.
async fn lock_for_update(
    connection: &mut SqliteConnection,
    link: ShareLinkId,
    id: ReviewId,
    expected: Option<i64>,
) -> Result<ReviewRow, GuardError> {
    let row: Option<(i64, String, i64)> =
        sqlx::query_as("SELECT version, status, bytes FROM reviews WHERE id = $1 AND link_id = $2")
            .bind(id.to_string())
            .bind(link.to_string())
            .fetch_optional(connection)
            .await?;
    let (current, name, bytes) = row.ok_or(GuardError::Refused(Guarded::NotFound))?;
    if expected.is_some_and(|expected| expected != current) {
        return Err(GuardError::Refused(Guarded::VersionMismatch { current }));
    }
    Ok(ReviewRow { version: current, status: status(&name)?, bytes })
}

/// Changes a review, and increments its version.
async fn update(
    connection: &mut SqliteConnection,
    id: ReviewId,
    change: &ReviewChange,
    now: DateTime<Utc>,
) -> Result<(), StorageError> {
    let suggestion = change.suggestion.as_ref();
    sqlx::query(
        "UPDATE reviews SET body = COALESCE($2, body), \
         suggestion = CASE WHEN $3 THEN $4 ELSE suggestion END, \
         bytes = bytes + COALESCE(octet_length($2) - octet_length(body), 0) + CASE WHEN $3 \
         THEN COALESCE(octet_length($4), 0) - COALESCE(octet_length(suggestion), 0) ELSE 0 END, \
         status = COALESCE($5, status), version = version + 1, updated_at = $6 WHERE id = $1",
    )
    .bind(id.to_string())
    .bind(change.body.as_deref())
    .bind(suggestion.is_some())
    .bind(suggestion.and_then(|suggestion| suggestion.as_deref()))
    .bind(change.status.map(ReviewStatus::as_str))
    .bind(now.timestamp_millis())
    .execute(connection)
    .await?;
    Ok(())
}

async fn insert_reply(
    connection: &mut SqliteConnection,
    review: ReviewId,
    version: i64,
    reply: &NewReply,
    now: DateTime<Utc>,
) -> Result<(), GuardError> {
    let replies: i64 = sqlx::query_scalar("SELECT count(*) FROM replies WHERE review_id = $1")
        .bind(review.to_string())
        .fetch_one(&mut *connection)
        .await?;
    if REPLIES_PER_REVIEW_MAX <= replies {
        return Err(GuardError::Refused(Guarded::Full));
    }
    put_user(connection, &reply.author, now).await?;
    sqlx::query(
        "INSERT INTO replies (id, review_id, version, author_id, body, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(reply.id.to_string())
    .bind(review.to_string())
    .bind(version)
    .bind(reply.author.id.as_str())
    .bind(reply.body.as_str())
    .bind(now.timestamp_millis())
    .execute(&mut *connection)
    .await?;
    sqlx::query("UPDATE reviews SET bytes = bytes + octet_length($2) WHERE id = $1")
        .bind(review.to_string())
        .bind(reply.body.as_str())
        .execute(connection)
        .await?;
    Ok(())
}

/// Refuses if the review has grown, and it or all reviews of its link exceed their bound.
async fn weigh(
    connection: &mut SqliteConnection,
    link: ShareLinkId,
    id: ReviewId,
    before: i64,
) -> Result<(), GuardError> {
    let (after, all): (i64, i64) = sqlx::query_as(
        "SELECT r.bytes, (SELECT SUM(bytes) FROM reviews WHERE link_id = $2) \
         FROM reviews r WHERE r.id = $1",
    )
    .bind(id.to_string())
    .bind(link.to_string())
    .fetch_one(connection)
    .await?;
    if is_too_large(before, after, all) {
        return Err(GuardError::Refused(Guarded::Full));
    }
    Ok(())
}

/// Stores an edit of the server, or refuses.
pub(super) async fn store_edit(
    connection: &mut SqliteConnection,
    edit: &Append,
) -> Result<i64, GuardError> {
    let mut cache = refresh_cache(connection, CachedRows::default()).await?;
    let refused = match append_in(connection, slice::from_ref(edit), &mut cache).await?.pop() {
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
            return Err(GuardError::Failed(corrupt("a seat or an owner does not parse")));
        }
        Some(Appended::Gone) | None => Guarded::NotFound,
    };
    Err(GuardError::Refused(refused))
}

/// Reads the review that this transaction has written, and numbers the change.
async fn the_review(
    connection: &mut SqliteConnection,
    link: ShareLinkId,
    id: ReviewId,
) -> Result<StoredReview, GuardError> {
    note_change(connection, link, id).await?;
    fetch_one(connection, link, id).await?.ok_or(GuardError::Refused(Guarded::NotFound))
}
