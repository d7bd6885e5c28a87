//! The difference of two texts, in whole words.
//!
//! The crate `similar` compares the words of [`word_split`](galley_domain::word_split); the page
//! narrows Korean words to their endings. This module bounds the cost (G13). It compares long texts by
//! paragraphs first, and reports whole paragraphs for the rest when the time budget ends.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use galley_domain::word_split::{paragraphs_of, words_of};

/// Most words of both texts in one comparison by words. Beyond it the diff compares paragraphs
/// first.
const WORDS_AT_ONCE: usize = 20_000;

/// The kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Both texts have it.
    Equal,
    /// Only the new text has it.
    Insert,
    /// Only the old text has it.
    Delete,
}

/// A segment of a diff. The `equal` and `delete` segments spell the old text, `equal` and `insert`
/// the new one. In a hunk the deletion precedes the insertion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(inline))]
pub struct Segment {
    /// The texts that have it: both, the newer one alone or the older one alone.
    pub op: Op,
    /// Its text.
    pub text: String,
}

/// A hunk: a range of each text, in bytes, of which at most one is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HunkPosition {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

/// Compares two texts word by word, for at most `limit`. Call it on a thread that may block.
#[must_use]
pub fn by_words(old: &str, new: &str, limit: Duration) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut push = |op, text: Option<&str>| {
        let text = text.unwrap_or_default();
        if !text.is_empty() {
            segments.push(Segment { op, text: text.to_owned() });
        }
    };
    let mut at = 0;
    for hunk in hunks(old, new, limit) {
        push(Op::Equal, old.get(at..hunk.old.start));
        push(Op::Delete, old.get(hunk.old.clone()));
        push(Op::Insert, new.get(hunk.new));
        at = hunk.old.end;
    }
    push(Op::Equal, old.get(at..));
    segments
}

/// Joins neighbouring hunks until at most `most` remain. Those with the least text between them go
/// first.
pub(crate) fn at_most(most: usize, mut hunks: Vec<HunkPosition>) -> Vec<HunkPosition> {
    let mut gap = 1;
    while most.max(1) < hunks.len() {
        hunks = joined(hunks, |before, after| after.old.start - before.old.end <= gap);
        gap *= 2;
    }
    hunks
}

/// The hunks of two texts in order, with equal text between them.
pub(crate) fn hunks(old: &str, new: &str, limit: Duration) -> Vec<HunkPosition> {
    let deadline = Instant::now() + limit;
    let (from, to) = (words_of(old), words_of(new));
    if from.len() + to.len() <= WORDS_AT_ONCE {
        return compare_pieces(&from, &to, deadline);
    }
    let (from, to) = (paragraphs_of(old), paragraphs_of(new));
    let mut hunks = Vec::new();
    for hunk in compare_pieces(&from, &to, deadline) {
        let (Some(part), Some(other)) = (old.get(hunk.old.clone()), new.get(hunk.new.clone()))
        else {
            continue;
        };
        let is_change = !part.is_empty() && !other.is_empty();
        if !is_change || deadline <= Instant::now() {
            hunks.push(hunk);
            continue;
        }
        let within = compare_pieces(&words_of(part), &words_of(other), deadline);
        hunks.extend(within.into_iter().map(|inner| HunkPosition {
            old: shifted(&inner.old, hunk.old.start),
            new: shifted(&inner.new, hunk.new.start),
        }));
    }
    hunks
}

fn shifted(range: &Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

fn compare_pieces(from: &[&str], to: &[&str], deadline: Instant) -> Vec<HunkPosition> {
    // Comparing numbers is faster than comparing words.
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut both = Vec::with_capacity(from.len() + to.len());
    for piece in from.iter().chain(to) {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        both.push(*numbers.entry(piece).or_insert(next));
    }
    let right = both.split_off(from.len());
    let ops = capture_diff_slices_deadline(Algorithm::Patience, &both, &right, Some(deadline));
    let (old_at, new_at) = (offsets(from), offsets(to));
    let range = |at: &[usize], pieces: Range<usize>| {
        let byte = |piece: usize| at.get(piece).copied().unwrap_or_default();
        byte(pieces.start)..byte(pieces.end)
    };
    let changes = ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    let hunks = changes.map(|op| HunkPosition {
        old: range(&old_at, op.old_range()),
        new: range(&new_at, op.new_range()),
    });
    joined(hunks.collect(), |before, after| before.old.end == after.old.start)
}

fn offsets(pieces: &[&str]) -> Vec<usize> {
    let mut end = 0;
    let ends = pieces.iter().map(|piece| {
        end += piece.len();
        end
    });
    std::iter::once(0).chain(ends).collect()
}

/// Joins each hunk with its predecessor if `belong` returns true.
fn joined(
    hunks: Vec<HunkPosition>,
    belong: impl Fn(&HunkPosition, &HunkPosition) -> bool,
) -> Vec<HunkPosition> {
    let mut joined: Vec<HunkPosition> = Vec::with_capacity(hunks.len());
    for hunk in hunks {
        match joined.last_mut() {
            Some(before) if belong(before, &hunk) => {
                before.old.end = hunk.old.end;
                before.new.end = hunk.new.end;
            }
            _ => joined.push(hunk),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    /// The diff as `[-struck-]{+added+}`.
    fn shown(old: &str, new: &str) -> String {
        let mark = |segment: Segment| match segment.op {
            Op::Equal => segment.text,
            Op::Delete => format!("[-{}-]", segment.text),
            Op::Insert => format!("{{+{}+}}", segment.text),
        };
        by_words(old, new, LIMIT).into_iter().map(mark).collect()
    }

    fn spelled(segments: &[Segment], without: Op) -> String {
        segments.iter().filter(|s| s.op != without).map(|s| s.text.as_str()).collect()
    }

    /// The page narrows the same rows to their fourth column (`tests/ui/word_diff.test.js`).
    #[test]
    fn sentences_read_as_in_the_table_that_the_page_shares() {
        let table = include_str!("../../tests/data/word_diff.json");
        let rows: Vec<Vec<String>> = serde_json::from_str(table).unwrap();
        assert!(rows.len() >= 30);
        for row in rows {
            let [old, new, expected, ..] = row.as_slice() else { panic!("{row:?}") };
            assert_eq!(&shown(old, new), expected, "{old} → {new}");
        }
    }

    #[test]
    fn the_segments_spell_both_texts() {
        let vocabulary =
            ["가", "나다", "나다는", " ", " ", "the", "cat", ".", "\n", "🙂", "나다가", "e\u{301}"];
        let mut seed = 7_usize;
        let mut random = |below: usize| {
            seed = seed * 48_271 % 2_147_483_647;
            seed % below
        };
        for round in 0..3_000 {
            let mut text = || -> String {
                (0..random(14)).map(|_| vocabulary[random(vocabulary.len())]).collect()
            };
            let (old, new) = (text(), text());
            let segments = by_words(&old, &new, LIMIT);
            assert_eq!(spelled(&segments, Op::Insert), old, "round {round}");
            assert_eq!(spelled(&segments, Op::Delete), new, "round {round}");
        }
    }

    /// A megabyte of differing paragraphs, and a megabyte without any paragraph.
    #[test]
    fn g13_a_megabyte_is_compared_in_bounded_time() {
        let paragraphs = |word: &str| -> String {
            (0..16_000)
                .map(|n| format!("{n} {word} 학교에서 배운 것을 {} 적는다. {word}\n", n % 97))
                .collect()
        };
        let words = |by: usize| -> String {
            (0..220_000_usize).map(|n| format!("w{} ", n.wrapping_mul(by) % 5_003)).collect()
        };
        for (old, new) in [(paragraphs("나는"), paragraphs("너는")), (words(7_919), words(104_729))]
        {
            assert!(old.len() > 900_000, "{}", old.len());
            let began = Instant::now();
            let segments = by_words(&old, &new, Duration::from_millis(400));
            // The limit is generous for a debug build on a busy machine. Without a time budget the
            // diff would take hours.
            assert!(began.elapsed() < Duration::from_secs(180), "{:?}", began.elapsed());
            assert_eq!(spelled(&segments, Op::Insert), old);
            assert_eq!(spelled(&segments, Op::Delete), new);
        }
    }

    #[test]
    fn without_time_the_diff_is_coarse_and_correct() {
        let (old, new) = ("하나 둘 셋 넷", "하나 넷 둘 다섯");
        let segments = by_words(old, new, Duration::ZERO);
        assert_eq!(spelled(&segments, Op::Insert), old);
        assert_eq!(spelled(&segments, Op::Delete), new);
    }

    #[test]
    fn joined_hunks_still_turn_one_text_into_the_other() {
        let text = |word: &str| (0..500).map(|n| format!("{n} {word}. ")).collect::<String>();
        let (old, new) = (text("a"), text("b"));
        let all = hunks(&old, &new, LIMIT);
        assert_eq!(all.len(), 500);
        let few = at_most(100, all);
        assert!(few.len() <= 100);
        let mut made = old.clone();
        for hunk in few.iter().rev() {
            made.replace_range(hunk.old.clone(), &new[hunk.new.clone()]);
        }
        assert_eq!(made, new);
    }
}
