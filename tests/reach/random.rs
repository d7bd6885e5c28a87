//! Seeded random numbers: one seed gives one run.

use std::f64::consts::TAU;

/// The generator of Steele, Lea and Flood (2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    /// From 0 to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From 0 to below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    pub(crate) fn is(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// A skewed positive value with this median, of which one in a hundred exceeds `p99`.
    pub(crate) fn skewed(&mut self, median: f64, p99: f64) -> f64 {
        let normal = (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (TAU * self.unit()).cos();
        /// The 99th percentile of the standard normal distribution.
        const Z99: f64 = 2.326;
        median * (normal * (p99 / median).ln() / Z99).exp()
    }
}

/// A hash of `value` whose bits are all mixed.
pub(crate) fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
