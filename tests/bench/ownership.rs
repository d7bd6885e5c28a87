//! The cost of checking whether a session holds a seat, against the least possible check.
//!
//! - `registry`: [`Registry::holds`], the real function: seat to session, session to user, deadline
//!   and fence, in maps that other threads change meanwhile.
//! - `with_clock`: the same after a read of the clock, as every caller needs.
//! - `hash_map`: the limit. One look-up in a `HashMap` from seat to user and fence, with the same
//!   hash: no session, no deadline, no concurrency.
//!
//! Each with 1, 1,000 and 100,000 seats held by as many users. The order of the checks jumps, so
//! that at 100,000 the entry is seldom in the processor's cache. The three run in turn, and the benchmark
//! prints their medians:
//!
//! ```text
//! cargo bench --bench ownership
//! ```

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that fails panics, and one that does not prints"
)]

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use galley::domain::fence::Fence;
use galley::domain::ids::{DocumentId, SessionId, ShareLinkId, UserId};
use galley::domain::seat::{Role, Seat};
use galley::domain::user::User;
use galley::outbox::outbox;
use galley::sessions::registry::Registry;
use galley::sessions::session::{Session, SessionIdentity};
use tokio::time::Instant;

/// Rounds of each kind for the medians, and checks of a round.
const ROUNDS: usize = 201;
const QUESTIONS: usize = 10_000;
/// Seats from one check to the next; it has no common divisor with their numbers.
const JUMP: usize = 7_919;

/// All held seats, in both structures.
struct Server {
    registry: Registry,
    hash_map: HashMap<Seat, (UserId, Fence)>,
    people: Vec<(UserId, Seat)>,
    next: usize,
}

impl Server {
    fn with(seats: usize) -> Self {
        let registry = Registry::default();
        let mut hash_map = HashMap::new();
        let mut people = Vec::with_capacity(seats);
        let until = Instant::now() + Duration::from_secs(3_600);
        for number in 0..seats {
            let seat = Seat::new(ShareLinkId::generate(), Role::Writer);
            let user = User { id: UserId::generate(), name: "Kim".to_owned() };
            let fence = Fence(1 + number as u64);
            hash_map.insert(seat, (user.id.clone(), fence));
            people.push((user.id.clone(), seat));
            let session = Arc::new(Session::claiming(identity_of(user, seat), outbox(1_024).0));
            registry.enter(Arc::clone(&session));
            session.granted(fence, Utc::now(), until);
            registry.insert_seat(&session);
        }
        Self { registry, hash_map, people, next: 0 }
    }

    /// The seat of the next check.
    fn next(&mut self) -> usize {
        self.next = (self.next + JUMP) % self.people.len();
        self.next
    }

    fn registry(&mut self, now: Instant) -> Option<Fence> {
        let at = self.next();
        let (user, seat) = &self.people[at];
        self.registry.holds(user, *seat, now)
    }

    fn hash_map(&mut self) -> Option<Fence> {
        let at = self.next();
        let (user, seat) = &self.people[at];
        self.hash_map.get(seat).and_then(|(holder, fence)| (holder == user).then_some(*fence))
    }
}

fn identity_of(user: User, seat: Seat) -> SessionIdentity {
    SessionIdentity {
        session: SessionId::generate(),
        seat,
        document: DocumentId::generate(),
        user,
        resume: String::new(),
        wants_events: true,
        store_budget: None,
    }
}

fn main() {
    println!("medians of {ROUNDS} rounds of {QUESTIONS} questions, in turn");
    for seats in [1, 1_000, 100_000] {
        println!("{}", medians(&mut Server::with(seats), seats));
    }
}

fn medians(server: &mut Server, seats: usize) -> String {
    let now = Instant::now();
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        times[0].push(timed(|| server.registry(now)));
        times[1].push(timed(|| server.registry(Instant::now())));
        times[2].push(timed(|| server.hash_map()));
    }
    let [registry, with_clock, hash_map] = times.map(median);
    format!(
        "{seats:>7} seats: registry {registry:>5.1} ns, with clock {with_clock:>5.1} ns, hash map \
         {hash_map:>5.1} ns: {:.1} look-ups",
        registry / hash_map
    )
}

fn timed(mut call: impl FnMut() -> Option<Fence>) -> Duration {
    let began = Instant::now();
    for _ in 0..QUESTIONS {
        black_box(call().expect("the seat is theirs"));
    }
    began.elapsed()
}

/// The time of one check in nanoseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1_000_000_000.0 / QUESTIONS as f64
}
