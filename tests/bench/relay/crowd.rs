//! Many concurrent pairs on one relay.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep};
use tokio_util::task::TaskTracker;

use crate::client::Address;
use crate::contender::Relay;
use crate::measure::quantile;
use crate::pair::{Pair, Wait};

/// Pairs that connect at the same time.
const COMING: usize = 16;
/// Between the preparation and the first keystroke.
const SOON: Duration = Duration::from_millis(100);
/// A relay finishes its work after the last arrival within this.
const QUIET_FOR: Duration = Duration::from_millis(500);

/// Pairs, each in its own room.
pub(crate) struct Crowd {
    pub(crate) relay: Arc<Relay>,
    pairs: Vec<Pair>,
    tasks: TaskTracker,
}

/// The results of a load. Times are in µs.
pub(crate) struct Taken {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// The 99th percentile, counted from the time at which a keystroke was due to be sent.
    pub(crate) p99_since_due: f64,
    /// Of a keystroke.
    pub(crate) processor: f64,
    pub(crate) lost: usize,
}

impl Crowd {
    pub(crate) async fn connect(relay: &Arc<Relay>, pairs: u32, query: &'static str) -> Self {
        let tasks = TaskTracker::new();
        let mut crowd = Self { relay: Arc::clone(relay), pairs: Vec::new(), tasks };
        for some in relay.rooms(pairs, query).await.chunks(COMING) {
            let come = |room: &Address| Pair::seated(room.clone(), crowd.tasks.clone());
            let coming: JoinSet<_> = some.iter().map(come).collect();
            crowd.pairs.extend(coming.join_all().await);
        }
        crowd
    }

    /// All pairs together type so many times a second, each as often as the others.
    pub(crate) async fn types(&mut self, a_second: u32, lasting: Duration) -> Taken {
        let pairs = u32::try_from(self.pairs.len()).expect("a number of pairs");
        let each = (lasting.as_secs_f64() * f64::from(a_second) / f64::from(pairs)).round() as u32;
        let every = lasting / each;
        let mut ready: Vec<_> =
            self.pairs.drain(..).map(|mut pair| (pair.prepare(each), pair)).collect();
        let before = self.relay.processor();
        let first = Instant::now() + SOON;
        let mut typing = JoinSet::new();
        for ((keystrokes, mut pair), number) in ready.drain(..).zip(0..) {
            // Spread over the interval, as independent users type.
            let first = first + every * number / pairs;
            typing.spawn(async move {
                let waits = pair.on_time(&keystrokes, first, every).await;
                (pair, waits)
            });
        }
        let mut waits = Vec::new();
        for (pair, waited) in typing.join_all().await {
            self.pairs.push(pair);
            waits.extend(waited);
        }
        sleep(QUIET_FOR).await;
        let processor = self.relay.processor() - before;
        let lost = (each * pairs) as usize - waits.len();
        Taken::of(&waits, processor, lost)
    }

    /// The first pair types at full speed; returns each delay, and the processor time.
    pub(crate) async fn one_at_full_speed(&mut self, keystrokes: u32) -> Taken {
        let before = self.relay.processor();
        let pair = self.pairs.first_mut().expect("somebody");
        let waits = pair.at_full_speed(keystrokes).await;
        sleep(QUIET_FOR).await;
        let processor = self.relay.processor() - before;
        let waits: Vec<_> =
            waits.iter().map(|wait| Wait { since_sent: *wait, since_due: *wait }).collect();
        Taken::of(&waits, processor, 0)
    }

    pub(crate) async fn leaves(self) {
        for pair in self.pairs {
            pair.leave().await;
        }
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Taken {
    fn of(waits: &[Wait], processor: f64, lost: usize) -> Self {
        let micros = |wait: fn(&Wait) -> Duration| -> Vec<f64> {
            waits.iter().map(|one| wait(one).as_secs_f64() * 1e6).collect()
        };
        let since_sent = micros(|wait| wait.since_sent);
        Self {
            p50: quantile(&since_sent, 0.5),
            p99: quantile(&since_sent, 0.99),
            p99_since_due: quantile(&micros(|wait| wait.since_due), 0.99),
            processor: processor / waits.len() as f64,
            lost,
        }
    }
}
