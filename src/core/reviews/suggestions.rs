//! Typed suggestions: a batch of new, changed and withdrawn suggestions of the reviewer.
//!
//! The page sends the suggestions of the last second again and again while the reviewer types. A batch whose
//! parts stand where the stored ones stand builds no text.

use std::collections::{HashMap, HashSet};

use chrono::Utc;

use crate::domain::anchor::{AnchorState, PartRequest, Position, TextRange};
use crate::domain::ids::{ReviewId, UserId};
use crate::domain::limits::SUGGESTIONS_AT_ONCE_MAX;
use crate::domain::review::{ReviewOutcome, ReviewPart};
use crate::domain::seat::Role;
use crate::domain::suggestion::{BatchItem, NewPart, NewSuggestion, Refusal};
use crate::outbox::event::Event;
use crate::reviews::error::done;
use crate::reviews::member::MemberLink;
use crate::reviews::ranges::Ranges;
use crate::reviews::{ReviewError, Reviews};
use crate::storage::guard::Guarded;
use crate::storage::review_rows::{PartRef, StoredPart, StoredReview};
use crate::storage::suggestions::{
    AnchoredItem, AnchoredSuggestion, ItemOutcome, OpenParts, refusal,
};
use crate::yjs::text::{Text, is_same_position, starts_at};

/// How often a batch is placed: each time but the last, another batch of the author was stored meanwhile.
const PLACED_MAX: usize = 32;

/// The state of an item after its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemState {
    /// Stored in this version.
    Stored(i64),
    Withdrawn,
    /// The server's version of it, if it has one.
    Refused(Refusal, Option<i64>),
}

type StoredById = HashMap<ReviewId, StoredReview>;

impl Reviews {
    /// Needs the reviewer's seat. Each item has its own state, in the order of `items`; those refused are
    /// not stored. On an error nothing is stored. A repeated batch has the same states.
    pub async fn suggest(
        &self,
        link: &MemberLink,
        items: Vec<Result<BatchItem, Refusal>>,
    ) -> Result<Vec<ItemState>, ReviewError> {
        if items.len() > SUGGESTIONS_AT_ONCE_MAX {
            return Err(ReviewError::Batch);
        }
        let guard = self.guard(link, Role::Reviewer).await?;
        self.demand_room()?;
        let items: Vec<_> = items.into_iter().map(checked).collect();
        let items = without_repeated_ids(items);
        let mut by_id = self.stored_by_id(link, &items).await?;
        // A page repeats a whole batch when a part of it was refused: what is stored already costs nothing.
        let costs = items.iter().filter(|item| !is_repeat(item, &by_id)).map(bytes_of);
        self.charge_all(&link.user, costs)?;
        let mut lost = None;
        for _ in 0..PLACED_MAX {
            let (anchored, seen) =
                self.anchor_all(link, items.clone(), by_id, lost.as_ref()).await?;
            if lost.is_none() && anchored.iter().any(is_overlapping) {
                lost = Some(self.lost(link).await?);
                by_id = self.stored_by_id(link, &items).await?;
                continue;
            }
            let (storage, now) = (&self.storage, Utc::now());
            let stored = storage.suggest(link.id, &link.user, &anchored, seen, guard, now).await?;
            // Another batch of the author has put a part that this one does not know.
            if matches!(stored, Guarded::Stale) {
                by_id = self.stored_by_id(link, &items).await?;
                continue;
            }
            let outcomes = done(stored, guard)?;
            let states = outcomes.iter().map(state_of).collect();
            self.announce_all(link, outcomes).await;
            return Ok(states);
        }
        Err(ReviewError::Contended)
    }

    /// The stored reviews that the items name.
    async fn stored_by_id(
        &self,
        link: &MemberLink,
        items: &[Result<BatchItem, Refusal>],
    ) -> Result<StoredById, ReviewError> {
        let ids: Vec<_> = ids_of(items).collect();
        let stored = self.storage.reviews_among(link, &ids).await?;
        Ok(stored.into_iter().map(|review| (review.id, review)).collect())
    }

    /// The author's open suggestions that do not stand: they keep no range from new words.
    async fn lost(&self, link: &MemberLink) -> Result<HashSet<ReviewId>, ReviewError> {
        let open = self.storage.open_parts(link).await?;
        let ids: HashSet<_> = open.positions.into_iter().map(|(id, ..)| id).collect();
        let ids: Vec<_> = ids.into_iter().collect();
        let stored = self.storage.reviews_among(link, &ids).await?;
        let placed = self.resolve(link.document, &link.requester, stored).await?;
        let is_lost = |part: &ReviewPart| part.anchor.state != AnchorState::Exact;
        let lost = placed.into_iter().filter(|review| review.parts.iter().any(is_lost));
        Ok(lost.map(|review| review.id).collect())
    }

    /// With the last change of the open suggestions beside which the parts were placed.
    async fn anchor_all(
        &self,
        link: &MemberLink,
        items: Vec<Result<BatchItem, Refusal>>,
        stored: StoredById,
        lost: Option<&HashSet<ReviewId>>,
    ) -> Result<(Vec<AnchoredItem>, Option<i64>), ReviewError> {
        let needs_text = items.iter().any(|item| match item {
            Ok(BatchItem::Put(new)) => stays(new, stored.get(&new.id)).is_none(),
            Ok(BatchItem::Withdraw { id, .. }) => {
                stored.get(id).is_some_and(|stored| !stored.replies.is_empty())
            }
            Err(_) => false,
        });
        if !needs_text {
            return Ok((items.into_iter().map(|item| stayed(item, &stored)).collect(), None));
        }
        let mut others = self.storage.open_parts(link).await?;
        let seen = Some(others.last_change);
        let named: HashSet<_> = ids_of(&items).collect();
        let gives_way = |id: &ReviewId| lost.is_some_and(|lost| lost.contains(id));
        others.positions.retain(|(id, ..)| !named.contains(id) && !gives_way(id));
        let author = link.user.id.clone();
        let read = move |text: &Text| anchored(text, items, &stored, &others, &author);
        Ok((self.texts.read(link.document, &link.requester, read).await?, seen))
    }

    /// Broadcasts the changes of a batch in the order of their numbers.
    async fn announce_all(&self, link: &MemberLink, outcomes: Vec<ItemOutcome>) {
        let (mut changes, mut stored) = (Vec::new(), Vec::new());
        for outcome in outcomes {
            match outcome {
                ItemOutcome::Stored(review) | ItemOutcome::Closed(review) => {
                    let (first, last) = review.changes;
                    changes.push((last, Some(first)));
                    stored.push(*review);
                }
                ItemOutcome::Deleted(review, change) => {
                    changes.push((change, None));
                    stored.push(*review);
                }
                ItemOutcome::StoredBefore(_)
                | ItemOutcome::WithdrawnBefore
                | ItemOutcome::Refused(..) => {}
            }
        }
        if stored.is_empty() {
            return;
        }
        let reviews = self.resolve_all_committed(link, stored).await;
        for ((change, first), review) in changes.iter().zip(&reviews) {
            let event = match first {
                Some(first) if first == change => Event::ReviewCreated(review),
                Some(_) => Event::ReviewUpdated(review),
                None => Event::ReviewDeleted(review),
            };
            self.announce(link, *change, &event).await;
        }
    }
}

fn is_overlapping(item: &AnchoredItem) -> bool {
    matches!(item, AnchoredItem::Refused(Refusal::Overlaps))
}

/// Whether the item changes nothing.
fn is_repeat(item: &Result<BatchItem, Refusal>, by_id: &StoredById) -> bool {
    match item {
        Ok(BatchItem::Put(new)) => by_id.get(&new.id).is_some_and(|stored| {
            let parts = stays(new, Some(stored));
            parts.is_some_and(|parts| suggestion(new.clone(), parts).equals(stored))
        }),
        Ok(BatchItem::Withdraw { id, .. }) => !by_id.contains_key(id),
        Err(_) => false,
    }
}

fn bytes_of(item: &Result<BatchItem, Refusal>) -> usize {
    if let Ok(BatchItem::Put(new)) = item { new.bytes() } else { 0 }
}

fn checked(item: Result<BatchItem, Refusal>) -> Result<BatchItem, Refusal> {
    match item? {
        BatchItem::Put(new) => new.check().map(BatchItem::Put),
        withdraw @ BatchItem::Withdraw { .. } => Ok(withdraw),
    }
}

/// A batch names a suggestion once.
fn without_repeated_ids(items: Vec<Result<BatchItem, Refusal>>) -> Vec<Result<BatchItem, Refusal>> {
    let mut seen = HashSet::new();
    let once = items.into_iter().map(|item| match item {
        Ok(item) if !seen.insert(id_of(&item)) => Err(Refusal::Malformed),
        item => item,
    });
    once.collect()
}

fn ids_of(items: &[Result<BatchItem, Refusal>]) -> impl Iterator<Item = ReviewId> {
    items.iter().filter_map(|item| item.as_ref().ok()).map(id_of)
}

fn id_of(item: &BatchItem) -> ReviewId {
    match item {
        BatchItem::Put(new) => new.id,
        BatchItem::Withdraw { id, .. } => *id,
    }
}

/// The parts with the anchors of the stored ones, if each stands at the same relative positions.
fn stays(new: &NewSuggestion, stored: Option<&StoredReview>) -> Option<Vec<StoredPart>> {
    let stored = stored.filter(|stored| stored.parts().count() == new.parts.len())?;
    let parts = new.parts.iter().zip(stored.parts()).map(|(new, stored)| {
        let is_there = match &new.at {
            PartRequest::Range { start: Position::Relative(start), end, quote } => {
                *quote == stored.origin.quote
                    && starts_at(stored.current, start)
                    && *end == Position::Relative(stored.current.end.clone())
            }
            PartRequest::Range { .. } => false,
            PartRequest::Gap(at) => {
                stored.origin.quote.is_empty()
                    && *at == Position::Relative(stored.current.end.clone())
            }
        };
        let (origin, current) = (stored.origin.clone(), stored.current.clone());
        is_there.then(|| StoredPart { origin, current, text: new.text.clone() })
    });
    parts.collect()
}

fn stayed(item: Result<BatchItem, Refusal>, stored: &StoredById) -> AnchoredItem {
    match item {
        Err(reason) => AnchoredItem::Refused(reason),
        Ok(BatchItem::Withdraw { id, version }) => {
            AnchoredItem::Withdraw { id, version, outcome: ReviewOutcome::Withdrawn }
        }
        Ok(BatchItem::Put(new)) => match stays(&new, stored.get(&new.id)) {
            Some(parts) => put(new, parts),
            None => AnchoredItem::Refused(Refusal::Position),
        },
    }
}

fn put(new: NewSuggestion, parts: Vec<StoredPart>) -> AnchoredItem {
    AnchoredItem::Put(suggestion(new, parts))
}

fn suggestion(new: NewSuggestion, parts: Vec<StoredPart>) -> AnchoredSuggestion {
    let NewSuggestion { id, version, body, .. } = new;
    AnchoredSuggestion { id, version, body, parts }
}

/// Anchors the items of a batch. A part overlaps no part of `others`, nor of another suggestion of the
/// batch.
fn anchored(
    text: &Text,
    items: Vec<Result<BatchItem, Refusal>>,
    stored: &StoredById,
    others: &OpenParts,
    author: &UserId,
) -> Vec<AnchoredItem> {
    let mut taken = Ranges::default();
    for (_, position, is_gap) in &others.positions {
        if let Some(range) = text.range_of(position, *is_gap) {
            taken.insert(range, ());
        }
    }
    let anchored = items.into_iter().map(|item| {
        let new = match item {
            Ok(BatchItem::Put(new)) => new,
            Ok(BatchItem::Withdraw { id, version }) => {
                let outcome = outcome_of(text, stored.get(&id));
                return AnchoredItem::Withdraw { id, version, outcome };
            }
            Err(reason) => return AnchoredItem::Refused(reason),
        };
        // A refused item takes no range from the others.
        if let Some(reason) = refusal(stored.get(&new.id), author, new.version) {
            return AnchoredItem::Refused(reason);
        }
        let mut parts = Vec::with_capacity(new.parts.len());
        let mut ranges = Vec::with_capacity(new.parts.len());
        for NewPart { at, text: with } in &new.parts {
            match text.anchor_part(at) {
                Ok((origin, current)) => {
                    ranges.push(origin.range);
                    parts.push(StoredPart { origin, current, text: with.clone() });
                }
                Err(reason) => return AnchoredItem::Refused(reason),
            }
        }
        if overlap(&ranges, &mut taken) {
            return AnchoredItem::Refused(Refusal::Overlaps);
        }
        // The anchors of a suggestion that stands stay, so that a repeated item changes nothing.
        let before = stored.get(&new.id);
        let parts = stays(&new, before).unwrap_or_else(|| stayed_parts(parts, before));
        put(new, parts)
    });
    anchored.collect()
}

/// The parts, with the anchors of the stored ones at the same places.
fn stayed_parts(mut parts: Vec<StoredPart>, stored: Option<&StoredReview>) -> Vec<StoredPart> {
    let stored = stored.into_iter().flat_map(StoredReview::parts);
    for (part, stored) in parts.iter_mut().zip(stored) {
        let is_same = part.origin.quote == stored.origin.quote;
        if is_same && is_same_position(&part.current, stored.current) {
            (part.origin, part.current) = (stored.origin.clone(), stored.current.clone());
        }
    }
    parts
}

fn outcome_of(text: &Text, stored: Option<&StoredReview>) -> ReviewOutcome {
    let is_fulfilled = stored.is_some_and(|stored| {
        let says =
            |part: PartRef<'_>| text.says(part.current, part.origin.quote.is_empty(), part.text);
        stored.parts().all(says)
    });
    if is_fulfilled { ReviewOutcome::Fulfilled } else { ReviewOutcome::Withdrawn }
}

/// Whether the ranges of a suggestion overlap each other or `taken`; otherwise they are taken now.
fn overlap(ranges: &[TextRange], taken: &mut Ranges<()>) -> bool {
    let mut own = Ranges::default();
    for range in ranges {
        if taken.overlaps(*range) || own.overlaps_own(*range) {
            return true;
        }
        own.insert(*range, ());
    }
    for range in ranges {
        taken.insert(*range, ());
    }
    false
}

fn state_of(outcome: &ItemOutcome) -> ItemState {
    match outcome {
        ItemOutcome::Stored(review) => ItemState::Stored(review.version),
        ItemOutcome::StoredBefore(version) => ItemState::Stored(*version),
        ItemOutcome::Closed(_) | ItemOutcome::Deleted(..) | ItemOutcome::WithdrawnBefore => {
            ItemState::Withdrawn
        }
        ItemOutcome::Refused(reason, version) => ItemState::Refused(*reason, *version),
    }
}
