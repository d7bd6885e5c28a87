//! The honest pair: the times of a writer, a reviewer and a REST client during an attack.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::measure::quantile;
use crate::support::galley_process::Server;
use crate::support::rest_client::Desk;
use crate::support::ws_client::Peer;

/// Five keys a second.
const KEY_EVERY: Duration = Duration::from_millis(200);
/// One read and one review a second.
const CALL_EVERY: Duration = Duration::from_secs(1);
/// Interval of the reads of arrivals: the resolution of the times.
const NOTED_EVERY: Duration = Duration::from_millis(1);
/// A key that has not arrived so long after the last one is lost.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(10);
/// Longest wait for a REST response; the server's own bound is 30 s.
const ANSWER_MAX: Duration = Duration::from_secs(35);
const MIB: f64 = 1_024.0 * 1_024.0;

/// The bars: milliseconds, and MiB.
const RELAY_P99_MAX: f64 = 50.0;
const SAVED_P99_MAX: f64 = 1_000.0;
const REST_MAX: f64 = 1_000.0;
const MEMORY_MAX: f64 = 512.0;

/// A writer and a reviewer of one document, seated.
pub(crate) struct Pair {
    server: Arc<Server>,
    desk: Desk,
    writer: Peer,
    reviewer: Peer,
}

/// Their times in milliseconds; infinity for a missing result.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    relay: Vec<f64>,
    saved: Vec<f64>,
    rest: Vec<f64>,
    refused: usize,
    memory: f64,
}

impl Pair {
    /// Both seated on a new document.
    pub(crate) async fn seated(server: &Arc<Server>) -> Self {
        let desk = server.desk("처음 문장입니다.").await;
        let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
        Self { server: Arc::clone(server), desk, writer, reviewer }
    }

    /// Works for `length`, and returns its times.
    pub(crate) async fn work(self, length: Duration) -> Seen {
        let typing = self.types(length);
        let calling = self.calls(length);
        let weighing = weigh(self.server.id(), length);
        let ((relay, saved), (rest, refused), memory) = tokio::join!(typing, calling, weighing);
        Seen { relay, saved, rest, refused, memory }
    }

    /// Types, and records when each key is relayed and saved.
    async fn types(&self, length: Duration) -> (Vec<f64>, Vec<f64>) {
        let (mut relayed, mut stored) = (Pending::default(), Pending::default());
        let began = Instant::now();
        let mut next_key = began;
        let before = self.writer.text().encode_utf16().count();
        loop {
            let now = Instant::now();
            if now < began + length && next_key <= now {
                self.writer.append("글");
                // From the time at which the key was due, so a late sender hides no delay.
                relayed.sent.push_back(next_key);
                stored.sent.push_back(next_key);
                next_key += KEY_EVERY;
            }
            let seen = self.reviewer.text().encode_utf16().count().saturating_sub(before);
            relayed.arrived(seen);
            stored.arrived(self.writer.is_saved_to() as usize);
            self.forget_events();
            let is_over = began + length <= now;
            if is_over && relayed.sent.is_empty() && stored.sent.is_empty()
                || began + length + GIVEN_UP_AFTER <= now
            {
                return (relayed.into_times(), stored.into_times());
            }
            sleep(NOTED_EVERY).await;
        }
    }

    /// Drops all events but the last `document.saved`.
    fn forget_events(&self) {
        self.reviewer.take_events();
        self.writer.look(|state| {
            let is_saved = |event: &serde_json::Value| event["event"] == "document.saved";
            let last = state.events.iter().rposition(is_saved);
            let last = last.map(|at| state.events.swap_remove(at));
            state.events.clear();
            state.events.extend(last);
        });
    }

    /// Reads the text and creates a review, each second, by connections of its own.
    async fn calls(&self, length: Duration) -> (Vec<f64>, usize) {
        let http = reqwest::Client::builder()
            .pool_max_idle_per_host(0)
            .timeout(ANSWER_MAX)
            .build()
            .expect("a client");
        let text = format!("{}/api/documents/{}/text", self.server.url, self.desk.document);
        let reviews = format!("{}/api/share-links/{}/reviews", self.server.url, self.desk.link);
        let review = json!({
            "anchor": { "start": 0, "end": 2, "quote": "처음" },
            "body": "좋습니다",
        });
        let (mut times, mut refused) = (Vec::new(), 0);
        let began = Instant::now();
        let mut ticker = interval(CALL_EVERY);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while began.elapsed() < length {
            ticker.tick().await;
            let read = http.get(&text).bearer_auth(&self.desk.writer.token);
            let create = http.post(&reviews).bearer_auth(&self.desk.reviewer.token).json(&review);
            for request in [read, create] {
                let sent_at = Instant::now();
                let answered = request.send().await.is_ok_and(|it| it.status().is_success());
                refused += usize::from(!answered);
                times.push(milliseconds(sent_at));
            }
        }
        (times, refused)
    }
}

/// Keys in flight, in order.
#[derive(Default)]
struct Pending {
    sent: VecDeque<Instant>,
    times: Vec<f64>,
}

impl Pending {
    /// `count` keys have arrived in all.
    fn arrived(&mut self, count: usize) {
        while self.times.len() < count {
            let Some(sent) = self.sent.pop_front() else { return };
            self.times.push(milliseconds(sent));
        }
    }

    /// All times; infinity for a key that never arrived.
    fn into_times(mut self) -> Vec<f64> {
        self.times.extend(self.sent.iter().map(|_| f64::INFINITY));
        self.times
    }
}

impl Seen {
    /// A row of the table, with the verdict.
    pub(crate) fn row(&self, title: &str) -> String {
        let at = |times: &[f64], q| quantile(times, q);
        let relay = (at(&self.relay, 0.5), at(&self.relay, 0.99));
        let saved = (at(&self.saved, 0.5), at(&self.saved, 0.99));
        let rest = at(&self.rest, 0.99);
        let is_met = relay.1 <= RELAY_P99_MAX
            && saved.1 <= SAVED_P99_MAX
            && rest <= REST_MAX
            && self.refused == 0
            && self.memory <= MEMORY_MAX;
        let verdict = if is_met { "PASS" } else { "MISS" };
        format!(
            "| {title} | {:.1} ms | {:.1} | {:.0} ms | {:.0} | {rest:.0} ms | {} of {} | {:.0} MiB | {verdict} |",
            relay.0,
            relay.1,
            saved.0,
            saved.1,
            self.refused,
            self.rest.len(),
            self.memory,
        )
    }
}

/// The peak memory of the process in MiB, as the kernel counts it.
async fn weigh(process: u32, length: Duration) -> f64 {
    // Until the end of the attack; the process has ended if there is no such file.
    let _never = timeout(length, std::future::pending::<()>()).await;
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map_or(f64::INFINITY, |kib| kib * 1_024.0 / MIB)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}
