//! Readiness: the probes of the server's dependencies, and their findings.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::{Instant, timeout};

const PROBE_MAX: Duration = Duration::from_secs(2);
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
    /// Dependencies that are down.
    pub down: Vec<Finding>,
    /// Dependencies that work with a restriction.
    pub warnings: Vec<Finding>,
}

#[derive(Clone)]
pub struct Probe {
    name: &'static str,
    question: Arc<Question>,
}

impl Probe {
    pub fn new<Q, F>(name: &'static str, question: Q) -> Self
    where
        Q: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = Result<Vec<String>, Down>> + Send + 'static,
    {
        Self { name, question: Arc::new(move || Box::pin(question())) }
    }

    /// Runs the check and records its findings. Returns the cause of a failure for the log.
    async fn run(&self, findings: &mut Findings) -> Option<String> {
        let answer = timeout(PROBE_MAX, (self.question)()).await;
        let Down { cause, remedy } = match answer {
            Ok(Ok(warnings)) => {
                let found = warnings.into_iter().map(|remedy| Finding { name: self.name, remedy });
                findings.warnings.extend(found);
                return None;
            }
            Ok(Err(down)) => down,
            Err(_elapsed) => {
                let cause = "no answer in time".to_owned();
                let line = "it does not answer in time: see whether it runs, and can be reached";
                Down { cause, remedy: line.to_owned() }
            }
        };
        findings.down.push(Finding { name: self.name, remedy });
        Some(cause)
    }
}

#[derive(Clone)]
pub struct Readiness(Arc<Inner>);

struct Inner {
    probes: Vec<Probe>,
    /// The server is about to close its listener.
    is_draining: AtomicBool,
    found: Mutex<Option<(Instant, Findings)>>,
    outages: Mutex<HashMap<&'static str, Outage>>,
}

struct Outage {
    since: Instant,
    logged_at: Instant,
}

impl Readiness {
    #[must_use]
    pub fn new(probes: Vec<Probe>) -> Self {
        Self(Arc::new(Inner {
            probes,
            is_draining: AtomicBool::new(false),
            found: Mutex::default(),
            outages: Mutex::default(),
        }))
    }

    /// Marks the server as not ready regardless of its probes: balancers send requests to other
    /// servers.
    pub fn refuse(&self) {
        self.0.is_draining.store(true, Ordering::Release);
    }

    /// Runs the probes, or returns a recent result.
    pub async fn look(&self) -> Findings {
        if self.0.is_draining.load(Ordering::Acquire) {
            let draining = Finding { name: "draining", remedy: DRAINING.to_owned() };
            return Findings { down: vec![draining], warnings: Vec::new() };
        }
        if let Some(findings) = self.fresh() {
            return findings;
        }
        let mut findings = Findings::default();
        for probe in &self.0.probes {
            let cause = probe.run(&mut findings).await;
            self.note(probe.name, cause.as_deref());
        }
        let mut found = self.0.found.lock().unwrap_or_else(PoisonError::into_inner);
        *found = Some((Instant::now(), findings.clone()));
        findings
    }

    /// Logs a probe that changes its state, and a lasting failure once a minute.
    fn note(&self, probe: &'static str, cause: Option<&str>) {
        let now = Instant::now();
        let mut outages = self.0.outages.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = |outage: &Outage| now.duration_since(outage.since).as_secs();
        match (cause, outages.get_mut(probe)) {
            (Some(cause), None) => {
                outages.insert(probe, Outage { since: now, logged_at: now });
                tracing::warn!(probe, cause, "not ready");
            }
            (Some(cause), Some(outage)) => {
                if now.duration_since(outage.logged_at) >= REMIND_EVERY {
                    outage.logged_at = now;
                    tracing::warn!(probe, cause, seconds = seconds(outage), "still not ready");
                }
            }
            (None, Some(outage)) => {
                tracing::info!(probe, seconds = seconds(outage), "ready again");
                outages.remove(probe);
            }
            (None, None) => {}
        }
    }

    fn fresh(&self) -> Option<Findings> {
        let found = self.0.found.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, findings) = found.as_ref()?;
        (at.elapsed() < FINDING_VALID_FOR).then(|| findings.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_times_out_is_down() {
        let readiness = Readiness::new(vec![
            Probe::new("storage", || async { Ok(Vec::new()) }),
            Probe::new("locks", std::future::pending),
        ]);
        let down = readiness.look().await.down;
        assert_eq!(down.len(), 1);
        assert_eq!(down[0].name, "locks");
        assert!(!down[0].remedy.is_empty());
    }
}
