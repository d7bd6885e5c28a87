//! The deleted units of a document.

use std::collections::{BTreeMap, HashMap};

use crate::lib0::{put_length, put_number};

/// For each client, ranges of clocks that neither touch nor overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deletes {
    /// For each client, the end of each range by its start.
    clients: HashMap<u64, BTreeMap<u32, u32>>,
    ranges: usize,
}

/// Largest encoding of a range: two numbers of up to five bytes.
pub(crate) const RANGE_BYTES: usize = 10;

impl Deletes {
    pub(crate) fn contains(&self, client: u64, start: u32, end: u32) -> bool {
        self.clients
            .get(&client)
            .and_then(|ranges| ranges.range(..=start).next_back())
            .is_some_and(|(_, last)| end <= *last)
    }

    pub(crate) fn insert(&mut self, client: u64, start: u32, end: u32) {
        if self.contains(client, start, end) {
            return;
        }
        let ranges = self.clients.entry(client).or_default();
        let (mut from, mut to) = (start, end);
        // The loop visits ranges that begin in or directly after the new range, from the last one
        // on. At most one range reaches the new one from the left.
        while let Some((&other, &other_end)) = ranges.range(..=to).next_back() {
            if other_end < from {
                break;
            }
            ranges.remove(&other);
            self.ranges = self.ranges.saturating_sub(1);
            from = from.min(other);
            to = to.max(other_end);
        }
        ranges.insert(from, to);
        self.ranges = self.ranges.saturating_add(1);
    }

    pub(crate) fn of(&self, client: u64) -> impl Iterator<Item = (u32, u32)> {
        self.clients.get(&client).into_iter().flatten().map(|(start, end)| (*start, *end))
    }

    pub(crate) fn ranges(&self) -> usize {
        self.ranges
    }

    /// The approximate encoded size of all ranges.
    pub(crate) fn bytes(&self) -> usize {
        self.ranges.saturating_mul(RANGE_BYTES)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut clients: Vec<_> = self.clients.iter().collect();
        clients.sort_unstable_by_key(|(client, _)| std::cmp::Reverse(**client));
        put_length(out, clients.len());
        for (client, ranges) in clients {
            put_number(out, *client);
            put_length(out, ranges.len());
            for (start, end) in ranges {
                put_number(out, *start);
                put_number(out, end.saturating_sub(*start));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut deletes = Deletes::default();
        for (start, end) in [(10, 12), (14, 16), (0, 2), (12, 14), (2, 3), (5, 6)] {
            deletes.insert(7, start, end);
        }
        assert_eq!(deletes.of(7).collect::<Vec<_>>(), [(0, 3), (5, 6), (10, 16)]);
        deletes.insert(7, 1, 11);
        assert_eq!(deletes.of(7).collect::<Vec<_>>(), [(0, 16)]);
        assert_eq!(deletes.ranges, 1);
        assert!(deletes.contains(7, 3, 16));
        assert!(!deletes.contains(7, 3, 17));
        assert!(!deletes.contains(8, 3, 4));
    }

    #[test]
    fn ranges_equal_a_plain_set() {
        let mut deletes = Deletes::default();
        let mut plain = [false; 64];
        let mut seed: u32 = 1;
        for _ in 0..200 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (start, length) = (seed >> 26, 1 + (seed >> 8) % 3);
            let end = (start + length).min(64);
            deletes.insert(1, start, end);
            plain[start as usize..end as usize].fill(true);
            let held: Vec<u32> = deletes.of(1).flat_map(|(from, to)| from..to).collect();
            let wanted: Vec<u32> = (0..64).filter(|unit| plain[*unit as usize]).collect();
            assert_eq!(held, wanted);
            if plain.iter().all(|deleted| *deleted) {
                plain.fill(false);
                deletes = Deletes::default();
            }
        }
    }
}
