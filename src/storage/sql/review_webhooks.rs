//! The webhooks of reviews, on either engine. Each transaction has locked the document of the link.

use serde_json::{Value, json};

use chrono::{DateTime, Utc};

use crate::domain::ids::{DecisionId, ReviewId, ShareLinkId, UserId};
use crate::domain::limits::WEBHOOK_REVIEWS_MAX;
use crate::domain::review::ReviewStatus;
use crate::domain::webhook::WebhookEvent;
use crate::storage::decisions::DecisionPart;
use crate::storage::reviews::{NewReply, StoredReview};
use crate::storage::webhooks::{Hooks, Subject};

use super::dialect::{Connection, TxError};
use super::webhooks::put;

/// A new status of reviews.
pub(super) struct NewStatus<'a> {
    pub(super) link: ShareLinkId,
    pub(super) decision: Option<DecisionId>,
    pub(super) status: ReviewStatus,
    pub(super) by: Option<&'a UserId>,
    pub(super) at: DateTime<Utc>,
}

pub(super) async fn put_created(
    connection: &mut Connection,
    hooks: &Hooks,
    review: &StoredReview,
) -> Result<(), TxError> {
    let about = (Subject::link(review.link), review.created_at);
    let data = || {
        let (kind, author) = (review.kind(), review.author.id.as_str());
        json!({ "review_id": review.id, "kind": kind, "author_id": author })
    };
    put(connection, hooks, WebhookEvent::ReviewCreated, about, data).await
}

/// The status of one review outside of a decision.
pub(super) async fn put_status(
    connection: &mut Connection,
    hooks: &Hooks,
    review: &StoredReview,
) -> Result<(), TxError> {
    let new = NewStatus {
        link: review.link,
        decision: None,
        status: review.status,
        by: review.changed_by.as_ref(),
        at: review.updated_at,
    };
    put_decided(connection, hooks, &new, (1, &mut [review.id].into_iter())).await
}

/// A decision or its undo: one event for all its reviews.
pub(super) async fn put_decision(
    connection: &mut Connection,
    hooks: &Hooks,
    new: &NewStatus<'_>,
    parts: &[DecisionPart],
) -> Result<(), TxError> {
    let mut ids = parts.iter().map(|part| part.review);
    put_decided(connection, hooks, new, (parts.len(), &mut ids)).await
}

async fn put_decided(
    connection: &mut Connection,
    hooks: &Hooks,
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
    let about = (Subject::link(new.link), new.at);
    put(connection, hooks, WebhookEvent::ReviewDecided, about, data).await
}

pub(super) async fn put_replied(
    connection: &mut Connection,
    hooks: &Hooks,
    (link, review): (ShareLinkId, ReviewId),
    reply: &NewReply,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    let data = || {
        let author = reply.author.id.as_str();
        json!({ "review_id": review, "reply_id": reply.id, "author_id": author })
    };
    put(connection, hooks, WebhookEvent::ReviewReplied, (Subject::link(link), now), data).await
}
