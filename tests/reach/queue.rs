//! The queue of events in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Virtual time since the start of a run, in nanoseconds.
pub(crate) type Time = u64;

pub(crate) const US: Time = 1_000;
pub(crate) const MS: Time = 1_000_000;
pub(crate) const SECOND: Time = 1_000_000_000;

/// A duration of this many seconds.
pub(crate) fn seconds(seconds: f64) -> Time {
    (seconds * SECOND as f64) as Time
}

/// Returns events by time, and those of one time in the order of their entry: a run depends on its seed alone.
#[derive(Debug)]
pub(crate) struct Queue<E> {
    /// The time, the number of the entry, and the event.
    entries: BinaryHeap<Reverse<(Time, u64, E)>>,
    entered: u64,
}

impl<E: Ord> Queue<E> {
    pub(crate) fn new() -> Self {
        Self { entries: BinaryHeap::new(), entered: 0 }
    }

    pub(crate) fn put(&mut self, at: Time, event: E) {
        self.entered += 1;
        self.entries.push(Reverse((at, self.entered, event)));
    }

    /// The next event before `end`.
    pub(crate) fn next_before(&mut self, end: Time) -> Option<(Time, E)> {
        self.entries.peek().filter(|Reverse((at, ..))| *at < end)?;
        self.entries.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

#[test]
fn events_come_by_time_and_those_of_one_time_in_their_order() {
    let (mut queue, mut random) = (Queue::new(), crate::random::Random::new(7));
    // The later an event enters, the smaller it is.
    let mut wanted: Vec<_> = (0..2_000).map(|order| (random.below(50) as Time, order)).collect();
    wanted.iter().for_each(|&(at, order)| queue.put(at, 2_000 - order));
    queue.put(50, 0);
    wanted.sort_unstable();
    for (at, order) in wanted {
        assert_eq!(queue.next_before(50), Some((at, 2_000 - order)));
    }
    assert_eq!(queue.next_before(50), None);
    assert_eq!(queue.next_before(51), Some((50, 0)));
}
