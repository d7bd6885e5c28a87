//! Work that every server does, each row at its own period.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{MissedTickBehavior, interval};
use tracing::Instrument as _;

pub struct Work {
    name: &'static str,
    every: Duration,
    run: Box<dyn FnMut() -> BoxFuture<'static, ()> + Send>,
}

impl Work {
    /// `run` at once and every `every`, after its end. It logs its failures itself.
    pub fn new<F: Future<Output = ()> + Send + 'static>(
        name: &'static str,
        every: Duration,
        mut run: impl FnMut() -> F + Send + 'static,
    ) -> Self {
        Self { name, every, run: Box::new(move || Box::pin(run())) }
    }

    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Runs until the caller drops the future.
    pub async fn run_for_ever(mut self) {
        let mut ticker = interval(self.every);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticker.tick().await;
            (self.run)().instrument(tracing::debug_span!("periodic", work = self.name)).await;
        }
    }
}
