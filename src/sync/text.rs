//! The text of a document, for a moment.
//!
//! A `yrs` document is built from the merged log when somebody needs the text itself, asked, and
//! dropped. Building it takes time that grows with the document, so it is done on a thread that
//! may block. All offsets are UTF-16 units (Y4).

use bytes::Bytes;
use yrs::updates::decoder::Decode;
use yrs::updates::encoder::Encode;
use yrs::{
    Assoc, ClientID, Doc, GetString, IndexedSequence, OffsetKind, Options, ReadTxn, StateVector,
    StickyIndex, Text as _, TextRef, Transact, Update,
};

use crate::domain::anchor::{
    Anchor, AnchorOrigin, AnchorRequest, AnchorState, RelativeRange, TextRange,
};
use crate::domain::limits::{CONTEXT_CHARS, DIFF_PATIENCE, QUOTE_UTF16_MAX, RESTORE_PLACES_MAX};
use crate::sync::ROOT;
use crate::sync::diff;
use crate::sync::effort;
use crate::sync::error::{AnchorMismatch, SyncError};
use crate::sync::lib0::Reader;
use crate::sync::log;
use crate::sync::search::{self, Wanted};
use crate::sync::utf16::{self, Place};

/// From here on a range whose text has changed is still the range that was meant.
const EDITED_MIN: f64 = 0.6;

/// The text of a document at one moment.
pub struct Text {
    document: Doc,
    root: TextRef,
    content: String,
}

/// Where a review stands now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// As it is served.
    pub anchor: Anchor,
    /// The place to store as the current one, when the quote was found elsewhere.
    pub relocated: Option<RelativeRange>,
}

impl Text {
    /// Builds the text from a whole document, as [`UpdateLog::merged`] gives it.
    ///
    /// [`UpdateLog::merged`]: crate::sync::log::UpdateLog::merged
    ///
    /// # Errors
    ///
    /// [`SyncError::Corrupt`] when it is not a whole document, [`SyncError::TooCostly`] when it was made
    /// so that it takes minutes.
    pub fn build(merged: &[u8]) -> Result<Self, SyncError> {
        effort::check(merged)?;
        // Nothing is written into it, so its client id never leaves it.
        let (document, root) = open(merged, ClientID::new(0))?;
        let content = root.get_string(&document.transact());
        Ok(Self { document, root, content })
    }

    /// The text.
    #[must_use]
    pub fn content(&self) -> String {
        self.content.clone()
    }

    /// Anchors a review: the original to keep for ever, and where it stands now.
    ///
    /// # Errors
    ///
    /// [`AnchorMismatch`] when the range is not one of this text or the quote does not stand there.
    pub fn anchor(
        &self,
        request: &AnchorRequest,
    ) -> Result<(AnchorOrigin, RelativeRange), AnchorMismatch> {
        if request.end <= request.start {
            return Err(AnchorMismatch::Empty);
        }
        if QUOTE_UTF16_MAX < request.end.saturating_sub(request.start) {
            return Err(AnchorMismatch::TooLong);
        }
        let range = TextRange { start: request.start, end: request.end };
        let (before, quote, after) = self.parts(range)?;
        if quote != request.quote {
            return Err(AnchorMismatch::OtherText);
        }
        let current = self.relative(range).ok_or(AnchorMismatch::Outside)?;
        let origin = AnchorOrigin {
            range,
            quote: quote.to_owned(),
            prefix: last_chars(before, CONTEXT_CHARS).to_owned(),
            suffix: first_chars(after, CONTEXT_CHARS).to_owned(),
        };
        Ok((origin, current))
    }

    /// Finds a review's place: where its relative positions stand, else where its quote is.
    #[must_use]
    pub fn resolve(&self, origin: &AnchorOrigin, current: &RelativeRange) -> Resolved {
        let ends = (self.offset(&current.start), self.offset(&current.end));
        if let (Some(start), Some(end)) = ends
            && let Some(state) = self.stands(origin, TextRange { start, end })
        {
            return resolved(origin, state, TextRange { start, end }, None);
        }
        if let Some((range, relocated)) = self.find(origin) {
            return resolved(origin, AnchorState::Moved, range, Some(relocated));
        }
        let last = self.aligned(ends.0.unwrap_or(origin.range.start));
        resolved(origin, AnchorState::Orphaned, TextRange { start: last, end: last }, None)
    }

    /// The update that puts `with` in place of a range, made under `client`, which must be an id
    /// that nobody else ever writes under.
    ///
    /// # Errors
    ///
    /// [`SyncError::Range`] when the range is not one of this text.
    pub fn replace(&self, range: TextRange, with: &str, client: u64) -> Result<Bytes, SyncError> {
        self.parts(range).map_err(|_| SyncError::Range)?;
        let whole = self.document.transact().encode_diff_v1(&StateVector::default());
        let (document, root) = open(&whole, ClientID::new(client))?;
        let mut transaction = document.transact_mut();
        // Deleted first, so that what was put in stands where the deleted text began.
        root.remove_range(&mut transaction, range.start, range.end.saturating_sub(range.start));
        root.insert(&mut transaction, range.start, with);
        Ok(Bytes::from(transaction.encode_update_v1()))
    }

    /// The update that makes `wanted` of the text, made under `client` as in
    /// [`replace`](Self::replace). Only what differs is touched, so that positions in everything
    /// else stand where they stood. `None`: it is that text already.
    ///
    /// # Errors
    ///
    /// [`SyncError::Range`] when the places of the two cannot be told, which no text does.
    pub fn become_text(&self, wanted: &str, client: u64) -> Result<Option<Bytes>, SyncError> {
        let places = diff::places(&self.content, wanted, DIFF_PATIENCE);
        let places = diff::at_most(RESTORE_PLACES_MAX, places);
        if places.is_empty() {
            return Ok(None);
        }
        let whole = self.document.transact().encode_diff_v1(&StateVector::default());
        let (document, root) = open(&whole, ClientID::new(client))?;
        let mut transaction = document.transact_mut();
        // In the order of the text: what is behind a change is cut off near its beginning.
        let (mut at, mut passed) = (0_u32, 0);
        for place in &places {
            let before = wanted.get(passed..place.new.start).ok_or(SyncError::Range)?;
            let taken = self.content.get(place.old.clone()).ok_or(SyncError::Range)?;
            let put = wanted.get(place.new.clone()).ok_or(SyncError::Range)?;
            at = at.saturating_add(utf16::length(before));
            root.remove_range(&mut transaction, at, utf16::length(taken));
            root.insert(&mut transaction, at, put);
            at = at.saturating_add(utf16::length(put));
            passed = place.new.end;
        }
        Ok(Some(Bytes::from(transaction.encode_update_v1())))
    }

    /// What is before, in and after a range.
    fn parts(&self, range: TextRange) -> Result<(&str, &str, &str), AnchorMismatch> {
        let (start, end) = (self.byte(range.start)?, self.byte(range.end)?);
        let part = |part: Option<_>| part.ok_or(AnchorMismatch::Empty);
        Ok((
            part(self.content.get(..start))?,
            part(self.content.get(start..end))?,
            part(self.content.get(end..))?,
        ))
    }

    fn byte(&self, units: u32) -> Result<usize, AnchorMismatch> {
        match utf16::place(&self.content, units) {
            Place::At(byte) => Ok(byte),
            Place::Inside(_) => Err(AnchorMismatch::SplitsCharacter),
            Place::Beyond => Err(AnchorMismatch::Outside),
        }
    }

    /// The nearest boundary of characters at or before `units`.
    fn aligned(&self, units: u32) -> u32 {
        match utf16::place(&self.content, units) {
            Place::At(_) => units,
            Place::Inside(_) => units.saturating_sub(1),
            Place::Beyond => utf16::length(&self.content),
        }
    }

    /// Exact or edited, if a range still is the one that was meant.
    fn stands(&self, origin: &AnchorOrigin, range: TextRange) -> Option<AnchorState> {
        if range.end <= range.start {
            return None;
        }
        let (_, text, _) = self.parts(range).ok()?;
        if text == origin.quote {
            return Some(AnchorState::Exact);
        }
        // A range that grew beyond any resemblance is not worth comparing letter by letter.
        let comparable = text.len() <= origin.quote.len().saturating_mul(8);
        (comparable && EDITED_MIN <= search::similarity(text, &origin.quote))
            .then_some(AnchorState::Edited)
    }

    fn find(&self, origin: &AnchorOrigin) -> Option<(TextRange, RelativeRange)> {
        let AnchorOrigin { quote, prefix, suffix, .. } = origin;
        let byte = search::find(&self.content, &Wanted { quote, prefix, suffix })?;
        let start = utf16::length(self.content.get(..byte)?);
        let range = TextRange { start, end: start.saturating_add(utf16::length(quote)) };
        Some((range, self.relative(range)?))
    }

    pub(crate) fn relative(&self, range: TextRange) -> Option<RelativeRange> {
        let transaction = self.document.transact();
        let start = self.root.sticky_index(&transaction, range.start, Assoc::After)?;
        let end = self.root.sticky_index(&transaction, range.end, Assoc::Before)?;
        Some(RelativeRange { start: start.encode_v1(), end: end.encode_v1() })
    }

    /// Where a relative position is now.
    pub(crate) fn offset(&self, position: &[u8]) -> Option<u32> {
        has_form(position).then_some(())?;
        let position = StickyIndex::decode_v1(position).ok()?;
        position.get_offset(&self.document.transact()).map(|offset| offset.index)
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the text itself: it is somebody's letter, and this may end in a log.
        f.debug_struct("Text").field("bytes", &self.content.len()).finish_non_exhaustive()
    }
}

/// Whether a position is written as Yjs writes it: yrs asserts that a client id has 53 bits, and its
/// shifts overflow on a side of more bytes than one.
fn has_form(position: &[u8]) -> bool {
    let mut reader = Reader::new(position);
    let place = match reader.byte() {
        // Beside a unit, or at an end of a type in the text.
        Ok(0 | 2) => reader.number().and_then(|_| reader.clock()).is_ok(),
        // At an end of a root type.
        Ok(1) => reader.text().is_ok(),
        _ => false,
    };
    place && reader.byte().is_ok_and(|side| side < 0x80) && reader.finish().is_ok()
}

/// A `yrs` document with what `update` brings.
fn open(update: &[u8], client: ClientID) -> Result<(Doc, TextRef), SyncError> {
    let mut options = Options::with_client_id(client);
    options.offset_kind = OffsetKind::Utf16;
    // It reads, and writes at most one edit: to collect garbage would be wasted, and to tidy
    // formatting would be an edit that nobody made.
    options.skip_gc = true;
    options.cleanup_formatting = false;
    let document = Doc::with_options(options);
    let root = document.get_or_insert_text(ROOT);
    let update =
        Update::decode_v1(update).map_err(|_| SyncError::Corrupt("yrs cannot decode it"))?;
    {
        let mut transaction = document.transact_mut();
        let applied = transaction.apply_update(update);
        if applied.is_err() || transaction.has_missing_updates() {
            return Err(SyncError::Corrupt("parts of it are missing"));
        }
    }
    Ok((document, root))
}

fn resolved(
    origin: &AnchorOrigin,
    state: AnchorState,
    range: TextRange,
    relocated: Option<RelativeRange>,
) -> Resolved {
    let anchor = Anchor {
        state,
        start: range.start,
        end: range.end,
        quote: origin.quote.clone(),
        prefix: origin.prefix.clone(),
        suffix: origin.suffix.clone(),
    };
    Resolved { anchor, relocated }
}

fn last_chars(text: &str, count: usize) -> &str {
    let start = text.char_indices().rev().take(count).last().map_or(text.len(), |(at, _)| at);
    text.get(start..).unwrap_or_default()
}

fn first_chars(text: &str, count: usize) -> &str {
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
    fn g9_an_anchor_stands_on_its_quote() {
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
    fn y4_an_anchor_on_what_does_not_stand_there_is_refused() {
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
        let update = text.replace(range, "이영희 🙂", client).unwrap();
        let parts = vec![document_from_text(LETTER, 9), update];
        let merged = log::UpdateLog::open(parts).unwrap().merged();
        let changed = Text::build(&merged).unwrap().content();
        assert_eq!(changed, LETTER.replace("김민수", "이영희 🙂"));
        let emoji = request("👩");
        let half = TextRange { start: emoji.start, end: emoji.start + 1 };
        assert_eq!(text.replace(half, "", client), Err(SyncError::Range));
    }

    #[test]
    fn a_text_becomes_another_and_anchors_in_what_stays_stand() {
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
    fn g13_a_megabyte_with_thousands_of_changes_becomes_another_in_bounded_time() {
        let text = |word: &str| -> String {
            (0..20_000).map(|n| format!("{n} 학교에서 {word} 배운 것을 적는다. 🙂\n")).collect()
        };
        let (old, new) = (text("나는"), text("우리가 함께"));
        assert!(900_000 < old.len());
        let began = std::time::Instant::now();
        let written = document_from_text(&old, 9);
        let client = *log::SERVER_IDS.end();
        let update = Text::build(&written).unwrap().become_text(&new, client).unwrap().unwrap();
        let merged = log::UpdateLog::open(vec![written, update]).unwrap().merged();
        assert_eq!(Text::build(&merged).unwrap().content(), new);
        // Debug builds of busy machines: the point is that it ends.
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
    }
}
