//! Ranges of a text that do not overlap, in the order of the text.

use std::collections::BTreeMap;

use crate::domain::anchor::TextRange;

/// Ranges with a value each. Two ranges may touch; a gap lies at the edge of a range. A position has the gaps
/// of one suggestion, in the order of its parts: an insertion that is too long for one part has several.
#[derive(Debug)]
pub(crate) struct Ranges<T>(BTreeMap<(u32, u32), Vec<T>>);

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Ranges<T> {
    pub(crate) fn overlaps(&self, range: TextRange) -> bool {
        let key = (range.start, range.end);
        // The ends rise with the starts.
        let before = self.0.range(..key).next_back();
        let after = self.0.range(key..).next();
        before.is_some_and(|((_, end), _)| range.start < *end)
            || after.is_some_and(|((start, _), _)| *start < range.end)
            || self.0.contains_key(&key)
    }

    /// Whether a part overlaps another part of the same suggestion.
    pub(crate) fn overlaps_own(&self, range: TextRange) -> bool {
        let is_gap = range.start == range.end;
        self.overlaps(range) && !(is_gap && self.0.contains_key(&(range.start, range.end)))
    }

    pub(crate) fn insert(&mut self, range: TextRange, value: T) {
        self.0.entry((range.start, range.end)).or_default().push(value);
    }

    pub(crate) fn into_values(self) -> impl Iterator<Item = T> {
        self.0.into_values().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_may_touch_and_gaps_lie_between() {
        let at = |start, end| TextRange { start, end };
        let mut ranges = Ranges::default();
        for range in [at(5, 8), at(5, 5), at(8, 8), at(2, 5), at(8, 9), at(20, 20)] {
            assert!(!ranges.overlaps(range), "{range:?}");
            ranges.insert(range, range);
        }
        for range in [at(5, 8), at(5, 5), at(6, 6), at(4, 6), at(0, 30), at(8, 10), at(19, 21)] {
            assert!(ranges.overlaps(range), "{range:?}");
        }
        for range in [at(0, 2), at(9, 20), at(20, 22), at(2, 2), at(9, 9)] {
            assert!(!ranges.overlaps(range), "{range:?}");
        }
        assert!(ranges.overlaps_own(at(5, 8)) && ranges.overlaps_own(at(6, 6)));
        assert!(!ranges.overlaps_own(at(5, 5)), "parts of one insertion");
        let starts: Vec<_> = ranges.into_values().map(|range| range.start).collect();
        assert!(starts.is_sorted());
    }
}
