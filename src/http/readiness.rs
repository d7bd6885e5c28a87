//! Readiness: the probes of the server's dependencies, and their findings.
//!
//! A request to `/readyz` waits [`ANSWER_MAX`] at most. The check goes on in a task, and the response names the
//! age of the last finished one.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

const PROBE_MAX: Duration = Duration::from_secs(2);
/// How long a request waits for a check. Load balancers and Kubernetes allow a second; the operators' manual
/// promises 200 ms.
const ANSWER_MAX: Duration = Duration::from_millis(100);
/// Interval of the lines that report a lasting outage. Load balancers probe every second, and a line for
/// each probe would hide others.
const REMIND_EVERY: Duration = Duration::from_secs(60);
/// How long the server reuses a result. Frequent requests to `/readyz` must not become as many commands
/// to Redis.
const FINDING_VALID_FOR: Duration = Duration::from_millis(500);

const DRAINING: &str = "this server is about to stop: send requests to another one";

/// Returns warnings if the dependency works, or the cause of its failure.
type Question =
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<Vec<String>, Down>> + Send>> + Send + Sync;

/// A fault of a dependency, a colon, and the remedy, for the operator. Every client may read it, so it
/// contains no secrets and no addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub name: &'static str,
    pub remedy: String,
}

#[derive(Clone, Debug)]
pub struct Down {
    pub cause: String,
    pub remedy: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Dependencies that are down, without which the server serves no request.
    pub down: Vec<Finding>,
    /// Dependencies that are down, without which the server serves reads.
    pub degraded: Vec<Finding>,
    /// Dependencies that work with a restriction.
    pub warnings: Vec<Finding>,
}

#[derive(Clone)]
pub struct Probe {
    name: &'static str,
    question: Arc<Question>,
    only_degrades: bool,
}

impl Probe {
    pub fn new<Q, F>(name: &'static str, question: Q) -> Self
    where
        Q: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = Result<Vec<String>, Down>> + Send + 'static,
    {
        Self { name, question: Arc::new(move || Box::pin(question())), only_degrades: false }
    }

    /// Its failure does not make a server unready that was ready before: all servers share the dependency,
    /// and a balancer without servers would hide the texts as well.
    #[must_use]
    pub fn degrading(self) -> Self {
        Self { only_degrades: true, ..self }
    }

    async fn run(&self) -> Result<Vec<String>, Down> {
        timeout(PROBE_MAX, (self.question)()).await.unwrap_or_else(|_elapsed| {
            let remedy = "it does not answer in time: see whether it runs, and can be reached";
            Err(Down { cause: "no answer in time".to_owned(), remedy: remedy.to_owned() })
        })
    }
}

#[derive(Clone)]
pub struct Readiness(Arc<Inner>);

struct Inner {
    probes: Vec<Probe>,
    tasks: TaskTracker,
    /// The server is about to close its listener.
    is_draining: AtomicBool,
    /// A check succeeded once, so the settings are right.
    was_ready: AtomicBool,
    /// The permit of the check under way.
    turn: Arc<Semaphore>,
    /// The last finished check, and when it began.
    found: watch::Sender<(Instant, Findings)>,
    outages: Mutex<HashMap<&'static str, Outage>>,
}

struct Outage {
    since: Instant,
    logged_at: Instant,
}

impl Readiness {
    /// Runs the probes a first time.
    pub async fn start(probes: Vec<Probe>, tasks: TaskTracker) -> Self {
        let readiness = Self(Arc::new(Inner {
            probes,
            tasks,
            is_draining: AtomicBool::new(false),
            was_ready: AtomicBool::new(false),
            turn: Arc::new(Semaphore::new(1)),
            found: watch::Sender::new((Instant::now(), Findings::default())),
            outages: Mutex::default(),
        }));
        readiness.check().await;
        readiness
    }

    /// Marks the server as not ready regardless of its probes: balancers send requests to other
    /// servers.
    pub fn refuse(&self) {
        self.0.is_draining.store(true, Ordering::Release);
    }

    /// The result of the last check, and its age. Starts a check if that is old and none is under way.
    pub async fn look(&self) -> (Findings, Duration) {
        if self.0.is_draining.load(Ordering::Acquire) {
            let draining = Finding { name: "draining", remedy: DRAINING.to_owned() };
            return (Findings { down: vec![draining], ..Findings::default() }, Duration::ZERO);
        }
        let mut found = self.0.found.subscribe();
        let is_old = FINDING_VALID_FOR <= found.borrow_and_update().0.elapsed();
        if is_old {
            if let Ok(turn) = Arc::clone(&self.0.turn).try_acquire_owned() {
                #[expect(clippy::disallowed_methods, reason = "one at a time")]
                self.0.tasks.spawn(self.clone().check_in(turn));
            }
            let _late = timeout(ANSWER_MAX, found.changed()).await;
        }
        let (began, findings) = &*found.borrow();
        (findings.clone(), began.elapsed())
    }

    async fn check_in(self, turn: OwnedSemaphorePermit) {
        self.check().await;
        drop(turn);
    }

    /// Runs the probes at the same time, so that a silent dependency delays the finding of no other.
    async fn check(&self) {
        let began = Instant::now();
        let mut findings = Findings::default();
        let answers = join_all(self.0.probes.iter().map(Probe::run)).await;
        for (probe, answer) in self.0.probes.iter().zip(answers) {
            self.note(probe.name, answer.as_ref().err().map(|down| down.cause.as_str()));
            let finding = |remedy| Finding { name: probe.name, remedy };
            match answer {
                Ok(warnings) => findings.warnings.extend(warnings.into_iter().map(finding)),
                Err(down) if probe.only_degrades => findings.degraded.push(finding(down.remedy)),
                Err(down) => findings.down.push(finding(down.remedy)),
            }
        }
        if findings.down.is_empty() && findings.degraded.is_empty() {
            self.0.was_ready.store(true, Ordering::Release);
        } else if !findings.down.is_empty() || !self.0.was_ready.load(Ordering::Acquire) {
            findings.down.append(&mut findings.degraded);
        }
        self.0.found.send_replace((began, findings));
    }

    /// Logs a probe that changes its state, and a lasting failure once a minute.
    fn note(&self, probe: &'static str, cause: Option<&str>) {
        let now = Instant::now();
        let mut outages = self.0.outages.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = |outage: &Outage| now.duration_since(outage.since).as_secs();
        match (cause, outages.get_mut(probe)) {
            (Some(cause), None) => {
                outages.insert(probe, Outage { since: now, logged_at: now });
                tracing::warn!(probe, cause, "a probe fails");
            }
            (Some(cause), Some(outage)) => {
                if now.duration_since(outage.logged_at) >= REMIND_EVERY {
                    outage.logged_at = now;
                    tracing::warn!(probe, cause, seconds = seconds(outage), "a probe still fails");
                }
            }
            (None, Some(outage)) => {
                tracing::info!(probe, seconds = seconds(outage), "a probe succeeds again");
                outages.remove(probe);
            }
            (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    fn names(found: &[Finding]) -> Vec<&str> {
        found.iter().map(|finding| finding.name).collect()
    }

    async fn replies(is_silent: bool) -> Result<Vec<String>, Down> {
        if is_silent { std::future::pending().await } else { Ok(Vec::new()) }
    }

    async fn stores(is_full: bool) -> Result<Vec<String>, Down> {
        let down = Down { cause: "it is full".into(), remedy: "free space".into() };
        if is_full { Err(down) } else { Ok(Vec::new()) }
    }

    /// A probe that fails by the time-out while the switch is on.
    fn silent_while(is_silent: &Arc<AtomicBool>) -> Probe {
        let is_silent = Arc::clone(is_silent);
        Probe::new("locks", move || replies(is_silent.load(Ordering::Acquire))).degrading()
    }

    #[tokio::test(start_paused = true)]
    async fn before_the_first_success_a_probe_that_times_out_is_down() {
        let works = Probe::new("storage", || async { Ok(Vec::new()) });
        let is_silent = Arc::new(AtomicBool::new(true));
        let probes = vec![works, silent_while(&is_silent)];
        let readiness = Readiness::start(probes, TaskTracker::new()).await;
        let (found, age) = readiness.look().await;
        assert_eq!((names(&found.down), names(&found.degraded)), (vec!["locks"], vec![]));
        assert!(!found.down[0].remedy.is_empty());
        assert!(PROBE_MAX <= age);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_dependency_delays_no_answer_and_degrades_a_server_that_was_ready() {
        let (is_silent, is_broken) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let broken = Arc::clone(&is_broken);
        let storage = Probe::new("storage", move || stores(broken.load(Ordering::Acquire)));
        let probes = vec![storage, silent_while(&is_silent)];
        let readiness = Readiness::start(probes, TaskTracker::new()).await;
        let look = async || {
            // The clock of the test stands still during an answer without a wait.
            sleep(Duration::from_millis(50)).await;
            let requested_at = Instant::now();
            let (found, age) = readiness.look().await;
            assert!(
                requested_at.elapsed() <= Duration::from_millis(200),
                "{:?}",
                requested_at.elapsed()
            );
            assert!(age <= FINDING_VALID_FOR + 2 * PROBE_MAX, "{age:?}");
            found
        };
        is_silent.store(true, Ordering::Release);
        while look().await.degraded.is_empty() {}
        let found = look().await;
        assert_eq!((names(&found.down), names(&found.degraded)), (vec![], vec!["locks"]));
        is_broken.store(true, Ordering::Release);
        while look().await.down.is_empty() {}
        assert_eq!(names(&look().await.down), ["storage", "locks"]);
        is_silent.store(false, Ordering::Release);
        is_broken.store(false, Ordering::Release);
        while look().await != Findings::default() {}
        readiness.refuse();
        assert_eq!(names(&look().await.down), ["draining"]);
    }
}
