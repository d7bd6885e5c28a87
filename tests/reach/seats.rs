//! Joins, leaves, sleeps, and the way back to a lost seat.

use crate::plan::{CLAIM_TIMEOUT, CLIENT_TIMEOUT};
use crate::queue::{SECOND, Time, US, seconds};
use crate::world::{Attempt, Event, SessionId, Stage, State, World, us};

/// A seat is free so long before another user takes it.
const FREE: f64 = 5.0;
/// A machine sleeps so long, on average.
const SLEEP: f64 = 20.0;
/// Parts of a server's work for a join: before the claim, after the grant, after the fence is ratified.
const SLICES: f64 = 3.0;

impl World<'_> {
    pub(crate) fn join(&mut self, now: Time, stage: Stage, id: SessionId, attempt: Attempt) {
        if self.sessions[id as usize].attempt != attempt {
            return;
        }
        match stage {
            Stage::Broken => self.refused(now, id, 0),
            Stage::Connect => self.connect(now, id),
            Stage::Claim => self.claim(now, id),
            Stage::Granted => self.slice(now, id, Stage::Ratify),
            Stage::Ratify => self.ratify(now, id),
            Stage::Ratified => self.slice(now, id, Stage::Seat),
            Stage::Seat => self.seat(now, id),
        }
    }

    fn connect(&mut self, now: Time, id: SessionId) {
        let server = self.home(id);
        let session = &mut self.sessions[id as usize];
        session.server = server;
        session.connected_at = now;
        session.state = State::Joining;
        if !self.servers[usize::from(server)].is_up {
            return self.refused(now, id, 0);
        }
        self.slice(now, id, Stage::Claim);
    }

    /// The server works on between the answers of Redis and of PostgreSQL: each part waits for its turn again, behind the
    /// edits and joins that have come meanwhile.
    fn slice(&mut self, now: Time, id: SessionId, next: Stage) {
        let server = usize::from(self.sessions[id as usize].server);
        let end = self.servers[server].station.serve(now, us(self.costs.server_join) / SLICES);
        self.then(end, next, id);
    }

    fn claim(&mut self, now: Time, id: SessionId) {
        let node = self.node_of(id);
        if self.redis[node].is_down(now) {
            return self.refused(now, id, CLAIM_TIMEOUT);
        }
        self.found.commands += self.costs.commands_join as u64;
        let end = self.redis[node].serve(now, us(self.costs.redis_claim));
        self.then(end, Stage::Granted, id);
    }

    fn ratify(&mut self, now: Time, id: SessionId) {
        let partition = self.partition_of(id);
        if self.postgres[partition].is_down(now) {
            return self.refused(now, id, SECOND);
        }
        let end = self.postgres[partition].serve(now, us(self.costs.postgres_join));
        self.then(end, Stage::Ratified, id);
    }

    /// The queues are over: what an undisturbed join waits for beside the work of the three components remains.
    fn seat(&mut self, now: Time, id: SessionId) {
        let node = self.node_of(id);
        let alone = self.random.skewed(self.costs.join_p50, self.costs.join_p99);
        let work = self.costs.server_join + self.costs.redis_claim + self.costs.postgres_join;
        let rest = us((alone - work).max(0.0)) as Time;
        let session = &mut self.sessions[id as usize];
        session.state = State::Seated;
        session.failures = 0;
        self.found.joins.add(now + rest - session.connected_at);
        if let Some(lost_at) = session.lost_at.take() {
            self.found.again.add(now + rest - lost_at);
        }
        let (server, kept) = (session.server, std::mem::take(&mut session.kept));
        self.servers[usize::from(server)].seats[node] += 1;
        if 0 < kept {
            self.edit(now, id, kept.into());
        }
    }

    /// The attempt failed after `wait`; the page backs off.
    fn refused(&mut self, now: Time, id: SessionId, wait: Time) {
        let session = &mut self.sessions[id as usize];
        session.state = State::Joining;
        session.failures = (session.failures + 1).min(20);
        let pause = self.plan.pause(session.failures, &mut self.random);
        self.void(id);
        self.then(now + wait + pause, Stage::Connect, id);
    }

    fn then(&mut self, at: Time, stage: Stage, id: SessionId) {
        self.queue.put(at, Event::Join(stage, id, self.sessions[id as usize].attempt));
    }

    fn void(&mut self, id: SessionId) -> Attempt {
        let session = &mut self.sessions[id as usize];
        session.attempt = session.attempt.wrapping_add(1);
        session.attempt
    }

    /// The lock of a seated session ends. Its caller voids the attempts.
    pub(crate) fn unseat(&mut self, id: SessionId, state: State) {
        let node = self.node_of(id);
        let session = &mut self.sessions[id as usize];
        if session.state == State::Seated {
            self.servers[usize::from(session.server)].seats[node] -= 1;
        }
        session.state = state;
    }

    pub(crate) fn visit(&mut self, now: Time) {
        let Some((id, _)) = self.someone(now, Event::Visit) else { return };
        self.unseat(id, State::Left);
        self.void(id);
        self.found.commands += self.costs.commands_leave as u64;
        let at = now + seconds(FREE * 2.0 * self.random.unit());
        self.then(at, Stage::Connect, id);
    }

    pub(crate) fn sleep(&mut self, now: Time) {
        let Some((id, _)) = self.someone(now, Event::Sleep) else { return };
        let until = now + seconds(self.random.exponential(SLEEP));
        self.fall_asleep(now, id, until);
    }

    /// The machine of a seated session sleeps until `until`. A page that wakes reconnects at once.
    pub(crate) fn fall_asleep(&mut self, now: Time, id: SessionId, until: Time) {
        // The server does not notice a shorter sleep: the socket works on.
        if until < now + CLIENT_TIMEOUT {
            return;
        }
        let attempt = self.void(id);
        self.queue.put(now + CLIENT_TIMEOUT, Event::Silent(id, attempt));
        // Connects a microsecond later than the release at the earliest.
        self.then(until + US, Stage::Connect, id);
    }

    pub(crate) fn silent(&mut self, id: SessionId, attempt: Attempt) {
        if self.sessions[id as usize].attempt == attempt && self.seated_at(id).is_some() {
            self.unseat(id, State::Asleep);
        }
    }
}
