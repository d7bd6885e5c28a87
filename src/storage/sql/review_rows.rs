//! Reading reviews, on either engine.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::Row as _;

use crate::domain::anchor::{AnchorOrigin, RelativeRange, TextRange};
use crate::domain::ids::{ReviewId, ShareLinkId};
use crate::domain::limits::{DECIDED_ONE_BY_ONE_MAX, REVIEW_PAGE_ROWS_MAX};
use crate::domain::review::{Decided, Reply, ReviewStatus, Verdict};
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;
use crate::storage::pagination::Cursor;
use crate::storage::reviews::{Listed, ReviewPage, StoredReview, rows_of_page};

use super::dialect::{Connection, Moment, Row, TxError, json_rows, text, user};

/// Selects reviews for [`review_from`].
macro_rules! select_reviews {
    ($rest:literal) => {
        concat!(
            "SELECT r.id, r.link_id, r.author_id, u.name AS author_name, r.anchor_start, \
             r.anchor_end, r.quote, r.prefix, r.suffix, r.current_start, r.current_end, r.body, \
             r.suggestion, r.status, r.version, r.first_change, r.last_change, r.created_at, \
             r.updated_at, r.kind, r.changed_by, r.changed_by_number, r.decision_id, r.decided_at, d.id AS decider_id, \
             d.name AS decider_name \
             FROM reviews r JOIN users u ON u.id = r.author_id \
             LEFT JOIN users d ON d.id = r.decided_by ",
            $rest
        )
    };
}

/// Selects replies as [`ReplyRow`]s.
macro_rules! select_replies {
    ($rest:literal) => {
        concat!(
            "SELECT p.review_id, p.id, u.id, u.name, p.body, p.created_at, p.edited_at \
             FROM replies p JOIN users u ON u.id = p.author_id ",
            $rest
        )
    };
}

/// The column `kind` of a remark on the whole text.
pub(super) const SUMMARY: &str = "summary";

type ReplyRow = (String, String, String, String, String, Moment, Option<Moment>);

/// A page of a link's reviews, oldest first. Inside a transaction, because it runs three statements.
pub(super) async fn fetch_page(
    connection: &mut Connection,
    link: ShareLinkId,
    after: Option<Cursor<ReviewId>>,
    rows: u32,
) -> Result<ReviewPage, TxError> {
    let mut listed = list(connection, link, after, rows).await?;
    let held = rows_of_page(&listed, rows);
    let more = held < listed.len();
    listed.truncate(held);
    let Some(last) = listed.last().map(|review| review.cursor) else {
        return Ok(ReviewPage { reviews: Vec::new(), next: None });
    };
    let first = after_of(after);
    let rows = sqlx::query(select_reviews!(
        "WHERE r.link_id = $1 AND (r.created_at, r.id) > ($2, $3) \
         AND (r.created_at, r.id) <= ($4, $5) ORDER BY r.created_at, r.id"
    ))
    .bind(link.to_string())
    .bind(first.0)
    .bind(first.1.as_str())
    .bind(Moment(last.at))
    .bind(last.id.to_string())
    .fetch_all(&mut *connection)
    .await?;
    let replies: Vec<ReplyRow> = sqlx::query_as(select_replies!(
        "JOIN reviews r ON r.id = p.review_id WHERE r.link_id = $1 \
         AND (r.created_at, r.id) > ($2, $3) AND (r.created_at, r.id) <= ($4, $5) \
         ORDER BY p.review_id, p.version"
    ))
    .bind(link.to_string())
    .bind(first.0)
    .bind(first.1)
    .bind(Moment(last.at))
    .bind(last.id.to_string())
    .fetch_all(connection)
    .await?;
    let mut by_review: HashMap<ReviewId, Vec<Reply>> = HashMap::new();
    for row in replies {
        by_review.entry(parse(&row.0)?).or_default().push(reply_from(row)?);
    }
    let mut reviews = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut review = review_from(row)?;
        review.replies = by_review.remove(&review.id).unwrap_or_default();
        reviews.push(review);
    }
    Ok(ReviewPage { reviews, next: more.then_some(last) })
}

/// Keys and sizes of the reviews after a cursor, from the index alone: one more than a page has.
async fn list(
    connection: &mut Connection,
    link: ShareLinkId,
    after: Option<Cursor<ReviewId>>,
    rows: u32,
) -> Result<Vec<Listed>, TxError> {
    let (at, id) = after_of(after);
    let rows: Vec<(String, Moment, i64)> = sqlx::query_as(
        "SELECT id, created_at, bytes FROM reviews WHERE link_id = $1 \
         AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4",
    )
    .bind(link.to_string())
    .bind(at)
    .bind(id)
    .bind(i64::from(rows.clamp(1, REVIEW_PAGE_ROWS_MAX)) + 1)
    .fetch_all(connection)
    .await?;
    let listed = rows.into_iter().map(|(id, at, bytes)| {
        let cursor = Cursor { at: at.0, id: parse(&id)? };
        Ok(Listed { cursor, bytes })
    });
    listed.collect()
}

/// The key after which a page begins. Galley creates no review before the epoch.
fn after_of(after: Option<Cursor<ReviewId>>) -> (Moment, String) {
    match after {
        Some(Cursor { at, id }) => (Moment(at), id.to_string()),
        None => (Moment(DateTime::<Utc>::UNIX_EPOCH), String::new()),
    }
}

/// One review of a link. Inside a transaction, because it runs two statements.
pub(super) async fn fetch_one(
    connection: &mut Connection,
    link: ShareLinkId,
    id: ReviewId,
) -> Result<Option<StoredReview>, TxError> {
    let row = sqlx::query(select_reviews!("WHERE r.id = $1 AND r.link_id = $2"))
        .bind(id.to_string())
        .bind(link.to_string())
        .fetch_optional(&mut *connection)
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let mut review = review_from(&row)?;
    let replies: Vec<ReplyRow> =
        sqlx::query_as(select_replies!("WHERE p.review_id = $1 ORDER BY p.version"))
            .bind(id.to_string())
            .fetch_all(connection)
            .await?;
    review.replies = replies.into_iter().map(reply_from).collect::<Result<_, _>>()?;
    Ok(Some(review))
}

/// These reviews of a link; many of them without their replies. Inside a transaction that sees one
/// state.
pub(super) async fn fetch_among(
    connection: &mut Connection,
    link: ShareLinkId,
    ids: &[ReviewId],
) -> Result<Vec<StoredReview>, TxError> {
    if ids.len() <= DECIDED_ONE_BY_ONE_MAX {
        let mut reviews = Vec::new();
        for id in ids {
            reviews.extend(fetch_one(connection, link, *id).await?);
        }
        return Ok(reviews);
    }
    let ids: Vec<_> = ids.iter().map(|id| (id.to_string(),)).collect();
    let rows = sqlx::query(concat!(
        select_reviews!(""),
        "WHERE r.link_id = $2 AND r.id IN (SELECT w.value ->> 0 FROM ",
        json_rows!("$1"),
        ")"
    ))
    .bind(serde_json::to_string(&ids).map_err(corrupt)?)
    .bind(link.to_string())
    .fetch_all(connection)
    .await?;
    Ok(rows.iter().map(review_from).collect::<Result<_, _>>()?)
}

pub(super) fn verdict(name: &str) -> Result<Verdict, StorageError> {
    Verdict::from_name(name).ok_or_else(|| corrupt("a decision's verdict"))
}

pub(super) fn status(name: &str) -> Result<ReviewStatus, StorageError> {
    ReviewStatus::from_name(name).ok_or_else(|| corrupt("a review's status"))
}

/// Without its replies.
fn review_from(row: &Row) -> Result<StoredReview, StorageError> {
    let plain = |column: &str| row.try_get::<String, _>(column);
    let unit = |column: &str| u32::try_from(row.try_get::<i64, _>(column)?).map_err(corrupt);
    let moment = |column: &str| row.try_get(column).map(|Moment(at)| at);
    let is_summary = row.try_get::<Option<String>, _>("kind")?.as_deref() == Some(SUMMARY);
    // A server of the previous version stores a suggestion with a remark on the whole text.
    let suggestion: Option<String> = row.try_get("suggestion")?;
    let suggestion = suggestion.filter(|_| !is_summary);
    let last_change: i64 = row.try_get("last_change")?;
    let changed_by: Option<String> = row.try_get("changed_by")?;
    let is_its = row.try_get::<i64, _>("changed_by_number")? == last_change;
    let changed_by = changed_by.filter(|_| is_its).map(|id| parse(&id)).transpose()?;
    let status = status(&plain("status")?)?;
    Ok(StoredReview {
        id: parse(&plain("id")?)?,
        link: parse(&plain("link_id")?)?,
        author: user(&plain("author_id")?, plain("author_name")?)?,
        is_summary,
        origin: AnchorOrigin {
            range: TextRange { start: unit("anchor_start")?, end: unit("anchor_end")? },
            quote: text(plain("quote")?),
            prefix: text(plain("prefix")?),
            suffix: text(plain("suffix")?),
        },
        current: RelativeRange {
            start: row.try_get("current_start")?,
            end: row.try_get("current_end")?,
        },
        body: text(plain("body")?),
        suggestion: suggestion.map(text),
        status,
        decided: decided_from(row, status)?,
        version: row.try_get("version")?,
        changes: (row.try_get("first_change")?, last_change),
        changed_by,
        replies: Vec::new(),
        created_at: moment("created_at")?,
        updated_at: moment("updated_at")?,
    })
}

/// The decision of a review. A server of an earlier version changes the status without it.
fn decided_from(row: &Row, status: ReviewStatus) -> Result<Option<Decided>, StorageError> {
    if !matches!(status, ReviewStatus::Accepted | ReviewStatus::Rejected) {
        return Ok(None);
    }
    let id: Option<String> = row.try_get("decision_id")?;
    let at: Option<Moment> = row.try_get("decided_at")?;
    let by: Option<String> = row.try_get("decider_id")?;
    let name: Option<String> = row.try_get("decider_name")?;
    let (Some(id), Some(Moment(at)), Some(by), Some(name)) = (id, at, by, name) else {
        return Ok(None);
    };
    Ok(Some(Decided::new(parse(&id)?, user(&by, name)?, at)))
}

fn reply_from(row: ReplyRow) -> Result<Reply, StorageError> {
    let (_, id, author_id, author_name, body, Moment(created_at), edited_at) = row;
    Ok(Reply {
        id: parse(&id)?,
        author: user(&author_id, author_name)?,
        body: text(body),
        created_at,
        edited_at: edited_at.map(|Moment(at)| at),
    })
}
