//! The figures of CONTRACT §6, and their rendering.

use metrics::{describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds of the buckets for everything that is measured in seconds: from what a registry
/// look-up costs to the longest wait there is.
const SECONDS: [f64; 16] = [
    0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 60.0,
];

/// Names and meanings of what only ever rises.
const COUNTERS: &[(&str, &str)] = &[
    ("galley_seat_claims_total", "Claims of a seat, by role and outcome."),
    ("galley_seats_lost_total", "Seats lost by their holders, by reason."),
    ("galley_renewal_reasserted_total", "Seats whose key was gone and was set again."),
    ("galley_lock_acquisitions_total", "Attempts at a lock, by class and outcome."),
    ("galley_document_updates_total", "Updates of documents that were stored."),
    ("galley_http_requests_total", "Requests, by method, route and status."),
];

/// Names and meanings of what rises and falls.
const GAUGES: &[(&str, &str)] = &[
    ("galley_seats_held", "Seats held by sessions of this server, by role."),
    ("galley_renewal_locks", "Locks in the last renewal round."),
    ("galley_locks_clock_ahead_seconds", "How far the clock of Redis is ahead of this server's."),
    ("galley_connections", "Open connections, websockets included."),
    ("galley_rooms", "Open rooms."),
];

/// Names and meanings of durations.
const HISTOGRAMS: &[(&str, &str)] = &[
    ("galley_seat_wait_seconds", "From a claim to its seat."),
    ("galley_seat_handover_seconds", "From a release to the next grant."),
    ("galley_renewal_round_seconds", "One renewal round."),
    ("galley_renewal_lag_seconds", "How late a renewal round began."),
    ("galley_lock_wait_seconds", "Waiting for a lock, by class."),
    ("galley_lock_hold_seconds", "Holding a lock, by class."),
    ("galley_document_persist_seconds", "From an update's arrival to its commit."),
    ("galley_relay_seconds", "From an update's arrival to its hand-over to the others."),
    ("galley_http_request_seconds", "Requests, by method and route."),
];

/// The figures of this process, ready to be rendered.
#[derive(Clone, Debug)]
pub struct Figures(PrometheusHandle);

impl Figures {
    /// Starts keeping figures, once for the process.
    ///
    /// # Errors
    ///
    /// Fails when another recorder is in place.
    pub fn start() -> Result<Self, BuildError> {
        let handle = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
            .install_recorder()?;
        for (name, meaning) in COUNTERS {
            describe_counter!(*name, *meaning);
        }
        for (name, meaning) in GAUGES {
            describe_gauge!(*name, *meaning);
        }
        for (name, meaning) in HISTOGRAMS {
            describe_histogram!(*name, *meaning);
        }
        Ok(Self(handle))
    }

    /// Everything, in Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Moves what was recorded into the buckets; owed every few seconds, or memory grows between
    /// two scrapes.
    pub fn upkeep(&self) {
        self.0.run_upkeep();
    }
}
