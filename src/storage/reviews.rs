//! Reviews and their replies, as they are stored.
//!
//! Every change names the seat in whose right it is made (G14), and most the version that the
//! caller has seen; both are checked in the transaction that makes the change.

use chrono::{DateTime, Utc};

use crate::domain::anchor::{AnchorOrigin, RelativeRange};
use crate::domain::ids::{ReplyId, ReviewId, ShareLinkId};
use crate::domain::limits::{
    REVIEW_BYTES_MAX, REVIEW_PAGE_BYTES_MAX, REVIEW_PAGE_ROWS_MAX, REVIEWS_BYTES_MAX,
};
use crate::domain::review::{Reply, ReviewStatus};
use crate::domain::user::User;
use crate::storage::error::StorageError;
use crate::storage::log::Append;
use crate::storage::pagination::Cursor;
use crate::storage::seats::{Guard, Guarded};
use crate::storage::{Storage, on_engine};

/// A review to be made.
#[derive(Clone, Debug)]
pub struct NewReview {
    /// Its name; never used before.
    pub id: ReviewId,
    /// The link on which it is made.
    pub link: ShareLinkId,
    /// Who makes it.
    pub author: User,
    /// What it is made on.
    pub origin: AnchorOrigin,
    /// Where that is.
    pub current: RelativeRange,
    /// The comment.
    pub body: String,
    /// What to put in place of the quote.
    pub suggestion: Option<String>,
    /// When.
    pub now: DateTime<Utc>,
}

impl NewReview {
    /// What it counts towards the bounds of its link.
    pub(in crate::storage) fn bytes(&self) -> i64 {
        let AnchorOrigin { quote, prefix, suffix, .. } = &self.origin;
        let suggestion = self.suggestion.as_deref().unwrap_or_default();
        let texts = [quote, prefix, suffix, self.body.as_str(), suggestion];
        i64::try_from(texts.into_iter().map(str::len).sum::<usize>()).unwrap_or(i64::MAX)
    }
}

/// A page of a link's reviews, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewPage {
    /// The reviews with their replies.
    pub reviews: Vec<StoredReview>,
    /// Where the next page begins, if there is one.
    pub next: Option<Cursor<ReviewId>>,
}

/// Key and size of a review, as the index of a link has them.
#[derive(Clone, Copy, Debug)]
pub(in crate::storage) struct Listed {
    /// Its place in the list.
    pub(in crate::storage) place: Cursor<ReviewId>,
    /// Its size, with its replies.
    pub(in crate::storage) bytes: i64,
}

/// How many of these reviews a page holds: at most `rows`, at most [`REVIEW_PAGE_BYTES_MAX`] bytes, and
/// at least one.
///
/// [`REVIEW_PAGE_BYTES_MAX`]: crate::domain::limits::REVIEW_PAGE_BYTES_MAX
pub(in crate::storage) fn rows_of_page(listed: &[Listed], rows: u32) -> usize {
    let rows = usize::try_from(rows.clamp(1, REVIEW_PAGE_ROWS_MAX)).unwrap_or(usize::MAX);
    let mut bytes = 0_i64;
    let fitting = listed.iter().take(rows).take_while(|review| {
        bytes = bytes.saturating_add(review.bytes);
        bytes <= REVIEW_PAGE_BYTES_MAX
    });
    fitting.count().max(1).min(listed.len())
}

/// Whether a review that grew from `before` to `after` bytes is larger than it may be, or all reviews
/// of its link are.
pub(in crate::storage) fn is_too_large(before: i64, after: i64, all: i64) -> bool {
    before < after && (REVIEW_BYTES_MAX < after || REVIEWS_BYTES_MAX < all)
}

/// A review as it stands in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReview {
    /// Its name.
    pub id: ReviewId,
    /// The link on which it was made.
    pub link: ShareLinkId,
    /// Who made it.
    pub author: User,
    /// What it was made on.
    pub origin: AnchorOrigin,
    /// Where that was last found.
    pub current: RelativeRange,
    /// The comment.
    pub body: String,
    /// What to put in place of the quote.
    pub suggestion: Option<String>,
    /// What has become of it.
    pub status: ReviewStatus,
    /// Rises by one with each change.
    pub version: i64,
    /// The numbers that its making and its last change have among the document's changes of reviews.
    pub changes: (i64, i64),
    /// Answers, oldest first.
    pub replies: Vec<Reply>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it, or one of its replies, last changed.
    pub updated_at: DateTime<Utc>,
}

impl StoredReview {
    /// Bytes of its texts and its replies.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let AnchorOrigin { quote, prefix, suffix, .. } = &self.origin;
        let suggestion = self.suggestion.as_deref().unwrap_or_default();
        let texts = [quote, prefix, suffix, self.body.as_str(), suggestion];
        let replies = self.replies.iter().map(|reply| reply.body.len());
        texts.into_iter().map(str::len).chain(replies).sum()
    }
}

/// What to change of a review. What is `None` stays.
#[derive(Clone, Debug, Default)]
pub struct ReviewChange {
    /// Another comment.
    pub body: Option<String>,
    /// Another suggestion, or none any more.
    pub suggestion: Option<Option<String>>,
    /// Another status.
    pub status: Option<ReviewStatus>,
}

impl ReviewChange {
    /// What was put into the text cannot be called anything else, and what was decided is not
    /// worded anew.
    pub(in crate::storage) fn fits(&self, status: ReviewStatus) -> bool {
        let is_worded = self.body.is_some() || self.suggestion.is_some();
        match status {
            ReviewStatus::Open => true,
            ReviewStatus::Accepted => !is_worded && self.status.is_none(),
            ReviewStatus::Rejected | ReviewStatus::Resolved => !is_worded,
        }
    }
}

/// An answer to be added.
#[derive(Clone, Debug)]
pub struct NewReply {
    /// Its name; never used before.
    pub id: ReplyId,
    /// Who answers.
    pub author: User,
    /// What it says.
    pub body: String,
}

impl Storage {
    /// Makes a review. `Full` at [`REVIEWS_PER_LINK_MAX`], or at [`REVIEWS_BYTES_MAX`].
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written; `Refused` when the id is in use.
    ///
    /// [`REVIEWS_PER_LINK_MAX`]: crate::domain::limits::REVIEWS_PER_LINK_MAX
    pub async fn create_review(
        &self,
        new: &NewReview,
        guard: Guard,
    ) -> Result<Guarded<StoredReview>, StorageError> {
        on_engine!(self, create_review(new, guard))
    }

    /// A page of a link's reviews with their replies, oldest first: those behind `after`, at most
    /// `rows` and [`REVIEW_PAGE_ROWS_MAX`] of them, and at most [`REVIEW_PAGE_BYTES_MAX`] bytes.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn reviews(
        &self,
        link: ShareLinkId,
        after: Option<Cursor<ReviewId>>,
        rows: u32,
    ) -> Result<ReviewPage, StorageError> {
        on_engine!(self, reviews(link, after, rows))
    }

    /// One review of a link.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn review(
        &self,
        link: ShareLinkId,
        id: ReviewId,
    ) -> Result<Option<StoredReview>, StorageError> {
        on_engine!(self, review(link, id))
    }

    /// Changes a review. Decide a status on what you have read, and name its version: an
    /// accepted review keeps its status in any case, and one that is not open its words, which is
    /// told as a `VersionMismatch`. `Full` when it would be larger than [`REVIEW_BYTES_MAX`].
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn change_review(
        &self,
        link: ShareLinkId,
        id: ReviewId,
        change: &ReviewChange,
        expected_version: Option<i64>,
        guard: Guard,
        now: DateTime<Utc>,
    ) -> Result<Guarded<StoredReview>, StorageError> {
        on_engine!(self, change_review(link, id, change, expected_version, guard, now))
    }

    /// Deletes a review with its replies; says the number of this change.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn delete_review(
        &self,
        link: ShareLinkId,
        id: ReviewId,
        expected_version: Option<i64>,
        guard: Guard,
    ) -> Result<Guarded<i64>, StorageError> {
        on_engine!(self, delete_review(link, id, expected_version, guard))
    }

    /// Adds a reply, which is a change of the review. `Full` at [`REPLIES_PER_REVIEW_MAX`], or at
    /// [`REVIEW_BYTES_MAX`].
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written; `Refused` when the id is in use.
    ///
    /// [`REPLIES_PER_REVIEW_MAX`]: crate::domain::limits::REPLIES_PER_REVIEW_MAX
    pub async fn add_reply(
        &self,
        link: ShareLinkId,
        review: ReviewId,
        reply: &NewReply,
        guard: Guard,
        now: DateTime<Utc>,
    ) -> Result<Guarded<StoredReview>, StorageError> {
        on_engine!(self, add_reply(link, review, reply, guard, now))
    }

    /// Notes where a review was last found. Not a change of the review: its version stays.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn relocate(
        &self,
        review: ReviewId,
        current: &RelativeRange,
    ) -> Result<(), StorageError> {
        on_engine!(self, relocate(review, current))
    }

    /// Puts a suggestion into the text and marks it accepted, in one transaction. The edit must
    /// carry the guard of a writer's seat of that link; name in `expected_seq` what it was made
    /// on. A review that is not open any more is a `VersionMismatch`; an edit under a Yjs client
    /// id that is somebody else's is `Stale`: make it again.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn accept_review(
        &self,
        link: ShareLinkId,
        id: ReviewId,
        expected_version: Option<i64>,
        edit: &Append,
        now: DateTime<Utc>,
    ) -> Result<Guarded<(StoredReview, i64)>, StorageError> {
        on_engine!(self, accept_review(link, id, expected_version, edit, now))
    }
}
