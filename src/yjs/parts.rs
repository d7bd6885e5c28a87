//! The parts of a suggestion in the text: ranges with a quote, and the gaps of insertions.
//!
//! A gap follows the unit after it: what another user types at a gap stands before the suggested text. It
//! stands beside the last word before it or the first word after it; white space alone is no neighbour.

use crate::returned::vector_of;
use crate::text::{
    AFTER, BEFORE, Effort, Resolved, Returned, Text, beside, edge, first_chars, last_chars,
    position_of, split_position,
};
use galley_domain::anchor::{
    Anchor, AnchorOrigin, AnchorRequest, AnchorState, PartRequest, Position, RelativeRange,
    TextRange,
};
use galley_domain::limits::CONTEXT_CHARS;
use galley_domain::suggestion::Refusal;

use crate::error::AnchorMismatch;

impl Text {
    /// Anchors a part. Fails with [`Refusal::Position`] when a position is not in this text,
    /// [`Refusal::QuoteChanged`] when the text of the range is not its quote, [`Refusal::TooLong`] when the
    /// quote is longer than a quote may be.
    pub fn anchor_part(
        &self,
        request: &PartRequest,
    ) -> Result<(AnchorOrigin, RelativeRange), Refusal> {
        match request {
            PartRequest::Gap(at) => {
                let at = self.unit_of(at)?;
                self.anchor_gap(at).ok_or(Refusal::Position)
            }
            PartRequest::Range { start, end, quote } => {
                let (start, end) = (self.unit_of(start)?, self.unit_of(end)?);
                let request = AnchorRequest { start, end, quote: quote.clone() };
                self.anchor(&request).map_err(|mismatch| match mismatch {
                    AnchorMismatch::TooLong => Refusal::TooLong,
                    AnchorMismatch::Outside | AnchorMismatch::SplitsCharacter => Refusal::Position,
                    AnchorMismatch::Empty | AnchorMismatch::OtherText => Refusal::QuoteChanged,
                })
            }
        }
    }

    /// The range of a part by its relative positions alone, without its quote. `None`: it is deleted.
    #[must_use]
    pub fn range_of(&self, position: &RelativeRange, is_gap: bool) -> Option<TextRange> {
        let end = self.offset(&position.end)?;
        if is_gap {
            return Some(TextRange { start: end, end });
        }
        let start = self.offset(&position.start)?;
        (start < end).then_some(TextRange { start, end })
    }

    /// Whether the text has the text of a part already, because the writer typed it; of a deletion, whether
    /// the quote is gone.
    #[must_use]
    pub fn says(&self, position: &RelativeRange, is_gap: bool, text: &str) -> bool {
        let end = self.offset(&position.end);
        let start = if is_gap { end } else { self.offset(&position.start) };
        let (Some(start), Some(end)) = (start, end) else { return false };
        let Ok((before, between, after)) = self.split(TextRange { start, end }) else {
            return false;
        };
        // Yjs puts what replaces a deleted quote on either side of it.
        let is_beside = before.ends_with(text) || !is_gap && after.starts_with(text);
        between == text || between.is_empty() && is_beside
    }

    fn unit_of(&self, position: &Position) -> Result<u32, Refusal> {
        match position {
            Position::Offset(offset) => Ok(*offset),
            Position::Relative(position) => {
                // A stored position carries the letters that its anchor knows.
                let has_form = split_position(position)
                    .is_some_and(|(_, rest)| rest.is_empty() || vector_of(position).is_some());
                self.offset(position).filter(|_| has_form).ok_or(Refusal::Position)
            }
        }
    }

    fn anchor_gap(&self, at: u32) -> Option<(AnchorOrigin, RelativeRange)> {
        let range = TextRange { start: at, end: at };
        let (before, _, after) = self.split(range).ok()?;
        let origin = AnchorOrigin {
            range,
            quote: String::new(),
            prefix: last_chars(before, CONTEXT_CHARS).to_owned(),
            suffix: first_chars(after, CONTEXT_CHARS).to_owned(),
        };
        Some((origin, self.knowing(self.relative_gap(at))))
    }

    fn relative_gap(&self, at: u32) -> RelativeRange {
        let before = at.checked_sub(1).and_then(|at| self.order.unit_at(at));
        let after = self.order.unit_at(at);
        RelativeRange {
            start: before.map_or_else(|| edge(BEFORE), |id| beside(id, BEFORE)),
            end: after.map_or_else(|| edge(AFTER), |id| beside(id, AFTER)),
        }
    }

    /// Resolves a gap: by the unit after it, then by a search for its context. A gap whose neighbours are both
    /// deleted is beside a lookalike at most.
    pub(super) fn resolve_gap(
        &self,
        origin: &AnchorOrigin,
        current: &RelativeRange,
        effort: &mut Effort,
    ) -> Resolved {
        let anchor = |state, at, relative| {
            let AnchorOrigin { prefix, suffix, .. } = origin.clone();
            Anchor { state, start: at, end: at, quote: String::new(), prefix, suffix, relative }
        };
        let at = self.offset(&current.end);
        let is_own = self.is_beside_text(&current.start) || self.is_beside_text(&current.end);
        if let Some(at) = at.filter(|at| is_own && self.is_beside_its_words(origin, *at)) {
            let relative = Some(position_of(current));
            return Resolved { anchor: anchor(AnchorState::Exact, at, relative), relocated: None };
        }
        match self.returned_gap(origin, current, at, effort) {
            Some(Returned::Here(TextRange { start, .. })) => {
                let relative = self.relative_gap(start);
                let relocated = Some(self.knowing(relative.clone()));
                let anchor = anchor(AnchorState::Exact, start, Some(relative));
                Resolved { anchor, relocated }
            }
            Some(Returned::Elsewhere(TextRange { start, .. })) => {
                let relative = Some(self.relative_gap(start));
                let anchor = anchor(AnchorState::Moved, start, relative);
                Resolved { anchor, relocated: None }
            }
            None => {
                let last = self.aligned(at.unwrap_or(origin.range.start));
                let anchor = anchor(AnchorState::Orphaned, last, None);
                Resolved { anchor, relocated: None }
            }
        }
    }

    fn is_beside_its_words(&self, origin: &AnchorOrigin, at: u32) -> bool {
        let Ok((before, _, after)) = self.split(TextRange { start: at, end: at }) else {
            return false;
        };
        let (prefix, suffix) = (origin.prefix.trim_end(), origin.suffix.trim_start());
        let last = prefix.rsplit(char::is_whitespace).next().unwrap_or_default();
        let first = suffix.split(char::is_whitespace).next().unwrap_or_default();
        let rest = before.trim_end().strip_suffix(last);
        let follows = match last.is_empty() {
            true => before.trim_end().is_empty(),
            // The context of a long word begins inside it.
            false => rest.is_some_and(|rest| last == origin.prefix || ends_a_word(rest)),
        };
        let rest = after.trim_start().strip_prefix(first);
        let precedes = match first.is_empty() {
            true => after.trim_start().is_empty(),
            false => rest.is_some_and(|rest| first == origin.suffix || begins_a_word(rest)),
        };
        follows || precedes
    }
}

fn ends_a_word(text: &str) -> bool {
    text.chars().next_back().is_none_or(char::is_whitespace)
}

fn begins_a_word(text: &str) -> bool {
    text.chars().next().is_none_or(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{SERVER_IDS, UpdateLog};
    use crate::text::document_from_text;
    use crate::utf16;

    const ESSAY: &str =
        "1. 지원동기\n저는 물류가 좋습니다. 상자가 손에 닿기까지 봅니다.\n\n2. 장점\n꼼꼼합니다.\n";

    fn at(text: &str, words: &str) -> u32 {
        utf16::length(&text[..text.find(words).expect("the words are in the text")])
    }

    fn gap(offset: u32) -> PartRequest {
        PartRequest::Gap(Position::Offset(offset))
    }

    /// The gap before `words` after the first `from` became `to`.
    fn after(words: &str, from: &str, to: &str) -> (AnchorState, u32, String) {
        let merged = document_from_text(ESSAY, 9);
        let text = Text::build(&merged).unwrap();
        let (origin, current) = text.anchor_part(&gap(at(ESSAY, words))).unwrap();
        let start = at(ESSAY, from);
        let range = TextRange { start, end: start + utf16::length(from) };
        let (update, _) = text.replace_all(&[(range, to)], *SERVER_IDS.end()).unwrap();
        let merged = UpdateLog::open(vec![merged, update]).unwrap().merged();
        let text = Text::build(&merged).unwrap();
        let anchor = text.resolve(&origin, &current).anchor;
        assert_eq!(anchor.start, anchor.end);
        (anchor.state, anchor.start, text.content())
    }

    #[test]
    fn g9_a_gap_stands_beside_a_word_that_it_was_made_beside() {
        let (state, offset, text) = after("상자가", "좋습니다.", "재미있습니다.");
        assert_eq!((state, offset), (AnchorState::Exact, at(&text, "상자가")));
        let (state, offset, text) = after("상자가", "상자가 손에", "물건이 집에");
        assert_eq!((state, offset), (AnchorState::Exact, at(&text, "물건이")));
        let (state, offset, text) = after("상자가", "좋습니다. ", "좋습니다. 늘 ");
        assert_eq!((state, offset), (AnchorState::Exact, at(&text, "상자가")));
    }

    #[test]
    fn a_gap_whose_words_are_gone_is_orphaned_and_one_that_moved_is_found() {
        let (state, ..) =
            after("상자가", "저는 물류가 좋습니다. 상자가 손에 닿기까지 봅니다.\n", "");
        assert_eq!(state, AnchorState::Orphaned);
        let (state, ..) =
            after("상자가", "물류가 좋습니다. 상자가 손에", "일이 즐겁고 물건이 집에");
        assert_eq!(state, AnchorState::Orphaned, "white space alone is no neighbour");
        let moved = format!("2. 장점\n꼼꼼합니다.\n{ESSAY}");
        let moved = moved.trim_end().strip_suffix("2. 장점\n꼼꼼합니다.").unwrap();
        let (state, offset, text) = after("상자가", ESSAY, moved);
        assert_eq!((state, offset), (AnchorState::Moved, at(&text, "상자가")));
    }

    #[test]
    fn a_part_whose_text_the_writer_typed_is_said() {
        let merged = document_from_text(ESSAY, 9);
        let text = Text::build(&merged).unwrap();
        let start = at(ESSAY, "좋습니다");
        let range = TextRange { start, end: start + 4 };
        let (start, end) = (Position::Offset(range.start), Position::Offset(range.end));
        let quote = "좋습니다".to_owned();
        let (_, part) = text.anchor_part(&PartRequest::Range { start, end, quote }).unwrap();
        let (_, before) = text.anchor_part(&gap(at(ESSAY, "상자가"))).unwrap();
        assert!(!text.says(&part, false, "멋집니다") && !text.says(&before, true, "늘 "));
        assert!(!text.says(&part, false, ""));
        let at = TextRange { start: at(ESSAY, "상자가"), end: at(ESSAY, "상자가") };
        let client = *SERVER_IDS.end();
        for (with, says) in [("멋집니다", [true, true]), ("", [false, true])] {
            let (update, _) = text.replace_all(&[(range, with), (at, "늘 ")], client).unwrap();
            let merged = UpdateLog::open(vec![merged.clone(), update]).unwrap().merged();
            let text = Text::build(&merged).unwrap();
            let said = ["멋집니다", ""].map(|with| text.says(&part, false, with));
            assert_eq!((said, text.says(&before, true, "늘 ")), (says, true), "{with}");
        }
    }

    #[test]
    fn gaps_at_the_edges_of_a_text_stand() {
        let (state, offset, _) = after("1. 지원", "1. 지원동기", "하나. 지원동기");
        assert_eq!((state, offset), (AnchorState::Exact, 0), "the edge is a neighbour");
        let text = Text::build(&document_from_text(ESSAY, 9)).unwrap();
        let end = utf16::length(ESSAY);
        let (origin, current) = text.anchor_part(&gap(end)).unwrap();
        let anchor = text.resolve(&origin, &current).anchor;
        assert_eq!((anchor.state, anchor.start), (AnchorState::Exact, end));
        assert_eq!(text.anchor_part(&gap(end + 1)), Err(Refusal::Position));
    }

    #[test]
    fn g12_a_part_of_another_text_is_refused() {
        let text = Text::build(&document_from_text(ESSAY, 9)).unwrap();
        let other = beside(crate::structs::Id { client: 77, clock: 3 }, AFTER);
        for bytes in [other, b"no position".to_vec(), Vec::new(), vec![0xff; 400]] {
            let at = PartRequest::Gap(Position::Relative(bytes.clone()));
            assert_eq!(text.anchor_part(&at), Err(Refusal::Position));
            let (start, end) = (Position::Offset(0), Position::Relative(bytes));
            let range = PartRequest::Range { start, end, quote: "1.".to_owned() };
            assert_eq!(text.anchor_part(&range), Err(Refusal::Position));
        }
        let range = |start, end, quote: &str| PartRequest::Range {
            start: Position::Offset(start),
            end: Position::Offset(end),
            quote: quote.to_owned(),
        };
        assert_eq!(text.anchor_part(&range(0, 2, "2.")), Err(Refusal::QuoteChanged));
        assert_eq!(text.anchor_part(&range(2, 0, "1.")), Err(Refusal::QuoteChanged));
        assert_eq!(text.anchor_part(&range(0, u32::MAX, "1.")), Err(Refusal::TooLong));
        assert!(text.anchor_part(&range(0, 2, "1.")).is_ok());
        let emoji = Text::build(&document_from_text("가😀", 9)).unwrap();
        assert_eq!(emoji.anchor_part(&gap(2)), Err(Refusal::Position));
    }
}
