//! Finding a quote again.

use std::collections::HashMap;
use std::ops::Range;

use crate::domain::limits::{CONTEXT_CHARS, PLACING_STEPS_MAX};

/// What it may cost to find the places of some reviews, all together (G17). A step is about a
/// nanosecond.
#[derive(Debug)]
pub struct Effort {
    steps_left: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Self { steps_left: PLACING_STEPS_MAX }
    }
}

impl Effort {
    /// Takes so many steps, if as many are left.
    fn spend(&mut self, steps: usize) -> bool {
        let left = self.steps_left.checked_sub(steps);
        self.steps_left = left.unwrap_or(self.steps_left);
        left.is_some()
    }

    /// How many steps were taken.
    #[cfg(test)]
    pub(crate) fn spent(&self) -> usize {
        PLACING_STEPS_MAX - self.steps_left
    }
}

/// The [`similarity`], if it can be `least` or more and there is effort left to find that out.
pub(crate) fn likeness(one: &str, other: &str, least: f64, effort: &mut Effort) -> Option<f64> {
    // A range that grew beyond any resemblance is not worth counting letter by letter.
    if other.len().saturating_mul(8) < one.len() {
        return None;
    }
    let (length, others) = (one.chars().count(), other.chars().count());
    let all = length.saturating_add(others);
    if all == 0 || ratio(length.min(others).saturating_mul(2), all) < least {
        return None;
    }
    let steps = length.div_ceil(64).saturating_mul(others).saturating_add(all);
    effort.spend(steps).then(|| similarity(one, other))
}

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
/// a quote of 20,000 characters against another is 6 million steps, not 400 million. Of each
/// character only the words are kept in which it occurs, so memory grows with the text alone.
fn common_subsequence(one: &[char], other: &[char]) -> usize {
    let mut places: HashMap<char, Vec<(usize, u64)>> = HashMap::new();
    for (at, character) in one.iter().enumerate() {
        let (word, bit) = (at / 64, 1 << (at % 64));
        let words = places.entry(*character).or_default();
        match words.last_mut().filter(|(last, _)| *last == word) {
            Some((_, bits)) => *bits |= bit,
            None => words.push((word, bit)),
        }
    }
    let mut rows = vec![u64::MAX; one.len().div_ceil(64)];
    for character in other {
        let Some(words) = places.get(character) else { continue };
        let (mut carry, mut next) = (false, 0);
        for (word, place) in words {
            carry = carried(&mut rows, next..*word, carry);
            next = word.saturating_add(1);
            let Some(row) = rows.get_mut(*word) else { continue };
            let kept = *row & place;
            let (sum, first) = row.overflowing_add(kept);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            carry = first || second;
            *row = sum | (*row & !place);
        }
        let end = rows.len();
        carried(&mut rows, next..end, carry);
    }
    // A place that was matched is a zero. Places beyond the text never are.
    let zeros: u32 = rows.iter().map(|row| row.count_zeros()).sum();
    usize::try_from(zeros).unwrap_or(usize::MAX)
}

/// Carries into words in which a character does not occur, until one takes it.
fn carried(rows: &mut [u64], words: Range<usize>, carry: bool) -> bool {
    let mut rows = rows.get_mut(words).unwrap_or_default().iter_mut();
    let mut carry = carry;
    while let Some(row) = rows.next().filter(|_| carry) {
        let (sum, is_full) = row.overflowing_add(1);
        *row |= sum;
        carry = is_full;
    }
    carry
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
/// Places of one quote that are compared: what stands in a text more often says too little.
const PLACES_MAX: usize = 20_000;
/// What it takes to compare the surroundings of a place.
const STEPS_A_PLACE: usize = 4 * CONTEXT_CHARS;
/// Bytes that are searched in a step.
const BYTES_A_STEP: usize = 4;

/// The byte at which the quote stands, if one place is clearly meant. Rather none than a wrong
/// one: a reviewer's word on somebody else's sentence is worse than an orphan.
///
/// It ends as soon as the outcome is certain: two places fit so well that no other can be clearly better.
pub(crate) fn find(text: &str, wanted: &Wanted<'_>, effort: &mut Effort) -> Option<usize> {
    if wanted.quote.is_empty() || !effort.spend(text.len() / BYTES_A_STEP) {
        return None;
    }
    let mut best: Option<(usize, Score)> = None;
    let mut second = 0.0;
    let mut places = 0_usize;
    for (at, _) in text.match_indices(wanted.quote) {
        places = places.saturating_add(1);
        if PLACES_MAX < places || 1.0 - MARGIN < second || !effort.spend(STEPS_A_PLACE) {
            return None;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A table as in a textbook.
    fn plain(one: &[char], other: &[char]) -> usize {
        let width = other.len() + 1;
        let mut table = vec![0; (one.len() + 1) * width];
        for at in 0..one.len() * other.len() {
            let (row, column) = (at / other.len(), at % other.len());
            let corner = row * width + column;
            let beside = table[corner + 1].max(table[corner + width]);
            let is_same = one[row] == other[column];
            table[corner + width + 1] = if is_same { table[corner] + 1 } else { beside };
        }
        table[one.len() * width + other.len()]
    }

    #[test]
    fn what_two_texts_have_in_common_is_counted_as_in_a_table() {
        let mut seed: u32 = 7;
        let mut text = |length: usize, letters: u32| -> Vec<char> {
            (0..length)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    char::from_u32(97 + (seed >> 16) % letters).unwrap()
                })
                .collect()
        };
        for length in [0, 1, 63, 64, 65, 128, 200, 700] {
            for letters in [1, 2, 5, 2_000] {
                let (one, other) = (text(length, letters), text(length / 2 + 70, letters));
                assert_eq!(common_subsequence(&one, &other), plain(&one, &other));
                assert_eq!(common_subsequence(&other, &one), plain(&other, &one));
            }
        }
    }

    /// Goal (H3): a text in which the quote stands everywhere costs one look at each of two places.
    #[test]
    fn g17_a_search_ends_when_two_places_are_alike() {
        let text = "a".repeat(1_000_000);
        let mut effort = Effort::default();
        let around = "a".repeat(CONTEXT_CHARS);
        let wanted = Wanted { quote: "a", prefix: &around, suffix: &around };
        assert_eq!(find(&text, &wanted, &mut effort), None);
        let places = 2 * CONTEXT_CHARS;
        assert!(effort.spent() <= text.len() / BYTES_A_STEP + places * STEPS_A_PLACE);
    }

    /// Goal: where no place fits, as many are compared as one quote may have, and not all.
    #[test]
    fn g17_a_quote_that_stands_everywhere_is_compared_with_so_many_places_only() {
        let text = "a".repeat(1_000_000);
        let mut effort = Effort::default();
        let wanted = Wanted { quote: "a", prefix: "bbbb", suffix: "cccc" };
        assert_eq!(find(&text, &wanted, &mut effort), None);
        let most = text.len() / BYTES_A_STEP + PLACES_MAX * STEPS_A_PLACE;
        assert!(effort.spent() <= most, "{}", effort.spent());
    }

    #[test]
    fn what_cannot_be_alike_is_not_compared() {
        let mut effort = Effort::default();
        let (short, long) = ("a".repeat(1_000), "a".repeat(2_400));
        assert_eq!(likeness(&long, &short, 0.6, &mut effort), None);
        assert_eq!(effort.spent(), 0);
        let like = likeness(&long[..2_000], &short, 0.6, &mut effort).unwrap();
        assert!((like - 2.0 / 3.0).abs() < 1e-9);
        // Distinct characters take no more memory than a text of as many.
        let distinct: String = ('\u{4E00}'..='\u{9FFF}').collect();
        assert!(likeness(&distinct, &distinct, 0.6, &mut effort).is_some_and(|like| 1.0 <= like));
    }
}
