//! Decisions of the writer about suggestions, and their undo.
//!
//! One transaction stores the edit of a decision, the new status of each review and the decision
//! itself, with the places of the texts that it put in. An undo reads these places. Each write names
//! the seat that authorizes it (G14) and the version of each review that the caller has read.
//!
//! The rows of a decision travel as one JSON text, so that a decision of any size is the same few
//! statements.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use chrono::{DateTime, Utc};

use crate::domain::anchor::RelativeRange;
use crate::domain::ids::{DecisionId, DocumentId, ReviewId, ShareLinkId, UserId};
use crate::domain::limits::{
    DECIDED_ONE_BY_ONE_MAX, DECISION_PARTS_PER_LINK_MAX, DECISION_UNDO_WINDOW,
};
use crate::domain::review::{ReviewStatus, Verdict};
use crate::domain::user::User;
use crate::storage::decode::corrupt;
use crate::storage::guard::{FenceGuard, Guarded};
use crate::storage::links::Membership;
use crate::storage::locks::require_seat;
use crate::storage::log::Append;
use crate::storage::review_changes::next_numbers;
use crate::storage::review_rows::{StoredReview, fetch_among, fetch_one};
use crate::storage::review_webhooks::{NewStatus, put_decided};
use crate::storage::statement::{json, sql};
use crate::storage::tx::{Tx, guarded, run};
use crate::storage::tx_error::TxError;
use crate::storage::updates::store_edit;
use crate::storage::{Storage, StorageFuture};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionPart {
    pub review: ReviewId,
    /// The version of the review, as the caller has read it.
    pub version: i64,
    /// The number of the part in the review.
    pub part: usize,
    /// The position of its range from now on. `None`: it stays.
    pub current: Option<RelativeRange>,
    /// The place of the accepted text. `None`: the decision puts nothing into the text.
    pub position: Option<RelativeRange>,
}

#[derive(Clone, Debug)]
pub struct NewDecision {
    /// Its id; never used before.
    pub id: DecisionId,
    pub document: DocumentId,
    pub link: ShareLinkId,
    pub verdict: Verdict,
    pub by: User,
    pub at: DateTime<Utc>,
    /// The parts of its reviews in the order of the text; at least one, each once. A rejection has the first
    /// part of each review.
    pub parts: Vec<DecisionPart>,
}

#[derive(Clone, Debug)]
pub struct UndoneDecision {
    pub id: DecisionId,
    pub document: DocumentId,
    pub link: ShareLinkId,
    pub by: User,
    pub at: DateTime<Utc>,
    /// The parts of the decision. An undo stores no place.
    pub parts: Vec<DecisionPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    pub seq: Option<i64>,
    /// The number of its last change among the document's review changes.
    pub change: i64,
    /// Its reviews, in the order of their first places; none of a decision that is announced as one.
    pub reviews: Vec<StoredReview>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDecision {
    pub verdict: Verdict,
    pub at: DateTime<Utc>,
    /// Whether it is undone. An undone decision has no parts any more.
    pub is_undone: bool,
    /// Its parts in the order of the text: the review, the number in it, and the place of the accepted text.
    pub parts: Vec<(ReviewId, usize, Option<RelativeRange>)>,
}

/// The reviews of these parts with their versions, each once.
pub(crate) fn reviews_of(parts: &[DecisionPart]) -> Vec<(ReviewId, i64)> {
    let mut seen = HashSet::new();
    let first = parts.iter().filter(|part| seen.insert(part.review));
    first.map(|part| (part.review, part.version)).collect()
}

/// Id, version, change number, and hexadecimal: current start and end of the first part.
type ReviewRow = (ReviewId, i64, i64, Hex, Hex);
/// Review, number in it, position, and hexadecimal: current start and end, place start and end.
type PartRow = (ReviewId, usize, usize, Hex, Hex, Hex, Hex);
type Hex = Option<String>;

/// Changes the reviews of `rows`.
///
/// The link is compared as an expression, so that SQLite finds each review by its id. By an index of
/// the link it parses the whole JSON once a review: 5 s for 2,000 reviews instead of 12 ms.
pub(crate) const UPDATE_REVIEWS: &str = "UPDATE reviews SET status = {status}, \
     version = reviews.version + 1, updated_at = {at}, decision_id = {decision}, \
     decided_by = {decided_by}, decided_at = {decided_at}, \
     last_change = CAST(w.value ->> 2 AS bigint), changed_by = {by}, \
     changed_by_number = CAST(w.value ->> 2 AS bigint), \
     current_start = COALESCE({@hex:w.value ->> 3}, reviews.current_start), \
     current_end = COALESCE({@hex:w.value ->> 4}, reviews.current_end) \
     FROM {@rows:{rows}} WHERE reviews.id = w.value ->> 0 \
     AND reviews.link_id || '' = {link} AND reviews.version = CAST(w.value ->> 1 AS bigint)";

struct NewState<'a> {
    status: ReviewStatus,
    decision: Option<DecisionId>,
    by: &'a UserId,
    at: DateTime<Utc>,
}

impl Storage {
    /// Stores a decision: its edit, the status of its reviews, and the decision. An edit carries the
    /// same guard, and in `expected_seq` the number it was made on. It changes nothing and is `Stale`
    /// if the document or one of the reviews has changed since the caller read it. It deletes decisions
    /// of the link that can no longer be undone, and the oldest ones beyond the bound.
    pub fn decide<'a>(
        &'a self,
        decision: &'a NewDecision,
        guard: FenceGuard,
        edit: Option<&'a Append>,
    ) -> StorageFuture<'a, Guarded<Committed>> {
        let NewDecision { id, link, verdict, by, at, parts, .. } = decision;
        let write = guarded!(self, tx => {
            let locked = require_seat(tx, *link, guard).await?;
            let seq = store_edit_of(tx, edit).await?;
            let reviews = reviews_of(parts);
            let (rows, change) = numbered(tx, *link, &reviews, parts).await?;
            let status = verdict.status();
            let state = NewState { status, decision: Some(*id), by: &by.id, at: *at };
            update_reviews(tx, *link, &state, &rows, reviews.len()).await?;
            let rows = part_rows(parts)?;
            move_parts(tx, parts, &rows).await?;
            insert(tx, decision, change, &rows).await?;
            prune(tx, *link, *at).await?;
            let (decision, by) = (Some(*id), Some(&by.id));
            let new = NewStatus { locked, link: *link, decision, status, by, at: *at };
            conclude(tx, &new, &reviews, (seq, change)).await
        });
        Box::pin(async move {
            let _turn = self.turn_of(parts.len()).await?;
            write.await
        })
    }

    /// Undoes a decision: stores its edit, and opens its reviews. `Stale` as in
    /// [`decide`](Self::decide), and if the decision is undone already.
    pub fn undo_decision<'a>(
        &'a self,
        undone: &'a UndoneDecision,
        guard: FenceGuard,
        edit: Option<&'a Append>,
    ) -> StorageFuture<'a, Guarded<Committed>> {
        let UndoneDecision { id, link, by, at, parts, .. } = undone;
        let write = guarded!(self, tx => {
            let locked = require_seat(tx, *link, guard).await?;
            let seq = store_edit_of(tx, edit).await?;
            let reviews = reviews_of(parts);
            let (rows, change) = numbered(tx, *link, &reviews, parts).await?;
            let marked = sql!(
                "UPDATE decisions SET undo_change = {change} \
                 WHERE id = {id} AND link_id = {link} AND undo_change IS NULL"
            );
            if marked.run(tx).await? != 1 {
                return Err(TxError::Refused(Guarded::Stale));
            }
            let status = ReviewStatus::Open;
            let state = NewState { status, decision: None, by: &by.id, at: *at };
            update_reviews(tx, *link, &state, &rows, reviews.len()).await?;
            move_parts(tx, parts, &part_rows(parts)?).await?;
            sql!("DELETE FROM decision_parts WHERE decision_id = {id}").run(tx).await?;
            let (decision, by) = (Some(*id), Some(&by.id));
            let new = NewStatus { locked, link: *link, decision, status, by, at: *at };
            conclude(tx, &new, &reviews, (seq, change)).await
        });
        Box::pin(async move {
            let _turn = self.turn_of(parts.len()).await?;
            write.await
        })
    }

    pub fn decision<'a>(
        &'a self,
        member: &'a Membership,
        id: DecisionId,
    ) -> StorageFuture<'a, Option<StoredDecision>> {
        run!(self, Snapshot, tx => {
            let row = sql!(
                "SELECT verdict, decided_at, undo_change IS NOT NULL AS is_undone FROM decisions \
                 WHERE id = {id} AND link_id = {member.id}"
            );
            let Some(row) = row.row(tx).await? else { return Ok(None) };
            let positions = sql!(
                "SELECT review_id, part, place_start, place_end FROM decision_parts \
                 WHERE decision_id = {id} ORDER BY position"
            );
            let mut parts = Vec::new();
            for part in positions.rows(tx).await? {
                let start: Option<Vec<u8>> = part.get("place_start")?;
                let position = start.zip(part.get("place_end")?);
                let position = position.map(|(start, end)| RelativeRange { start, end });
                parts.push((part.get("review_id")?, part.get("part")?, position));
            }
            let (verdict, at) = (row.get("verdict")?, row.get("decided_at")?);
            Ok(Some(StoredDecision { verdict, at, is_undone: row.get("is_undone")?, parts }))
        })
    }

    /// In any order; missing ones are left out. Those of a decision that is announced as one have no
    /// replies.
    pub fn reviews_among<'a>(
        &'a self,
        member: &'a Membership,
        ids: &'a [ReviewId],
    ) -> StorageFuture<'a, Vec<StoredReview>> {
        run!(self, Snapshot, tx => { fetch_among(tx, member.id, ids).await })
    }
}

async fn store_edit_of(tx: &mut Tx, edit: Option<&Append>) -> Result<Option<i64>, TxError> {
    let Some(edit) = edit else { return Ok(None) };
    Ok(Some(store_edit(tx, edit).await?))
}

/// The rows of the reviews with the numbers of their changes, as JSON, and the last number. Reviews that
/// are announced as one share one number.
async fn numbered(
    tx: &mut Tx,
    link: ShareLinkId,
    reviews: &[(ReviewId, i64)],
    parts: &[DecisionPart],
) -> Result<(String, i64), TxError> {
    let is_one = reviews.len() > DECIDED_ONE_BY_ONE_MAX;
    let count = if is_one { 1 } else { i64::try_from(reviews.len()).map_err(corrupt)? };
    let last = next_numbers(tx, link, count).await?;
    let firsts = parts.iter().filter(|part| part.part == 0);
    let firsts: HashMap<_, _> = firsts.map(|part| (part.review, part.current.as_ref())).collect();
    let rows = reviews.iter().zip(1..).map(|((id, version), nth): (_, i64)| {
        let change = if is_one { last } else { last - count + nth };
        let (start, end) = hex_of(firsts.get(id).copied().flatten());
        let row: ReviewRow = (*id, *version, change, start, end);
        row
    });
    Ok((json(&rows.collect::<Vec<_>>())?, last))
}

fn part_rows(parts: &[DecisionPart]) -> Result<String, TxError> {
    let rows = parts.iter().enumerate().map(|(index, part)| {
        let (start, end) = hex_of(part.current.as_ref());
        let (put_start, put_end) = hex_of(part.position.as_ref());
        let row: PartRow = (part.review, part.part, index, start, end, put_start, put_end);
        row
    });
    Ok(json(&rows.collect::<Vec<_>>())?)
}

/// Stores the positions of the parts after the first ones.
async fn move_parts(tx: &mut Tx, parts: &[DecisionPart], rows: &str) -> Result<(), TxError> {
    if parts.iter().all(|part| part.part == 0) {
        return Ok(());
    }
    sql!(
        "UPDATE review_parts SET \
         current_start = COALESCE({@hex:w.value ->> 3}, review_parts.current_start), \
         current_end = COALESCE({@hex:w.value ->> 4}, review_parts.current_end) \
         FROM {@rows:{rows}} WHERE review_parts.review_id = w.value ->> 0 \
         AND review_parts.part = CAST(w.value ->> 1 AS bigint)"
    )
    .run(tx)
    .await?;
    Ok(())
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
    tx: &mut Tx,
    link: ShareLinkId,
    state: &NewState<'_>,
    rows: &str,
    count: usize,
) -> Result<(), TxError> {
    let changed = sql!(
        UPDATE_REVIEWS,
        rows,
        status = state.status,
        at = state.at,
        decision = state.decision,
        decided_by = state.decision.map(|_| state.by),
        decided_at = state.decision.map(|_| state.at),
        link,
        by = state.by
    );
    if u64::try_from(count) == Ok(changed.run(tx).await?) {
        return Ok(());
    }
    Err(TxError::Refused(Guarded::Stale))
}

async fn insert(
    tx: &mut Tx,
    decision: &NewDecision,
    change: i64,
    rows: &str,
) -> Result<(), TxError> {
    sql!(
        "INSERT INTO decisions (id, link_id, verdict, decided_by, decided_at, parts, change) \
         VALUES ({decision.id}, {decision.link}, {decision.verdict}, {decision.by.id}, \
         {decision.at}, {decision.parts.len()}, {change})"
    )
    .run(tx)
    .await?;
    sql!(
        "INSERT INTO decision_parts (decision_id, position, review_id, part, place_start, \
         place_end) SELECT {decision.id}, CAST(w.value ->> 2 AS bigint), w.value ->> 0, \
         CAST(w.value ->> 1 AS bigint), {@hex:w.value ->> 5}, {@hex:w.value ->> 6} \
         FROM {@rows:{rows}}"
    )
    .run(tx)
    .await?;
    Ok(())
}

/// Deletes the link's decisions whose time for an undo is over, and the oldest beyond the bound.
async fn prune(tx: &mut Tx, link: ShareLinkId, now: DateTime<Utc>) -> Result<(), TxError> {
    sql!(
        "DELETE FROM decisions WHERE id IN (SELECT id FROM ( \
           SELECT id, decided_at, SUM(parts) OVER (ORDER BY decided_at DESC, id DESC) AS total \
           FROM decisions WHERE link_id = {link}) AS d \
           WHERE d.decided_at < {now - DECISION_UNDO_WINDOW} \
           OR {DECISION_PARTS_PER_LINK_MAX} < d.total)"
    )
    .run(tx)
    .await?;
    Ok(())
}

/// Stores the webhook of a decision or of its undo, and returns what the other servers announce.
async fn conclude(
    tx: &mut Tx,
    new: &NewStatus<'_>,
    changed: &[(ReviewId, i64)],
    (seq, change): (Option<i64>, i64),
) -> Result<Committed, TxError> {
    put_decided(tx, new, (changed.len(), &mut changed.iter().map(|(id, _)| *id))).await?;
    let mut reviews = Vec::new();
    // One event announces more of them, without their content.
    if changed.len() <= DECIDED_ONE_BY_ONE_MAX {
        for (id, _) in changed {
            reviews.extend(fetch_one(tx, new.link, None, *id).await?);
        }
    }
    Ok(Committed { seq, change, reviews })
}
