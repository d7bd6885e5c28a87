//! How long recent holds of each class took, as an estimate for the next.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const HOLDS_MAX: usize = 100;
/// Fewer holds give no estimate.
const HOLDS_MIN: usize = 5;
/// Recorded classes. By convention they are few; this bound holds if a caller breaks the
/// convention.
const CLASSES_MAX: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Estimates(Mutex<HashMap<String, VecDeque<Duration>>>);

impl Estimates {
    pub(crate) fn learn(&self, class: &str, took: Duration) {
        let mut classes = self.classes();
        if !classes.contains_key(class) && classes.len() >= CLASSES_MAX {
            return;
        }
        let holds = classes.entry(class.to_owned()).or_default();
        if holds.len() == HOLDS_MAX {
            holds.pop_front();
        }
        holds.push_back(took);
    }

    /// The 95th percentile of the recorded holds of this class.
    pub(crate) fn of(&self, class: &str) -> Option<Duration> {
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
    fn the_estimate_is_the_95th_percentile_of_the_last_hundred_holds() {
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
    fn g13_the_estimates_of_unbounded_classes_are_bounded() {
        let estimates = Estimates::default();
        for class in 0..1_000 {
            estimates.learn(&class.to_string(), Duration::ZERO);
        }
        assert_eq!(estimates.classes().len(), CLASSES_MAX);
    }
}
