//! The undo of a decision.
//!
//! An undo turns each part of the decision round: the accepted text, which must still stand where the
//! decision put it, becomes the quote again. All parts must stand, or the undo does nothing.

use std::collections::{HashMap, HashSet};

use chrono::Utc;

use crate::domain::ids::{DecisionId, ReviewId};
use crate::domain::limits::{DECIDED_ONE_BY_ONE_MAX, DECISION_UNDO_WINDOW};
use crate::domain::seat::Role;
use crate::outbox::event::Event;
use crate::reviews::decisions::{append_of, now};
use crate::reviews::error::done;
use crate::reviews::member::MemberLink;
use crate::reviews::plan::{self, Decided, DecisionPlan, Edit};
use crate::reviews::{ReviewError, Reviews};
use crate::rooms::server_edit::TRIES;
use crate::rooms::snapshot::Snapshot;
use crate::storage::decisions::{Committed, StoredDecision, UndoneDecision, reviews_of};
use crate::storage::guard::{FenceGuard, Guarded};
use crate::yjs::text::Text;

impl Reviews {
    /// Its reviews are open again, and the text is as before. Needs the writer's seat.
    /// [`ReviewError::UndoConflict`] names the reviews that have changed since. On an error nothing is
    /// undone.
    pub async fn undo(
        &self,
        link: &MemberLink,
        id: DecisionId,
    ) -> Result<Vec<ReviewId>, ReviewError> {
        let guard = self.guard(link, Role::Writer).await?;
        let mut is_charged = false;
        for _ in 0..TRIES {
            let reading = self.texts.durable_snapshot(link.document, &link.requester);
            let Some(snapshot) = reading.await? else { continue };
            // Read after the text, as for a decision.
            let decision = self.undoable(link, id).await?;
            let decided = self.decided(link, id, decision).await?;
            if !is_charged {
                self.charge_for(&link.user, decided.reviews.values())?;
                is_charged = true;
            }
            let before = Snapshot { permit: None, ..snapshot.clone() };
            let plan = match self.plan_undo(link, snapshot, decided).await {
                Err(ReviewError::UndoConflict(_))
                    if self.texts.is_behind(link.document, before.seq).await =>
                {
                    continue;
                }
                plan => plan?,
            };
            let DecisionPlan { edit, parts, .. } = plan;
            let undone = UndoneDecision {
                id,
                document: link.document,
                link: link.id,
                by: link.user.clone(),
                at: now(),
                parts,
            };
            let ids = ids_of(&undone);
            if self.commit_undo(link, guard, undone, edit, before).await? {
                return Ok(ids);
            }
            self.texts.read_on(link.document).await;
        }
        Err(ReviewError::Contended)
    }

    /// The decision, if it can still be undone.
    async fn undoable(
        &self,
        link: &MemberLink,
        id: DecisionId,
    ) -> Result<StoredDecision, ReviewError> {
        let decision = self.storage.decision(link, id).await?;
        let decision = decision.ok_or(ReviewError::NotFound("decision"))?;
        if decision.is_undone {
            return Err(ReviewError::AlreadyUndone);
        }
        if decision.at + DECISION_UNDO_WINDOW < Utc::now() {
            return Err(ReviewError::UndoExpired);
        }
        Ok(decision)
    }

    /// The reviews of a decision, if each is still decided by it.
    async fn decided(
        &self,
        link: &MemberLink,
        id: DecisionId,
        decision: StoredDecision,
    ) -> Result<Decided, ReviewError> {
        let mut ids: Vec<_> = decision.parts.iter().map(|(review, ..)| *review).collect();
        let mut seen = HashSet::new();
        ids.retain(|id| seen.insert(*id));
        let found = self.storage.reviews_among(link, &ids).await?;
        let status = decision.verdict.status();
        let reviews = found.into_iter().filter(|review| {
            let is_its = review.decided.as_ref().is_some_and(|decided| decided.id == id);
            is_its && review.status == status
        });
        let reviews: HashMap<_, _> = reviews.map(|review| (review.id, review)).collect();
        ids.retain(|id| !reviews.contains_key(id));
        match ids.is_empty() {
            true => Ok(Decided { reviews, parts: decision.parts }),
            false => Err(ReviewError::UndoConflict(ids)),
        }
    }

    async fn plan_undo(
        &self,
        link: &MemberLink,
        snapshot: Snapshot,
        decided: Decided,
    ) -> Result<DecisionPlan, ReviewError> {
        let merged = snapshot.merged.clone();
        let limit = self.texts.bytes_max();
        let read = move |text: &Text| plan::reversal(text, merged, &decided, limit);
        self.texts.read_at(link.document, snapshot, read).await?
    }

    /// Commits an undo and delivers it. False: the text or a review has changed since the server
    /// planned it.
    async fn commit_undo(
        &self,
        link: &MemberLink,
        guard: FenceGuard,
        undone: UndoneDecision,
        edit: Option<Edit>,
        before: Snapshot,
    ) -> Result<bool, ReviewError> {
        let edit = edit.map(|edit| append_of(link, guard, edit, Some(&before)));
        let storage = &self.storage;
        let committed = storage.undo_decision(&undone, guard, edit.as_ref()).await?;
        if matches!(committed, Guarded::Stale) {
            return Ok(false);
        }
        let Committed { seq, change, reviews } = done(committed, guard)?;
        if let Some(edited) = seq.zip(edit.map(|edit| edit.update)) {
            let writer = vec![link.user.clone()];
            self.show(link, guard, writer, Some(before), Some(edited)).await;
        }
        let ids = ids_of(&undone);
        if ids.len() <= DECIDED_ONE_BY_ONE_MAX {
            self.updated_all(link, reviews).await;
            return Ok(true);
        }
        let event = Event::DecisionUndone { id: undone.id, undone: &ids };
        self.announce(link, change, &event).await;
        Ok(true)
    }
}

fn ids_of(undone: &UndoneDecision) -> Vec<ReviewId> {
    reviews_of(&undone.parts).into_iter().map(|(review, _)| review).collect()
}
