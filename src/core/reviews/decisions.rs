//! Decisions on one or many suggestions.
//!
//! The server makes one edit for all accepted suggestions, under a Yjs client id of its own. One
//! transaction commits the edit, the new statuses and the decision, if the text of the edit is still
//! the last stored one and no review has changed. Otherwise the server plans the decision again. A
//! rejection makes no edit.

use std::collections::HashSet;

use bytes::Bytes;
use chrono::{DateTime, SubsecRound as _, Utc};

use crate::domain::ids::{DecisionId, ReviewId};
use crate::domain::limits::{DECIDED_AT_ONCE_MAX, DECIDED_ONE_BY_ONE_MAX, DECISION_UNDO_WINDOW};
use crate::domain::review::{Review, Verdict};
use crate::domain::user::User;
use crate::outbox::event::Event;
use crate::reviews::decision_versions::authors_of;
use crate::reviews::error::done;
use crate::reviews::member::MemberLink;
use crate::reviews::plan::{
    self, DecisionPlan, Edit, SeenPositions, Selection, Skipped, SkippedReviews,
};
use crate::reviews::{ReviewError, Reviews};
use crate::rooms::server_edit::TRIES;
use crate::rooms::snapshot::Snapshot;
use crate::storage::decisions::{Committed, NewDecision, reviews_of};
use crate::storage::guard::{FenceGuard, Guarded};
use crate::storage::log::Append;
use crate::storage::review_rows::StoredReview;
use crate::yjs::text::Text;

/// Bytes of a review in the event of a decision about many: its id and its version.
const EVENT_BYTES_OF_ONE: usize = 80;

#[derive(Clone, Debug)]
pub struct DecisionMade {
    /// The decision and the time until which the writer can undo it. `None`: every review is skipped.
    pub made: Option<(DecisionId, DateTime<Utc>)>,
    /// In the order of the request, as `skipped`.
    pub done: Vec<ReviewId>,
    pub skipped: Vec<(ReviewId, Skipped)>,
    /// The decided reviews with their places, if they are announced one by one.
    pub reviews: Vec<Review>,
}

struct Intent<'a> {
    link: &'a MemberLink,
    verdict: Verdict,
    guard: FenceGuard,
    authors: Vec<User>,
}

impl Reviews {
    /// Needs the writer's seat. Skips suggestions that it cannot decide, each with a reason. On an error
    /// nothing is decided.
    pub async fn decide_many(
        &self,
        link: &MemberLink,
        verdict: Verdict,
        selections: Vec<Selection>,
    ) -> Result<DecisionMade, ReviewError> {
        check_selections(&selections)?;
        let guard = self.guard(link, verdict.decision().needs_seat_of()).await?;
        let ids: Vec<_> = selections.iter().map(|it| it.id).collect();
        let mut is_charged = false;
        for _ in 0..TRIES {
            let Some(snapshot) = self.text_for(link, verdict).await? else { continue };
            // Read after the text: a review whose suggestion is in the text shows as decided.
            let found = self.storage.reviews_among(link, &ids).await?;
            if !is_charged {
                self.charge_for(&link.user, &found)?;
                is_charged = true;
            }
            let (selected, skipped) = plan::select(&selections, found, verdict);
            let authors = authors_of(&link.user, &selected);
            let before = snapshot.as_ref().map(|text| Snapshot { permit: None, ..text.clone() });
            let named = selections.iter().map(|it| (it.id, it.moved.clone()));
            let plan = self.plan(link, snapshot, selected, named.collect(), skipped).await?;
            let is_empty = plan.parts.is_empty();
            if is_empty && self.is_skipped_too_early(link, before.as_ref(), &plan.skipped).await {
                continue;
            }
            if is_empty {
                // No transaction has checked the link.
                self.stored_membership(&link.user, link.id).await?;
                return Ok(result_of(&selections, None, &plan.skipped, Vec::new()));
            }
            let intent = Intent { link, verdict, guard, authors };
            let DecisionPlan { edit, parts, skipped } = plan;
            let new = NewDecision {
                id: DecisionId::generate(),
                document: link.document,
                link: link.id,
                verdict,
                by: link.user.clone(),
                at: now(),
                parts,
            };
            let made = (new.id, new.at + DECISION_UNDO_WINDOW);
            match self.commit(intent, new, edit, before).await? {
                Some(reviews) => return Ok(result_of(&selections, Some(made), &skipped, reviews)),
                None => self.texts.read_on(link.document).await,
            }
        }
        Err(ReviewError::Contended)
    }

    /// The settled text that an acceptance edits. The outer `None`: the text had unsaved updates.
    async fn text_for(
        &self,
        link: &MemberLink,
        verdict: Verdict,
    ) -> Result<Option<Option<Snapshot>>, ReviewError> {
        if verdict == Verdict::Reject {
            return Ok(Some(None));
        }
        let snapshot = self.texts.durable_snapshot(link.document, &link.requester).await?;
        Ok(snapshot.map(Some))
    }

    /// Charges the events of a decision to the user who causes them.
    pub(crate) fn charge_for<'a>(
        &self,
        user: &User,
        reviews: impl IntoIterator<Item = &'a StoredReview, IntoIter: ExactSizeIterator>,
    ) -> Result<(), ReviewError> {
        let reviews = reviews.into_iter();
        if reviews.len() > DECIDED_ONE_BY_ONE_MAX {
            return self.charge(user, reviews.len() * EVENT_BYTES_OF_ONE);
        }
        self.charge_all(user, reviews.map(StoredReview::bytes))
    }

    async fn plan(
        &self,
        link: &MemberLink,
        snapshot: Option<Snapshot>,
        selected: Vec<StoredReview>,
        seen: SeenPositions,
        mut skipped: SkippedReviews,
    ) -> Result<DecisionPlan, ReviewError> {
        let Some(snapshot) = snapshot.filter(|_| !selected.is_empty()) else {
            return Ok(plan::rejection(&selected, skipped));
        };
        let merged = snapshot.merged.clone();
        let limit = self.texts.bytes_max();
        let read = move |text: &Text| plan::acceptance(text, merged, &selected, &seen, limit);
        let mut plan = self.texts.read_at(link.document, snapshot, read).await??;
        skipped.append(&mut plan.skipped);
        Ok(DecisionPlan { skipped, ..plan })
    }

    /// Whether reviews are skipped because of a text that is no longer the last one. No commit has checked
    /// that text.
    async fn is_skipped_too_early(
        &self,
        link: &MemberLink,
        text: Option<&Snapshot>,
        skipped: &SkippedReviews,
    ) -> bool {
        match text.filter(|_| skipped.iter().any(|(_, why)| why.is_of_the_text())) {
            Some(text) => self.texts.is_behind(link.document, text.seq).await,
            None => false,
        }
    }

    /// Commits a decision and delivers it. `None`: the text or a review has changed since the server
    /// planned it.
    async fn commit(
        &self,
        intent: Intent<'_>,
        new: NewDecision,
        edit: Option<Edit>,
        before: Option<Snapshot>,
    ) -> Result<Option<Vec<Review>>, ReviewError> {
        let Intent { link, verdict, guard, authors } = intent;
        let edit = edit.map(|edit| append_of(link, guard, edit, before.as_ref()));
        let storage = &self.storage;
        let decided = storage.decide(&new, guard, edit.as_ref()).await?;
        if matches!(decided, Guarded::Stale) {
            return Ok(None);
        }
        let Committed { seq, change, reviews } = done(decided, guard)?;
        let edited = seq.zip(edit.map(|edit| edit.update));
        self.show(link, guard, authors, before, edited).await;
        let mut done = reviews_of(&new.parts);
        if done.len() <= DECIDED_ONE_BY_ONE_MAX {
            return Ok(Some(self.updated_all(link, reviews).await));
        }
        done.iter_mut().for_each(|(_, version)| *version += 1);
        let event = Event::DecisionMade { id: new.id, verdict, done: &done, by: &link.user };
        self.announce(link, change, &event).await;
        Ok(Some(Vec::new()))
    }

    /// Broadcasts the edit of a decision or an undo, and stores versions of the text.
    pub(crate) async fn show(
        &self,
        link: &MemberLink,
        guard: FenceGuard,
        authors: Vec<User>,
        before: Option<Snapshot>,
        edited: Option<(i64, Bytes)>,
    ) {
        let (Some(before), Some((seq, update))) = (before, edited) else {
            return self.record_rejection(link, authors).await;
        };
        self.texts.show_edit(link.document, guard.fence, seq, update.clone()).await;
        self.record_decision(link, authors, before, Some((seq, update))).await;
    }
}

pub(crate) fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}

pub(crate) fn append_of(
    link: &MemberLink,
    guard: FenceGuard,
    edit: Edit,
    before: Option<&Snapshot>,
) -> Append {
    Append {
        document: link.document,
        guard: Some(guard),
        update: edit.update,
        clients: vec![edit.client],
        user: None,
        expected_seq: before.map(|before| before.seq),
        after: 0,
        now: Utc::now(),
    }
}

/// The result, with the reviews in the order of the request.
fn result_of(
    selections: &[Selection],
    made: Option<(DecisionId, DateTime<Utc>)>,
    reasons: &SkippedReviews,
    mut reviews: Vec<Review>,
) -> DecisionMade {
    let reasons: std::collections::HashMap<_, _> = reasons.iter().copied().collect();
    let (mut done, mut skipped) = (Vec::new(), Vec::new());
    for Selection { id, .. } in selections {
        match reasons.get(id) {
            Some(reason) => skipped.push((*id, *reason)),
            None => done.push(*id),
        }
    }
    reviews.sort_by_key(|review| done.iter().position(|id| *id == review.id));
    DecisionMade { made, done, skipped, reviews }
}

fn check_selections(selections: &[Selection]) -> Result<(), ReviewError> {
    if selections.is_empty() || selections.len() > DECIDED_AT_ONCE_MAX {
        return Err(ReviewError::Selection("a decision names 1 to 2,000 reviews"));
    }
    let ids: HashSet<_> = selections.iter().map(|it| it.id).collect();
    if ids.len() != selections.len() {
        return Err(ReviewError::Selection("a decision names each review once"));
    }
    Ok(())
}
