//! The search for a quote in a changed text.

use std::collections::HashMap;
use std::ops::Range;

use galley_domain::limits::{CONTEXT_CHARS, PLACING_STEPS_MAX};

/// The budget of steps for resolving a list of reviews (G17). A step takes about a nanosecond.
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
    /// Spends `steps`, if as many remain.
    pub(crate) fn spend(&mut self, steps: usize) -> bool {
        let left = self.steps_left.checked_sub(steps);
        self.steps_left = left.unwrap_or(self.steps_left);
        left.is_some()
    }

    #[cfg(test)]
    pub(crate) fn spent(&self) -> usize {
        PLACING_STEPS_MAX - self.steps_left
    }
}

/// The [`similarity`], if it can reach `least` and the effort suffices to compute it.
pub(crate) fn likeness(one: &str, other: &str, least: f64, effort: &mut Effort) -> Option<f64> {
    // A range more than eight times as long as its quote is not similar: no comparison.
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

/// The similarity of two texts from 0 to 1: twice their longest common subsequence, divided by the
/// sum of their lengths. Counted in characters.
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

/// The length of the longest common subsequence, 64 positions at a time (Crochemore et al. 2001).
/// Two quotes of 20,000 characters take 6 million steps instead of 400 million. The table stores
/// only the words in which a character occurs, so memory grows with the text alone.
fn common_subsequence(one: &[char], other: &[char]) -> usize {
    let mut masks: HashMap<char, Vec<(usize, u64)>> = HashMap::new();
    for (at, character) in one.iter().enumerate() {
        let (word, bit) = (at / 64, 1 << (at % 64));
        let words = masks.entry(*character).or_default();
        match words.last_mut().filter(|(last, _)| *last == word) {
            Some((_, bits)) => *bits |= bit,
            None => words.push((word, bit)),
        }
    }
    let mut rows = vec![u64::MAX; one.len().div_ceil(64)];
    for character in other {
        let Some(words) = masks.get(character) else { continue };
        let (mut carry, mut next) = (false, 0);
        for (word, mask) in words {
            carry = carried(&mut rows, next..*word, carry);
            next = word.saturating_add(1);
            let Some(row) = rows.get_mut(*word) else { continue };
            let matched = *row & mask;
            let (sum, first) = row.overflowing_add(matched);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            carry = first || second;
            *row = sum | (*row & !mask);
        }
        let end = rows.len();
        carried(&mut rows, next..end, carry);
    }
    // A matched position is a zero bit. Positions beyond the text keep a one bit.
    let zeros: u32 = rows.iter().map(|row| row.count_zeros()).sum();
    usize::try_from(zeros).unwrap_or(usize::MAX)
}

/// Propagates the carry through words in which a character does not occur, until a word absorbs it.
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

#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) quote: &'a str,
    /// The text before it, up to [`CONTEXT_CHARS`].
    pub(crate) prefix: &'a str,
    /// The text after it, up to [`CONTEXT_CHARS`].
    pub(crate) suffix: &'a str,
}

/// Quote and matched context shorter than this, in characters, are ambiguous.
const TELLING_CHARS: usize = 8;
/// Lead of the best candidate over the next one, in characters of context.
const LEAD: isize = 8;
/// Candidates of one quote that the search compares: a more frequent quote is too ambiguous.
const CANDIDATES_MAX: usize = 20_000;
/// Steps to compare the context of a candidate.
const STEPS_A_CANDIDATE: usize = 4 * CONTEXT_CHARS;
/// Bytes that one step searches.
pub(crate) const BYTES_A_STEP: usize = 4;

/// The byte offset of the quote in one of the `stretches` of `text`, if one candidate is clearly the best.
/// Otherwise the search returns none: an orphaned review misleads less than a review on a wrong sentence.
///
/// A stretch is text that came together, so it brought its surroundings along: most of the context that lies
/// in the stretch must match. The search ends as soon as no candidate can have a clear lead.
pub(crate) fn find(
    text: &str,
    stretches: &[Range<usize>],
    wanted: &Wanted<'_>,
    effort: &mut Effort,
) -> Option<usize> {
    if wanted.quote.is_empty() || !effort.spend(text.len() / BYTES_A_STEP) {
        return None;
    }
    let mut best: Option<(usize, Context)> = None;
    let mut second = isize::MIN;
    let mut candidates = 0_usize;
    for stretch in stretches {
        let fresh = text.get(stretch.clone()).unwrap_or_default();
        for (at, _) in fresh.match_indices(wanted.quote) {
            candidates = candidates.saturating_add(1);
            let is_undecidable = second > MOST.saturating_sub(LEAD);
            if candidates > CANDIDATES_MAX || is_undecidable || !effort.spend(STEPS_A_CANDIDATE) {
                return None;
            }
            let context = Context::of(fresh, at, wanted);
            let leader = best.map(|(_, leader)| leader.strength());
            if leader.is_some_and(|leader| context.strength() <= leader) {
                second = second.max(context.strength());
            } else {
                second = leader.unwrap_or(second);
                best = Some((stretch.start.saturating_add(at), context));
            }
        }
    }
    let (at, context) = best?;
    let is_clear = second.saturating_add(LEAD) <= context.strength();
    let length = wanted.quote.chars().count();
    let is_telling = TELLING_CHARS <= length.saturating_add(context.matched);
    // A quote that came without its context, and stands once.
    let is_alone = || text.match_indices(wanted.quote).nth(1).is_none();
    // A long quote outweighs a few other characters beside it, which were typed or carried along.
    let is_carried =
        context.possible <= context.matched.saturating_mul(2).saturating_add(length / 4);
    (is_clear && is_telling && is_carried && (0 < context.matched || is_alone())).then_some(at)
}

/// The most that a context can match.
const MOST: isize = 2 * CONTEXT_CHARS.cast_signed();

/// The context of a candidate in its stretch, in characters.
#[derive(Clone, Copy)]
struct Context {
    /// Counted away from the quote, up to the first difference.
    matched: usize,
    /// As many as could match.
    possible: usize,
}

impl Context {
    fn of(stretch: &str, at: usize, wanted: &Wanted<'_>) -> Self {
        let before = stretch.get(..at).unwrap_or_default();
        let after = stretch.get(at.saturating_add(wanted.quote.len())..).unwrap_or_default();
        let before = side(wanted.prefix.chars().rev(), before.chars().rev());
        let after = side(wanted.suffix.chars(), after.chars());
        Self {
            matched: before.0.saturating_add(after.0),
            possible: before.1.saturating_add(after.1),
        }
    }

    fn strength(self) -> isize {
        self.matched.saturating_mul(2).cast_signed().saturating_sub_unsigned(self.possible)
    }
}

/// The matched and the possible characters of one side.
fn side(wanted: impl Iterator<Item = char>, found: impl Iterator<Item = char>) -> (usize, usize) {
    let (mut same, mut possible) = (0_usize, 0_usize);
    for (wanted, found) in wanted.zip(found) {
        same = same.saturating_add(usize::from(same == possible && wanted == found));
        possible = possible.saturating_add(1);
    }
    (same, possible)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The textbook algorithm with a full table, for comparison.
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
    fn the_common_subsequence_equals_that_of_a_full_table() {
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

    /// Goal: in a text of nothing but the quote, the search compares two candidates.
    #[test]
    fn g17_a_search_ends_at_two_equal_candidates() {
        let text = "a".repeat(1_000_000);
        let mut effort = Effort::default();
        let around = "a".repeat(CONTEXT_CHARS);
        let wanted = Wanted { quote: "a", prefix: &around, suffix: &around };
        assert_eq!(find(&text, std::slice::from_ref(&(0..text.len())), &wanted, &mut effort), None);
        let candidates = 2 * CONTEXT_CHARS;
        assert!(effort.spent() <= text.len() / BYTES_A_STEP + candidates * STEPS_A_CANDIDATE);
    }

    /// Goal: without a match, the search compares at most [`CANDIDATES_MAX`] candidates.
    #[test]
    fn g17_a_frequent_quote_is_compared_at_a_bounded_number_of_candidates() {
        let text = "a".repeat(1_000_000);
        let mut effort = Effort::default();
        let wanted = Wanted { quote: "a", prefix: "bbbb", suffix: "cccc" };
        assert_eq!(find(&text, std::slice::from_ref(&(0..text.len())), &wanted, &mut effort), None);
        let most = text.len() / BYTES_A_STEP + CANDIDATES_MAX * STEPS_A_CANDIDATE;
        assert!(effort.spent() <= most, "{}", effort.spent());
    }

    #[test]
    fn texts_of_unlike_length_are_not_compared() {
        let mut effort = Effort::default();
        let (short, long) = ("a".repeat(1_000), "a".repeat(2_400));
        assert_eq!(likeness(&long, &short, 0.6, &mut effort), None);
        assert_eq!(effort.spent(), 0);
        let like = likeness(&long[..2_000], &short, 0.6, &mut effort).unwrap();
        assert!((like - 2.0 / 3.0).abs() < 1e-9);
        // Distinct characters take no more memory than a text of the same length.
        let distinct: String = ('\u{4E00}'..='\u{9FFF}').collect();
        assert!(likeness(&distinct, &distinct, 0.6, &mut effort).is_some_and(|like| like >= 1.0));
    }
}
