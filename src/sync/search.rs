//! Finding a quote again.

use std::collections::HashMap;

use crate::domain::limits::CONTEXT_CHARS;

/// How alike two texts are, from 0 to 1: twice what they have in common, in order, of all they
/// have. Counted in characters.
pub(crate) fn similarity(one: &str, other: &str) -> f64 {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let all = one.len().saturating_add(other.len());
    if all == 0 {
        return 1.0;
    }
    ratio(common_subsequence(&one, &other).saturating_mul(2), all)
}

fn ratio(part: usize, whole: usize) -> f64 {
    // Lengths of texts are far below 2^32, where both are exact.
    let exact = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    exact(part) / exact(whole)
}

/// The length of the longest common subsequence, 64 places at a time (Crochemore et al. 2001):
/// a quote of 20,000 characters against another is 6 million steps, not 400 million.
fn common_subsequence(one: &[char], other: &[char]) -> usize {
    let words = one.len().div_ceil(64);
    let mut places: HashMap<char, Vec<u64>> = HashMap::new();
    for (at, character) in one.iter().enumerate() {
        let word = places.entry(*character).or_insert_with(|| vec![0; words]);
        if let Some(bits) = word.get_mut(at / 64) {
            *bits |= 1 << (at % 64);
        }
    }
    let mut rows = vec![u64::MAX; words];
    for character in other {
        let Some(places) = places.get(character) else { continue };
        let mut carry = false;
        for (row, place) in rows.iter_mut().zip(places) {
            let kept = *row & place;
            let (sum, first) = row.overflowing_add(kept);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            carry = first || second;
            *row = sum | (*row & !place);
        }
    }
    // A place that was matched is a zero. Places beyond the text never are.
    let zeros: u32 = rows.iter().map(|row| row.count_zeros()).sum();
    usize::try_from(zeros).unwrap_or(usize::MAX)
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) quote: &'a str,
    /// What stood before it, up to [`CONTEXT_CHARS`].
    pub(crate) prefix: &'a str,
    /// What stood after it.
    pub(crate) suffix: &'a str,
}

/// A quote shorter than this says little by itself: a side of it must stand as it was, too.
const TELLING_CHARS: usize = 8;
/// How much of the surroundings must be left for a place to be believed.
const SCORE_MIN: f64 = 0.5;
/// By how much the best of several places must be better than the next.
const MARGIN: f64 = 0.25;

/// The byte at which the quote stands, if one place is clearly meant. Rather none than a wrong
/// one: a reviewer's word on somebody else's sentence is worse than an orphan.
pub(crate) fn find(text: &str, wanted: &Wanted<'_>) -> Option<usize> {
    if wanted.quote.is_empty() {
        return None;
    }
    let mut best: Option<(usize, Score)> = None;
    let mut second = 0.0;
    let mut places = 0_usize;
    for (at, _) in text.match_indices(wanted.quote) {
        places = places.saturating_add(1);
        let score = Score::of(text, at, wanted);
        match best {
            Some((_, leader)) if score.mean() <= leader.mean() => {
                second = score.mean().max(second);
            }
            Some((_, leader)) => {
                second = leader.mean();
                best = Some((at, score));
            }
            None => best = Some((at, score)),
        }
    }
    let (at, score) = best?;
    let length = wanted.quote.chars().count();
    let is_short = length < TELLING_CHARS;
    if is_short && !score.one_side_stands() {
        return None;
    }
    let is_alone = places == 1;
    // As long as its context: nobody types that twice by accident.
    let speaks_for_itself = is_alone && CONTEXT_CHARS <= length;
    let is_clear = is_alone || MARGIN <= score.mean() - second;
    (speaks_for_itself || (SCORE_MIN <= score.mean() && is_clear)).then_some(at)
}

/// How much of the surroundings stands, on each side, from 0 to 1.
#[derive(Clone, Copy)]
struct Score {
    before: f64,
    after: f64,
}

impl Score {
    fn of(text: &str, at: usize, wanted: &Wanted<'_>) -> Self {
        let before = text.get(..at).unwrap_or_default();
        let after = text.get(at.saturating_add(wanted.quote.len())..).unwrap_or_default();
        Self {
            before: side(wanted.prefix.chars().rev(), before.chars().rev()),
            after: side(wanted.suffix.chars(), after.chars()),
        }
    }

    fn mean(self) -> f64 {
        f64::midpoint(self.before, self.after)
    }

    fn one_side_stands(self) -> bool {
        1.0 <= self.before.max(self.after)
    }
}

/// How much of one side stands, counted away from the quote. At the edge of the text there was
/// nothing, and nothing must be there.
fn side(wanted: impl Iterator<Item = char>, mut found: impl Iterator<Item = char>) -> f64 {
    let mut length = 0_usize;
    let mut same = 0_usize;
    for character in wanted {
        if same == length && found.next() == Some(character) {
            same = same.saturating_add(1);
        }
        length = length.saturating_add(1);
    }
    match length {
        0 if found.next().is_none() => 1.0,
        0 => 0.0,
        _ => ratio(same, length),
    }
}
