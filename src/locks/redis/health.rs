//! What the last look at Redis found, and what follows from it.
//!
//! A look is made after each new connection, which may lead to another Redis than the last one; then
//! every half a minute; and whenever somebody asks. It has two halves.
//!
//! - *Is it fit?* ([`health`]) If it is a replica, may evict, or lacks a right, nothing is granted
//!   until a later look finds it fit. What is held goes on being renewed: whoever sits there was
//!   seated when it was fit, and to end their lease would not make it any fitter.
//! - *Does it tell?* A message to this server's own channel must come back within a second. Nothing
//!   else would show that it does not: a subscription that a proxy swallows, or that was not renewed,
//!   fails in silence. Locks are as good without, and whoever waits looks by its own timer; so that
//!   is a warning. A connection that is open and hears nothing is given up for another one.
//!
//! What is wrong is said once in the log, and once more when it is over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use crate::domain::ids::NodeId;
use crate::locks::name::release_channel;
use crate::locks::redis::call::Calls;
use crate::locks::redis::connection::{Link, jittered};
use crate::locks::redis::preflight;
use crate::locks::redis::scripts::pipeline;
use crate::locks::redis::wait_queue::Lobby;
use crate::locks::types::LocksError;

/// How often it is looked at where all is well.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Where it is not, pauses between looks double from the first to the second.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(8));
/// A message to oneself takes less than this.
const ECHO_MAX: Duration = Duration::from_secs(1);
/// A clock that is off by more is worth a word. No lock depends on it: only Redis's clock counts,
/// and it only has to go on. But people read when a seat was taken.
const CLOCK_OFF_MAX: TimeDelta = TimeDelta::seconds(5);

/// Nobody is told of a hand-over.
const DEAF: &str = "messages of hand-overs do not arrive, so whoever waits is given their lock by a \
                    timer, up to 3 s late: allow the user of `locks.url` to subscribe (`&*` in its \
                    ACL), and let no proxy be in between that does not pass on pub/sub";
/// Times are off.
const CLOCK: &str = "the clock of Redis is more than 5 s away from this server's: keep both by NTP";

/// What is known of the Redis that keeps the locks.
#[derive(Debug)]
pub(in crate::locks) struct Fitness {
    server: NodeId,
    calls: Calls,
    /// The connection that listens, and who is told of what it hears.
    ear: Link,
    lobby: Arc<Lobby>,
    found: Mutex<Found>,
    /// Something is wrong that was not before, whoever found that out.
    worry: Notify,
}

#[derive(Debug, Default)]
struct Found {
    /// Why nothing is granted.
    unfit: Option<LocksError>,
    warnings: Vec<&'static str>,
    /// How far Redis's clock is ahead of ours.
    clock_ahead: TimeDelta,
    /// When the look began that found it.
    began: Option<Instant>,
}

impl Found {
    /// Whether what a look found that began then is newer than what is known.
    fn is_news(&mut self, began: Instant) -> bool {
        let is_news = self.began.is_none_or(|before| before <= began);
        if is_news {
            self.began = Some(began);
        }
        is_news
    }
}

impl Fitness {
    pub(in crate::locks) fn new(
        server: NodeId,
        calls: Calls,
        ear: Link,
        lobby: Arc<Lobby>,
    ) -> Self {
        Self { server, calls, ear, lobby, found: Mutex::default(), worry: Notify::new() }
    }

    /// Whether locks may be granted, by the last look. Asks nobody.
    pub(in crate::locks) fn permits_grants(&self) -> Result<(), LocksError> {
        self.found().unfit.clone().map_or(Ok(()), Err)
    }

    /// What the last look found that is not as it should be, although locks can be trusted.
    pub(in crate::locks) fn warnings(&self) -> Vec<&'static str> {
        self.found().warnings.clone()
    }

    /// How far Redis's clock is ahead of ours, by the last look.
    pub(in crate::locks) fn clock_ahead(&self) -> TimeDelta {
        self.found().clock_ahead
    }

    /// Looks. Of two looks at a time, what the later one found stands.
    pub(in crate::locks) async fn check(&self) -> Result<(), LocksError> {
        let began = Instant::now();
        let ahead = preflight::check(&self.calls, self.server).await;
        match &ahead {
            // There is no telling: what was found before stands.
            Err(LocksError::Unavailable(_) | LocksError::Unsupported(_)) => {}
            // So does what a later look has found meanwhile.
            Ok(_) | Err(_) if !self.found().is_news(began) => {}
            Ok(ahead) => {
                self.found_fit();
                self.found().clock_ahead = *ahead;
                self.warn(CLOCK, CLOCK_OFF_MAX < ahead.abs());
            }
            Err(error) => self.found_unfit(error),
        }
        ahead?;
        let hears = self.hears().await?;
        self.warn(DEAF, !hears);
        if !hears {
            self.ear.reopen();
        }
        Ok(())
    }

    /// Looks after each new connection, of which `opened` tells, and now and then.
    pub(in crate::locks) async fn watch(self: Arc<Self>, opened: Arc<Notify>) {
        let mut pause = LOOK_EVERY;
        loop {
            tokio::select! {
                () = opened.notified() => {}
                () = self.worry.notified() => {
                    pause = PAUSES.0;
                    continue;
                }
                () = sleep(jittered(pause)) => {}
            }
            pause = match self.check().await {
                Ok(()) if self.found().warnings.is_empty() => LOOK_EVERY,
                Ok(()) | Err(_) => (pause * 2).min(PAUSES.1),
            };
        }
    }

    /// Whether a message to this server's own channel comes back.
    async fn hears(&self) -> Result<bool, LocksError> {
        let deadline = Instant::now() + ECHO_MAX;
        if !matches!(timeout_at(deadline, self.ear.opens()).await, Ok(true)) {
            return Ok(false);
        }
        let mut echoes = self.lobby.echoes();
        let mut request = pipeline();
        request.cmd("PUBLISH").arg(release_channel(self.server)).arg("");
        // On a Cluster a message to one of its nodes reaches all.
        let nodes = self.calls.nodes().await?;
        let Some(node) = nodes.first() else { return Ok(false) };
        node.ask(&request).await?;
        Ok(matches!(timeout_at(deadline, echoes.changed()).await, Ok(Ok(()))))
    }

    fn found_fit(&self) {
        if self.found().unfit.take().is_some() {
            tracing::info!("Redis is fit to keep locks again");
        }
    }

    fn found_unfit(&self, error: &LocksError) {
        let before = self.found().unfit.replace(error.clone());
        if before.as_ref() != Some(error) {
            self.worry.notify_one();
            tracing::error!(%error, "Redis is not fit to keep locks; none is granted");
        }
    }

    fn warn(&self, warning: &'static str, is_so: bool) {
        let mut found = self.found();
        let was_so = found.warnings.contains(&warning);
        if is_so && !was_so {
            found.warnings.push(warning);
            self.worry.notify_one();
            tracing::warn!("{warning}");
        } else if was_so && !is_so {
            found.warnings.retain(|other| *other != warning);
            tracing::info!("no longer so: {warning}");
        }
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
