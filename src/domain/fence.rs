//! The fence: the number of a grant.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of a grant. Each later grant of the same lock has a higher fence.
///
/// The grant computes `max(last + 1, TIME in µs, floor + 1)`. So the fence rises through an empty
/// Redis restart, a stale replica and a clock that steps back. It stays below 2^53 until the year
/// 2255: Lua and JSON readers count in IEEE 754 doubles.
///
/// A lease alone does not exclude a paused holder; a resource that rejects every other fence does
/// (Kleppmann, *How to do distributed locking*, 2016).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Fence(pub u64);

impl Fence {
    /// Lower than every grant.
    pub const ZERO: Self = Self(0);

    /// The fence of the next grant at `now_us` (µs since the epoch). `self` is the last fence and
    /// `floor` the last fence that the database ratified.
    #[must_use]
    pub fn next(self, now_us: u64, floor: Self) -> Self {
        Self(now_us.max(self.0 + 1).max(floor.0 + 1))
    }

    /// Whether an eviction raised the ratified fence `self` above `grant`: by one, while that of a later grant
    /// is a time in µs. Wrong for a grant of a Redis whose clock was set back below the last fence.
    #[must_use]
    pub fn evicts(self, grant: Self) -> bool {
        self.0 == grant.0.saturating_add(1)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_rises_when_the_clock_stands_still_or_steps_back() {
        let first = Fence::ZERO.next(1_000, Fence::ZERO);
        assert_eq!(first, Fence(1_000));
        assert_eq!(first.next(1_000, Fence::ZERO), Fence(1_001));
        assert_eq!(first.next(10, Fence::ZERO), Fence(1_001));
    }

    #[test]
    fn a_fence_rises_above_the_ratified_floor() {
        // Redis restarts empty and its clock is behind: only the floor holds the last fence.
        assert_eq!(Fence::ZERO.next(10, Fence(5_000)), Fence(5_001));
    }
}
