//! Passages whose letters were deleted and came back: by an undo, a paste or a drag.
//!
//! Yjs gives new letters to a text that comes back. So an anchor knows the letters of the text in which it was
//! made, as a state vector behind its first position, and the search reads only *fresh* letters, which came
//! later. A lookalike that stood there before is never the passage.
//!
//! A passage that came back in its own place is the passage. One that came elsewhere is a guess: a person
//! decides.

use std::collections::HashMap;
use std::ops::Range;

use crate::lib0::{CLOCK_MAX, Reader, put_length, put_number};
use crate::quote_search::{self, BYTES_A_STEP, Wanted};
use crate::text::{Effort, Returned, Text, first_chars, last_chars, split_position};
use crate::utf16;
use galley_domain::anchor::{AnchorOrigin, RelativeRange, TextRange};
use galley_domain::limits::CONTEXT_CHARS;

/// The characters on each side of a gap that are searched together.
const NEAR_CHARS: usize = CONTEXT_CHARS / 2;
/// Bytes of a state vector, of some 300 clients. An anchor in a text by more knows no letters, and the search
/// finds none.
const VECTOR_BYTES_MAX: usize = 2_048;
/// Bytes of a client and its clock.
const CLIENT_BYTES_MIN: usize = 2;

/// The fresh letters of a text.
struct Fresh {
    /// The place of the anchor, with the letters that joined it.
    position: Range<u32>,
    /// All stretches of fresh letters, and `position`.
    stretches: Vec<Range<u32>>,
}

impl Text {
    /// The range, with the letters of this text: the search does not take them for the passage.
    pub(crate) fn knowing(&self, range: RelativeRange) -> RelativeRange {
        self.knowing_all(range, None)
    }

    /// The range, with the letters of this text and of the edit of a server's client.
    #[must_use]
    pub fn knowing_edit(&self, range: RelativeRange, client: u64) -> RelativeRange {
        self.knowing_all(range, Some((client, CLOCK_MAX)))
    }

    fn knowing_all(&self, mut range: RelativeRange, edit: Option<(u64, u32)>) -> RelativeRange {
        let clients: Vec<_> = self.order.clocks().chain(edit).collect();
        let mut vector = Vec::new();
        put_length(&mut vector, clients.len());
        for (client, clock) in clients {
            put_number(&mut vector, client);
            put_number(&mut vector, clock);
        }
        if vector.len() <= VECTOR_BYTES_MAX {
            range.start.append(&mut vector);
        }
        range
    }

    /// Finds a quote in fresh letters. `own`: the range of the letters that are left.
    pub(crate) fn returned(
        &self,
        origin: &AnchorOrigin,
        current: &RelativeRange,
        own: Option<TextRange>,
        effort: &mut Effort,
    ) -> Option<Returned> {
        let own = own?;
        let fresh = self.fresh(current, own, effort)?;
        let AnchorOrigin { quote, prefix, suffix, .. } = origin;
        let content = self.content_str();
        let length = utf16::length(quote);
        let range = |byte| {
            let start = self.units_before(byte);
            TextRange { start, end: start.saturating_add(length) }
        };
        let position = self.bytes(&fresh.position)?;
        let here = if own.start < own.end {
            self.around(quote, &self.bytes(&(own.start..own.end))?, &position, effort)
        } else {
            self.in_context(origin, &position, effort)
        };
        if let Some(byte) = here {
            return Some(Returned::Here(range(byte)));
        }
        let wanted = Wanted { quote, prefix, suffix };
        let byte = quote_search::find(content, &self.all_bytes(&fresh.stretches), &wanted, effort)?;
        Some(Returned::Elsewhere(range(byte)))
    }

    /// Finds a gap in fresh letters: between its nearest contexts together, or else beside the whole of one.
    pub(crate) fn returned_gap(
        &self,
        origin: &AnchorOrigin,
        current: &RelativeRange,
        at: Option<u32>,
        effort: &mut Effort,
    ) -> Option<Returned> {
        let at = at?;
        let fresh = self.fresh(current, TextRange { start: at, end: at }, effort)?;
        let AnchorOrigin { prefix, suffix, .. } = origin;
        let (left, right) = (last_chars(prefix, NEAR_CHARS), first_chars(suffix, NEAR_CHARS));
        let (far_left, far_right) = (prefix.strip_suffix(left)?, suffix.strip_prefix(right)?);
        let near = format!("{left}{right}");
        let content = self.content_str();
        let gap = |byte| {
            let at = self.units_before(byte);
            TextRange { start: at, end: at }
        };
        if !near.trim().is_empty() && !fresh.position.is_empty() {
            let position = self.bytes(&fresh.position)?;
            if let Some(byte) = self.in_context(origin, &position, effort) {
                return Some(Returned::Here(gap(byte)));
            }
        }
        let stretches = self.all_bytes(&fresh.stretches);
        let searches = [
            (Wanted { quote: &near, prefix: far_left, suffix: far_right }, left.len()),
            (Wanted { quote: prefix, prefix: "", suffix: "" }, prefix.len()),
            (Wanted { quote: suffix, prefix: "", suffix: "" }, 0),
        ];
        let found = searches.iter().find_map(|(wanted, before)| {
            Some(quote_search::find(content, &stretches, wanted, effort)? + before)
        });
        found.map(|byte| Returned::Elsewhere(gap(byte)))
    }

    /// `None`: the anchor knows no letters, or there are none but those.
    fn fresh(&self, current: &RelativeRange, own: TextRange, effort: &mut Effort) -> Option<Fresh> {
        let vector = vector_of(&current.start)?;
        if own.end < own.start || !effort.spend(self.order.pieces()) {
            return None;
        }
        let all = self.order.units_since(&vector);
        if all.is_empty() {
            return None;
        }
        let mut position = own.start..own.end;
        let mut stretches = Vec::with_capacity(all.len());
        for stretch in all {
            if stretch.end < position.start || position.end < stretch.start {
                stretches.push(stretch);
            } else {
                position = position.start.min(stretch.start)..position.end.max(stretch.end);
            }
        }
        stretches.push(position.clone());
        Some(Fresh { position, stretches })
    }

    /// The only quote of a range of bytes that has the letters that are left.
    fn around(
        &self,
        quote: &str,
        left: &Range<usize>,
        within: &Range<usize>,
        effort: &mut Effort,
    ) -> Option<usize> {
        let content = self.content_str();
        let from = left.end.saturating_sub(quote.len()).max(within.start);
        let from = content.ceil_char_boundary(from);
        let to =
            content.floor_char_boundary(within.end.min(left.start.saturating_add(quote.len())));
        let window = content.get(from..to)?;
        effort.spend(window.len() / BYTES_A_STEP).then_some(())?;
        only(window.match_indices(quote).map(|(at, _)| from.saturating_add(at)))
    }

    /// The only place in a range of bytes at which a quote has its whole context. The text may have grown at
    /// its end.
    fn in_context(
        &self,
        origin: &AnchorOrigin,
        within: &Range<usize>,
        effort: &mut Effort,
    ) -> Option<usize> {
        let AnchorOrigin { quote, prefix, suffix, .. } = origin;
        let content = self.content_str();
        let whole = format!("{prefix}{quote}{suffix}");
        let is_within =
            |at: &usize| within.start <= *at && at.saturating_add(quote.len()) <= within.end;
        // A shorter context is all that stood before the quote.
        if prefix.chars().count() < CONTEXT_CHARS {
            let at = content.starts_with(&whole).then_some(prefix.len());
            return at.filter(is_within);
        }
        let from = content.floor_char_boundary(within.start.saturating_sub(prefix.len()));
        let to = content.ceil_char_boundary(within.end.saturating_add(suffix.len()));
        let window = content.get(from..to)?;
        effort.spend(window.len() / BYTES_A_STEP).then_some(())?;
        let all = window.match_indices(&whole);
        only(
            all.map(|(at, _)| from.saturating_add(at).saturating_add(prefix.len()))
                .filter(is_within),
        )
    }

    fn bytes(&self, units: &Range<u32>) -> Option<Range<usize>> {
        Some(self.byte(units.start).ok()?..self.byte(units.end).ok()?)
    }

    fn all_bytes(&self, stretches: &[Range<u32>]) -> Vec<Range<usize>> {
        stretches.iter().filter_map(|units| self.bytes(units)).collect()
    }
}

/// The state vector behind a position.
pub(crate) fn vector_of(start: &[u8]) -> Option<HashMap<u64, u32>> {
    let (_, rest) = split_position(start)?;
    let mut reader = Reader::new(rest);
    let count = reader.count(CLIENT_BYTES_MIN).ok()?;
    let vector: Option<_> =
        (0..count).map(|_| Some((reader.number().ok()?, reader.clock().ok()?))).collect();
    vector.filter(|_| reader.rest().is_empty())
}

/// The only item. `None`: there is none, or several.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    items.next().filter(|_| items.next().is_none())
}
