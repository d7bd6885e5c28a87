//! Decisions, on either engine.
//!
//! The rows of a decision travel as one JSON text, so that a decision of any size is the same few
//! statements.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};

use crate::domain::anchor::RelativeRange;
use crate::domain::ids::{DecisionId, ReviewId, ShareLinkId, UserId};
use crate::domain::limits::{
    DECIDED_ONE_BY_ONE_MAX, DECISION_PARTS_PER_LINK_MAX, DECISION_UNDO_WINDOW,
};
use crate::domain::review::ReviewStatus;
use crate::storage::decisions::{
    Committed, DecisionPart, NewDecision, StoredDecision, UndoneDecision,
};
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;
use crate::storage::log::Append;
use crate::storage::reviews::StoredReview;
use crate::storage::seats::{FenceGuard, Guarded};

use super::dialect::{
    Connection, Engine, Moment, TxError, bytes_of_hex, guarded, json_rows, snapshot,
};
use super::review_changes::next_numbers;
use super::review_rows::{fetch_among, fetch_one, verdict};
use super::review_webhooks::{NewStatus, put_decision};
use super::reviews::{admit, store_edit};

/// Id, version, change number, position, and hexadecimal: current start and end, place start and end.
type Row = (String, i64, i64, usize, Hex, Hex, Hex, Hex);
type Hex = Option<String>;

/// Changes the reviews of the rows `$1`.
///
/// The link is compared as an expression, so that SQLite finds each review by its id. By an index of
/// the link it parses the whole JSON once a review: 5 s for 2,000 reviews instead of 12 ms.
pub(super) const UPDATE_REVIEWS: &str = concat!(
    "UPDATE reviews SET status = $2, version = reviews.version + 1, updated_at = $3, \
     decision_id = $4, decided_by = $5, decided_at = $6, \
     last_change = CAST(w.value ->> 2 AS bigint), changed_by = $8, \
     changed_by_number = CAST(w.value ->> 2 AS bigint), \
     current_start = COALESCE(",
    bytes_of_hex!("w.value ->> 4"),
    ", reviews.current_start), current_end = COALESCE(",
    bytes_of_hex!("w.value ->> 5"),
    ", reviews.current_end) FROM ",
    json_rows!("$1"),
    " WHERE reviews.id = w.value ->> 0 AND reviews.link_id || '' = $7 \
     AND reviews.version = CAST(w.value ->> 1 AS bigint)"
);

/// The new state of the reviews of a change.
struct NewState<'a> {
    status: ReviewStatus,
    decision: Option<DecisionId>,
    by: &'a UserId,
    at: DateTime<Utc>,
}

impl Engine {
    pub(in crate::storage) async fn decide(
        &self,
        decision: &NewDecision,
        guard: FenceGuard,
        edit: Option<&Append>,
    ) -> Result<Guarded<Committed>, StorageError> {
        let NewDecision { id, link, verdict, by, at, parts, .. } = decision;
        guarded!(self, tx => {
            admit(tx, *link, guard).await?;
            let seq = store_edit_of(tx, edit).await?;
            let (rows, change) = numbered(tx, *link, parts).await?;
            let status = verdict.status();
            let state = NewState { status, decision: Some(*id), by: &by.id, at: *at };
            update_reviews(tx, *link, &state, &rows, parts.len()).await?;
            insert(tx, decision, change, &rows).await?;
            prune(tx, *link, *at).await?;
            let new = NewStatus {
                link: *link,
                decision: Some(*id),
                status,
                by: Some(&by.id),
                at: *at,
            };
            put_decision(tx, &self.hooks, &new, parts).await?;
            let reviews = announced(tx, *link, parts).await?;
            Ok(Committed { seq, change, reviews })
        })
    }

    pub(in crate::storage) async fn undo_decision(
        &self,
        undone: &UndoneDecision,
        guard: FenceGuard,
        edit: Option<&Append>,
    ) -> Result<Guarded<Committed>, StorageError> {
        let UndoneDecision { id, link, by, at, parts, .. } = undone;
        guarded!(self, tx => {
            admit(tx, *link, guard).await?;
            let seq = store_edit_of(tx, edit).await?;
            let (rows, change) = numbered(tx, *link, parts).await?;
            let marked = sqlx::query(
                "UPDATE decisions SET undo_change = $3 \
                 WHERE id = $1 AND link_id = $2 AND undo_change IS NULL",
            )
            .bind(id.to_string())
            .bind(link.to_string())
            .bind(change)
            .execute(&mut *tx)
            .await?;
            if marked.rows_affected() != 1 {
                return Err(TxError::Refused(Guarded::Stale));
            }
            let state = NewState { status: ReviewStatus::Open, decision: None, by: &by.id, at: *at };
            update_reviews(tx, *link, &state, &rows, parts.len()).await?;
            sqlx::query("DELETE FROM decision_parts WHERE decision_id = $1")
                .bind(id.to_string())
                .execute(&mut *tx)
                .await?;
            let new = NewStatus {
                link: *link,
                decision: Some(*id),
                status: ReviewStatus::Open,
                by: Some(&by.id),
                at: *at,
            };
            put_decision(tx, &self.hooks, &new, parts).await?;
            let reviews = announced(tx, *link, parts).await?;
            Ok(Committed { seq, change, reviews })
        })
    }

    pub(in crate::storage) async fn decision(
        &self,
        link: ShareLinkId,
        id: DecisionId,
    ) -> Result<Option<StoredDecision>, StorageError> {
        snapshot!(self, tx => { fetch(tx, link, id).await })
    }

    pub(in crate::storage) async fn reviews_among(
        &self,
        link: ShareLinkId,
        ids: &[ReviewId],
    ) -> Result<Vec<StoredReview>, StorageError> {
        snapshot!(self, tx => { fetch_among(tx, link, ids).await })
    }
}

async fn store_edit_of(
    connection: &mut Connection,
    edit: Option<&Append>,
) -> Result<Option<i64>, TxError> {
    let Some(edit) = edit else { return Ok(None) };
    Ok(Some(store_edit(connection, edit).await?))
}

/// The rows of the parts with the numbers of their changes, as JSON, and the last number. Reviews that
/// are announced as one share one number.
async fn numbered(
    connection: &mut Connection,
    link: ShareLinkId,
    parts: &[DecisionPart],
) -> Result<(String, i64), TxError> {
    let is_one = DECIDED_ONE_BY_ONE_MAX < parts.len();
    let count = if is_one { 1 } else { i64::try_from(parts.len()).map_err(corrupt)? };
    let last = next_numbers(connection, link, count).await?;
    let rows = parts.iter().enumerate().zip(1..).map(|((index, part), nth): (_, i64)| {
        let change = if is_one { last } else { last - count + nth };
        let (start, end) = hex_of(part.current.as_ref());
        let (put_start, put_end) = hex_of(part.position.as_ref());
        let id = part.review.to_string();
        let row: Row = (id, part.version, change, index, start, end, put_start, put_end);
        row
    });
    let rows = serde_json::to_string(&rows.collect::<Vec<_>>()).map_err(corrupt)?;
    Ok((rows, last))
}

fn hex_of(range: Option<&RelativeRange>) -> (Hex, Hex) {
    let hex = |bytes: &[u8]| {
        bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
            let _infallible = write!(hex, "{byte:02x}");
            hex
        })
    };
    range.map(|range| (hex(&range.start), hex(&range.end))).unzip()
}

/// Changes the reviews of `rows`. Refuses if one of them is missing, or has another version.
async fn update_reviews(
    connection: &mut Connection,
    link: ShareLinkId,
    state: &NewState<'_>,
    rows: &str,
    count: usize,
) -> Result<(), TxError> {
    let changed = sqlx::query(UPDATE_REVIEWS)
        .bind(rows)
        .bind(state.status.as_str())
        .bind(Moment(state.at))
        .bind(state.decision.map(|id| id.to_string()))
        .bind(state.decision.map(|_| state.by.as_str()))
        .bind(state.decision.map(|_| Moment(state.at)))
        .bind(link.to_string())
        .bind(state.by.as_str())
        .execute(connection)
        .await?;
    if u64::try_from(count) == Ok(changed.rows_affected()) {
        return Ok(());
    }
    Err(TxError::Refused(Guarded::Stale))
}

async fn insert(
    connection: &mut Connection,
    decision: &NewDecision,
    change: i64,
    rows: &str,
) -> Result<(), TxError> {
    sqlx::query(
        "INSERT INTO decisions (id, link_id, verdict, decided_by, decided_at, parts, change) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(decision.id.to_string())
    .bind(decision.link.to_string())
    .bind(decision.verdict.as_str())
    .bind(decision.by.id.as_str())
    .bind(Moment(decision.at))
    .bind(i64::try_from(decision.parts.len()).map_err(corrupt)?)
    .bind(change)
    .execute(&mut *connection)
    .await?;
    sqlx::query(concat!(
        "INSERT INTO decision_parts (decision_id, position, review_id, part, place_start, \
         place_end) SELECT $2, CAST(w.value ->> 3 AS bigint), w.value ->> 0, 0, ",
        bytes_of_hex!("w.value ->> 6"),
        ", ",
        bytes_of_hex!("w.value ->> 7"),
        " FROM ",
        json_rows!("$1")
    ))
    .bind(rows)
    .bind(decision.id.to_string())
    .execute(connection)
    .await?;
    Ok(())
}

/// Deletes the link's decisions whose time for an undo is over, and the oldest beyond the bound.
async fn prune(
    connection: &mut Connection,
    link: ShareLinkId,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    sqlx::query(
        "DELETE FROM decisions WHERE id IN (SELECT id FROM ( \
           SELECT id, decided_at, SUM(parts) OVER (ORDER BY decided_at DESC, id DESC) AS total \
           FROM decisions WHERE link_id = $1) AS d WHERE d.decided_at < $2 OR $3 < d.total)",
    )
    .bind(link.to_string())
    .bind(Moment(now - DECISION_UNDO_WINDOW))
    .bind(DECISION_PARTS_PER_LINK_MAX)
    .execute(connection)
    .await?;
    Ok(())
}

/// The reviews that this transaction has changed, unless one event announces them all.
async fn announced(
    connection: &mut Connection,
    link: ShareLinkId,
    parts: &[DecisionPart],
) -> Result<Vec<StoredReview>, TxError> {
    let mut reviews = Vec::new();
    if parts.len() <= DECIDED_ONE_BY_ONE_MAX {
        for part in parts {
            reviews.extend(fetch_one(connection, link, part.review).await?);
        }
    }
    Ok(reviews)
}

/// Inside a transaction that sees one state, because it runs two statements.
async fn fetch(
    connection: &mut Connection,
    link: ShareLinkId,
    id: DecisionId,
) -> Result<Option<StoredDecision>, TxError> {
    let row: Option<(String, Moment, bool)> = sqlx::query_as(
        "SELECT verdict, decided_at, undo_change IS NOT NULL FROM decisions \
         WHERE id = $1 AND link_id = $2",
    )
    .bind(id.to_string())
    .bind(link.to_string())
    .fetch_optional(&mut *connection)
    .await?;
    let Some((name, Moment(at), is_undone)) = row else { return Ok(None) };
    type Column = Option<Vec<u8>>;
    let rows: Vec<(String, Column, Column)> = sqlx::query_as(
        "SELECT review_id, place_start, place_end FROM decision_parts \
         WHERE decision_id = $1 ORDER BY position",
    )
    .bind(id.to_string())
    .fetch_all(connection)
    .await?;
    let mut parts = Vec::with_capacity(rows.len());
    for (review, start, end) in rows {
        let position = start.zip(end).map(|(start, end)| RelativeRange { start, end });
        parts.push((parse(&review)?, position));
    }
    Ok(Some(StoredDecision { verdict: verdict(&name)?, at, is_undone, parts }))
}
