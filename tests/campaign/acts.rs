//! The acts of one round: random faults and requests, one after the other.
//!
//! An act is a fault, sometimes with a second one, or a request whose effect the servers must
//! deliver in spite of a fault. `alone` has the acts that exclude any other fault.

use serde_json::json;
use tokio::time::{Duration, Instant, sleep, sleep_until};

use crate::alone;
use crate::desks::{Desks, Order};
use crate::history::{What, written};
use crate::judge::vacuous::KINDS;
use crate::requests::{Call, document_again, link_again, note, text_at};
use crate::support::rest_client::Desk;
use crate::support::rng::Random;
use crate::world::{Fault, SERVERS, World};

/// The time-out of a caller that does not disconnect.
const STAYS: Duration = Duration::from_secs(8);

/// One entry of the deck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Fault(&'static str),
    Revoke,
    Delete,
    Accept,
    OldRedisAlone,
    SetBackAlone,
}

/// The fault during a request.
#[derive(Clone, Copy, Debug)]
enum Strike {
    Nothing,
    /// The caller disconnects before the answer.
    CallerLeaves,
    /// The server is killed a moment after the request.
    ServerDies,
    /// The server is cut off from Redis.
    RedisIsCut,
}

pub(crate) struct Acts<'a> {
    pub(crate) world: &'a mut World,
    pub(crate) desks: &'a Desks,
    pub(crate) random: Random,
    /// The only kinds of faults; empty: all acts.
    pub(crate) only: Vec<&'static str>,
}

impl Acts<'_> {
    /// Runs whole decks until the time is over.
    pub(crate) async fn play(&mut self, until: Instant) {
        let mut deck = Vec::new();
        while Instant::now() < until {
            if deck.is_empty() {
                deck = self.deck();
            }
            if let Some(act) = deck.pop() {
                self.act(act).await;
            }
        }
    }

    /// Requests without any fault: the checker judges these most strictly.
    pub(crate) async fn without_faults(&mut self) {
        self.accept(Strike::Nothing).await;
        self.revoke(Strike::Nothing).await;
    }

    /// The last fault of each round. A later new connection would hide that a server does not load
    /// the scripts.
    pub(crate) async fn last(&mut self) {
        self.world.reset_redis_clock();
        let fault = self.world.inject_at("scripts-flushed", 0).await;
        self.world.heal(fault).await;
        self.pause(1_000, 2_000).await;
    }

    fn deck(&mut self) -> Vec<Act> {
        let faults = KINDS.iter().filter(|kind| **kind != "set-back");
        let faults = faults.filter(|kind| self.only.is_empty() || self.only.contains(kind));
        let mut deck: Vec<_> = faults.map(|kind| Act::Fault(kind)).collect();
        if !self.only.is_empty() {
            return deck;
        }
        deck.extend([Act::Revoke, Act::Revoke, Act::Accept, Act::Accept, Act::Delete]);
        deck.extend([Act::OldRedisAlone, Act::SetBackAlone]);
        for last in (1..deck.len()).rev() {
            deck.swap(last, self.random.below(last + 1));
        }
        deck
    }

    async fn act(&mut self, act: Act) {
        let strikes =
            [Strike::Nothing, Strike::CallerLeaves, Strike::ServerDies, Strike::RedisIsCut];
        let strike = strikes[self.random.below(strikes.len())];
        match act {
            Act::Fault(kind) => self.fault(kind).await,
            Act::Revoke => self.revoke(strike).await,
            Act::Delete => self.delete(strike).await,
            Act::Accept => self.accept(strike).await,
            Act::OldRedisAlone => alone::old_redis(self).await,
            Act::SetBackAlone => alone::set_back(self).await,
        }
        self.pause(300, 1_500).await;
    }

    async fn fault(&mut self, kind: &'static str) {
        let mut faults = vec![self.world.inject(kind, &mut self.random).await];
        self.pause(100, 2_500).await;
        if self.random.below(3) == 0 {
            let kinds: Vec<_> = SECOND.iter().filter(|it| part(it) != part(kind)).collect();
            let second = kinds[self.random.below(kinds.len())];
            faults.push(self.world.inject(second, &mut self.random).await);
            self.pause(100, 2_500).await;
        }
        self.heal(faults).await;
    }

    /// Servers last: a server starts only with its database and its locks.
    async fn heal(&mut self, mut faults: Vec<Fault>) {
        faults.sort_by_key(|fault| part(fault.kind) == "server");
        for fault in faults {
            let is_server = part(fault.kind) == "server";
            self.world.heal(fault).await;
            if is_server {
                self.urls_moved();
            }
        }
    }

    fn urls_moved(&self) {
        for (server, url) in self.world.urls().iter().enumerate() {
            self.desks.moved(server, url);
        }
    }

    /// One request under a fault, retried until the database has committed it.
    async fn request(&mut self, call: Call<'_>, strike: Strike, wanted: &[u16]) -> u16 {
        let server = self.random.below(SERVERS);
        let url = self.desks.url(server);
        let time_limit = match strike {
            Strike::CallerLeaves => Duration::from_millis(2 + self.random.below(12) as u64),
            _ => STAYS,
        };
        let fault = match strike {
            Strike::RedisIsCut => Some(self.world.inject_at("redis-cut", server).await),
            _ => None,
        };
        let kills_after = Duration::from_millis(self.random.below(20) as u64);
        let (mut status, _) = match strike {
            Strike::ServerDies => {
                let dies = async {
                    sleep(kills_after).await;
                    self.world.inject_at("server-killed", server).await
                };
                let (answer, fault) = tokio::join!(call.once(&url, time_limit), dies);
                self.heal(vec![fault]).await;
                answer
            }
            _ => call.once(&url, time_limit).await,
        };
        if let Some(fault) = fault {
            self.pause(200, 1_500).await;
            self.heal(vec![fault]).await;
        }
        if !wanted.contains(&status) {
            // The database may have committed the first attempt: the retry then finds nothing to
            // do.
            status = call.until(self.desks, &[wanted, &[404, 409, 403]].concat()).await.0;
        }
        status
    }

    async fn revoke(&mut self, strike: Strike) {
        let number = self.random.below(self.desks.count());
        let old = self.desks.desk(number);
        self.desks.end(&old.link);
        let (path, body) = (format!("/api/share-links/{}", old.link), json!({}));
        let call = Call { method: "DELETE", path: &path, user: &old.writer, body: &body };
        let status = self.request(call, strike, &[204]).await;
        let due = self.world.due();
        note(self.desks, "revoke", &old.link, status);
        self.desks.replace(number, link_again(self.desks, &old).await);
        sleep_until(due).await;
        self.desks.recorder.note(What::Due { subject: old.link });
    }

    async fn delete(&mut self, strike: Strike) {
        let number = self.random.below(self.desks.count());
        let old = self.desks.desk(number);
        self.desks.end(&old.document);
        let (path, body) = (format!("/api/documents/{}", old.document), json!({}));
        let call = Call { method: "DELETE", path: &path, user: &old.writer, body: &body };
        let status = self.request(call, strike, &[204]).await;
        let due = self.world.due();
        note(self.desks, "delete", &old.document, status);
        self.desks.replace(number, document_again(self.desks, &old).await);
        sleep_until(due).await;
        self.desks.recorder.note(What::Due { subject: old.document });
    }

    /// Creates a suggestion and accepts it. Does nothing unless both seats are held.
    async fn accept(&mut self, strike: Strike) {
        let number = self.random.below(self.desks.count());
        let desk = self.desks.desk(number);
        let mark = format!("{number}.s{}", self.desks.next());
        let reviews = format!("/api/share-links/{}/reviews", desk.link);
        let Some(review) = self.suggest(&desk, &reviews, &mark).await else { return };
        let (path, body) = (format!("{reviews}/{review}/accept"), json!({}));
        let call = Call { method: "POST", path: &path, user: &desk.writer, body: &body };
        let status = self.request(call, strike, &[200]).await;
        let due = self.world.due();
        note(self.desks, "accept", &mark, status);
        sleep_until(due).await;
        self.desks.recorder.note(What::Due { subject: mark });
    }

    /// Creates a suggestion that inserts the mark after another one. Returns its id.
    async fn suggest(&self, desk: &Desk, reviews: &str, mark: &str) -> Option<String> {
        for attempt in 0..40 {
            let url = self.desks.url(attempt % SERVERS);
            let text = text_at(&url, desk).await;
            let Some(last) = text.rfind('⟦') else {
                sleep(Duration::from_millis(150)).await;
                continue;
            };
            // The anchor covers a whole mark: a concurrent edit may stand inside the replaced
            // range, and would tear a mark of which only the end is anchored.
            let (before, quote) = text.split_at(last);
            let (start, end) = (before.encode_utf16().count(), text.encode_utf16().count());
            let anchor = json!({ "start": start, "end": end, "quote": quote });
            let suggestion = format!("{quote}{}", written(mark));
            let body = json!({ "anchor": anchor, "body": "", "suggestion": suggestion });
            let user = &desk.reviewer;
            let call = Call { method: "POST", path: reviews, user, body: &body };
            let (_, review) = call.once(&url, STAYS).await;
            // The server rejects it while a seat is not held.
            if let Some(id) = review["id"].as_str() {
                return Some(id.to_owned());
            }
            sleep(Duration::from_millis(150)).await;
        }
        None
    }

    pub(crate) async fn pause(&mut self, least_ms: usize, most_ms: usize) {
        let pause = least_ms + self.random.below(most_ms - least_ms);
        sleep(Duration::from_millis(pause as u64)).await;
    }

    pub(crate) fn order(&self, order: Order) {
        self.desks.order.send_replace(order);
    }
}

/// Faults that may overlap one of another part.
const SECOND: &[&str] = &[
    "server-frozen",
    "server-killed",
    "redis-frozen",
    "redis-restarted",
    "redis-cut",
    "redis-swallowed",
    "postgres-cut",
    "postgres-swallowed",
    "backends-terminated",
];

/// The part of the system that a fault strikes.
fn part(kind: &str) -> &str {
    match kind.split('-').next() {
        Some("redis" | "scripts") => "redis",
        Some("postgres" | "backends") => "postgres",
        _ => "server",
    }
}
