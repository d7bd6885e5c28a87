//! The last hour of this server, minute by minute, for the plots of administrators.
//!
//! [`Tee`] stands before the recorder of the process: it hands each sample on, and counts three of the series
//! here. So no component that measures knows of the plots.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::Utc;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use serde::{Deserialize, Serialize};

pub const MINUTES: usize = 60;

/// Renewal rounds of a minute that are kept for its percentile. The shortest interval between two rounds is
/// 50 ms.
const ROUNDS_MAX: usize = 1_200;

static HOUR: Mutex<Hour> = Mutex::new(Hour {
    ended: VecDeque::new(),
    newest: None,
    writers: 0,
    reviewers: 0,
    rounds: Vec::new(),
});

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Minute {
    /// Minutes since 1970, by the clock of the server.
    pub number: i64,
    /// Seats held at the last tick.
    pub seats: u32,
    /// Committed updates of documents.
    pub edits: u64,
    /// 99th percentile of the renewal rounds, in ms; `None` without a round.
    pub renewal_p99_ms: Option<f64>,
}

#[derive(Debug, Default)]
struct Hour {
    ended: VecDeque<Minute>,
    newest: Option<Minute>,
    writers: u32,
    reviewers: u32,
    /// Renewal rounds of the newest minute, in ms.
    rounds: Vec<f64>,
}

impl Hour {
    /// The newest minute. A clock that was set back adds to the minute that it has begun.
    fn minute(&mut self, now: i64) -> &mut Minute {
        if self.newest.as_ref().is_some_and(|newest| newest.number < now) {
            self.measure_rounds();
            self.rounds.clear();
            if self.ended.len() == MINUTES - 1 {
                self.ended.pop_front();
            }
            self.ended.extend(self.newest.take());
        }
        let seats = self.writers.saturating_add(self.reviewers);
        self.newest.get_or_insert_with(|| Minute { number: now, seats, ..Minute::default() })
    }

    fn measure_rounds(&mut self) {
        self.rounds.sort_by(f64::total_cmp);
        let index = (self.rounds.len() * 99).div_ceil(100).saturating_sub(1);
        if let (Some(newest), Some(p99)) = (&mut self.newest, self.rounds.get(index)) {
            newest.renewal_p99_ms = Some(*p99);
        }
    }

    fn hold(&mut self, now: i64, is_reviewer: bool, seats: u32) {
        *(if is_reviewer { &mut self.reviewers } else { &mut self.writers }) = seats;
        self.minute(now).seats = self.writers.saturating_add(self.reviewers);
    }

    fn round(&mut self, now: i64, ms: f64) {
        self.minute(now);
        if self.rounds.len() < ROUNDS_MAX {
            self.rounds.push(ms);
        }
    }
}

/// The minutes of this server, oldest first; the newest one has not ended.
#[must_use]
pub fn minutes() -> Vec<Minute> {
    let mut hour = hour();
    hour.measure_rounds();
    hour.ended.iter().chain(&hour.newest).cloned().collect()
}

#[must_use]
pub fn now() -> i64 {
    Utc::now().timestamp().div_euclid(60)
}

fn hour() -> MutexGuard<'static, Hour> {
    HOUR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A recorder that counts the last hour beside another one.
#[derive(Debug)]
pub struct Tee<R>(pub R);

impl<R: Recorder> Recorder for Tee<R> {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.0.describe_counter(key, unit, text);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.0.describe_gauge(key, unit, text);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.0.describe_histogram(key, unit, text);
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        let other = self.0.register_counter(key, metadata);
        match key.name() {
            "galley_document_updates_total" => Counter::from_arc(Arc::new(Edits(other))),
            _ => other,
        }
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        let other = self.0.register_gauge(key, metadata);
        if key.name() != "galley_seats_held" {
            return other;
        }
        let is_reviewer = key.labels().any(|label| label.value() == "reviewer");
        Gauge::from_arc(Arc::new(Seats(other, is_reviewer)))
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        let other = self.0.register_histogram(key, metadata);
        match key.name() {
            "galley_renewal_round_seconds" => Histogram::from_arc(Arc::new(Rounds(other))),
            _ => other,
        }
    }
}

struct Edits(Counter);

impl CounterFn for Edits {
    fn increment(&self, value: u64) {
        self.0.increment(value);
        hour().minute(now()).edits += value;
    }

    fn absolute(&self, value: u64) {
        self.0.absolute(value);
    }
}

/// The gauge, and whether it is that of reviewers.
struct Seats(Gauge, bool);

impl GaugeFn for Seats {
    fn increment(&self, value: f64) {
        self.0.increment(value);
    }

    fn decrement(&self, value: f64) {
        self.0.decrement(value);
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is a count of seats"
    )]
    fn set(&self, value: f64) {
        self.0.set(value);
        hour().hold(now(), self.1, value as u32);
    }
}

struct Rounds(Histogram);

impl HistogramFn for Rounds {
    fn record(&self, value: f64) {
        self.0.record(value);
        hour().round(now(), value * 1_000.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_keeps_sixty_minutes_and_the_percentile_of_each() {
        let mut hour = Hour::default();
        hour.hold(0, false, 3);
        hour.hold(0, true, 2);
        for ms in 1..=200 {
            hour.round(0, f64::from(ms));
        }
        hour.minute(1).edits += 7;
        let first = Minute { number: 0, seats: 5, edits: 0, renewal_p99_ms: Some(198.0) };
        assert_eq!(hour.ended, [first]);
        assert_eq!(
            (hour.minute(1).seats, hour.minute(1).edits),
            (5, 7),
            "the seats are still held"
        );
        hour.minute(0).edits += 1;
        assert_eq!((hour.ended.len(), hour.minute(1).edits), (1, 8), "the clock was set back");
        for number in 2..=60 {
            hour.minute(number);
        }
        assert_eq!((hour.ended.len(), hour.ended.front().map(|it| it.number)), (59, Some(1)));
    }
}
