//! Alarms by class of lock: too many failures, too long waits, too long holds.
//!
//! [`Alarms`] evaluates a class over the last five minutes, in slots of half a minute: at each
//! event of one of its locks, and at each query. There is no task: a periodic caller of
//! [`Alarms::evaluate`] clears the alarms of idle classes. An alarm is raised once and cleared once,
//! each with one log line.
//!
//! # Definitions
//!
//! - *Failures*: the backend did not reply, or the wait timed out. `busy` is none: for a claimant
//!   that fails at once it is a result, and the usual one on all servers but the holder's.
//! - *Waits*: the mean time from the claim to the grant, or to the time-out.
//! - *Holds*: the longest hold, current ones included, since one that never ends is the worst.
//!
//! # Why seats have no alarm for waits and holds
//!
//! A user holds a seat for hours, and another user waits that long: seats exist for this. So a
//! timed-out wait for a seat is no failure either. A missing reply from Redis is a failure.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

/// The evaluated time: this many slots of this length.
const SLOTS: u64 = 10;
const SLOT: Duration = Duration::from_secs(30);
/// More than one failure in this many attempts raises the alarm.
const FAILURES_ONE_IN: u32 = 20;
/// Fewer attempts give no share of failures.
const ATTEMPTS_MIN: u32 = 20;
/// A longer mean wait raises the alarm.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// A longer hold raises the alarm.
const HOLD_MAX: Duration = Duration::from_secs(5);
/// Evaluated classes. By convention they are few; this bound holds if a caller breaks the
/// convention.
const CLASSES_MAX: usize = 64;
const SEAT: &str = "seat";

/// The kind of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlarmKind {
    /// More than 5 % of at least 20 attempts failed.
    Failures,
    /// The mean wait was longer than 1 s.
    Wait,
    /// A hold, current or ended, was longer than 5 s.
    Hold,
}

/// A raised alarm, from this process's locks of the last five minutes.
#[derive(Clone, Debug, PartialEq)]
pub struct Alarm {
    /// The class of locks, from [`LockName::class`](crate::LockName::class).
    pub class: String,
    /// The kind of the alarm.
    pub kind: AlarmKind,
    /// When it was raised.
    pub since: DateTime<Utc>,
    /// The measured value: a share of failures between 0 and 1, or seconds of waits and holds.
    pub measured: f64,
    /// The limit, in the same unit.
    pub limit: f64,
}

#[derive(Debug)]
pub(super) struct Alarms {
    epoch: Instant,
    classes: Mutex<HashMap<String, Class>>,
}

#[derive(Debug, Default)]
struct Class {
    /// Oldest first; only slots with events.
    slots: VecDeque<Slot>,
    /// Current holds, counted by their start.
    lasting: BTreeMap<Instant, u32>,
    raised: BTreeMap<AlarmKind, DateTime<Utc>>,
    /// Whether the class has exported its gauges.
    is_shown: bool,
}

#[derive(Debug, Default)]
struct Slot {
    number: u64,
    attempts: u32,
    failures: u32,
    waits: u32,
    waited: Duration,
    longest_hold: Duration,
}

type Change = (AlarmKind, Option<f64>);

impl AlarmKind {
    const ALL: [Self; 3] = [Self::Failures, Self::Wait, Self::Hold];

    /// The label of metrics and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failures => "failures",
            Self::Wait => "wait",
            Self::Hold => "hold",
        }
    }

    /// The remedy, in one line.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Failures => {
                "see whether Redis answers (/readyz), and whether one holder keeps these locks from \
                 all others"
            }
            Self::Wait => {
                "shorten the work that is done under these locks, or divide what one of them guards"
            }
            Self::Hold => {
                "see /api/admin/locks for who holds them; shorten the work, or set a longest hold"
            }
        }
    }

    fn limit(self) -> f64 {
        match self {
            Self::Failures => 1.0 / f64::from(FAILURES_ONE_IN),
            Self::Wait => WAIT_MAX.as_secs_f64(),
            Self::Hold => HOLD_MAX.as_secs_f64(),
        }
    }
}

impl Default for Alarms {
    fn default() -> Self {
        Self { epoch: Instant::now(), classes: Mutex::default() }
    }
}

impl Alarms {
    pub(super) fn attempted(&self, class: &str, took: Duration, outcome: &str) {
        let is_seat = class == SEAT;
        self.note(class, |_class, slot| {
            slot.attempts += 1;
            slot.failures += u32::from(outcome == "failed" || outcome == "timeout" && !is_seat);
            if matches!(outcome, "granted" | "timeout") && !is_seat {
                slot.waits += 1;
                slot.waited += took;
            }
        });
    }

    pub(super) fn began(&self, class: &str, at: Instant) {
        if class != SEAT {
            self.note(class, |class, _slot| *class.lasting.entry(at).or_default() += 1);
        }
    }

    pub(super) fn ended(&self, class: &str, began: Instant) {
        if class == SEAT {
            return;
        }
        self.note(class, |class, slot| {
            let left = class.lasting.remove(&began).unwrap_or(1) - 1;
            if left > 0 {
                class.lasting.insert(began, left);
            }
            slot.longest_hold = slot.longest_hold.max(began.elapsed());
        });
    }

    pub(super) fn evaluate(&self) {
        let (now, slot) = self.now();
        let mut changes = Vec::new();
        self.classes().retain(|name, class| {
            changes
                .extend(class.evaluate(now, slot).into_iter().map(|change| (name.clone(), change)));
            // An empty class carries no data.
            !(class.slots.is_empty() && class.lasting.is_empty())
        });
        for (class, change) in changes {
            announce(&class, change);
        }
    }

    pub(super) fn in_force(&self) -> Vec<Alarm> {
        self.evaluate();
        let (now, _slot) = self.now();
        let mut alarms = Vec::new();
        for (name, class) in self.classes().iter() {
            let measured = |kind| class.measure(kind, now).unwrap_or_default();
            alarms.extend(class.raised.iter().map(|(kind, since)| Alarm {
                class: name.clone(),
                kind: *kind,
                since: *since,
                measured: measured(*kind),
                limit: kind.limit(),
            }));
        }
        alarms.sort_by(|one, other| (&one.class, one.kind).cmp(&(&other.class, other.kind)));
        alarms
    }

    fn note(&self, class: &str, note: impl FnOnce(&mut Class, &mut Slot)) {
        let (now, number) = self.now();
        let mut classes = self.classes();
        if !classes.contains_key(class) {
            if classes.len() >= CLASSES_MAX {
                return;
            }
            classes.insert(class.to_owned(), Class::default());
        }
        let Some(entry) = classes.get_mut(class) else { return };
        let mut slot = match entry.slots.back() {
            Some(last) if last.number == number => entry.slots.pop_back().unwrap_or_default(),
            _ => Slot { number, ..Slot::default() },
        };
        note(entry, &mut slot);
        entry.slots.push_back(slot);
        let changes = entry.evaluate(now, number);
        let is_new = !std::mem::replace(&mut entry.is_shown, true);
        drop(classes);
        if is_new {
            AlarmKind::ALL.iter().for_each(|kind| show(class, *kind, 0.0));
        }
        for change in changes {
            announce(class, change);
        }
    }

    fn now(&self) -> (Instant, u64) {
        let now = Instant::now();
        (now, now.duration_since(self.epoch).as_secs() / SLOT.as_secs())
    }

    fn classes(&self) -> MutexGuard<'_, HashMap<String, Class>> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Class {
    fn evaluate(&mut self, now: Instant, slot: u64) -> Vec<Change> {
        while self.slots.front().is_some_and(|oldest| oldest.number + SLOTS <= slot) {
            self.slots.pop_front();
        }
        let mut changes = Vec::new();
        for kind in AlarmKind::ALL {
            let measured = self.measure(kind, now).filter(|measured| kind.limit() < *measured);
            match (measured, self.raised.contains_key(&kind)) {
                (Some(_), false) => {
                    self.raised.insert(kind, Utc::now());
                    changes.push((kind, measured));
                }
                (None, true) => {
                    self.raised.remove(&kind);
                    changes.push((kind, None));
                }
                (Some(_), true) | (None, false) => {}
            }
        }
        changes
    }

    /// The value to compare with the limit; none with too few events.
    fn measure(&self, kind: AlarmKind, now: Instant) -> Option<f64> {
        let sum = |count: fn(&Slot) -> u32| self.slots.iter().map(count).sum::<u32>();
        match kind {
            AlarmKind::Failures => {
                let attempts = sum(|slot| slot.attempts);
                let share = f64::from(sum(|slot| slot.failures)) / f64::from(attempts.max(1));
                (attempts >= ATTEMPTS_MIN).then_some(share)
            }
            AlarmKind::Wait => {
                let waited: Duration = self.slots.iter().map(|slot| slot.waited).sum();
                let waits = sum(|slot| slot.waits);
                (waits > 0).then(|| waited.as_secs_f64() / f64::from(waits))
            }
            AlarmKind::Hold => {
                let over = self.slots.iter().map(|slot| slot.longest_hold);
                let oldest = self.lasting.first_key_value();
                let lasts = oldest.map(|(began, _count)| now.saturating_duration_since(*began));
                over.chain(lasts).max().map(|longest| longest.as_secs_f64())
            }
        }
    }
}

fn announce(class: &str, (kind, measured): Change) {
    let alarm = kind.as_str();
    if let Some(measured) = measured {
        let (limit, remedy) = (kind.limit(), kind.remedy());
        tracing::warn!(class, alarm, measured, limit, "locks raise an alarm: {remedy}");
    } else {
        tracing::info!(class, alarm, "an alarm of locks is cleared");
    }
    show(class, kind, if measured.is_some() { 1.0 } else { 0.0 });
}

fn show(class: &str, kind: AlarmKind, value: f64) {
    metrics::gauge!("galley_lock_alarm", "class" => class.to_owned(), "alarm" => kind.as_str())
        .set(value);
}

#[cfg(test)]
mod tests;
