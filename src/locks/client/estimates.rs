//! How long holds of each class took, to guess how long the next one will.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Holds that are remembered of a class.
const HOLDS_MAX: usize = 100;
/// Fewer than this say nothing.
const HOLDS_MIN: usize = 5;
/// Classes that are remembered. They are few by convention; this holds if one is not kept to.
const CLASSES_MAX: usize = 256;

/// Earlier holds, by class.
#[derive(Debug, Default)]
pub(in crate::locks) struct Estimates(Mutex<HashMap<String, VecDeque<Duration>>>);

impl Estimates {
    /// A hold of this class took so long.
    pub(in crate::locks) fn learn(&self, class: &str, took: Duration) {
        let mut classes = self.classes();
        if !classes.contains_key(class) && CLASSES_MAX <= classes.len() {
            return;
        }
        let holds = classes.entry(class.to_owned()).or_default();
        if holds.len() == HOLDS_MAX {
            holds.pop_front();
        }
        holds.push_back(took);
    }

    /// What nineteen of twenty holds of this class stayed within.
    pub(in crate::locks) fn of(&self, class: &str) -> Option<Duration> {
        let mut holds: Vec<_> = self.classes().get(class)?.iter().copied().collect();
        if holds.len() < HOLDS_MIN {
            return None;
        }
        holds.sort_unstable();
        holds.get((holds.len() * 95).div_ceil(100) - 1).copied()
    }

    fn classes(&self) -> MutexGuard<'_, HashMap<String, VecDeque<Duration>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nineteen_of_twenty_stay_within_the_estimate_and_the_last_hundred_count() {
        let estimates = Estimates::default();
        for took in 1..HOLDS_MIN as u64 {
            estimates.learn("job", Duration::from_secs(took));
        }
        assert_eq!(estimates.of("job"), None);
        for took in 1..=100 {
            estimates.learn("job", Duration::from_millis(took));
        }
        assert_eq!(estimates.of("job"), Some(Duration::from_millis(95)));
        assert_eq!(estimates.of("other"), None);
    }

    #[test]
    fn g13_classes_without_number_are_not_remembered_without_number() {
        let estimates = Estimates::default();
        for class in 0..1_000 {
            estimates.learn(&class.to_string(), Duration::ZERO);
        }
        assert_eq!(estimates.classes().len(), CLASSES_MAX);
    }
}
