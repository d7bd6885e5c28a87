//! The text of a document at one moment.
//!
//! The caller builds it from the merged log, queries it and drops it. A build takes time in
//! proportion to the document, so it runs on a blocking thread. All offsets are UTF-16 units (Y4).
//! The build uses no `yrs` document; [`document_order`](crate::document_order) explains why.

use std::cell::OnceCell;
use std::ops::Range;

use bytes::Bytes;

use crate::ROOT;
use crate::document_order::DocumentOrder;
use crate::error::{AnchorMismatch, SyncError};
use crate::lib0::{Reader, put_block, put_number};
use crate::log;
use crate::quote_search;
use crate::structs::Id;
use crate::utf16::{self, Index, Utf16Position};
use crate::word_diff;
use galley_domain::anchor::{
    Anchor, AnchorOrigin, AnchorRequest, AnchorState, RelativeRange, TextRange,
};
use galley_domain::limits::{CONTEXT_CHARS, DIFF_TIMEOUT, QUOTE_UTF16_MAX, RESTORE_HUNKS_MAX};

pub use crate::quote_search::Effort;

/// Lowest similarity at which a changed range still counts as the range of its review.
const EDITED_MIN: f64 = 0.6;

/// The text of a document at one moment.
pub struct Text {
    pub(super) order: DocumentOrder,
    content: String,
    /// Built at the first look-up.
    index: OnceCell<Index>,
}

/// The current position of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The anchor as the server sends it.
    pub anchor: Anchor,
    /// The new relative range to store, if the quote came back in its place. A guess is not stored.
    pub relocated: Option<RelativeRange>,
}

/// A passage that was found in fresh letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returned {
    /// In its own place.
    Here(TextRange),
    Elsewhere(TextRange),
}

impl Text {
    /// Builds the text of a whole document from [`UpdateLog::merged`](crate::log::UpdateLog::merged).
    /// Fails with [`SyncError::Refused`] when the bytes are no whole document, [`SyncError::TooCostly`]
    /// when ordering it would take minutes.
    pub fn build(merged: &[u8]) -> Result<Self, SyncError> {
        let (order, content) = DocumentOrder::build(merged)?;
        Ok(Self { order, content, index: OnceCell::new() })
    }

    /// The text.
    #[must_use]
    pub fn content(&self) -> String {
        self.content.clone()
    }

    /// The text with ranges replaced, which follow one another and split no character.
    #[must_use]
    pub fn content_with(&self, replaced: &[(TextRange, &str)]) -> String {
        let mut content = String::with_capacity(self.content.len());
        let mut from = 0;
        for (range, with) in replaced {
            let (Ok(start), Ok(end)) = (self.byte(range.start), self.byte(range.end)) else {
                continue;
            };
            content.push_str(self.content.get(from..start).unwrap_or_default());
            content.push_str(with);
            from = end;
        }
        content + self.content.get(from..).unwrap_or_default()
    }

    /// Anchors a review. Returns its immutable origin and its current relative range. Fails with
    /// [`AnchorMismatch`] when the range lies outside this text or its text is not the quote.
    pub fn anchor(
        &self,
        request: &AnchorRequest,
    ) -> Result<(AnchorOrigin, RelativeRange), AnchorMismatch> {
        if request.end <= request.start {
            return Err(AnchorMismatch::Empty);
        }
        if request.end.saturating_sub(request.start) > QUOTE_UTF16_MAX {
            return Err(AnchorMismatch::TooLong);
        }
        let range = TextRange { start: request.start, end: request.end };
        let (before, quote, after) = self.split(range)?;
        if quote != request.quote {
            return Err(AnchorMismatch::OtherText);
        }
        let current = self.relative(range).ok_or(AnchorMismatch::Outside)?;
        let current = self.knowing(current);
        let origin = AnchorOrigin {
            range,
            quote: quote.to_owned(),
            prefix: last_chars(before, CONTEXT_CHARS).to_owned(),
            suffix: first_chars(after, CONTEXT_CHARS).to_owned(),
        };
        Ok((origin, current))
    }

    /// Resolves the anchor of a review: first by its relative positions, then by a search for its quote in
    /// letters that the anchor does not know (`returned`).
    #[must_use]
    pub fn resolve(&self, origin: &AnchorOrigin, current: &RelativeRange) -> Resolved {
        self.resolve_within(origin, current, &mut Effort::default())
    }

    /// Resolves many anchors as [`resolve`](Self::resolve) does, with one bound on the effort for
    /// all. A review without remaining effort counts as orphaned if its positions do not match its
    /// quote.
    #[must_use]
    pub fn resolve_within(
        &self,
        origin: &AnchorOrigin,
        current: &RelativeRange,
        effort: &mut Effort,
    ) -> Resolved {
        if origin.quote.is_empty() {
            return self.resolve_gap(origin, current, effort);
        }
        let ends = (self.offset(&current.start), self.offset(&current.end));
        let own = ends.0.zip(ends.1).map(|(start, end)| TextRange { start, end });
        let state = own.and_then(|own| self.stands(origin, own, effort));
        if let Some((own, AnchorState::Exact)) = own.zip(state) {
            return resolved(origin, AnchorState::Exact, own, Some(position_of(current)));
        }
        let returned = self.returned(origin, current, own, effort);
        if let Some(Returned::Here(range)) = returned
            && let Some(at) = self.relative(range)
        {
            let relocated = Some(self.knowing(at.clone()));
            let placed = resolved(origin, AnchorState::Exact, range, Some(at));
            return Resolved { relocated, ..placed };
        }
        if let Some((own, state)) = own.zip(state) {
            return resolved(origin, state, own, Some(position_of(current)));
        }
        if let Some(Returned::Elsewhere(range)) = returned {
            return resolved(origin, AnchorState::Moved, range, self.relative(range));
        }
        let last = self.aligned(ends.0.unwrap_or(origin.range.start));
        resolved(origin, AnchorState::Orphaned, TextRange { start: last, end: last }, None)
    }

    /// The update that turns the text into `wanted`, written under `client`. No other writer may ever
    /// use that id. It changes only the differing hunks, so positions in the rest keep their place.
    /// `None`: the texts are equal. Fails with [`SyncError::Range`] when a hunk lies outside the text,
    /// which would be a bug of the diff.
    pub fn become_text(&self, wanted: &str, client: u64) -> Result<Option<Bytes>, SyncError> {
        let hunks = word_diff::hunks(&self.content, wanted, DIFF_TIMEOUT);
        let hunks = word_diff::at_most(RESTORE_HUNKS_MAX, hunks);
        if hunks.is_empty() {
            return Ok(None);
        }
        let mut replaced: Vec<(Range<u32>, Range<usize>)> = Vec::with_capacity(hunks.len());
        let (mut units, mut passed) = (0_u32, 0);
        for position in hunks {
            let before = self.content.get(passed..position.old.start).ok_or(SyncError::Range)?;
            let taken = self.content.get(position.old.clone()).ok_or(SyncError::Range)?;
            let start = units.saturating_add(utf16::length(before));
            let end = start.saturating_add(utf16::length(taken));
            match replaced.last_mut().filter(|(last, _)| last.end == start) {
                Some((last, with)) => (last.end, with.end) = (end, position.new.end),
                None => replaced.push((start..end, position.new)),
            }
            (units, passed) = (end, position.old.end);
        }
        let put = |(range, with)| Some((range, wanted.get::<Range<usize>>(with)?));
        let puts: Option<Vec<_>> = replaced.into_iter().map(put).collect();
        Ok(Some(self.order.replace(&puts.ok_or(SyncError::Range)?, client)))
    }

    pub(super) fn split(&self, range: TextRange) -> Result<(&str, &str, &str), AnchorMismatch> {
        let (start, end) = (self.byte(range.start)?, self.byte(range.end)?);
        let part = |part: Option<_>| part.ok_or(AnchorMismatch::Empty);
        Ok((
            part(self.content.get(..start))?,
            part(self.content.get(start..end))?,
            part(self.content.get(end..))?,
        ))
    }

    pub(crate) fn content_str(&self) -> &str {
        &self.content
    }

    /// The UTF-16 units before a byte of the text.
    pub(crate) fn units_before(&self, byte: usize) -> u32 {
        self.index().units(&self.content, byte)
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(&self.content))
    }

    pub(crate) fn byte(&self, units: u32) -> Result<usize, AnchorMismatch> {
        match self.index().position(&self.content, units) {
            Utf16Position::At(byte) => Ok(byte),
            Utf16Position::Inside(_) => Err(AnchorMismatch::SplitsCharacter),
            Utf16Position::Beyond => Err(AnchorMismatch::Outside),
        }
    }

    pub(super) fn aligned(&self, units: u32) -> u32 {
        match self.index().position(&self.content, units) {
            Utf16Position::At(_) => units,
            Utf16Position::Inside(_) => units.saturating_sub(1),
            Utf16Position::Beyond => self.order.units(),
        }
    }

    /// Exact or edited, if the range is still that of the review.
    fn stands(
        &self,
        origin: &AnchorOrigin,
        range: TextRange,
        effort: &mut Effort,
    ) -> Option<AnchorState> {
        if range.end <= range.start {
            return None;
        }
        let (_, text, _) = self.split(range).ok()?;
        if text == origin.quote {
            return Some(AnchorState::Exact);
        }
        let likeness = quote_search::likeness(text, &origin.quote, EDITED_MIN, effort)?;
        (likeness >= EDITED_MIN).then_some(AnchorState::Edited)
    }

    pub(crate) fn relative(&self, range: TextRange) -> Option<RelativeRange> {
        let (start, last) = (self.order.unit_at(range.start)?, range.end.checked_sub(1)?);
        let end = self.order.unit_at(last)?;
        Some(RelativeRange { start: beside(start, AFTER), end: beside(end, BEFORE) })
    }

    /// The offset of a relative position. The bytes behind it are not read.
    pub(crate) fn offset(&self, position: &[u8]) -> Option<u32> {
        let mut reader = Reader::new(position);
        match reader.byte().ok()? {
            BESIDE_A_UNIT => {
                let id = Id { client: reader.number().ok()?, clock: reader.clock().ok()? };
                self.order.offset(id, is_before(&mut reader)?)
            }
            END_OF_A_ROOT => {
                let name = reader.text().ok()?;
                let offset = if is_before(&mut reader)? { 0 } else { self.order.units() };
                (name == ROOT).then_some(offset)
            }
            // The end of a nested type, which a document does not have.
            _ => None,
        }
    }
}

impl Text {
    /// Whether a relative position is beside a visible unit, or at an end of the text.
    pub(super) fn is_beside_text(&self, position: &[u8]) -> bool {
        let mut reader = Reader::new(position);
        if reader.byte() != Ok(BESIDE_A_UNIT) {
            return self.offset(position).is_some();
        }
        let (Ok(client), Ok(clock)) = (reader.number(), reader.clock()) else { return false };
        self.order.is_visible(Id { client, clock })
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the text: it is private, and debug output may reach a log.
        f.debug_struct("Text").field("bytes", &self.content.len()).finish_non_exhaustive()
    }
}

/// The kinds of relative positions in Yjs.
const BESIDE_A_UNIT: u8 = 0;
const END_OF_A_ROOT: u8 = 1;
/// The association of a relative position as lib0 encodes it: 0 and -1.
pub(super) const AFTER: u8 = 0;
pub(super) const BEFORE: u8 = 0x41;
/// The sign bit of a one-byte number, and the bit that announces another byte.
const SIGN: u8 = 0x40;
const MORE: u8 = 0x80;

pub(super) fn beside(id: Id, association: u8) -> Vec<u8> {
    let mut out = vec![BESIDE_A_UNIT];
    put_number(&mut out, id.client);
    put_number(&mut out, id.clock);
    out.push(association);
    out
}

/// Encodes the beginning of the text, with [`BEFORE`], or its end, with [`AFTER`].
pub(super) fn edge(association: u8) -> Vec<u8> {
    let mut out = vec![END_OF_A_ROOT];
    put_block(&mut out, ROOT.as_bytes());
    out.push(association);
    out
}

/// Whether a position follows the preceding unit. Its association is its last byte.
fn is_before(reader: &mut Reader<'_>) -> Option<bool> {
    let association = reader.byte().ok().filter(|association| association & MORE == 0)?;
    Some(association & SIGN != 0 && association != SIGN)
}

/// The bytes of a relative position, and those behind it.
pub(super) fn split_position(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader::new(bytes);
    match reader.byte().ok()? {
        BESIDE_A_UNIT => drop((reader.number().ok()?, reader.clock().ok()?)),
        END_OF_A_ROOT => drop(reader.text().ok()?),
        _ => return None,
    }
    is_before(&mut reader)?;
    let rest = reader.rest();
    Some((bytes.strip_suffix(rest)?, rest))
}

/// Whether a stored range starts at a relative position.
#[must_use]
pub fn starts_at(current: &RelativeRange, position: &[u8]) -> bool {
    let position = split_position(position).map(|(position, _)| position);
    position.is_some() && split_position(&current.start).map(|(start, _)| start) == position
}

/// Whether two stored ranges have the same relative positions, whatever letters they know.
#[must_use]
pub fn is_same_position(one: &RelativeRange, other: &RelativeRange) -> bool {
    position_of(one) == position_of(other)
}

/// The relative positions of a stored range, without the letters that it knows.
pub(super) fn position_of(current: &RelativeRange) -> RelativeRange {
    let start = split_position(&current.start).map_or(&[][..], |(position, _)| position);
    RelativeRange { start: start.to_vec(), end: current.end.clone() }
}

fn resolved(
    origin: &AnchorOrigin,
    state: AnchorState,
    range: TextRange,
    relative: Option<RelativeRange>,
) -> Resolved {
    let anchor = Anchor {
        state,
        start: range.start,
        end: range.end,
        quote: origin.quote.clone(),
        prefix: origin.prefix.clone(),
        suffix: origin.suffix.clone(),
        relative,
    };
    Resolved { anchor, relocated: None }
}

pub(super) fn last_chars(text: &str, count: usize) -> &str {
    let start = text.char_indices().rev().take(count).last().map_or(text.len(), |(at, _)| at);
    text.get(start..).unwrap_or_default()
}

pub(super) fn first_chars(text: &str, count: usize) -> &str {
    let end = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

/// The update that writes `text` into an empty document, under `client`.
#[must_use]
pub fn document_from_text(text: &str, client: u64) -> Bytes {
    Bytes::from(log::first_update(text, client))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LETTER: &str = "Dear 김민수,\nI am 👩‍👩‍👧 writing e\u{301}.\n";

    fn text() -> Text {
        Text::build(&document_from_text(LETTER, 9)).unwrap()
    }

    fn request(quote: &str) -> AnchorRequest {
        let start = utf16::length(&LETTER[..LETTER.find(quote).unwrap()]);
        AnchorRequest { start, end: start + utf16::length(quote), quote: quote.to_owned() }
    }

    #[test]
    fn g9_an_anchor_covers_its_quote() {
        let text = text();
        assert_eq!(text.content(), LETTER);
        for quote in ["Dear", "김민수", "👩‍👩‍👧", "e\u{301}", "\n"] {
            let (origin, current) = text.anchor(&request(quote)).unwrap();
            let resolved = text.resolve(&origin, &current);
            assert_eq!(resolved.anchor.state, AnchorState::Exact, "{quote}");
            assert_eq!(resolved.anchor.start, origin.range.start);
            assert_eq!(resolved.anchor.end, origin.range.end);
        }
    }

    #[test]
    fn y4_an_anchor_with_a_wrong_quote_or_range_is_rejected() {
        let text = text();
        let at = |start, end, quote: &str| {
            text.anchor(&AnchorRequest { start, end, quote: quote.to_owned() }).unwrap_err()
        };
        assert_eq!(at(0, 4, "dear"), AnchorMismatch::OtherText);
        assert_eq!(at(2, 2, ""), AnchorMismatch::Empty);
        assert_eq!(at(3, 1, ""), AnchorMismatch::Empty);
        assert_eq!(at(0, 10_000, LETTER), AnchorMismatch::Outside);
        assert_eq!(at(0, 100_000, LETTER), AnchorMismatch::TooLong);
        let emoji = request("👩");
        assert_eq!(at(emoji.start, emoji.start + 1, "?"), AnchorMismatch::SplitsCharacter);
        assert_eq!(at(emoji.start + 1, emoji.end, "?"), AnchorMismatch::SplitsCharacter);
    }

    #[test]
    fn a_suggestion_replaces_its_range() {
        let text = text();
        let name = request("김민수");
        let range = TextRange { start: name.start, end: name.end };
        let client = *log::SERVER_IDS.end();
        let (update, _) = text.replace_all(&[(range, "이영희 🙂")], client).unwrap();
        let parts = vec![document_from_text(LETTER, 9), update];
        let merged = log::UpdateLog::open(parts).unwrap().merged();
        let changed = Text::build(&merged).unwrap().content();
        assert_eq!(changed, LETTER.replace("김민수", "이영희 🙂"));
        assert_eq!(changed, text.content_with(&[(range, "이영희 🙂")]));
        let emoji = request("👩");
        let half = TextRange { start: emoji.start, end: emoji.start + 1 };
        assert_eq!(text.replace_all(&[(half, "")], client), Err(SyncError::Range));
    }

    #[test]
    fn become_text_changes_the_differing_hunks_and_keeps_other_anchors() {
        let text = text();
        let name = request("김민수");
        let (origin, current) = text.anchor(&name).unwrap();
        let wanted = "To 김민수,\nI was 👩‍👩‍👦 writing it, 🙂.\nYours";
        let client = *log::SERVER_IDS.end();
        let update = text.become_text(wanted, client).unwrap().unwrap();
        let parts = vec![document_from_text(LETTER, 9), update];
        let merged = log::UpdateLog::open(parts).unwrap().merged();
        let changed = Text::build(&merged).unwrap();
        assert_eq!(changed.content(), wanted);
        let resolved = changed.resolve(&origin, &current);
        assert_eq!(resolved.anchor.state, AnchorState::Exact);
        assert_eq!(resolved.relocated, None, "by its position, not by a search");
        assert_eq!(changed.become_text(wanted, client).unwrap(), None);
    }

    #[test]
    fn g13_become_text_of_a_megabyte_with_thousands_of_changes_ends_in_bounded_time() {
        let text = |word: &str| -> String {
            (0..20_000).map(|n| format!("{n} 학교에서 {word} 배운 것을 적는다. 🙂\n")).collect()
        };
        let (old, new) = (text("나는"), text("우리가 함께"));
        assert!(old.len() > 900_000);
        let began = std::time::Instant::now();
        let written = document_from_text(&old, 9);
        let client = *log::SERVER_IDS.end();
        let update = Text::build(&written).unwrap().become_text(&new, client).unwrap().unwrap();
        let merged = log::UpdateLog::open(vec![written, update]).unwrap().merged();
        assert_eq!(Text::build(&merged).unwrap().content(), new);
        // The limit is generous for debug builds on busy machines: the test proves that the call
        // ends.
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
    }
}
