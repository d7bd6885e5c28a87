//! The plan of a decision: which suggestions it reaches, and the edit of the text.
//!
//! The plan is pure. It takes the reviews as the database has them and the text at one moment. The
//! transaction of the decision rejects it if either has changed since.

use std::collections::HashMap;

use bytes::Bytes;
use strum::IntoStaticStr;

use crate::domain::anchor::{AnchorState, RelativeRange, TextRange};
use crate::domain::ids::ReviewId;
use crate::domain::review::{DecisionRefused, ReviewStatus, Verdict};
use crate::reviews::ReviewError;
use crate::reviews::ranges::Ranges;
use crate::rooms::RoomError;
use crate::rooms::server_edit::excess;
use crate::seats::SeatError;
use crate::storage::decisions::DecisionPart;
use crate::storage::review_rows::StoredReview;
use crate::yjs::log::{UpdateLog, server_client_id};
use crate::yjs::text::{Effort, Text};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    pub id: ReviewId,
    /// The version that the client has read. `None`: any.
    pub version: Option<i64>,
    /// The guessed places that a person has seen: the first relative position of each moved part, in order.
    pub moved: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Skipped {
    Version {
        current: i64,
    },
    /// The writer has decided it already.
    Decided,
    NotFound,
    NoSuggestion,
    /// The text no longer contains its quote.
    AnchorMoved,
    /// The place of its quote is a guess, and the selection names no such place.
    Moved,
    /// An older suggestion of the same decision replaces a part of its quote.
    Overlaps,
}

impl Skipped {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the reason lies in the text.
    pub(crate) fn is_of_the_text(self) -> bool {
        matches!(self, Self::AnchorMoved | Self::Moved | Self::Overlaps)
    }

    /// The failure of a decision about this review alone.
    pub(crate) fn failure(self) -> ReviewError {
        match self {
            Self::Version { current } => ReviewError::VersionMismatch { current },
            Self::Decided => DecisionRefused::NotOpen.into(),
            Self::NotFound => ReviewError::NotFound("review"),
            Self::NoSuggestion => DecisionRefused::NoSuggestion.into(),
            Self::AnchorMoved | Self::Overlaps => ReviewError::AnchorMoved,
            Self::Moved => ReviewError::Moved,
        }
    }
}

/// Reviews that a decision leaves as they are, with the reasons.
pub(crate) type SkippedReviews = Vec<(ReviewId, Skipped)>;

/// The guessed places of moved parts that a person has seen, by review.
pub(crate) type SeenPositions = HashMap<ReviewId, Vec<Vec<u8>>>;

/// Skips the selections whose state does not permit `verdict`.
pub(crate) fn select(
    selections: &[Selection],
    found: Vec<StoredReview>,
    verdict: Verdict,
) -> (Vec<StoredReview>, SkippedReviews) {
    let mut found: HashMap<_, _> = found.into_iter().map(|review| (review.id, review)).collect();
    let (mut selected, mut skipped) = (Vec::new(), Vec::new());
    for selection in selections {
        let Some(review) = found.remove(&selection.id) else {
            skipped.push((selection.id, Skipped::NotFound));
            continue;
        };
        let (current, has_suggestion) = (review.version, review.suggestion.is_some());
        let reason = match verdict.decision().apply(review.status, has_suggestion) {
            _ if review.status != ReviewStatus::Open => Some(Skipped::Decided),
            Err(_) => Some(Skipped::NoSuggestion),
            Ok(_) if selection.version.is_some_and(|version| version != current) => {
                Some(Skipped::Version { current })
            }
            Ok(_) => None,
        };
        match reason {
            Some(reason) => skipped.push((selection.id, reason)),
            None => selected.push(review),
        }
    }
    (selected, skipped)
}

/// An update by the server, with its Yjs client id.
#[derive(Debug)]
pub(crate) struct Edit {
    pub(crate) client: u64,
    pub(crate) update: Bytes,
}

/// The edit of a decision or an undo, and its parts in the order of the text.
#[derive(Debug)]
pub(crate) struct DecisionPlan {
    pub(crate) edit: Option<Edit>,
    pub(crate) parts: Vec<DecisionPart>,
    pub(crate) skipped: SkippedReviews,
}

/// Rejects `selected`: the text stays.
pub(crate) fn rejection(selected: &[StoredReview], skipped: SkippedReviews) -> DecisionPlan {
    let parts = selected.iter().map(|review| part(review, 0, None)).collect();
    DecisionPlan { edit: None, parts, skipped }
}

/// A part of a review, the range of its quote, and the text that replaces it.
struct Replacement<'a> {
    review: &'a StoredReview,
    number: usize,
    range: TextRange,
    with: &'a str,
}

/// Replaces the quotes of `selected` by their texts, in one edit. Where two overlap, the older one is
/// accepted.
pub(crate) fn acceptance(
    text: &Text,
    merged: Bytes,
    selected: &[StoredReview],
    seen: &SeenPositions,
    limit: usize,
) -> Result<DecisionPlan, ReviewError> {
    let (replacements, skipped) = replacements(text, selected, seen);
    let Some((edit, positions)) = edit_of(text, merged, &replacements, limit)? else {
        return Ok(DecisionPlan { edit: None, parts: Vec::new(), skipped });
    };
    let parts = replacements.iter().zip(positions).map(|(it, position)| {
        let current = (!it.with.is_empty()).then(|| position.clone());
        let position = Some(position);
        DecisionPart { position, ..part(it.review, it.number, current) }
    });
    Ok(DecisionPlan { edit: Some(edit), parts: parts.collect(), skipped })
}

/// The text with these suggestions accepted, and the number of those that [`acceptance`] would skip.
pub(crate) fn accepted_text(text: &Text, open: &[StoredReview]) -> (String, usize) {
    let (replacements, skipped) = replacements(text, open, &SeenPositions::new());
    let replaced: Vec<_> = replacements.iter().map(|it| (it.range, it.with)).collect();
    (text.content_with(&replaced), skipped.len())
}

/// The parts of the suggestions that stand, in the order of the text. All parts of a suggestion stand, or
/// none. Where two suggestions overlap, the older one stands.
fn replacements<'a>(
    text: &Text,
    selected: &'a [StoredReview],
    seen: &SeenPositions,
) -> (Vec<Replacement<'a>>, SkippedReviews) {
    let mut oldest_first: Vec<_> = selected.iter().collect();
    oldest_first.sort_by_key(|review| (review.created_at, review.id));
    let mut effort = Effort::default();
    let (mut skipped, mut taken) = (SkippedReviews::new(), Ranges::default());
    for review in oldest_first {
        let seen = seen.get(&review.id).map_or(&[][..], Vec::as_slice);
        let parts = match replacements_of(text, review, seen, &mut effort) {
            Ok(parts) => parts,
            Err(reason) => {
                skipped.push((review.id, reason));
                continue;
            }
        };
        let mut own = Ranges::default();
        let overlaps = parts.iter().any(|part| {
            let overlaps = taken.overlaps(part.range) || own.overlaps_own(part.range);
            own.insert(part.range, ());
            overlaps
        });
        if overlaps {
            skipped.push((review.id, Skipped::Overlaps));
            continue;
        }
        for part in parts {
            taken.insert(part.range, part);
        }
    }
    (taken.into_values().collect(), skipped)
}

/// The replacements of a suggestion's parts, if each quote stands, or stands where a person has `seen` it.
fn replacements_of<'a>(
    text: &Text,
    review: &'a StoredReview,
    seen: &[Vec<u8>],
    effort: &mut Effort,
) -> Result<Vec<Replacement<'a>>, Skipped> {
    let mut guesses: Vec<Vec<u8>> = Vec::new();
    let replacements = review.parts().map(|part| {
        let anchor = text.resolve_within(part.origin, part.current, effort).anchor;
        match anchor.state {
            AnchorState::Exact => {}
            AnchorState::Moved => guesses.extend(anchor.relative.map(|at| at.start)),
            AnchorState::Edited | AnchorState::Orphaned => return Err(Skipped::AnchorMoved),
        }
        let range = TextRange { start: anchor.start, end: anchor.end };
        Ok(Replacement { review, number: part.number, range, with: part.text })
    });
    let replacements = replacements.collect::<Result<_, _>>()?;
    if guesses.is_empty() || guesses == seen { Ok(replacements) } else { Err(Skipped::Moved) }
}

/// The reviews of a decision, and its parts in the order of the text, each with the place of its text; `None`
/// if the decision put nothing into the text.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) reviews: HashMap<ReviewId, StoredReview>,
    pub(crate) parts: Vec<(ReviewId, usize, Option<RelativeRange>)>,
}

/// Replaces the texts that a decision put in by the quotes of its reviews, in one edit.
pub(crate) fn reversal(
    text: &Text,
    merged: Bytes,
    decided: &Decided,
    limit: usize,
) -> Result<DecisionPlan, ReviewError> {
    let (mut replacements, mut parts, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for (id, number, position) in &decided.parts {
        let review = decided.reviews.get(id);
        let its_part = review.and_then(|review| Some((review, review.parts().nth(*number)?)));
        let Some((review, its)) = its_part else {
            changed.push(*id);
            continue;
        };
        let with = its.origin.quote.as_str();
        match position.as_ref().map(|position| text.stands_at(position, its.text)) {
            Some(Some(range)) => {
                replacements.push(Replacement { review, number: *number, range, with });
            }
            Some(None) => changed.push(*id),
            None => parts.push(part(review, *number, None)),
        }
    }
    if !changed.is_empty() {
        changed.dedup();
        return Err(ReviewError::UndoConflict(changed));
    }
    // Gaps at one position retain the order of the decision.
    replacements.sort_by_key(|it| it.range.start);
    let Some((edit, positions)) = edit_of(text, merged, &replacements, limit)? else {
        return Ok(DecisionPlan { edit: None, parts, skipped: SkippedReviews::new() });
    };
    let restored = replacements.iter().zip(positions);
    // A later search takes the restored letters for known ones.
    parts.extend(restored.map(|(it, position)| {
        part(it.review, it.number, Some(text.knowing_edit(position, edit.client)))
    }));
    Ok(DecisionPlan { edit: Some(edit), parts, skipped: SkippedReviews::new() })
}

fn part(review: &StoredReview, number: usize, current: Option<RelativeRange>) -> DecisionPart {
    let (review, version) = (review.id, review.version);
    DecisionPart { review, version, part: number, current, position: None }
}

/// The edit that replaces these ranges, and the places of the texts. `None`: there are no ranges.
fn edit_of(
    text: &Text,
    merged: Bytes,
    replacements: &[Replacement<'_>],
    limit: usize,
) -> Result<Option<(Edit, Vec<RelativeRange>)>, ReviewError> {
    if replacements.is_empty() {
        return Ok(None);
    }
    let unreadable = || SeatError::Room(RoomError::Unreadable);
    let mut log = UpdateLog::open(vec![merged]).map_err(|_| unreadable())?;
    let client = server_client_id(&log);
    let replaced: Vec<_> = replacements.iter().map(|it| (it.range, it.with)).collect();
    let (update, positions) = text.replace_all(&replaced, client).map_err(|error| {
        tracing::error!(?error, "the texts of a decision cannot be put into the text");
        ReviewError::AnchorMoved
    })?;
    match excess(&mut log, &update, limit) {
        Some(bytes) => Err(ReviewError::TooLarge(bytes)),
        None => Ok(Some((Edit { client, update }, positions))),
    }
}
