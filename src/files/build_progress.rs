//! The progress of a build on its thread, and its stop flag.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use galley_domain::export::ExportFailure;

/// Shared by a build's thread and the task that waits for it.
#[derive(Debug, Default)]
pub struct BuildProgress {
    percent: AtomicU8,
    is_stopped: AtomicBool,
}

impl BuildProgress {
    #[cfg_attr(not(feature = "pdf"), allow(dead_code, reason = "the other formats are quick"))]
    /// Notes that the build has passed `done` of `all` bytes. The progress never falls.
    pub fn passed(&self, done: usize, all: usize) {
        let percent = done.saturating_mul(100).checked_div(all).unwrap_or(0).min(100);
        self.percent.fetch_max(u8::try_from(percent).unwrap_or(100), Ordering::Relaxed);
    }

    pub fn percent(&self) -> u8 {
        self.percent.load(Ordering::Relaxed)
    }

    /// Ends the build at its next check.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    #[cfg_attr(not(feature = "pdf"), allow(dead_code, reason = "the other formats are quick"))]
    pub fn check(&self) -> Result<(), ExportFailure> {
        if self.is_stopped.load(Ordering::Relaxed) {
            return Err(ExportFailure::Unavailable);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_counts_to_a_hundred_and_stops() {
        let progress = BuildProgress::default();
        for (done, all, percent) in [(0, 0, 0), (1, 3, 33), (0, 3, 33), (3, 3, 100), (4, 3, 100)] {
            progress.passed(done, all);
            assert_eq!(progress.percent(), percent);
        }
        assert_eq!(progress.check(), Ok(()));
        progress.stop();
        assert_eq!(progress.check(), Err(ExportFailure::Unavailable));
    }
}
