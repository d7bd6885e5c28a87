//! The state of a run, its events and its measures.

use crate::costs::Costs;
use crate::measures::Waits;
use crate::plan::{Fault, Plan, TICK};
use crate::queue::{MS, Queue, SECOND, Time, US, seconds};
use crate::random::{Random, mixed};
use crate::stations::Station;

/// The interval at which a server works for its idle sessions.
pub(crate) const BEAT: Time = 10 * MS;

/// A session by its number: the writer of pair `n` is `2n`, its reviewer `2n + 1`.
pub(crate) type SessionId = u32;
/// The numbers of its attempts: an event of a former one is void.
pub(crate) type Attempt = u16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The writer of this pair presses a key.
    Key(u32),
    /// The persister of this server begins a group.
    Group(u16),
    Beat(u16),
    Tick(u16),
    /// The next call of a renewal round: server, node, locks that remain.
    Renew(u16, u16, u32),
    /// The next comparison of a tick: server, sessions that remain.
    Compare(u16, u32),
    Join(Stage, SessionId, Attempt),
    /// The server releases the seat of a client that is silent.
    Silent(SessionId, Attempt),
    /// A stored edit travels to another server, and arrives: when it was typed.
    Publish(Time),
    Receive(Time),
    /// A review is written, a session leaves, a machine falls asleep: of a random pair.
    Review,
    Visit,
    Sleep,
    Fault,
    Repair,
}

/// The next step of a session without a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Its page notices that the socket is lost.
    Broken,
    Connect,
    Claim,
    Granted,
    Ratify,
    Ratified,
    Seat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Seated,
    /// Its pause before a connect, or the connect, is under way.
    Joining,
    /// Its server is lost, and it has not noticed.
    Unaware,
    Asleep,
    Left,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Session {
    pub(crate) state: State,
    pub(crate) server: u16,
    pub(crate) attempt: Attempt,
    /// Failed attempts in a row.
    pub(crate) failures: u8,
    /// When the fault took its seat.
    pub(crate) lost_at: Option<Time>,
    pub(crate) connected_at: Time,
    /// Edits that wait in the page.
    pub(crate) kept: u32,
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) station: Station,
    pub(crate) is_up: bool,
    /// Arrivals of the edits that are not stored, and the writer if the reviewer is on another server.
    pub(crate) pending: std::collections::VecDeque<(Time, Option<SessionId>)>,
    pub(crate) is_committing: bool,
    pub(crate) next_group_at: Time,
    pub(crate) commit_pause: Time,
    /// Seats by the node of their lock.
    pub(crate) seats: Vec<u32>,
    /// When the last successful round of each node began, and the one under way.
    pub(crate) renewed_at: Vec<Time>,
    pub(crate) round_began: Vec<Option<Time>>,
}

/// The measures of a run.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// From key to reviewer: on one server, and on two.
    pub(crate) relay: Waits,
    pub(crate) across: Waits,
    pub(crate) saved: Waits,
    pub(crate) joins: Waits,
    /// From the loss of the seat by the fault to the next seat.
    pub(crate) again: Waits,
    pub(crate) rounds: Waits,
    pub(crate) groups: u64,
    pub(crate) keys: u64,
    pub(crate) stored: u64,
    /// Edits of a full queue, and of a lost server: the clients send them again.
    pub(crate) returned: u64,
    pub(crate) missed_renewals: u64,
    pub(crate) uncertain_seats: u64,
    pub(crate) commands: u64,
}

#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) costs: &'a Costs,
    pub(crate) random: Random,
    pub(crate) queue: Queue<Event>,
    pub(crate) servers: Vec<Server>,
    pub(crate) redis: Vec<Station>,
    pub(crate) postgres: Vec<Station>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) found: Found,
}

/// µs as nanoseconds.
pub(crate) fn us(us: f64) -> f64 {
    us * US as f64
}

impl<'a> World<'a> {
    /// All sessions are seated, and the typing has begun.
    pub(crate) fn new(plan: &'a Plan, costs: &'a Costs) -> Self {
        let server = |_| Server {
            station: Station::new(plan.cores, plan.seconds),
            is_up: true,
            pending: std::collections::VecDeque::new(),
            is_committing: false,
            next_group_at: 0,
            commit_pause: 0,
            seats: vec![0; plan.nodes],
            renewed_at: vec![0; plan.nodes],
            round_began: vec![None; plan.nodes],
        };
        let stations = |count| vec![Station::new(1, plan.seconds); count];
        let mut world = Self {
            plan,
            costs,
            random: Random::new(plan.seed),
            queue: Queue::new(),
            servers: (0..plan.servers).map(server).collect(),
            redis: stations(plan.nodes),
            postgres: stations(plan.partitions),
            sessions: Vec::with_capacity(2 * plan.pairs),
            found: Found::default(),
        };
        for id in 0..2 * plan.pairs as SessionId {
            let server = world.home(id);
            world.sessions.push(Session { server, ..Session::default() });
            let node = world.node_of(id);
            world.servers[usize::from(server)].seats[node] += 1;
        }
        world.begin();
        world
    }

    /// The first event of each kind.
    fn begin(&mut self) {
        let typing = (self.plan.pairs as f64 * self.plan.typing).round() as usize;
        for _ in 0..typing {
            let pair = self.random.below(self.plan.pairs) as u32;
            let at = seconds(self.random.unit() / self.plan.rate);
            self.queue.put(at, Event::Key(pair));
        }
        for server in 0..self.plan.servers as u16 {
            let phase = if self.plan.in_step { 0.0 } else { self.random.unit() };
            self.queue.put((TICK as f64 * phase) as Time, Event::Tick(server));
            let at = self.random.below(BEAT as usize) as Time;
            self.queue.put(at, Event::Beat(server));
        }
        for event in [Event::Review, Event::Visit, Event::Sleep] {
            self.put_next(0, event);
        }
        if self.plan.fault != Fault::None {
            self.queue.put(self.plan.fault_at as Time * SECOND, Event::Fault);
        }
    }

    /// The next event of a process without memory.
    pub(crate) fn put_next(&mut self, now: Time, event: Event) {
        let Plan { pairs, reviews, visits, sleeps, .. } = *self.plan;
        let an_hour = match event {
            Event::Review => pairs as f64 * reviews,
            Event::Visit => 2.0 * pairs as f64 * visits,
            _ => 2.0 * pairs as f64 * sleeps,
        };
        if 0.0 < an_hour {
            let pause = self.random.exponential(3_600.0 / an_hour);
            self.queue.put(now + seconds(pause), event);
        }
    }

    pub(crate) fn run(mut self) -> Self {
        let end = self.plan.seconds as Time * SECOND;
        while let Some((now, event)) = self.queue.next_before(end) {
            match event {
                Event::Key(pair) => self.key(now, pair),
                Event::Group(server) => self.group(now, server),
                Event::Beat(server) => self.beat(now, server),
                Event::Tick(server) => self.tick(now, server),
                Event::Renew(server, node, left) => self.renew(now, server, node, left),
                Event::Compare(server, left) => self.compare(now, server, left),
                Event::Join(stage, id, attempt) => self.join(now, stage, id, attempt),
                Event::Silent(id, attempt) => self.silent(id, attempt),
                Event::Publish(typed) => self.publish(now, typed),
                Event::Receive(typed) => self.receive(now, typed),
                Event::Review => self.review(now),
                Event::Visit => self.visit(now),
                Event::Sleep => self.sleep(now),
                Event::Fault => self.fault(now),
                Event::Repair => self.repair(now),
            }
        }
        self
    }

    pub(crate) fn node_of(&self, id: SessionId) -> usize {
        mixed(u64::from(id / 2) ^ 0x510_7000) as usize % self.plan.nodes
    }

    pub(crate) fn partition_of(&self, id: SessionId) -> usize {
        mixed(u64::from(id / 2) ^ 0xD0C) as usize % self.plan.partitions
    }

    /// The server to which the proxies send this session: the hash of its document, among those that are up.
    pub(crate) fn home(&self, id: SessionId) -> u16 {
        let pair = u64::from(id / 2);
        let is_split = (mixed(pair ^ 0x5917) >> 11) as f64 / (1_u64 << 53) as f64;
        // The reviewer of a split pair is one server further.
        let shift = u64::from(is_split < self.plan.split && id % 2 == 1);
        let server =
            |next: u64| mixed(pair ^ (next << 44)).wrapping_add(shift) % self.plan.servers as u64;
        let up = |server: &u64| self.servers[*server as usize].is_up;
        (0..1_000).map(server).find(up).unwrap_or_default() as u16
    }

    /// The seats of one server.
    pub(crate) fn seats_of(&self, server: u16) -> u32 {
        self.servers[usize::from(server)].seats.iter().sum()
    }
}
