//! The world of the model: true time, servers with drifting clocks, a network that loses and delays,
//! and the events in the order of time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::REASSERT_GRACE;
use crate::model::backend::{ModelBackend, Request};
use crate::model::claimants::Session;
use crate::model::database::{Database, Job};
use crate::model::deadlines::DeadlineRule;
use crate::model::plan::{Dice, MS, Network, SECOND, Step, What};
use crate::model::{KEYS, Lawful, Number, RENEW_EVERY, SERVERS, Seen, TTL, Wrong, beginning};
use crate::types::{HeldLock, Released, Verdict};
use crate::wait_queue::QueueStatus;
use galley_domain::fence::Fence;

/// Largest drift of a server's clock, in millionths: less than the margin of a lease covers.
const DRIFT_MAX: u64 = 30_000;

pub(crate) struct World<B> {
    /// True time, in µs.
    pub(super) now: u64,
    pub(super) dice: Dice,
    events: BTreeMap<(u64, u64), Event>,
    numbered: u64,
    /// Calls before their timeout.
    open: BTreeSet<u64>,
    pub(super) backend: ModelBackend,
    /// Offset of the backend's clock from true time.
    skew: i64,
    /// Total of the backend clock's steps back.
    pub(super) stepped_back: u64,
    /// Number of events at the backend or a clock that no lease covers. The fence covers them.
    pub(super) disturbances: u64,
    down_until: u64,
    /// Number of the backend's current run.
    pub(super) run: u64,
    network: Network,
    pub(super) database: Database,
    pub(super) servers: Vec<Server>,
    pub(super) sessions: Vec<Session<B>>,
    pub(super) seen: Seen,
}

pub(crate) struct Server {
    /// Drift of its clock, in millionths.
    drift: i64,
    /// How long its clock stood still, in µs.
    slept: u64,
    pub(super) halted_until: u64,
    pub(super) asleep_until: u64,
    pub(super) halts: u64,
    pub(super) halted: u64,
    /// Number of its current process.
    pub(super) life: u32,
    ticks: u64,
    /// The end of the reassert grace after a restart of the backend.
    pub(super) grace_until: Instant,
    pub(super) ticked_at: Option<Instant>,
}

/// A call to the backend.
#[derive(Clone)]
pub(crate) struct Call {
    id: u64,
    pub(super) server: usize,
    life: u32,
    /// The run of the backend at sending: a restart closes the connection.
    run: u64,
    /// By the server's clock.
    pub(super) sent_at: Instant,
    pub(super) operation: Operation,
}

#[derive(Clone)]
pub(crate) enum Operation {
    Lock(Box<Request>),
    Renew(Vec<(Number, HeldLock)>),
    Release(Number),
}

pub(crate) enum Reply {
    QueueStatus(Option<QueueStatus>),
    Verdicts(Vec<Verdict>),
    Released(Released),
}

pub(super) enum Event {
    /// A call reaches the backend; the delay of its reply, or none if the reply is lost.
    Arrives(Call, Option<u64>),
    Answered(Call, Reply),
    TimesOut(Call),
    Ticks(usize, u64),
    /// A waiter polls, unless it has polled since.
    Polls(Number, u64),
    /// A waiter receives its hand-over message.
    Notified(Number),
    Stores(Job),
    Ratified(Number, Result<(), Fence>),
}

impl<B: DeadlineRule> World<B> {
    pub(crate) fn new(wrong: Option<Wrong>) -> Self {
        let mut world = Self {
            now: SECOND,
            dice: Dice::new(0),
            events: BTreeMap::new(),
            numbered: 0,
            open: BTreeSet::new(),
            backend: ModelBackend::new(KEYS, wrong),
            skew: 0,
            stepped_back: 0,
            disturbances: 0,
            down_until: 0,
            run: 0,
            network: Network::Fair,
            database: Database::new(KEYS, wrong),
            servers: Vec::new(),
            sessions: Vec::new(),
            seen: Seen::default(),
        };
        let drifts = [0, DRIFT_MAX.cast_signed(), -DRIFT_MAX.cast_signed()];
        for (number, drift) in drifts.into_iter().cycle().take(SERVERS).enumerate() {
            world.servers.push(Server {
                drift,
                slept: 0,
                halted_until: 0,
                asleep_until: 0,
                halts: 0,
                halted: 0,
                life: 0,
                ticks: 0,
                grace_until: beginning(),
                ticked_at: None,
            });
            world.tick_in(number, SECOND * (number as u64 + 1));
        }
        world
    }

    /// One step of the plan, and all events due before it.
    pub(crate) fn step(&mut self, step: &Step) -> Lawful {
        self.run_until(self.now + step.after)?;
        self.dice = Dice::new(step.luck);
        match step.what {
            What::Comes(manner) => self.comes(manner),
            What::Leaves => self.leaves(),
            What::GoesSilent => self.goes_silent(),
            What::LetGo => self.evict_one(),
            What::Writes => self.writes()?,
            What::Pauses(time) => self.halts(time, 0),
            What::Sleeps(time) => self.halts(time, time),
            What::Dies => self.dies(),
            What::Outage(time) => self.down_until = self.now + time,
            What::Step(by) => {
                self.disturbances += 1;
                self.skew += by;
                self.stepped_back += by.min(0).unsigned_abs();
            }
            What::Empties => {
                self.backend.empty();
                self.comes_back();
            }
            What::Copies => self.backend.copy_to_replica(),
            What::Saves => self.backend.save(),
            What::GoesBack => {
                let number = self.dice.index(self.backend.snapshots());
                self.backend.restore(number);
                self.comes_back();
            }
            What::FailsOver => {
                self.backend.fail_over();
                self.comes_back();
            }
            What::Network(network) => self.network = network,
        }
        self.check_bounds()
    }

    pub(crate) fn run_until(&mut self, until: u64) -> Lawful {
        while let Some(entry) = self.events.first_entry()
            && entry.key().0 <= until
        {
            let ((at, _), event) = entry.remove_entry();
            self.now = self.now.max(at);
            self.handle(event)?;
        }
        self.now = until;
        Ok(())
    }

    /// Ends all faults, and runs until all servers run.
    pub(super) fn calm_down(&mut self) -> Lawful {
        (self.network, self.down_until) = (Network::Fair, self.now);
        let awake = self.servers.iter().map(|server| server.halted_until).max();
        self.run_until(self.now.max(awake.unwrap_or_default()))
    }

    fn handle(&mut self, event: Event) -> Lawful {
        // A halted process receives it when it resumes.
        let halted_until = self.at_server(&event).map_or(0, |at| self.servers[at].halted_until);
        if self.now < halted_until {
            self.push(halted_until, event);
            return Ok(());
        }
        match event {
            Event::Arrives(call, back) => self.arrives(call, back),
            Event::Answered(call, reply) => {
                if self.open.remove(&call.id) && self.servers[call.server].life == call.life {
                    self.answered(&call, reply);
                }
                Ok(())
            }
            Event::TimesOut(call) => {
                if self.open.remove(&call.id) && self.servers[call.server].life == call.life {
                    self.timed_out(&call);
                }
                Ok(())
            }
            Event::Ticks(server, number) if self.servers[server].ticks == number => {
                self.tick_in(server, RENEW_EVERY);
                self.ticks(server);
                Ok(())
            }
            Event::Ticks(..) => Ok(()),
            Event::Polls(who, number) => {
                if self.sessions[who].polls == number {
                    self.poll(who);
                }
                Ok(())
            }
            Event::Notified(who) => {
                self.notify(who);
                Ok(())
            }
            Event::Stores(job) => self.stores(job),
            Event::Ratified(who, ratified) => {
                self.ratified(who, ratified);
                Ok(())
            }
        }
    }

    /// The server in whose process an event happens.
    fn at_server(&self, event: &Event) -> Option<usize> {
        match event {
            Event::Answered(call, _) | Event::TimesOut(call) => Some(call.server),
            Event::Ticks(server, _) => Some(*server),
            Event::Polls(who, _) | Event::Notified(who) | Event::Ratified(who, _) => {
                Some(self.sessions[*who].server)
            }
            Event::Arrives(..) | Event::Stores(_) => None,
        }
    }

    pub(super) fn push(&mut self, at: u64, event: Event) {
        self.numbered += 1;
        self.events.insert((at, self.numbered), event);
    }

    /// Calls the backend with a timeout of `patience`.
    pub(super) fn call(&mut self, server: usize, operation: Operation, timeout: u64) {
        self.numbered += 1;
        let (id, life) = (self.numbered, self.servers[server].life);
        let call = Call { id, server, life, run: self.run, sent_at: self.local(server), operation };
        self.open.insert(id);
        self.push(self.now + timeout, Event::TimesOut(call.clone()));
        let (there, back) = (self.travel(), self.travel());
        if let Some(there) = there {
            self.push(self.now + there, Event::Arrives(call, back));
        }
    }

    /// The delay of a message; none if it is lost.
    pub(super) fn travel(&mut self) -> Option<u64> {
        match self.network {
            Network::Fair => Some(self.dice.between(MS / 10, 5 * MS)),
            Network::Slow => Some(self.dice.between(MS, SECOND)),
            Network::Lossy if self.dice.in_a_hundred(25) => None,
            Network::Lossy => Some(self.dice.between(MS, 60 * MS)),
        }
    }

    fn arrives(&mut self, call: Call, back: Option<u64>) -> Lawful {
        if self.now < self.down_until || call.run != self.run {
            return Ok(());
        }
        let reply = match &call.operation {
            Operation::Lock(request) => Reply::QueueStatus(self.claims(request)?),
            Operation::Release(who) => Reply::Released(self.releases(*who)?),
            Operation::Renew(held) => Reply::Verdicts(self.renews(held)?),
        };
        if let Some(back) = back {
            self.push(self.now + back, Event::Answered(call, reply));
        }
        Ok(())
    }

    /// Schedules the server's next tick in `time`, by its own clock.
    pub(super) fn tick_in(&mut self, server: usize, time: u64) {
        let ticks = self.servers[server].ticks + 1;
        self.servers[server].ticks = ticks;
        self.push(self.now + self.true_time(server, time), Event::Ticks(server, ticks));
    }

    /// The true time in which the server's clock advances by `time`.
    pub(super) fn true_time(&self, server: usize, time: u64) -> u64 {
        time * 1_000_000 / 1_000_000_u64.saturating_add_signed(self.servers[server].drift)
    }

    /// The clock of a server.
    pub(super) fn local(&self, server: usize) -> Instant {
        let at = &self.servers[server];
        let shown = self.now * 1_000_000_u64.saturating_add_signed(at.drift) / 1_000_000;
        beginning() + Duration::from_micros(100 * SECOND + shown - at.slept)
    }

    /// The backend's clock.
    pub(super) fn backend_now(&self) -> Instant {
        let shown = (self.now + 10_000 * SECOND).saturating_add_signed(self.skew);
        beginning() + Duration::from_micros(shown)
    }

    fn halts(&mut self, time: u64, sleeps: u64) {
        let number = self.dice.index(SERVERS);
        let now = self.now;
        let server = &mut self.servers[number];
        if now < server.halted_until {
            return;
        }
        server.halted_until = now + time;
        server.halts += 1;
        server.halted += time;
        // The process reads no clock during the halt.
        server.slept += sleeps;
        server.asleep_until = now + sleeps;
        self.disturbances += u64::from(sleeps > 0);
    }

    /// The backend restarts. Each server detects that before its next call.
    fn comes_back(&mut self) {
        self.disturbances += 1;
        self.run += 1;
        for server in 0..SERVERS {
            self.servers[server].grace_until = self.local(server) + REASSERT_GRACE;
            if let Some(soon) = self.travel() {
                self.tick_in(server, soon);
            }
        }
    }

    fn dies(&mut self) {
        let number = self.dice.index(SERVERS);
        self.servers[number].life += 1;
        self.servers[number].ticked_at = None;
        for who in 0..self.sessions.len() {
            if self.sessions[who].server == number {
                self.kill(who);
            }
        }
        self.tick_in(number, RENEW_EVERY);
    }
}

/// TTL of a seat, in µs.
pub(super) const TTL_US: u64 = 12 * SECOND;

const _: () = assert!(TTL.as_micros() == TTL_US as u128);
