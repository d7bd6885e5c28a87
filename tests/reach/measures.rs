//! The measures of a run: distributions of waits.

use crate::queue::{SECOND, Time};

/// Parts of each doubling: a quantile is right within 2 %.
const PARTS: u64 = 32;

/// Waits in buckets whose width grows with the wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    counts: Vec<u64>,
    pub(crate) total: u64,
}

impl Waits {
    pub(crate) fn add(&mut self, wait: Time) {
        let bucket = bucket_of(wait);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
    }

    /// The wait, in seconds, that this share of all does not exceed; 0 without any.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let rank = (self.total as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if rank <= seen {
                return middle_of(bucket) / SECOND as f64;
            }
        }
        0.0
    }
}

fn bucket_of(wait: Time) -> usize {
    let wait = wait.max(PARTS);
    let doubling = u64::from(wait.ilog2());
    let part = wait * PARTS / (1 << doubling) - PARTS;
    (doubling * PARTS + part) as usize
}

fn middle_of(bucket: usize) -> f64 {
    let (doubling, part) = (bucket as u64 / PARTS, bucket as u64 % PARTS);
    2_f64.powi(doubling as i32) * (1.0 + (part as f64 + 0.5) / PARTS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_right_within_two_percent() {
        let mut waits = Waits::default();
        (1..=10_000).for_each(|ms| waits.add(ms * 1_000_000));
        for share in [0.01, 0.5, 0.95, 0.99, 1.0] {
            let found = waits.quantile(share);
            assert!((found / (10.0 * share) - 1.0).abs() < 0.02, "{share}: {found}");
        }
        assert_eq!(Waits::default().quantile(0.5), 0.0);
    }
}
