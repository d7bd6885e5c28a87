//! The plan of a run: the machines, the pairs with their acts, and the fault.

use crate::queue::{MS, SECOND, Time};
use crate::random::Random;

/// As `config/default.toml` and the product's code have them.
pub(crate) const TICK: Time = 4 * SECOND;
/// A server trusts a seat so long after the last renewal: the lease of 12 s less an eighth.
pub(crate) const TRUSTED: Time = 10_500 * MS;
pub(crate) const SEATS_AT_ONCE: u32 = 250;
/// A failed round is repeated so much later.
pub(crate) const ROUND_AGAIN: Time = SECOND;
/// A claim at a node that does not answer ends so much later.
pub(crate) const CLAIM_TIMEOUT: Time = 1_500 * MS;
/// Starts of two group commits: the shortest and longest distance, and its multiple of the last commit's duration.
pub(crate) const GROUPS_APART: (Time, Time, Time) = (5 * MS, 25 * MS, 4);
pub(crate) const GROUP_MAX: usize = 4_096;
/// Updates that a server holds while the database is away.
pub(crate) const PENDING_MAX: usize = 16_384;
/// Pauses before a failed commit is tried again.
pub(crate) const COMMIT_AGAIN: (Time, Time) = (100 * MS, 2 * SECOND);
/// A page notices a silent server: 25 s without a message, 3 s for the probe, and up to 2 s until its check.
pub(crate) const SILENCE: (f64, f64) = (28.0, 30.0);
/// Servers stand in so many racks.
pub(crate) const RACKS: usize = 10;
/// A server releases the seat of a silent client.
pub(crate) const CLIENT_TIMEOUT: Time = 10 * SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// `kill -9` of one server: its sockets break at once.
    Server,
    /// The power of a rack: its sockets fall silent.
    Rack,
    /// A node of Redis, until its replica takes over.
    Redis,
    /// PostgreSQL, for a minute.
    Postgres,
    /// A tenth of the laptops sleeps, and wakes within ten seconds: the end of a lecture.
    Wake,
}

/// The first pause of a page before it reconnects.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FirstPause {
    /// Up to the time that the server names: 2,000 of its sockets a second, 0.6 to 4 s.
    Named,
    /// Up to 0.6 s.
    Short,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) pairs: usize,
    pub(crate) servers: usize,
    /// Cores of each server.
    pub(crate) cores: usize,
    /// Nodes of Redis with a primary's part of the slots.
    pub(crate) nodes: usize,
    /// Partitions of the log. One partition appends with one core of PostgreSQL.
    pub(crate) partitions: usize,
    /// The share of pairs that type at a moment, and the keys of each a second.
    pub(crate) typing: f64,
    pub(crate) rate: f64,
    /// An hour: reviews of a pair, visits of a session (each leaves, and another comes), sleeps of its machine.
    pub(crate) reviews: f64,
    pub(crate) visits: f64,
    pub(crate) sleeps: f64,
    /// The share of pairs whose sessions are on two servers.
    pub(crate) split: f64,
    pub(crate) first_pause: FirstPause,
    /// Whether the ticks of all servers fall together.
    pub(crate) in_step: bool,
    pub(crate) fault: Fault,
    /// When it happens, how long it lasts, and the whole run, in seconds.
    pub(crate) fault_at: usize,
    pub(crate) fault_for: f64,
    pub(crate) seconds: usize,
    pub(crate) seed: u64,
}

impl Plan {
    /// A working hour of `pairs`: a tenth of them types five keys a second.
    pub(crate) fn of(pairs: usize, servers: usize, nodes: usize, partitions: usize) -> Self {
        Self {
            pairs,
            servers,
            cores: 2,
            nodes,
            partitions,
            typing: 0.1,
            rate: 5.0,
            reviews: 6.0,
            visits: 1.0,
            sleeps: 0.5,
            split: 0.02,
            first_pause: FirstPause::Named,
            in_step: false,
            fault: Fault::None,
            fault_at: 15,
            fault_for: 0.0,
            seconds: 30,
            seed: 1,
        }
    }

    pub(crate) fn with(self, fault: Fault, fault_for: f64, seconds: usize) -> Self {
        Self { fault, fault_for, seconds, ..self }
    }

    /// The longest first pause, in seconds.
    pub(crate) fn longest_first_pause(&self) -> f64 {
        let sockets = 2.0 * self.pairs as f64 / self.servers as f64;
        match self.first_pause {
            FirstPause::Named => (sockets / 2_000.0).clamp(0.6, 4.0),
            FirstPause::Short => 0.6,
        }
    }

    /// Half to all of 0.3 s · 2ⁿ for the attempt n, at most 10 s; the first up to the longest.
    pub(crate) fn pause(&self, attempt: u8, random: &mut Random) -> Time {
        let bound = (0.3 * 2_f64.powi(attempt.into())).min(10.0);
        let most = if attempt <= 1 { self.longest_first_pause() } else { bound };
        crate::queue::seconds(bound / 2.0 + random.unit() * (most - bound / 2.0))
    }
}
