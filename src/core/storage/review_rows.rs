//! Stored reviews with their parts and replies, and the statements that read them.

use std::collections::HashMap;
use std::slice;

use chrono::{DateTime, Utc};

use crate::domain::anchor::{AnchorOrigin, RelativeRange, TextRange};
use crate::domain::ids::{ReviewId, ShareLinkId, UserId};
use crate::domain::limits::{DECIDED_ONE_BY_ONE_MAX, REVIEW_PAGE_BYTES_MAX, REVIEW_PAGE_ROWS_MAX};
use crate::domain::review::{
    Decided, Reply, ReviewKind, ReviewOrigin, ReviewOutcome, ReviewStatus,
};
use crate::domain::user::User;
use crate::storage::pagination::Cursor;
use crate::storage::statement::{Row, Statement, json, sql};
use crate::storage::tx::Tx;
use crate::storage::tx_error::TxError;

pub(crate) fn bytes_of_part(origin: &AnchorOrigin, text: &str) -> usize {
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
pub(crate) fn rows_of_page(listed: &[Listed], rows: u32) -> usize {
    let rows = usize::try_from(rows.clamp(1, REVIEW_PAGE_ROWS_MAX)).unwrap_or(usize::MAX);
    let mut bytes = 0_i64;
    let fitting = listed.iter().take(rows).take_while(|review| {
        bytes = bytes.saturating_add(review.bytes);
        bytes <= REVIEW_PAGE_BYTES_MAX
    });
    fitting.count().max(1).min(listed.len())
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

/// Reviews `r` for [`review_from`].
const REVIEWS: &str = "SELECT r.id, r.link_id, r.author_id, u.name AS author_name, r.anchor_start, \
    r.anchor_end, r.quote, r.prefix, r.suffix, r.current_start, r.current_end, r.body, r.suggestion, \
    r.status, r.version, r.first_change, r.last_change, r.created_at, r.updated_at, r.kind, \
    r.changed_by, r.changed_by_number, r.decision_id, r.decided_at, d.id AS decider_id, \
    d.name AS decider_name, r.origin, r.outcome, r.more_parts \
    FROM reviews r JOIN users u ON u.id = r.author_id LEFT JOIN users d ON d.id = r.decided_by ";

/// Replies `p` for [`reply_from`].
const REPLIES: &str = "SELECT p.review_id, p.id, u.id AS author_id, u.name AS author_name, p.body, \
    p.created_at, p.edited_at FROM replies p JOIN users u ON u.id = p.author_id ";

/// The further parts `p` of reviews, for [`part_from`].
const PARTS: &str = "SELECT p.review_id, p.anchor_start, p.anchor_end, p.quote, p.prefix, p.suffix, \
    p.current_start, p.current_end, p.text FROM review_parts p ";

/// The column `kind` of a remark on the whole text.
pub(crate) const SUMMARY: &str = "summary";

/// The condition that the link `l` of the document `o` is active and the user `reader` is a member. Null: no
/// condition. A statement that reads has it, because the caller may have proved the membership by a
/// session whose end this server has not received (G14).
const READABLE: &str = "({reader} IS NULL OR l.revoked_at IS NULL \
    AND (o.owner_id = {reader} OR l.reviewer_id = {reader}))";

/// A page of a link's reviews, oldest first. Inside a transaction, because it runs three statements.
/// `None`: the `reader` is no member.
pub(crate) async fn fetch_page(
    tx: &mut Tx,
    link: ShareLinkId,
    reader: Option<&UserId>,
    after: Option<Cursor<ReviewId>>,
    rows: u32,
) -> Result<Option<ReviewPage>, TxError> {
    // Galley creates no review before the epoch.
    let (first_at, first_id) = match after {
        Some(Cursor { at, id }) => (at, id.to_string()),
        None => (DateTime::<Utc>::UNIX_EPOCH, String::new()),
    };
    let Some(mut listed) = list(tx, link, reader, (first_at, &first_id), rows).await? else {
        return Ok(None);
    };
    let held = rows_of_page(&listed, rows);
    let more = held < listed.len();
    listed.truncate(held);
    let Some(last) = listed.last().map(|review| review.cursor) else {
        return Ok(Some(ReviewPage::default()));
    };
    let found = sql!([
        REVIEWS,
        "WHERE r.link_id = {link} AND (r.created_at, r.id) > ({first_at}, {first_id}) \
         AND (r.created_at, r.id) <= ({last.at}, {last.id}) ORDER BY r.created_at, r.id",
    ]);
    let found = found.rows(tx).await?;
    let replies = sql!([
        REPLIES,
        "JOIN reviews r ON r.id = p.review_id WHERE r.link_id = {link} \
         AND (r.created_at, r.id) > ({first_at}, {first_id}) \
         AND (r.created_at, r.id) <= ({last.at}, {last.id}) ORDER BY p.review_id, p.version",
    ]);
    let mut by_review: HashMap<ReviewId, Vec<Reply>> = HashMap::new();
    for row in replies.rows(tx).await? {
        by_review.entry(row.get("review_id")?).or_default().push(reply_from(&row)?);
    }
    let mut reviews = Vec::with_capacity(found.len());
    for row in &found {
        let mut review = review_from(row)?;
        review.replies = by_review.remove(&review.id).unwrap_or_default();
        reviews.push(review);
    }
    if has_more_parts(&found)? {
        let parts = sql!([
            PARTS,
            "JOIN reviews r ON r.id = p.review_id WHERE r.link_id = {link} \
             AND (r.created_at, r.id) > ({first_at}, {first_id}) \
             AND (r.created_at, r.id) <= ({last.at}, {last.id}) ORDER BY p.review_id, p.part",
        ]);
        add_parts(tx, &mut reviews, parts).await?;
    }
    Ok(Some(ReviewPage { reviews, next: more.then_some(last) }))
}

/// Keys and sizes of a page from the index alone: one more than the page has. `None`: the `reader` is no
/// member.
async fn list(
    tx: &mut Tx,
    link: ShareLinkId,
    reader: Option<&UserId>,
    (first_at, first_id): (DateTime<Utc>, &str),
    rows: u32,
) -> Result<Option<Vec<Listed>>, TxError> {
    // A link without reviews is a row of nulls.
    let keys = sql!(
        [
            "SELECT r.id, r.created_at, r.bytes FROM share_links l \
             JOIN documents o ON o.id = l.document_id LEFT JOIN ( \
               SELECT id, created_at, bytes FROM reviews WHERE link_id = {link} \
               AND (created_at, id) > ({first_at}, {first_id}) \
               ORDER BY created_at, id LIMIT {rows.clamp(1, REVIEW_PAGE_ROWS_MAX) + 1} \
             ) r ON TRUE WHERE l.id = {link} AND ",
            READABLE,
            " ORDER BY r.created_at, r.id",
        ],
        reader
    );
    let keys = keys.rows(tx).await?;
    if keys.is_empty() {
        return Ok(None);
    }
    let mut listed = Vec::with_capacity(keys.len());
    for row in keys {
        let Some(id) = row.get("id")? else { continue };
        let cursor = Cursor { at: row.get("created_at")?, id };
        listed.push(Listed { cursor, bytes: row.get("bytes")? });
    }
    Ok(Some(listed))
}

/// One review of a link, if the `reader` is a member. Inside a transaction, because it runs two statements.
pub(crate) async fn fetch_one(
    tx: &mut Tx,
    link: ShareLinkId,
    reader: Option<&UserId>,
    id: ReviewId,
) -> Result<Option<StoredReview>, TxError> {
    let row = sql!(
        [
            REVIEWS,
            "JOIN share_links l ON l.id = r.link_id JOIN documents o ON o.id = l.document_id \
             WHERE l.id = {link} AND r.id = {id} AND ",
            READABLE,
        ],
        reader
    );
    let Some(row) = row.row(tx).await? else { return Ok(None) };
    let mut review = review_from(&row)?;
    if has_more_parts(slice::from_ref(&row))? {
        let parts = sql!([PARTS, "WHERE p.review_id = {id} ORDER BY p.part"]);
        add_parts(tx, slice::from_mut(&mut review), parts).await?;
    }
    let replies = sql!([REPLIES, "WHERE p.review_id = {id} ORDER BY p.version"]);
    let replies = replies.rows(tx).await?;
    review.replies = replies.iter().map(reply_from).collect::<Result<_, _>>()?;
    Ok(Some(review))
}

/// These reviews of a link; many of them without their replies. Inside a transaction that sees one
/// state.
pub(crate) async fn fetch_among(
    tx: &mut Tx,
    link: ShareLinkId,
    ids: &[ReviewId],
) -> Result<Vec<StoredReview>, TxError> {
    if ids.len() <= DECIDED_ONE_BY_ONE_MAX {
        let mut reviews = Vec::new();
        for id in ids {
            reviews.extend(fetch_one(tx, link, None, *id).await?);
        }
        return Ok(reviews);
    }
    let ids: Vec<_> = ids.iter().map(|id| (id,)).collect();
    let ids = json(&ids)?;
    let rows = sql!([
        REVIEWS,
        "WHERE r.link_id = {link} AND r.id IN (SELECT w.value ->> 0 FROM {@rows:{ids}})",
    ]);
    let rows = rows.rows(tx).await?;
    let mut reviews: Vec<_> = rows.iter().map(review_from).collect::<Result<_, _>>()?;
    if has_more_parts(&rows)? {
        let parts = sql!([
            PARTS,
            "WHERE p.review_id IN (SELECT w.value ->> 0 FROM {@rows:{ids}}) \
             ORDER BY p.review_id, p.part",
        ]);
        add_parts(tx, &mut reviews, parts).await?;
    }
    Ok(reviews)
}

fn has_more_parts(rows: &[Row]) -> Result<bool, TxError> {
    for row in rows {
        if row.get::<i64>("more_parts")? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads the further parts of these reviews.
async fn add_parts(
    tx: &mut Tx,
    reviews: &mut [StoredReview],
    parts: Statement,
) -> Result<(), TxError> {
    let mut by_review: HashMap<ReviewId, Vec<StoredPart>> = HashMap::new();
    for row in parts.rows(tx).await? {
        by_review.entry(row.get("review_id")?).or_default().push(part_from(&row)?);
    }
    for review in reviews.iter_mut().filter(|review| review.suggestion.is_some()) {
        review.more = by_review.remove(&review.id).unwrap_or_default();
    }
    Ok(())
}

fn part_from(row: &Row) -> Result<StoredPart, TxError> {
    Ok(StoredPart {
        origin: origin_from(row)?,
        current: row.range("current_start", "current_end")?,
        text: row.get("text")?,
    })
}

fn origin_from(row: &Row) -> Result<AnchorOrigin, TxError> {
    Ok(AnchorOrigin {
        range: TextRange { start: row.get("anchor_start")?, end: row.get("anchor_end")? },
        quote: row.get("quote")?,
        prefix: row.get("prefix")?,
        suffix: row.get("suffix")?,
    })
}

/// Without its replies and further parts.
fn review_from(row: &Row) -> Result<StoredReview, TxError> {
    let is_summary = row.get::<Option<String>>("kind")?.as_deref() == Some(SUMMARY);
    // A server of the previous version stores a suggestion with a remark on the whole text.
    let suggestion: Option<String> = row.get("suggestion")?;
    let last_change: i64 = row.get("last_change")?;
    let changed_by: Option<UserId> = row.get("changed_by")?;
    let is_its = row.get::<i64>("changed_by_number")? == last_change;
    let status = row.get("status")?;
    Ok(StoredReview {
        id: row.get("id")?,
        link: row.get("link_id")?,
        author: row.user("author_id", "author_name")?,
        is_summary,
        origin: origin_from(row)?,
        current: row.range("current_start", "current_end")?,
        body: row.get("body")?,
        suggestion: suggestion.filter(|_| !is_summary),
        more: Vec::new(),
        // A server of an earlier version knows forms alone.
        source: row.get::<Option<_>>("origin")?.unwrap_or(ReviewOrigin::Form),
        status,
        outcome: row.get("outcome")?,
        decided: decided_from(row, status)?,
        version: row.get("version")?,
        changes: (row.get("first_change")?, last_change),
        changed_by: changed_by.filter(|_| is_its),
        replies: Vec::new(),
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}

/// The decision of a review. A server of an earlier version changes the status without it.
fn decided_from(row: &Row, status: ReviewStatus) -> Result<Option<Decided>, TxError> {
    if !matches!(status, ReviewStatus::Accepted | ReviewStatus::Rejected) {
        return Ok(None);
    }
    let (id, at) = (row.get("decision_id")?, row.get("decided_at")?);
    let (by, name) = (row.get("decider_id")?, row.get("decider_name")?);
    let (Some(decision), Some(at), Some(id), Some(name)) = (id, at, by, name) else {
        return Ok(None);
    };
    Ok(Some(Decided::new(decision, User { id, name }, at)))
}

fn reply_from(row: &Row) -> Result<Reply, TxError> {
    Ok(Reply {
        id: row.get("id")?,
        author: row.user("author_id", "author_name")?,
        body: row.get("body")?,
        created_at: row.get("created_at")?,
        edited_at: row.get("edited_at")?,
    })
}
