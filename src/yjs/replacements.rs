//! Edits that replace several ranges of a text at once, and the places of the texts put in.
//!
//! A place is a pair of relative positions in the text after the edit. That of a text begins at its
//! first unit and ends after its last. That of a deletion is the gap between the units beside it. So a
//! text stands where an edit put it, if the text between both positions is that text.

use std::ops::Range;

use bytes::Bytes;

use crate::error::SyncError;
use crate::structs::Id;
use crate::text::{AFTER, BEFORE, Text, beside, edge};
use crate::utf16;
use galley_domain::anchor::{RelativeRange, TextRange};

/// Neighbouring replacements, which the edit writes as one.
struct Run {
    range: Range<u32>,
    text: String,
    /// For each replacement the units of its text within the text of the run.
    inside: Vec<Range<u32>>,
}

impl Text {
    /// The update that replaces each range by its text, written under `client`, and the place of each
    /// text after the edit. No other writer may ever use that id. The ranges are in the order of the
    /// text and do not overlap; they may be empty, and may touch. Fails with [`SyncError::Range`] when
    /// a range lies outside this text or overlaps the one before it.
    pub fn replace_all(
        &self,
        replacements: &[(TextRange, &str)],
        client: u64,
    ) -> Result<(Bytes, Vec<RelativeRange>), SyncError> {
        let runs = self.runs(replacements)?;
        let mut clock = self.order.next_clock(client);
        let mut positions = Vec::with_capacity(replacements.len());
        for run in &runs {
            self.positions_of(run, Id { client, clock }, &mut positions);
            clock = clock.saturating_add(utf16::length(&run.text));
        }
        let edits: Vec<_> = runs.iter().map(|run| (run.range.clone(), run.text.as_str())).collect();
        Ok((self.order.replace(&edits, client), positions))
    }

    /// The range of a place, if `text` still stands there.
    #[must_use]
    pub fn stands_at(&self, position: &RelativeRange, text: &str) -> Option<TextRange> {
        let (start, end) = self.ends_of(position, text)?;
        let range = TextRange { start, end };
        let (_, there, _) = self.split(range).ok().filter(|_| start <= end)?;
        // A gap whose neighbours are both deleted is the gap of a passage that is gone.
        let is_beside_text = !text.is_empty()
            || self.is_beside_text(&position.start)
            || self.is_beside_text(&position.end);
        (there == text && is_beside_text).then_some(range)
    }

    /// The offsets of a place. A gap at an end of the text is beside its only neighbour, also when the
    /// text goes on there.
    fn ends_of(&self, position: &RelativeRange, text: &str) -> Option<(u32, u32)> {
        let ends = (self.offset(&position.start)?, self.offset(&position.end)?);
        let is_edge = (position.start == edge(BEFORE), position.end == edge(AFTER));
        Some(match is_edge {
            (false, true) if text.is_empty() && self.is_beside_text(&position.start) => {
                (ends.0, ends.0)
            }
            (true, false) if text.is_empty() && self.is_beside_text(&position.end) => {
                (ends.1, ends.1)
            }
            _ => ends,
        })
    }

    fn runs(&self, replacements: &[(TextRange, &str)]) -> Result<Vec<Run>, SyncError> {
        let mut runs: Vec<Run> = Vec::new();
        let mut end = 0;
        for (range, text) in replacements {
            self.split(*range).map_err(|_| SyncError::Range)?;
            if range.end < range.start || range.start < end {
                return Err(SyncError::Range);
            }
            let length = utf16::length(text);
            match runs.last_mut().filter(|run| run.range.end == range.start) {
                Some(run) => {
                    let from = utf16::length(&run.text);
                    run.range.end = range.end;
                    run.text.push_str(text);
                    run.inside.push(from..from.saturating_add(length));
                }
                None => runs.push(Run {
                    range: range.start..range.end,
                    text: (*text).to_owned(),
                    inside: std::iter::once(0..length).collect(),
                }),
            }
            end = range.end;
        }
        Ok(runs)
    }

    fn positions_of(&self, run: &Run, first: Id, positions: &mut Vec<RelativeRange>) {
        let all = utf16::length(&run.text);
        let unit = |inside: u32| Id { clock: first.clock.saturating_add(inside), ..first };
        let before = run.range.start.checked_sub(1).and_then(|at| self.order.unit_at(at));
        let after = self.order.unit_at(run.range.end);
        for Range { start, end } in &run.inside {
            if start < end {
                let last = end.saturating_sub(1);
                let (start, end) = (beside(unit(*start), AFTER), beside(unit(last), BEFORE));
                positions.push(RelativeRange { start, end });
                continue;
            }
            let left = start.checked_sub(1).map(unit).or(before);
            let right = Some(unit(*start)).filter(|_| *start < all).or(after);
            let start = left.map_or_else(|| edge(BEFORE), |id| beside(id, BEFORE));
            let end = right.map_or_else(|| edge(AFTER), |id| beside(id, AFTER));
            positions.push(RelativeRange { start, end });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{SERVER_IDS, UpdateLog};
    use crate::text::document_from_text;

    const LETTER: &str = "Dear 김민수,\nI am 👩‍👩‍👧 writing this.\n";

    fn range_of(quote: &str, text: &str) -> TextRange {
        let start = utf16::length(&text[..text.find(quote).unwrap()]);
        TextRange { start, end: start + utf16::length(quote) }
    }

    /// The document after an edit.
    fn after(merged: &Bytes, update: Bytes) -> Bytes {
        UpdateLog::open(vec![merged.clone(), update]).unwrap().merged()
    }

    /// Puts the texts in place of their quotes, and the quotes in place of the texts.
    fn there_and_back(before: &str, replaced: &[(&str, &str)], expected: &str) {
        let merged = document_from_text(before, 9);
        let text = Text::build(&merged).unwrap();
        let client = *SERVER_IDS.end();
        let edits: Vec<_> = replaced.iter().map(|(q, with)| (range_of(q, before), *with)).collect();
        let (update, positions) = text.replace_all(&edits, client).unwrap();
        let merged = after(&merged, update);
        let text = Text::build(&merged).unwrap();
        assert_eq!(text.content(), expected);
        let mut edits = Vec::new();
        for ((quote, with), position) in replaced.iter().zip(&positions) {
            let range = text.stands_at(position, with).expect("the text stands where it was put");
            edits.push((range, *quote));
        }
        let (update, positions) = text.replace_all(&edits, client - 1).unwrap();
        let merged = after(&merged, update);
        let text = Text::build(&merged).unwrap();
        assert_eq!(text.content(), before);
        for ((quote, _), position) in replaced.iter().zip(&positions) {
            assert_eq!(text.stands_at(position, quote), Some(range_of(quote, before)));
        }
    }

    #[test]
    fn replacements_turned_round_give_the_text_before() {
        there_and_back(
            LETTER,
            &[("김민수", "이영희 🙂"), ("👩‍👩‍👧", "🙂")],
            "Dear 이영희 🙂,\nI am 🙂 writing this.\n",
        );
        // Neighbours, and deletions at both ends, between texts and beside each other.
        there_and_back("abcdef", &[("ab", "x"), ("cd", ""), ("ef", "yz")], "xyz");
        there_and_back("abcdef", &[("a", ""), ("b", ""), ("f", "")], "cde");
        there_and_back("abcdef", &[("b", ""), ("c", "c!"), ("d", ""), ("e", "")], "ac!f");
        there_and_back("abc", &[("abc", "")], "");
    }

    #[test]
    fn a_text_that_was_changed_or_a_gap_that_was_filled_does_not_stand() {
        let merged = document_from_text("one two three", 9);
        let text = Text::build(&merged).unwrap();
        let client = *SERVER_IDS.end();
        let edits =
            [(range_of("two ", "one two three"), ""), (range_of("three", "one two three"), "3")];
        let (update, positions) = text.replace_all(&edits, client).unwrap();
        let merged = after(&merged, update);
        let then = |edits: &[(TextRange, &str)]| {
            let text = Text::build(&merged).unwrap();
            let (update, _) = text.replace_all(edits, client - 1).unwrap();
            let text = Text::build(&after(&merged, update)).unwrap();
            let gap = text.stands_at(&positions[0], "");
            (gap.is_some(), text.stands_at(&positions[1], "3").is_some())
        };
        let at = |start, end| TextRange { start, end };
        assert_eq!(then(&[]), (true, true), "one 3");
        assert_eq!(then(&[(at(4, 4), "2 ")]), (false, true));
        assert_eq!(then(&[(at(0, 4), "")]), (true, true), "one neighbour stands");
        assert_eq!(then(&[(at(0, 5), "")]), (false, false), "the passage is gone");
        assert_eq!(then(&[(at(5, 5), "0")]), (true, true), "typed beside it");
        assert_eq!(then(&[(at(4, 5), "30")]), (true, false), "typed over one side");
    }

    #[test]
    fn a_gap_at_an_end_of_the_text_is_beside_its_neighbour() {
        let merged = document_from_text("one two three", 9);
        let text = Text::build(&merged).unwrap();
        let client = *SERVER_IDS.end();
        let edits = ["one ", " three"].map(|quote| (range_of(quote, "one two three"), ""));
        let (update, positions) = text.replace_all(&edits, client).unwrap();
        let merged = after(&merged, update);
        let at = |start, end| TextRange { start, end };
        let typed = [(at(0, 0), "0 "), (at(3, 3), " 3")];
        let text = Text::build(&merged).unwrap();
        let (update, _) = text.replace_all(&typed, client - 1).unwrap();
        let text = Text::build(&after(&merged, update)).unwrap();
        assert_eq!(text.content(), "0 two 3");
        assert_eq!(text.stands_at(&positions[0], ""), Some(at(2, 2)));
        assert_eq!(text.stands_at(&positions[1], ""), Some(at(5, 5)));
    }

    #[test]
    fn replacements_that_overlap_or_lie_outside_are_refused() {
        let text = Text::build(&document_from_text("abcdef", 9)).unwrap();
        let at = |start, end| TextRange { start, end };
        for ranges in [[at(0, 3), at(2, 4)], [at(3, 4), at(0, 1)], [at(0, 1), at(5, 7)]] {
            let edits = ranges.map(|range| (range, "x"));
            assert_eq!(text.replace_all(&edits, 7).unwrap_err(), SyncError::Range);
        }
    }
}
