//! The webhooks of reviews.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::domain::ids::{DecisionId, ReviewId, ShareLinkId, UserId};
use crate::domain::limits::{WEBHOOK_REVIEWS_MAX, WEBHOOK_TYPED_DELAY};
use crate::domain::review::{ReviewOrigin, ReviewStatus};
use crate::domain::webhook::WebhookEvent;
use crate::storage::locks::Locked;
use crate::storage::review_rows::StoredReview;
use crate::storage::statement::sql;
use crate::storage::tx::Tx;
use crate::storage::tx_error::TxError;
use crate::storage::webhooks::{Subject, make_due, put, put_after};

pub(crate) struct NewStatus<'a> {
    pub(crate) locked: Locked,
    pub(crate) link: ShareLinkId,
    pub(crate) decision: Option<DecisionId>,
    pub(crate) status: ReviewStatus,
    pub(crate) by: Option<&'a UserId>,
    pub(crate) at: DateTime<Utc>,
}

pub(crate) async fn put_created(
    tx: &mut Tx,
    locked: Locked,
    review: &StoredReview,
) -> Result<(), TxError> {
    let about = (Subject::link(locked, review.link), review.created_at);
    let data = || {
        let (kind, author) = (review.kind(), review.author.id.as_str());
        json!({ "review_id": review.id, "kind": kind, "author_id": author })
    };
    let wait =
        if review.source == ReviewOrigin::Typed { WEBHOOK_TYPED_DELAY } else { Duration::ZERO };
    put_after(tx, (WebhookEvent::ReviewCreated, wait), about, data).await
}

/// Removes the webhooks of a review that its author takes back, unless an attempt has begun.
pub(crate) async fn take_back(tx: &mut Tx, _: Locked, review: ReviewId) -> Result<(), TxError> {
    let event = WebhookEvent::ReviewCreated;
    if !tx.hooks.want(event) {
        return Ok(());
    }
    // The time selects the few rows of a batch, by an index.
    let removed = sql!(
        "DELETE FROM webhooks WHERE state = 'pending' AND attempts = 0 AND type = {event} \
         AND created_at = (SELECT created_at FROM reviews WHERE id = {review}) \
         AND data LIKE '%' || {review} || '%' RETURNING lane"
    );
    for lane in removed.values::<String>(tx).await? {
        tx.has_webhook = true;
        make_due(tx, &lane).await?;
    }
    Ok(())
}

/// The status of one review outside of a decision.
pub(crate) async fn put_status(
    tx: &mut Tx,
    locked: Locked,
    review: &StoredReview,
) -> Result<(), TxError> {
    let new = NewStatus {
        locked,
        link: review.link,
        decision: None,
        status: review.status,
        by: review.changed_by.as_ref(),
        at: review.updated_at,
    };
    put_decided(tx, &new, (1, &mut [review.id].into_iter())).await
}

/// A decision or its undo is one event for all its reviews.
pub(crate) async fn put_decided(
    tx: &mut Tx,
    new: &NewStatus<'_>,
    (count, ids): (usize, &mut (dyn Iterator<Item = ReviewId> + Send)),
) -> Result<(), TxError> {
    let data = || {
        let ids: Value = if count <= WEBHOOK_REVIEWS_MAX {
            ids.map(|id| json!(id)).collect()
        } else {
            Value::Null
        };
        json!({
            "status": new.status.as_str(),
            "reviews": count,
            "review_ids": ids,
            "decision_id": new.decision,
            "decided_by": new.by.map(UserId::as_str),
        })
    };
    put(tx, WebhookEvent::ReviewDecided, (Subject::link(new.locked, new.link), new.at), data).await
}
