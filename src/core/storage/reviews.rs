//! Stored reviews and their replies.
//!
//! Every change names the seat that authorizes it (G14). Most changes also name the version that
//! the caller has read. The transaction of the change checks both.

use chrono::{DateTime, Utc};

use crate::domain::anchor::{AnchorOrigin, RelativeRange};
use crate::domain::ids::{ReplyId, ReviewId, ShareLinkId, UserId};
use crate::domain::limits::{
    REVIEW_BYTES_MAX, REVIEW_PAGE_BYTES_MAX, REVIEW_PAGE_ROWS_MAX, REVIEWS_BYTES_MAX,
};
use crate::domain::review::{
    Decided, Reply, ReviewKind, ReviewOrigin, ReviewOutcome, ReviewStatus,
};
use crate::domain::user::User;
use crate::storage::pagination::Cursor;

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

fn bytes_of_part(origin: &AnchorOrigin, text: &str) -> usize {
    origin.quote.len() + origin.prefix.len() + origin.suffix.len() + text.len()
}

/// A part of a suggestion: its place, and the text for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPart {
    pub origin: AnchorOrigin,
    /// The last known position of that range.
    pub current: RelativeRange,
    pub text: String,
}

impl StoredPart {
    pub(crate) fn bytes(&self) -> usize {
        bytes_of_part(&self.origin, &self.text)
    }
}

/// A part of a stored suggestion.
#[derive(Clone, Copy, Debug)]
pub struct PartRef<'a> {
    pub number: usize,
    pub origin: &'a AnchorOrigin,
    pub current: &'a RelativeRange,
    pub text: &'a str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewPage {
    pub reviews: Vec<StoredReview>,
    pub next: Option<Cursor<ReviewId>>,
}

/// Position and size of a review, read from the index of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed {
    pub(crate) cursor: Cursor<ReviewId>,
    /// Its bytes, with those of its replies.
    pub(crate) bytes: i64,
}

/// The number of these reviews that fit a page: at most `rows`, at most
/// [`REVIEW_PAGE_BYTES_MAX`] bytes, and at least one.
///
/// [`REVIEW_PAGE_BYTES_MAX`]: crate::domain::limits::REVIEW_PAGE_BYTES_MAX
pub(crate) fn rows_of_page(listed: &[Listed], rows: u32) -> usize {
    let rows = usize::try_from(rows.clamp(1, REVIEW_PAGE_ROWS_MAX)).unwrap_or(usize::MAX);
    let mut bytes = 0_i64;
    let fitting = listed.iter().take(rows).take_while(|review| {
        bytes = bytes.saturating_add(review.bytes);
        bytes <= REVIEW_PAGE_BYTES_MAX
    });
    fitting.count().max(1).min(listed.len())
}

/// Whether a review that grew from `before` to `after` bytes exceeds its bound, or all reviews of
/// its link exceed theirs.
pub(crate) fn is_too_large(before: i64, after: i64, all: i64) -> bool {
    before < after && (after > REVIEW_BYTES_MAX || all > REVIEWS_BYTES_MAX)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReview {
    pub id: ReviewId,
    pub link: ShareLinkId,
    pub author: User,
    pub is_summary: bool,
    pub origin: AnchorOrigin,
    /// The last known position of that range.
    pub current: RelativeRange,
    pub body: String,
    pub suggestion: Option<String>,
    /// The parts of a suggestion after its first.
    pub more: Vec<StoredPart>,
    pub source: ReviewOrigin,
    pub status: ReviewStatus,
    pub outcome: Option<ReviewOutcome>,
    pub decided: Option<Decided>,
    /// The version; each change increments it.
    pub version: i64,
    /// The numbers of its creation and of its last change among the document's review changes.
    pub changes: (i64, i64),
    /// The user of the last change. `None`: unknown, because an older server stored it.
    pub changed_by: Option<UserId>,
    /// The replies, oldest first.
    pub replies: Vec<Reply>,
    pub created_at: DateTime<Utc>,
    /// The time of the last change of it or of one of its replies.
    pub updated_at: DateTime<Utc>,
}

impl StoredReview {
    #[must_use]
    pub fn kind(&self) -> ReviewKind {
        match &self.suggestion {
            _ if self.is_summary => ReviewKind::Summary,
            Some(_) => ReviewKind::Suggestion,
            None => ReviewKind::Comment,
        }
    }

    /// The parts of a suggestion; none of another review.
    pub fn parts(&self) -> impl Iterator<Item = PartRef<'_>> {
        let first = self.suggestion.iter();
        let first = first.map(|text| (&self.origin, &self.current, text.as_str()));
        let more = self.more.iter().map(|part| (&part.origin, &part.current, part.text.as_str()));
        let all = first.chain(more).enumerate();
        all.map(|(number, (origin, current, text))| PartRef { number, origin, current, text })
    }

    #[must_use]
    pub fn bytes(&self) -> usize {
        let first = bytes_of_part(&self.origin, self.suggestion.as_deref().unwrap_or_default());
        let more = self.more.iter().map(StoredPart::bytes);
        let replies = self.replies.iter().map(|reply| reply.body.len());
        first + self.body.len() + more.chain(replies).sum::<usize>()
    }
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

#[derive(Clone, Debug)]
pub struct NewReply {
    /// Its id; never used before.
    pub id: ReplyId,
    pub author: User,
    pub body: String,
}
