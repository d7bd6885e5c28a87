//! The plan of a decision: which suggestions it reaches, and the edit of the text.
//!
//! The plan is pure. It takes the reviews as the database has them and the text at one moment. The
//! transaction of the decision rejects it if either has changed since.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use strum::IntoStaticStr;

use crate::domain::anchor::{AnchorState, RelativeRange, TextRange};
use crate::domain::ids::ReviewId;
use crate::domain::review::{DecisionRefused, ReviewStatus, Verdict};
use crate::reviews::ReviewError;
use crate::rooms::RoomError;
use crate::rooms::server_edit::excess;
use crate::seats::SeatError;
use crate::storage::decisions::DecisionPart;
use crate::storage::reviews::StoredReview;
use crate::yjs::log::{UpdateLog, server_client_id};
use crate::yjs::text::{Effort, Text};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    pub id: ReviewId,
    /// The version that the client has read. `None`: any.
    pub version: Option<i64>,
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
        matches!(self, Self::AnchorMoved | Self::Overlaps)
    }

    /// The failure of a decision about this review alone.
    pub(crate) fn failure(self) -> ReviewError {
        match self {
            Self::Version { current } => ReviewError::VersionMismatch { current },
            Self::Decided => DecisionRefused::NotOpen.into(),
            Self::NotFound => ReviewError::NotFound("review"),
            Self::NoSuggestion => DecisionRefused::NoSuggestion.into(),
            Self::AnchorMoved | Self::Overlaps => ReviewError::AnchorMoved,
        }
    }
}

/// Reviews with the reasons why they are left.
pub(crate) type Left = Vec<(ReviewId, Skipped)>;

/// Sorts out the items that `verdict` cannot reach by their state.
pub(crate) fn select(
    items: &[Item],
    found: Vec<StoredReview>,
    verdict: Verdict,
) -> (Vec<StoredReview>, Left) {
    let mut found: HashMap<_, _> = found.into_iter().map(|review| (review.id, review)).collect();
    let (mut selected, mut left) = (Vec::new(), Vec::new());
    for item in items {
        let Some(review) = found.remove(&item.id) else {
            left.push((item.id, Skipped::NotFound));
            continue;
        };
        let (current, has_suggestion) = (review.version, review.suggestion.is_some());
        let reason = match verdict.decision().apply(review.status, has_suggestion) {
            _ if review.status != ReviewStatus::Open => Some(Skipped::Decided),
            Err(_) => Some(Skipped::NoSuggestion),
            Ok(_) if item.version.is_some_and(|version| version != current) => {
                Some(Skipped::Version { current })
            }
            Ok(_) => None,
        };
        match reason {
            Some(reason) => left.push((item.id, reason)),
            None => selected.push(review),
        }
    }
    (selected, left)
}

/// An update by the server, with its Yjs client id.
#[derive(Debug)]
pub(crate) struct Edit {
    pub(crate) client: u64,
    pub(crate) update: Bytes,
}

/// The edit of a decision or an undo, and its reviews in the order of the text.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) edit: Option<Edit>,
    pub(crate) parts: Vec<DecisionPart>,
    pub(crate) left: Left,
}

/// Rejects `selected`: the text stays.
pub(crate) fn rejection(selected: &[StoredReview], left: Left) -> Plan {
    Plan { edit: None, parts: selected.iter().map(|review| part(review, None)).collect(), left }
}

/// A review with the range that a text replaces.
struct Placed<'a> {
    review: &'a StoredReview,
    range: TextRange,
    with: &'a str,
}

/// Replaces the quotes of `selected` by their suggestions, in one edit. Where two overlap, the older
/// one is accepted.
pub(crate) fn acceptance(
    text: &Text,
    merged: Bytes,
    selected: &[StoredReview],
    limit: usize,
) -> Result<Plan, ReviewError> {
    let (placed, left) = placed(text, selected);
    let Some((edit, positions)) = edit_of(text, merged, &placed, limit)? else {
        return Ok(Plan { edit: None, parts: Vec::new(), left });
    };
    let parts = placed.iter().zip(positions).map(|(placed, position)| DecisionPart {
        review: placed.review.id,
        version: placed.review.version,
        current: (!placed.with.is_empty()).then(|| position.clone()),
        position: Some(position),
    });
    Ok(Plan { edit: Some(edit), parts: parts.collect(), left })
}

/// The text with these suggestions accepted, and the number of those that [`acceptance`] would leave.
pub(crate) fn accepted_text(text: &Text, open: &[StoredReview]) -> (String, usize) {
    let (placed, left) = placed(text, open);
    let replaced: Vec<_> = placed.iter().map(|placed| (placed.range, placed.with)).collect();
    (text.content_with(&replaced), left.len())
}

/// The suggestions that stand, in the order of the text. Where two overlap, the older one does.
fn placed<'a>(text: &Text, selected: &'a [StoredReview]) -> (Vec<Placed<'a>>, Left) {
    let mut oldest_first: Vec<_> = selected.iter().collect();
    oldest_first.sort_by_key(|review| (review.created_at, review.id));
    let mut effort = Effort::default();
    let (mut left, mut taken) = (Left::new(), BTreeMap::new());
    for review in oldest_first {
        let anchor = text.resolve_within(&review.origin, &review.current, &mut effort).anchor;
        if !matches!(anchor.state, AnchorState::Exact | AnchorState::Moved) {
            left.push((review.id, Skipped::AnchorMoved));
            continue;
        }
        let range = TextRange { start: anchor.start, end: anchor.end };
        let before = taken.range(..range.end).next_back();
        if before.is_some_and(|(_, placed): (_, &Placed<'_>)| range.start < placed.range.end) {
            left.push((review.id, Skipped::Overlaps));
            continue;
        }
        let with = review.suggestion.as_deref().unwrap_or_default();
        taken.insert(range.start, Placed { review, range, with });
    }
    (taken.into_values().collect(), left)
}

/// A decided review with the place of its text; `None` if the decision put nothing into the text.
pub(crate) type Put = (StoredReview, Option<RelativeRange>);

/// Replaces the texts that a decision put in by the quotes of its reviews, in one edit.
pub(crate) fn reversal(
    text: &Text,
    merged: Bytes,
    decided: &[Put],
    limit: usize,
) -> Result<Plan, ReviewError> {
    let (mut placed, mut parts, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for (review, position) in decided {
        let with = review.suggestion.as_deref().unwrap_or_default();
        let quote = review.origin.quote.as_str();
        match position.as_ref().map(|position| text.stands_at(position, with)) {
            Some(Some(range)) => placed.push(Placed { review, range, with: quote }),
            Some(None) => changed.push(review.id),
            None => parts.push(part(review, None)),
        }
    }
    if !changed.is_empty() {
        return Err(ReviewError::UndoConflict(changed));
    }
    // Gaps at one position retain the order of the decision.
    placed.sort_by_key(|placed| placed.range.start);
    let Some((edit, positions)) = edit_of(text, merged, &placed, limit)? else {
        return Ok(Plan { edit: None, parts, left: Left::new() });
    };
    let put = placed.iter().zip(positions);
    parts.extend(put.map(|(placed, position)| part(placed.review, Some(position))));
    Ok(Plan { edit: Some(edit), parts, left: Left::new() })
}

fn part(review: &StoredReview, current: Option<RelativeRange>) -> DecisionPart {
    DecisionPart { review: review.id, version: review.version, current, position: None }
}

/// The edit that replaces these ranges, and the places of the texts. `None`: there are no ranges.
fn edit_of(
    text: &Text,
    merged: Bytes,
    placed: &[Placed<'_>],
    limit: usize,
) -> Result<Option<(Edit, Vec<RelativeRange>)>, ReviewError> {
    if placed.is_empty() {
        return Ok(None);
    }
    let unreadable = || SeatError::Room(RoomError::Unreadable);
    let mut log = UpdateLog::open(vec![merged]).map_err(|_| unreadable())?;
    let client = server_client_id(&log);
    let replaced: Vec<_> = placed.iter().map(|placed| (placed.range, placed.with)).collect();
    let (update, positions) = text.replace_all(&replaced, client).map_err(|error| {
        tracing::error!(?error, "the texts of a decision cannot be put into the text");
        ReviewError::AnchorMoved
    })?;
    match excess(&mut log, &update, limit) {
        Some(bytes) => Err(ReviewError::TooLarge(bytes)),
        None => Ok(Some((Edit { client, update }, positions))),
    }
}
