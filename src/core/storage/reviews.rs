//! New and changed reviews.
//!
//! Every change names the seat that authorizes it (G14). Most changes also name the version that
//! the caller has read. The transaction of the change checks both.

use chrono::{DateTime, Utc};

use crate::domain::anchor::{AnchorOrigin, RelativeRange};
use crate::domain::ids::{ReviewId, ShareLinkId};
use crate::domain::limits::{
    OPEN_PER_LINK_MAX, REVIEW_BYTES_MAX, REVIEW_PAGE_ROWS_MAX, REVIEWS_BYTES_MAX,
    REVIEWS_PER_LINK_MAX, SUMMARIES_PER_AUTHOR_MAX,
};
use crate::domain::review::{ReviewOrigin, ReviewStatus};
use crate::domain::seat::Seat;
use crate::domain::user::User;
use crate::storage::guard::{FenceGuard, Guarded};
use crate::storage::links::Membership;
use crate::storage::locks::require_seat;
use crate::storage::pagination::Cursor;
use crate::storage::review_changes::{DELETIONS_MAX, note_change, note_deletion};
use crate::storage::review_rows::{
    ReviewPage, SUMMARY, StoredReview, bytes_of_part, fetch_one, fetch_page,
};
use crate::storage::review_webhooks::{put_created, put_status, take_back};
use crate::storage::statement::sql;
use crate::storage::tx::{Tx, guarded, run};
use crate::storage::tx_error::TxError;
use crate::storage::users::put_user;
use crate::storage::webhook_seats::count_review;
use crate::storage::{Storage, StorageFuture};

#[derive(Clone, Debug)]
pub struct NewReview {
    /// Its id; never used before.
    pub id: ReviewId,
    pub link: ShareLinkId,
    pub author: User,
    /// Whether it is a remark on the whole text, without a range and a suggestion.
    pub is_summary: bool,
    pub origin: AnchorOrigin,
    pub current: RelativeRange,
    pub body: String,
    pub suggestion: Option<String>,
    pub now: DateTime<Utc>,
}

impl NewReview {
    /// The bytes that count towards the bounds of its link.
    pub(crate) fn bytes(&self) -> i64 {
        let text = self.suggestion.as_deref().unwrap_or_default();
        let bytes = bytes_of_part(&self.origin, text) + self.body.len();
        i64::try_from(bytes).unwrap_or(i64::MAX)
    }
}

/// Whether a review that grew from `before` to `after` bytes exceeds its bound, or all reviews of
/// its link exceed theirs.
pub(crate) fn is_too_large(before: i64, after: i64, all: i64) -> bool {
    before < after && (after > REVIEW_BYTES_MAX || all > REVIEWS_BYTES_MAX)
}

/// A change of a review. A field that is `None` stays.
#[derive(Clone, Debug, Default)]
pub struct ReviewChange {
    pub body: Option<String>,
    /// The new suggestion; `Some(None)` deletes it.
    pub suggestion: Option<Option<String>>,
    /// The new status, outside of a decision that can be undone.
    pub status: Option<ReviewStatus>,
}

impl ReviewChange {
    /// An accepted review retains its status, because its suggestion is in the text. A decided review
    /// retains its words.
    pub(crate) fn fits(&self, status: ReviewStatus) -> bool {
        let is_worded = self.body.is_some() || self.suggestion.is_some();
        match status {
            ReviewStatus::Open => true,
            ReviewStatus::Accepted => !is_worded && self.status.is_none(),
            ReviewStatus::Rejected | ReviewStatus::Resolved => !is_worded,
        }
    }
}

/// The columns of a review that decide whether a change is allowed.
pub(crate) struct ReviewRow {
    pub(crate) version: i64,
    status: ReviewStatus,
    pub(crate) bytes: i64,
}

impl Storage {
    /// Creates a review. `Full` at [`OPEN_PER_LINK_MAX`] of its kind, at [`REVIEWS_PER_LINK_MAX`], at
    /// [`REVIEWS_BYTES_MAX`], or at [`SUMMARIES_PER_AUTHOR_MAX`]; an error `Refused` when the id is in use.
    ///
    /// [`REVIEWS_BYTES_MAX`]: crate::domain::limits::REVIEWS_BYTES_MAX
    pub fn create_review<'a>(
        &'a self,
        new: &'a NewReview,
        guard: FenceGuard,
    ) -> StorageFuture<'a, Guarded<StoredReview>> {
        guarded!(self, tx => {
            let locked = require_seat(tx, new.link, guard).await?;
            admit_one_more(tx, new).await?;
            insert(tx, new, ReviewOrigin::Form).await?;
            weigh(tx, new.link, new.id, 0).await?;
            let review = the_review(tx, guard.seat, new.id).await?;
            put_created(tx, locked, &review).await?;
            count_review(tx, guard).await?;
            Ok(review)
        })
    }

    /// Reads a page of a link's reviews with their replies, oldest first. It starts after `after` and has
    /// at most `rows` and [`REVIEW_PAGE_ROWS_MAX`] reviews, and at most [`REVIEW_PAGE_BYTES_MAX`]
    /// bytes.
    ///
    /// [`REVIEW_PAGE_ROWS_MAX`]: crate::domain::limits::REVIEW_PAGE_ROWS_MAX
    /// [`REVIEW_PAGE_BYTES_MAX`]: crate::domain::limits::REVIEW_PAGE_BYTES_MAX
    pub fn reviews_unchecked(
        &self,
        link: ShareLinkId,
        after: Option<Cursor<ReviewId>>,
        rows: u32,
    ) -> StorageFuture<'_, ReviewPage> {
        run!(self, Snapshot, tx => {
            Ok(fetch_page(tx, link, None, after, rows).await?.unwrap_or_default())
        })
    }

    /// All reviews of a link, for the server's own work: no membership is proved. A link has a bound of bytes
    /// for them. An edit between two pages may be missed.
    pub fn all_reviews_unchecked(&self, link: ShareLinkId) -> StorageFuture<'_, Vec<StoredReview>> {
        Box::pin(async move {
            let ReviewPage { mut reviews, mut next } =
                self.reviews_unchecked(link, None, REVIEW_PAGE_ROWS_MAX).await?;
            while next.is_some() {
                let page = self.reviews_unchecked(link, next, REVIEW_PAGE_ROWS_MAX).await?;
                reviews.extend(page.reviews);
                next = page.next;
            }
            Ok(reviews)
        })
    }

    /// As [`reviews_unchecked`](Self::reviews_unchecked). `None`: the link is not active, or the user no
    /// member any more.
    pub fn reviews<'a>(
        &'a self,
        member: &'a Membership,
        after: Option<Cursor<ReviewId>>,
        rows: u32,
    ) -> StorageFuture<'a, Option<ReviewPage>> {
        run!(self, Snapshot, tx => { fetch_page(tx, member.id, Some(&member.user.id), after, rows).await })
    }

    /// Reads one review of a link. `None` also if the link is not active, or the user no member any more.
    pub fn review<'a>(
        &'a self,
        member: &'a Membership,
        id: ReviewId,
    ) -> StorageFuture<'a, Option<StoredReview>> {
        run!(self, Snapshot, tx => { fetch_one(tx, member.id, Some(&member.user.id), id).await })
    }

    /// Changes a review. A caller that sets a status names the version that it has read. An accepted
    /// review retains its status, and a review that is not open its words: a change of these is a
    /// `VersionMismatch`. `Full` when the review would exceed [`REVIEW_BYTES_MAX`].
    ///
    /// [`REVIEW_BYTES_MAX`]: crate::domain::limits::REVIEW_BYTES_MAX
    pub fn change_review<'a>(
        &'a self,
        link: ShareLinkId,
        id: ReviewId,
        change: &'a ReviewChange,
        expected_version: Option<i64>,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Guarded<StoredReview>> {
        guarded!(self, tx => {
            let locked = require_seat(tx, link, guard).await?;
            let row = lock_for_update(tx, link, id, expected_version).await?;
            if !change.fits(row.status) {
                let current = row.version;
                return Err(TxError::Refused(Guarded::VersionMismatch { current }));
            }
            update(tx, id, change, now).await?;
            weigh(tx, link, id, row.bytes).await?;
            let review = the_review(tx, guard.seat, id).await?;
            if change.status.is_some() {
                put_status(tx, locked, &review).await?;
            }
            Ok(review)
        })
    }

    /// Deletes a review with its replies. Returns the number of this change.
    pub fn delete_review(
        &self,
        link: ShareLinkId,
        id: ReviewId,
        expected_version: Option<i64>,
        guard: FenceGuard,
    ) -> StorageFuture<'_, Guarded<i64>> {
        guarded!(self, tx => {
            let locked = require_seat(tx, link, guard).await?;
            lock_for_update(tx, link, id, expected_version).await?;
            take_back(tx, locked, id).await?;
            sql!("DELETE FROM reviews WHERE id = {id}").run(tx).await?;
            note_deletion(tx, link, id).await
        })
    }

    /// Stores the current position of a review that was found from the position `read`. It is not a change of
    /// the review: the version stays. A review that has another position by then, of a newer version or of a
    /// decision, keeps that one.
    pub fn relocate<'a>(
        &'a self,
        review: ReviewId,
        part: usize,
        read: &'a RelativeRange,
        current: &'a RelativeRange,
    ) -> StorageFuture<'a, ()> {
        run!(self, Write, tx => {
            let moved = if part == 0 {
                sql!(
                    "UPDATE reviews SET current_start = {current.start}, \
                     current_end = {current.end} WHERE id = {review} \
                     AND current_start = {read.start} AND current_end = {read.end}"
                )
            } else {
                sql!(
                    "UPDATE review_parts SET current_start = {current.start}, \
                     current_end = {current.end} WHERE review_id = {review} AND part = {part} \
                     AND current_start = {read.start} AND current_end = {read.end}"
                )
            };
            moved.run(tx).await.map(drop)
        })
    }
}

/// The numbers of a link's reviews that have a bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) all: i64,
    pub(crate) open_comments: i64,
    pub(crate) open_suggestions: i64,
    /// The parts of its open suggestions.
    pub(crate) open_parts: i64,
    pub(crate) bytes: i64,
}

pub(crate) async fn count(tx: &mut Tx, link: ShareLinkId) -> Result<Counts, TxError> {
    let counts = sql!(
        "SELECT * FROM (SELECT count(*) AS reviews, \
           CAST(COALESCE(SUM(bytes), 0) AS bigint) AS bytes FROM reviews \
           WHERE link_id = {link}) AS every \
         CROSS JOIN (SELECT count(*) AS open, \
           CAST(COALESCE(SUM(more_parts), 0) AS bigint) AS more_parts, \
           count(*) - count(suggestion) AS comments \
           FROM reviews WHERE link_id = {link} AND status = 'open') AS open_ones"
    );
    let counts = counts.one(tx).await?;
    let open_comments: i64 = counts.get("comments")?;
    let open_suggestions = counts.get::<i64>("open")? - open_comments;
    Ok(Counts {
        all: counts.get("reviews")?,
        open_comments,
        open_suggestions,
        open_parts: open_suggestions + counts.get::<i64>("more_parts")?,
        bytes: counts.get("bytes")?,
    })
}

/// Refuses a review whose link or whose author has the maximum number.
async fn admit_one_more(tx: &mut Tx, new: &NewReview) -> Result<(), TxError> {
    let counts = count(tx, new.link).await?;
    let open = match &new.suggestion {
        Some(_) => counts.open_suggestions,
        None => counts.open_comments,
    };
    if counts.all >= REVIEWS_PER_LINK_MAX || open >= OPEN_PER_LINK_MAX {
        return Err(TxError::Refused(Guarded::Full));
    }
    if new.is_summary {
        // Compared as an expression, so that SQLite reads the index of remarks.
        let summaries = sql!(
            "SELECT count(*) FROM reviews \
             WHERE link_id = {new.link} AND kind = 'summary' AND author_id || '' = {new.author.id}"
        );
        if summaries.one(tx).await?.get::<i64>(0)? >= SUMMARIES_PER_AUTHOR_MAX {
            return Err(TxError::Refused(Guarded::Full));
        }
    }
    Ok(())
}

/// Its version is one, until the document has had more changes than the database stores deletions for. The
/// last version of a forgotten deletion is below its number, since each version takes a number.
pub(crate) async fn insert(
    tx: &mut Tx,
    new: &NewReview,
    source: ReviewOrigin,
) -> Result<(), TxError> {
    put_user(tx, &new.author, new.now).await?;
    sql!(
        "INSERT INTO reviews (id, link_id, author_id, anchor_start, anchor_end, quote, \
         prefix, suffix, current_start, current_end, body, suggestion, status, version, \
         created_at, updated_at, bytes, kind, origin) \
         VALUES ({new.id}, {new.link}, {new.author.id}, {new.origin.range.start}, \
         {new.origin.range.end}, {new.origin.quote}, {new.origin.prefix}, {new.origin.suffix}, \
         {new.current.start}, {new.current.end}, {new.body}, {new.suggestion}, \
         {ReviewStatus::Open}, (SELECT 1 + CASE WHEN {DELETIONS_MAX} < d.review_changes \
         THEN d.review_changes - {DELETIONS_MAX} ELSE 0 END \
         FROM documents d JOIN share_links l ON l.document_id = d.id WHERE l.id = {new.link}), \
         {new.now}, {new.now}, {new.bytes()}, {new.is_summary.then_some(SUMMARY)}, {source})"
    )
    .run(tx)
    .await?;
    Ok(())
}

/// Refuses unless the review exists in the version that the caller has read.
pub(crate) async fn lock_for_update(
    tx: &mut Tx,
    link: ShareLinkId,
    id: ReviewId,
    expected: Option<i64>,
) -> Result<ReviewRow, TxError> {
    let row =
        sql!("SELECT version, status, bytes FROM reviews WHERE id = {id} AND link_id = {link}");
    let row = row.row(tx).await?.ok_or(TxError::Refused(Guarded::NotFound))?;
    let version = row.get("version")?;
    if expected.is_some_and(|expected| expected != version) {
        return Err(TxError::Refused(Guarded::VersionMismatch { current: version }));
    }
    Ok(ReviewRow { version, status: row.get("status")?, bytes: row.get("bytes")? })
}

/// Changes a review, and increments its version.
pub(crate) async fn update(
    tx: &mut Tx,
    id: ReviewId,
    change: &ReviewChange,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    let suggestion = change.suggestion.as_ref();
    sql!(
        "UPDATE reviews SET body = COALESCE({change.body}, body), \
         suggestion = CASE WHEN {is_suggested} THEN {suggestion} ELSE suggestion END, \
         bytes = bytes + COALESCE(octet_length({change.body}) - octet_length(body), 0) \
         + CASE WHEN {is_suggested} THEN COALESCE(octet_length({suggestion}), 0) \
         - COALESCE(octet_length(suggestion), 0) ELSE 0 END, \
         status = COALESCE({change.status}, status), version = version + 1, updated_at = {now}, \
         outcome = CASE WHEN {change.status} IS NULL THEN outcome END, \
         decision_id = CASE WHEN {change.status} IS NULL THEN decision_id END, \
         decided_by = CASE WHEN {change.status} IS NULL THEN decided_by END, \
         decided_at = CASE WHEN {change.status} IS NULL THEN decided_at END WHERE id = {id}",
        is_suggested = suggestion.is_some(),
        suggestion = suggestion.and_then(Option::as_ref)
    )
    .run(tx)
    .await?;
    Ok(())
}

/// Refuses if the review has grown, and it or all reviews of its link exceed their bound.
pub(crate) async fn weigh(
    tx: &mut Tx,
    link: ShareLinkId,
    id: ReviewId,
    before: i64,
) -> Result<(), TxError> {
    let sizes = sql!(
        "SELECT r.bytes, \
         (SELECT CAST(SUM(bytes) AS bigint) FROM reviews WHERE link_id = {link}) AS of_all \
         FROM reviews r WHERE r.id = {id}"
    );
    let sizes = sizes.one(tx).await?;
    if is_too_large(before, sizes.get("bytes")?, sizes.get("of_all")?) {
        return Err(TxError::Refused(Guarded::Full));
    }
    Ok(())
}

/// Reads the review that this transaction has written under the seat, and numbers the change.
pub(crate) async fn the_review(
    tx: &mut Tx,
    seat: Seat,
    id: ReviewId,
) -> Result<StoredReview, TxError> {
    note_change(tx, seat, id).await?;
    fetch_one(tx, seat.link, None, id).await?.ok_or(TxError::Refused(Guarded::NotFound))
}
