//! Calls to the backend with their checks, the bounds at each moment, and the checks at the end of a
//! run.

use crate::memory::table::Left;
use crate::model::backend::Request;
use crate::model::claimants::{State, pass_of};
use crate::model::deadlines::DeadlineRule;
use crate::model::plan::{MS, SECOND};
use crate::model::world::{Event, TTL_US, World};
use crate::model::{
    Breach, CLIENT_TIMEOUT, KEYS, Lawful, Number, RENEW_EVERY, SERVERS, TTL, USERS, breach,
};
use crate::types::{HeldLock, Released, Takeover, Verdict};
use crate::wait_queue::QueueStatus;

/// Time after a session's end in which its last call travels to the backend and back, with a queue
/// entry that the call creates.
const ON_ITS_WAY: u64 = 4 * SECOND;
/// Longest delay of a tick: the drift of the server's clock, and the retry of a failed round.
const TICK_LATE: u64 = SECOND + 500 * MS;

impl<B: DeadlineRule> World<B> {
    pub(super) fn claims(&mut self, request: &Request) -> Result<Option<QueueStatus>, Breach> {
        let (now, key, who) = (self.backend_now(), request.key, request.who);
        let holder = self.backend.holder(key, now);
        let may_take = |it: &Number| match &request.claim.over {
            Takeover::None => false,
            Takeover::Value(value) => *value == super::backend::value_of(*it),
            Takeover::SameOwner => self.sessions[*it].user == self.sessions[who].user,
            Takeover::ReclaimToken(pass) => {
                let is_same = self.sessions[*it].user == self.sessions[who].user;
                is_same && pass_of(*it).as_ref() == Some(pass)
            }
        };
        let over = holder.filter(may_take);
        let expired = self.backend.expired(key, now);
        let answer = self.backend.claim(request, over, now)?;
        if matches!(answer.reply, Some(QueueStatus::Granted(_))) {
            self.begins_anew(who);
        }
        self.passes(key, expired, answer.notified)?;
        Ok(answer.reply)
    }

    pub(super) fn releases(&mut self, who: Number) -> Result<Released, Breach> {
        let (now, key) = (self.backend_now(), self.sessions[who].key);
        let grace = self.grace(self.sessions[who].server);
        let left = Left { any: !grace.is_zero(), unknown: false };
        let expired = self.backend.expired(key, now);
        let answer = self.backend.release(key, who, left, now)?;
        self.sessions[who].is_released = true;
        self.passes(key, expired, answer.notified)?;
        Ok(answer.reply)
    }

    pub(super) fn renews(&mut self, held: &[(Number, HeldLock)]) -> Result<Vec<Verdict>, Breach> {
        let now = self.backend_now();
        let mut verdicts = Vec::with_capacity(held.len());
        for (who, lease) in held {
            let verdict = self.backend.renew(self.sessions[*who].key, lease, now, TTL)?;
            if verdict != Verdict::Lost {
                self.begins_anew(*who);
            }
            let is_restored = verdict == Verdict::Reasserted && self.sessions[*who].is_released;
            self.seen.restored += u64::from(is_restored);
            verdicts.push(verdict);
        }
        Ok(verdicts)
    }

    /// A lock changes its holder, and the backend may notify the new one. If the lock had expired,
    /// the deadline of its former holder must have passed before (G3). An event that no lease covers
    /// lifts this.
    fn passes(&mut self, key: usize, expired: Option<Number>, notified: Option<Number>) -> Lawful {
        let now = self.backend_now();
        if let Some(former) = expired
            && self.backend.holder(key, now).is_some_and(|holder| holder != former)
        {
            self.seen.ran_out += 1;
            let session = &self.sessions[former];
            if let State::Seated { rule, .. } = &session.state
                && session.disturbances == self.disturbances
                && rule.may_write(self.local(session.server))
            {
                return Err(breach("G3", format!("{former} may write after the next grant")));
            }
        }
        let Some(notified) = notified else { return Ok(()) };
        self.seen.handed_over += 1;
        self.begins_anew(notified);
        if let Some(soon) = self.travel() {
            self.push(self.now + soon, Event::Notified(notified));
        }
        Ok(())
    }

    /// The backend's lease of a session starts again. G3 does not cover a session whose server's
    /// clock stands still.
    fn begins_anew(&mut self, who: Number) {
        let is_asleep = self.now < self.servers[self.sessions[who].server].asleep_until;
        self.sessions[who].disturbances = if is_asleep { u64::MAX } else { self.disturbances };
    }

    /// G4, at any moment: an ended or silent session holds a seat for a bounded time only.
    pub(super) fn check_bounds(&self) -> Lawful {
        let now = self.backend_now();
        for key in 0..KEYS {
            let Some(holder) = self.backend.holder(key, now) else { continue };
            let session = &self.sessions[holder];
            let Some(ended) = session.ended else { continue };
            // A step back of the backend's clock prolongs its leases by that step.
            let allowed = TTL_US + ON_ITS_WAY + (self.stepped_back - session.stepped_back);
            if ended + allowed < self.now {
                return Err(breach("G4", format!("{holder} has ended and still holds the lock")));
            }
        }
        for (who, session) in self.sessions.iter().enumerate().filter(|(_, it)| it.is_seated()) {
            let Some((silent, halts, halted)) = session.silent else { continue };
            let server = &self.servers[session.server];
            // During each halt of its server, the server received no pong.
            let stood = (server.halts - halts) * 2 * RENEW_EVERY + (server.halted - halted);
            // One round more for a halt that began before the silence.
            let allowed = CLIENT_TIMEOUT + 2 * RENEW_EVERY + TICK_LATE + stood;
            if self.runs(session.server) && silent + allowed < self.now {
                return Err(breach("G4", format!("{who} is silent and still holds its seat")));
            }
        }
        Ok(())
    }

    /// The end of a run: no more faults, and the wait queues drain.
    pub(super) fn finish(&mut self) -> Lawful {
        self.calm_down()?;
        // Every orphaned lease expires, also after steps back of the clock.
        self.run_until(self.now + TTL_US + ON_ITS_WAY + self.stepped_back)?;
        self.check_bounds()?;
        for _round in 0..=self.sessions.len() {
            let seated = (0..self.sessions.len()).filter(|who| self.sessions[*who].is_seated());
            seated.collect::<Vec<_>>().into_iter().for_each(|who| self.ends(who));
            if self.is_quiet() {
                break;
            }
            // Half of the time for which a dead waiter may hold a handed-over lock.
            self.run_until(self.now + 3 * SECOND)?;
        }
        if !self.is_quiet() {
            let waits = self.sessions.iter().position(|it| it.ended.is_none());
            return Err(breach("G5", format!("somebody waits for ever: {waits:?}")));
        }
        self.a_newcomer_is_seated()
    }

    fn is_quiet(&self) -> bool {
        let now = self.backend_now();
        let is_free = |key| self.backend.holder(key, now).is_none();
        self.sessions.iter().all(|it| it.ended.is_some())
            && (0..KEYS).all(|key| is_free(key) && self.backend.waiting(key, now) == 0)
    }

    /// A claim acquires a free seat, and its holder writes.
    fn a_newcomer_is_seated(&mut self) -> Lawful {
        for key in 0..KEYS {
            self.start_claim(key % SERVERS, USERS, key, Takeover::None, false);
        }
        self.run_until(self.now + 6 * SECOND)?;
        let written = self.seen.written;
        self.writes()?;
        self.run_until(self.now + 6 * SECOND)?;
        if self.seen.written != written + KEYS as u64 {
            return Err(breach("G4", "a claim does not acquire a free seat"));
        }
        for who in self.sessions.len() - KEYS..self.sessions.len() {
            self.ends(who);
        }
        self.run_until(self.now + SECOND)?;
        if self.is_quiet() { Ok(()) } else { Err(breach("G4", "a released seat is not free")) }
    }

    /// Whether the process of that server runs.
    pub(super) fn runs(&self, server: usize) -> bool {
        self.servers[server].halted_until <= self.now
    }
}
