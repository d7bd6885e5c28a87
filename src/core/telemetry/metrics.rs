//! The metrics of `src/http/PROTOCOL.md`, and their rendering.

use std::error::Error;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::telemetry::last_hour::Tee;
use crate::telemetry::process;

/// Upper bounds of the buckets of every histogram in seconds: from the cost of a registry look-up to
/// the longest wait.
const SECONDS: [f64; 16] = [
    0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 60.0,
];

const COUNTERS: &[(&str, &str)] = &[
    ("galley_seat_claims_total", "Claims of a seat, by role and outcome."),
    ("galley_seat_denials_total", "Refused claims of a seat, by reason."),
    (
        "galley_sockets_closed_total",
        "Ends of websockets, by close code; 1006: the connection broke.",
    ),
    ("galley_seats_lost_total", "Seats lost by their holders, by reason."),
    ("galley_renewal_reasserted_total", "Locks whose vanished key was set again."),
    ("galley_renewal_mass_losses_total", "Rounds in which most locks were lost at once."),
    ("galley_lock_acquisitions_total", "Claims of a lock, by class and outcome."),
    ("galley_document_updates_total", "Updates of documents that were committed."),
    ("galley_documents_damaged_total", "Stored documents opened without their damaged end."),
    (
        "galley_documents_set_aside_total",
        "Documents whose edits waited apart: their own row failed.",
    ),
    ("galley_relay_foreign_total", "Messages of another installation on the same Redis."),
    ("galley_locks_clock_steps_back_total", "Steps back of the clock of Redis."),
    ("galley_exports_total", "Builds of exports, by format and outcome."),
    ("galley_push_total", "Pushes to browsers, by outcome."),
    ("galley_sign_ins_total", "Sign-ins at the provider of auth.oidc, by outcome."),
    ("galley_jobs_total", "Ticks of jobs, by job and outcome."),
    ("galley_reminders_total", "Candidates for reminders, by kind and outcome."),
    ("galley_webhook_total", "Webhooks to the host product, by outcome of an attempt."),
    ("galley_http_requests_total", "Requests, by method, route and status."),
];

const GAUGES: &[(&str, &str)] = &[
    ("galley_build_info", "1; version and name of this server."),
    ("galley_ready", "1 while a part works, by part; the part `server` until it drains."),
    ("galley_seats_held", "Seats held by sessions of this server, by role."),
    ("galley_seats_waited_for", "Claims that wait for a taken seat on this server, by role."),
    ("galley_renewal_locks", "Locks in the last renewal round."),
    ("galley_lock_alarm", "1 while an alarm of a class of locks is in force, by class and alarm."),
    ("galley_renewal_oldest_seconds", "Time since the oldest renewal of a held lock."),
    ("galley_locks_clock_ahead_seconds", "How far the clock of Redis is ahead of this server's."),
    ("galley_connections", "Open connections, websockets included."),
    ("galley_rooms", "Open rooms."),
    ("galley_unsaved_bytes", "Updates that the database has not committed."),
    ("galley_database_connections", "Connections to PostgreSQL, by state."),
    ("galley_database_waiting", "Transactions that wait for a connection to PostgreSQL."),
    (
        "galley_exports_held",
        "Exported files in memory, from their rendering until they are stored.",
    ),
    ("galley_push_queue", "Pushes that wait for another attempt."),
    ("galley_webhook_queue", "Webhooks in the database, by state."),
    ("galley_webhook_oldest_seconds", "Age of the oldest pending webhook."),
    ("galley_keys_failing", "1 while the key set of a provider cannot be read, by setting."),
    ("galley_storage_failing", "1 while edits cannot be committed, by reason."),
];

const HISTOGRAMS: &[(&str, &str)] = &[
    ("galley_seat_wait_seconds", "From a claim of a seat to its outcome."),
    ("galley_seat_handover_seconds", "From a release, or the end of a lease, to the next grant."),
    ("galley_renewal_round_seconds", "One renewal round."),
    ("galley_renewal_lag_seconds", "Delay of a renewal round."),
    ("galley_lock_wait_seconds", "Waiting for a lock, by class."),
    ("galley_lock_hold_seconds", "Holding a lock, by class."),
    ("galley_document_persist_seconds", "From the first attempt to store a group to its commit."),
    ("galley_relay_seconds", "From an update's arrival to its broadcast; the Redis round trip."),
    ("galley_export_seconds", "Builds of exports, by format."),
    ("galley_outgoing_seconds", "Requests to other programs, by purpose."),
    ("galley_http_request_seconds", "Requests, by method and route."),
];

/// The classes of the server's locks.
const LOCK_CLASSES: [&str; 5] = ["seat", "request", "offer", "job", "export"];

/// The common reasons of a refused claim.
const DENIALS: &str = "draining foreign-origin keys left locks memory no-such-link no-token not-your-role revoked \
                       room-full seat-not-free seat-taken seat-taken-by-the-same-user storage \
                       token-expired token-not-valid too-many-joins";
const CLOSE_CODES: [u16; 14] =
    [1000, 1006, 1012, 4400, 4401, 4403, 4404, 4408, 4409, 4410, 4411, 4413, 4503, 4529];

/// Registers the series before their first event. Prometheus computes no rate and raises no alert
/// for a series that begins with its first event.
fn begin_at_zero() {
    for role in ["writer", "reviewer"] {
        gauge!("galley_seats_held", "role" => role).set(0.0);
        gauge!("galley_seats_waited_for", "role" => role).set(0.0);
        for outcome in ["granted", "taken", "refused", "unavailable"] {
            counter!("galley_seat_claims_total", "role" => role, "outcome" => outcome).increment(0);
        }
    }
    for reason in ["taken_over", "expired", "evicted", "idle", "revoked", "deleted"] {
        counter!("galley_seats_lost_total", "reason" => reason).increment(0);
    }
    for class in LOCK_CLASSES {
        for outcome in ["granted", "busy", "timeout", "failed"] {
            counter!("galley_lock_acquisitions_total", "class" => class, "outcome" => outcome)
                .increment(0);
        }
        for alarm in ["failures", "wait", "hold"] {
            gauge!("galley_lock_alarm", "class" => class, "alarm" => alarm).set(0.0);
        }
        for name in ["galley_lock_wait_seconds", "galley_lock_hold_seconds"] {
            let _registered = histogram!(name, "class" => class);
        }
    }
    for format in ["docx", "html", "md", "pdf", "txt"] {
        for outcome in ["built", "failed", "found", "gone", "lost"] {
            counter!("galley_exports_total", "format" => format, "outcome" => outcome).increment(0);
        }
        let _registered = histogram!("galley_export_seconds", "format" => format);
    }
    for name in [
        "galley_renewal_reasserted_total",
        "galley_renewal_mass_losses_total",
        "galley_document_updates_total",
        "galley_documents_damaged_total",
        "galley_documents_set_aside_total",
        "galley_relay_foreign_total",
        "galley_locks_clock_steps_back_total",
    ] {
        counter!(name).increment(0);
    }
    for outcome in ["sent", "queued", "removed", "refused", "uncertain", "dropped"] {
        counter!("galley_push_total", "outcome" => outcome).increment(0);
    }
    begin_ends_at_zero();
    begin_webhooks_at_zero();
    begin_storage_at_zero();
    for name in [
        "galley_renewal_locks",
        "galley_renewal_oldest_seconds",
        "galley_connections",
        "galley_rooms",
        "galley_unsaved_bytes",
        "galley_database_waiting",
        "galley_exports_held",
        "galley_push_queue",
        "galley_webhook_oldest_seconds",
    ] {
        gauge!(name).set(0.0);
    }
    let _registered = histogram!("galley_relay_seconds", "path" => "room");
    for name in [
        "galley_seat_wait_seconds",
        "galley_seat_handover_seconds",
        "galley_renewal_round_seconds",
        "galley_renewal_lag_seconds",
        "galley_document_persist_seconds",
    ] {
        let _registered = histogram!(name);
    }
}

/// Registers the series of refused claims and of closed websockets.
fn begin_ends_at_zero() {
    for reason in DENIALS.split(' ') {
        counter!("galley_seat_denials_total", "reason" => reason).increment(0);
    }
    for code in CLOSE_CODES {
        counter!("galley_sockets_closed_total", "code" => code.to_string()).increment(0);
    }
}

/// Registers the series of the database and of the key set.
fn begin_storage_at_zero() {
    for setting in ["auth.jwks_url", "auth.oidc"] {
        gauge!("galley_keys_failing", "setting" => setting).set(0.0);
    }
    for state in ["idle", "in_use"] {
        gauge!("galley_database_connections", "state" => state).set(0.0);
    }
    for reason in ["full", "other"] {
        gauge!("galley_storage_failing", "reason" => reason).set(0.0);
    }
}

/// Registers the series of webhooks, and those of requests to other programs.
fn begin_webhooks_at_zero() {
    for outcome in ["delivered", "failed", "dead", "dropped"] {
        counter!("galley_webhook_total", "outcome" => outcome).increment(0);
    }
    for purpose in ["push", "webhook"] {
        let _registered = histogram!("galley_outgoing_seconds", "purpose" => purpose);
    }
    for state in ["pending", "dead"] {
        gauge!("galley_webhook_queue", "state" => state).set(0.0);
    }
}

#[derive(Clone, Debug)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Installs the recorder, once for the process, of the server with this name. Fails when another recorder
    /// is in place.
    pub fn start(version: &'static str, server: String) -> Result<Self, Box<dyn Error>> {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
            .build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(Tee(recorder))?;
        for (name, meaning) in COUNTERS {
            describe_counter!(*name, *meaning);
        }
        for (name, meaning) in GAUGES {
            describe_gauge!(*name, *meaning);
        }
        for (name, meaning) in HISTOGRAMS {
            describe_histogram!(*name, *meaning);
        }
        begin_at_zero();
        gauge!("galley_build_info", "version" => version, "server" => server).set(1.0);
        Ok(Self(handle))
    }

    #[must_use]
    pub fn render(&self) -> String {
        self.0.render() + &process::render()
    }

    /// Moves recorded samples into the buckets. The caller runs it every few seconds; without it,
    /// memory grows between two scrapes.
    pub fn upkeep(&self) {
        self.0.run_upkeep();
    }
}
