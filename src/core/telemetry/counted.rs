//! A gauge that counts what lives.

use metrics::Gauge;

/// Counts as one in its gauge until it is dropped.
#[must_use]
pub struct Counted(Gauge);

impl Counted {
    pub fn new(gauge: Gauge) -> Self {
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
