//! The acts of one round: random faults and requests, one after the other.
//!
//! An act is a fault, sometimes with a second one, or a request whose effect the servers must
//! deliver in spite of a fault. `alone` has the acts that exclude any other fault.

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::{Duration, Instant, sleep, sleep_until};

use crate::alone;
use crate::at_rest::recover;
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
pub(crate) enum Act {
    Fault(&'static str),
    Revoke(Strike),
    Delete(Strike),
    Accept(Strike),
    OldRedisAlone,
    SetBackAlone,
}

/// The fault during a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strike {
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
}

/// How often a round accepts suggestions under each strike, at all desks of a world at once.
const ACCEPTANCES: usize = 5;
/// How often each kind of fault happens in a round.
const OF_A_KIND: usize = 2;

/// Deals one deck out to the worlds of a round, each act to the world with the least work. `only`
/// names the kinds of faults; if it is empty, the deck has all acts.
pub(crate) fn deal(random: &mut Random, only: &[&'static str], worlds: usize) -> Vec<Vec<Act>> {
    let mut hands = vec![Vec::new(); worlds];
    if !only.is_empty() {
        hands.fill(only.iter().map(|kind| Act::Fault(kind)).collect());
        return hands;
    }
    let mut deck = Vec::new();
    for kind in KINDS.iter().filter(|kind| **kind != "set-back") {
        deck.extend([Act::Fault(kind); OF_A_KIND]);
    }
    for strike in [Strike::Nothing, Strike::CallerLeaves, Strike::ServerDies, Strike::RedisIsCut] {
        deck.extend([Act::Accept(strike); ACCEPTANCES]);
    }
    deck.extend([Strike::CallerLeaves, Strike::ServerDies].map(Act::Revoke));
    deck.extend([Strike::CallerLeaves, Strike::RedisIsCut].map(Act::Delete));
    shuffle(&mut deck, random);
    // The longest first: the others fill up the worlds.
    let long = [[Act::SetBackAlone; OF_A_KIND], [Act::OldRedisAlone; OF_A_KIND]];
    let mut work = vec![0; worlds];
    for act in long.into_iter().flatten().chain(deck) {
        let world = (0..worlds).min_by_key(|world| work[*world]).expect("a world");
        work[world] += act.seconds();
        hands[world].push(act);
    }
    hands
}

fn shuffle(acts: &mut [Act], random: &mut Random) {
    for last in (1..acts.len()).rev() {
        acts.swap(last, random.below(last + 1));
    }
}

impl Act {
    /// About how long it takes.
    fn seconds(self) -> u64 {
        match self {
            Self::Fault(_) => 5,
            Self::Revoke(strike) | Self::Delete(strike) | Self::Accept(strike) => match strike {
                Strike::Nothing | Strike::CallerLeaves => 5,
                Strike::ServerDies | Strike::RedisIsCut => 11,
            },
            Self::OldRedisAlone => 17,
            Self::SetBackAlone => 26,
        }
    }
}

impl Acts<'_> {
    /// Plays the hand until the time is over, and again from the start. A whole hand is played to
    /// its end however late it is.
    pub(crate) async fn play(&mut self, mut hand: Vec<Act>, until: Instant, whole: bool) {
        shuffle(&mut hand, &mut self.random);
        for (number, act) in hand.iter().cycle().enumerate() {
            let is_due = whole && number < hand.len();
            if !is_due && until <= Instant::now() {
                break;
            }
            self.act(*act).await;
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

    async fn act(&mut self, act: Act) {
        match act {
            Act::Fault(kind) => self.fault(kind).await,
            Act::Revoke(strike) => self.revoke(strike).await,
            Act::Delete(strike) => self.delete(strike).await,
            Act::Accept(strike) => self.accept(strike).await,
            Act::OldRedisAlone => alone::old_redis(self).await,
            Act::SetBackAlone => alone::set_back(self).await,
        }
        self.pause(100, 700).await;
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
        let number = self.random.below(self.desks.count());
        recover(self.desks, number).await;
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

    /// Concurrent requests to one server under a fault, each retried until the database has
    /// committed it. Returns the statuses.
    async fn request(&mut self, calls: &[Call<'_>], strike: Strike, wanted: &[u16]) -> Vec<u16> {
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
        let first = join_all(calls.iter().map(|call| call.once(&url, time_limit)));
        let answers = match strike {
            Strike::ServerDies => {
                let dies = async {
                    sleep(kills_after).await;
                    self.world.inject_at("server-killed", server).await
                };
                let (answers, fault) = tokio::join!(first, dies);
                self.heal(vec![fault]).await;
                answers
            }
            _ => first.await,
        };
        if let Some(fault) = fault {
            self.pause(200, 1_500).await;
            self.heal(vec![fault]).await;
        }
        let desks = self.desks;
        let retries = calls.iter().zip(answers).map(|(call, (status, _))| async move {
            if wanted.contains(&status) {
                return status;
            }
            // The database may have committed the first attempt: the retry then finds nothing to
            // do.
            call.until(desks, &[wanted, &[404, 409, 403]].concat()).await.0
        });
        join_all(retries).await
    }

    async fn revoke(&mut self, strike: Strike) {
        let old = self.all();
        let links = old.iter().map(|desk| desk.link.clone()).collect();
        self.end("revoke", "/api/share-links", &old, links, strike).await;
    }

    async fn delete(&mut self, strike: Strike) {
        let old = self.all();
        let documents = old.iter().map(|desk| desk.document.clone()).collect();
        self.end("delete", "/api/documents", &old, documents, strike).await;
    }

    fn all(&self) -> Vec<Desk> {
        (0..self.desks.count()).map(|number| self.desks.desk(number)).collect()
    }

    /// Ends one subject of each desk, and replaces it.
    async fn end(
        &mut self,
        op: &str,
        above: &str,
        old: &[Desk],
        subjects: Vec<String>,
        strike: Strike,
    ) {
        let paths: Vec<_> = subjects.iter().map(|subject| format!("{above}/{subject}")).collect();
        let body = json!({});
        let call = |(path, desk)| {
            let (path, user): (&String, &Desk) = (path, desk);
            Call { method: "DELETE", path, user: &user.writer, body: &body }
        };
        let calls: Vec<_> = paths.iter().zip(old).map(call).collect();
        for subject in &subjects {
            self.desks.end(subject);
        }
        let statuses = self.request(&calls, strike, &[204]).await;
        let due = self.world.due();
        for (subject, status) in subjects.iter().zip(statuses) {
            note(self.desks, op, subject, status);
        }
        let desks = self.desks;
        let news = join_all(old.iter().map(|old| async move {
            if op == "revoke" {
                link_again(desks, old).await
            } else {
                document_again(desks, old).await
            }
        }));
        for (number, desk) in news.await.into_iter().enumerate() {
            self.desks.replace(number, desk);
        }
        sleep_until(due).await;
        for subject in subjects {
            self.desks.recorder.note(What::Due { subject });
        }
    }

    /// Creates a suggestion at each desk and accepts them. Leaves out a desk without both seats.
    async fn accept(&mut self, strike: Strike) {
        let acts = &*self;
        let suggestions = self.all().into_iter().enumerate().map(|(number, desk)| {
            let mark = format!("{number}.s{}", acts.desks.next());
            async move {
                let review = acts.suggest(&desk, &mark).await?;
                let path = format!("/api/share-links/{}/reviews/{review}/accept", desk.link);
                Some((desk.writer, path, mark))
            }
        });
        let made: Vec<_> = join_all(suggestions).await.into_iter().flatten().collect();
        let body = json!({});
        let calls: Vec<_> = made
            .iter()
            .map(|(user, path, _)| Call { method: "POST", path, user, body: &body })
            .collect();
        let statuses = self.request(&calls, strike, &[200]).await;
        let due = self.world.due();
        for ((.., mark), status) in made.iter().zip(statuses) {
            note(self.desks, "accept", mark, status);
        }
        sleep_until(due).await;
        for (.., subject) in made {
            self.desks.recorder.note(What::Due { subject });
        }
    }

    /// Creates a suggestion that inserts the mark after another one. Returns its id.
    async fn suggest(&self, desk: &Desk, mark: &str) -> Option<String> {
        let reviews = format!("/api/share-links/{}/reviews", desk.link);
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
            let call = Call { method: "POST", path: &reviews, user, body: &body };
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
