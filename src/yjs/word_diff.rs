//! What differs between two texts, by words.
//!
//! The comparison itself is `similar`'s; here is what makes its outcome readable (the rules are in
//! [`domain::words`](crate::domain::word_split)) and what bounds it (G13): long texts are compared by
//! paragraphs first, and what time does not suffice for is told by whole paragraphs.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use crate::domain::word_split::{is_space, narrowed, paragraphs_of, words_of};

/// Words of both texts that are compared at once. Beyond it, paragraphs come first.
const WORDS_AT_ONCE: usize = 20_000;

/// What has become of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// It is in both.
    Equal,
    /// It is in the new text only.
    Insert,
    /// It is in the old text only.
    Delete,
}

/// A piece of text and what has become of it. `equal` and `delete` spell the old text, `equal` and
/// `insert` the new one; what was taken out stands before what was put in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// What has become of it.
    pub op: Op,
    /// The piece.
    pub text: String,
}

/// A place at which two texts differ: a range of each, in bytes, of which one may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

/// Compares two texts word by word. After `patience` it compares no further; give it a thread
/// that may block.
#[must_use]
pub fn by_words(old: &str, new: &str, patience: Duration) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut tell = |op, text: Option<&str>| {
        let text = text.unwrap_or_default();
        if !text.is_empty() {
            segments.push(Segment { op, text: text.to_owned() });
        }
    };
    let mut at = 0;
    for place in places(old, new, patience) {
        tell(Op::Equal, old.get(at..place.old.start));
        tell(Op::Delete, old.get(place.old.clone()));
        tell(Op::Insert, new.get(place.new));
        at = place.old.end;
    }
    tell(Op::Equal, old.get(at..));
    segments
}

/// The places at which two texts differ, in order, with something equal between them.
pub(crate) fn places(old: &str, new: &str, patience: Duration) -> Vec<Place> {
    let deadline = Instant::now() + patience;
    let found = compare(old, new, deadline);
    narrow(old, new, joined_across_spaces(old, new, found))
}

/// Joins neighbours until there are at most `most`, those with the least between them first.
pub(crate) fn at_most(most: usize, mut places: Vec<Place>) -> Vec<Place> {
    let mut gap = 1;
    while most.max(1) < places.len() {
        places = joined(places, |before, after| after.old.start - before.old.end <= gap);
        gap *= 2;
    }
    places
}

fn compare(old: &str, new: &str, deadline: Instant) -> Vec<Place> {
    let (from, to) = (words_of(old), words_of(new));
    if from.len() + to.len() <= WORDS_AT_ONCE {
        return compare_pieces(&from, &to, deadline);
    }
    let (from, to) = (paragraphs_of(old), paragraphs_of(new));
    let mut places = Vec::new();
    for place in compare_pieces(&from, &to, deadline) {
        let (Some(part), Some(other)) = (old.get(place.old.clone()), new.get(place.new.clone()))
        else {
            continue;
        };
        let is_change = !part.is_empty() && !other.is_empty();
        if !is_change || deadline <= Instant::now() {
            places.push(place);
            continue;
        }
        let within = compare_pieces(&words_of(part), &words_of(other), deadline);
        places.extend(within.into_iter().map(|inner| Place {
            old: shifted(&inner.old, place.old.start),
            new: shifted(&inner.new, place.new.start),
        }));
    }
    places
}

fn shifted(range: &Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

fn compare_pieces(from: &[&str], to: &[&str], deadline: Instant) -> Vec<Place> {
    // Numbers are compared faster than words.
    let mut known: HashMap<&str, u32> = HashMap::new();
    let mut both = Vec::with_capacity(from.len() + to.len());
    for piece in from.iter().chain(to) {
        let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
        both.push(*known.entry(piece).or_insert(next));
    }
    let right = both.split_off(from.len());
    let ops = capture_diff_slices_deadline(Algorithm::Patience, &both, &right, Some(deadline));
    let (old_at, new_at) = (offsets(from), offsets(to));
    let range = |at: &[usize], pieces: Range<usize>| {
        let byte = |piece: usize| at.get(piece).copied().unwrap_or_default();
        byte(pieces.start)..byte(pieces.end)
    };
    let changes = ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    let places = changes.map(|op| Place {
        old: range(&old_at, op.old_range()),
        new: range(&new_at, op.new_range()),
    });
    joined(places.collect(), |before, after| before.old.end == after.old.start)
}

/// Where each piece begins, in bytes, and where the last one ends.
fn offsets(pieces: &[&str]) -> Vec<usize> {
    let mut end = 0;
    let ends = pieces.iter().map(|piece| {
        end += piece.len();
        end
    });
    std::iter::once(0).chain(ends).collect()
}

/// Joins each place with the one before it where `belong` says so.
fn joined(places: Vec<Place>, belong: impl Fn(&Place, &Place) -> bool) -> Vec<Place> {
    let mut kept: Vec<Place> = Vec::with_capacity(places.len());
    for place in places {
        match kept.last_mut() {
            Some(before) if belong(before, &place) => {
                before.old.end = place.old.end;
                before.new.end = place.new.end;
            }
            _ => kept.push(place),
        }
    }
    kept
}

/// A lone space between two changes would chop a phrase into confetti: it joins both sides, unless
/// each is a word whose ending changed.
fn joined_across_spaces(old: &str, new: &str, places: Vec<Place>) -> Vec<Place> {
    let mut places = joined(places, |before, after| {
        let is_change = !before.old.is_empty() && !before.new.is_empty();
        is_change
            && old.get(before.old.end..after.old.start).is_some_and(is_space)
            && (within(old, new, before).is_none() || within(old, new, after).is_none())
    });
    for place in &mut places {
        trim_end(old, new, place);
    }
    places
}

/// Leaves out what both parts end in: a join may have brought it in.
fn trim_end(old: &str, new: &str, place: &mut Place) {
    let (Some(from), Some(to)) = (old.get(place.old.clone()), new.get(place.new.clone())) else {
        return;
    };
    let (from, to) = (words_of(from), words_of(to));
    let same = from.iter().rev().zip(to.iter().rev()).take_while(|(a, b)| a == b);
    let bytes: usize = same.map(|(word, _)| word.len()).sum();
    place.old.end -= bytes;
    place.new.end -= bytes;
}

/// Narrows one Korean word in the place of another to what differs between them.
fn narrow(old: &str, new: &str, places: Vec<Place>) -> Vec<Place> {
    let narrowed = |place: Place| within(old, new, &place).unwrap_or(place);
    places.into_iter().map(narrowed).collect()
}

/// What differs between two Korean words at that place.
fn within(old: &str, new: &str, place: &Place) -> Option<Place> {
    let (from, to) = narrowed(old.get(place.old.clone())?, new.get(place.new.clone())?)?;
    Some(Place { old: shifted(&from, place.old.start), new: shifted(&to, place.new.start) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// `[-struck-]{+added+}`, as one would write it by hand.
    fn shown(old: &str, new: &str) -> String {
        let mark = |segment: Segment| match segment.op {
            Op::Equal => segment.text,
            Op::Delete => format!("[-{}-]", segment.text),
            Op::Insert => format!("{{+{}+}}", segment.text),
        };
        by_words(old, new, PATIENCE).into_iter().map(mark).collect()
    }

    fn spelled(segments: &[Segment], without: Op) -> String {
        segments.iter().filter(|s| s.op != without).map(|s| s.text.as_str()).collect()
    }

    /// The page's own diff is held to the same file (`tests/ui/word_diff.test.js`).
    #[test]
    fn sentences_read_as_in_the_table_that_the_page_shares() {
        let table = include_str!("../../tests/data/word_diff.json");
        let rows: Vec<[String; 3]> = serde_json::from_str(table).unwrap();
        assert!(30 <= rows.len());
        for [old, new, expected] in rows {
            assert_eq!(shown(&old, &new), expected, "{old} → {new}");
        }
    }

    #[test]
    fn the_pieces_spell_both_texts_whatever_they_are() {
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
            let segments = by_words(&old, &new, PATIENCE);
            assert_eq!(spelled(&segments, Op::Insert), old, "round {round}");
            assert_eq!(spelled(&segments, Op::Delete), new, "round {round}");
        }
    }

    /// A megabyte of paragraphs that all differ, and one without any paragraph.
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
            assert!(900_000 < old.len(), "{}", old.len());
            let began = Instant::now();
            let segments = by_words(&old, &new, Duration::from_millis(400));
            // A debug build on a busy machine takes a while. Without patience it would be hours.
            assert!(began.elapsed() < Duration::from_secs(180), "{:?}", began.elapsed());
            assert_eq!(spelled(&segments, Op::Insert), old);
            assert_eq!(spelled(&segments, Op::Delete), new);
        }
    }

    #[test]
    fn without_time_the_outcome_is_coarse_and_right() {
        let (old, new) = ("하나 둘 셋 넷", "하나 넷 둘 다섯");
        let segments = by_words(old, new, Duration::ZERO);
        assert_eq!(spelled(&segments, Op::Insert), old);
        assert_eq!(spelled(&segments, Op::Delete), new);
    }

    #[test]
    fn too_many_places_are_joined_and_still_make_the_one_from_the_other() {
        let text = |word: &str| (0..500).map(|n| format!("{n} {word}. ")).collect::<String>();
        let (old, new) = (text("a"), text("b"));
        let all = places(&old, &new, PATIENCE);
        assert_eq!(all.len(), 500);
        let few = at_most(100, all);
        assert!(few.len() <= 100);
        let mut made = old.clone();
        for place in few.iter().rev() {
            made.replace_range(place.old.clone(), &new[place.new.clone()]);
        }
        assert_eq!(made, new);
    }
}
