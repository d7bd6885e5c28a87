//! The sessions with a seat in the model, and the renewals of their servers, as `seats::tick`
//! and `locks::renewal` do them. The deadlines follow the real rules.

use std::time::Duration;

use tokio::time::Instant;

use crate::model::claimants::{Session, State, own_deadline};
use crate::model::database::Job;
use crate::model::deadlines::DeadlineRule;
use crate::model::plan::{MS, SECOND};
use crate::model::world::{Event, Operation, World};
use crate::model::{CLIENT_TIMEOUT, Lawful, Number, RENEW_EVERY, breach};
use crate::types::Verdict;

impl<B: DeadlineRule> World<B> {
    /// The seat tick of a server: ends silent and expired sessions, and renews the others.
    pub(super) fn ticks(&mut self, server: usize) {
        let now = self.local(server);
        let before = self.servers[server].ticked_at.replace(now);
        let overslept = before.is_some_and(|before| {
            Duration::from_micros(2 * RENEW_EVERY) < now.duration_since(before)
        });
        let mut held = Vec::new();
        for who in 0..self.sessions.len() {
            let session = &self.sessions[who];
            if session.server != server {
                continue;
            }
            let State::Seated { rule, held: lease } = &session.state else { continue };
            let is_silent = session.silent.is_some_and(|(at, ..)| {
                self.now.saturating_sub(at) >= CLIENT_TIMEOUT && !overslept
            });
            if !rule.is_renewable(now) || is_silent {
                self.ends(who);
            } else {
                held.push((who, lease.clone()));
            }
        }
        if !held.is_empty() {
            self.call(server, Operation::Renew(held), RENEW_EVERY);
        }
    }

    pub(super) fn apply_verdict(&mut self, who: Number, sent_at: Instant, verdict: Verdict) {
        let now = self.local(self.sessions[who].server);
        let session = &mut self.sessions[who];
        let State::Seated { rule, held } = &session.state else { return };
        if verdict == Verdict::Lost {
            let has_last_fence = held.fence == self.database.floor(session.key);
            self.seen.lost += 1;
            self.seen.lost_to_a_restart += u64::from(session.run < self.run && has_last_fence);
            return self.ends(who);
        }
        self.seen.reasserted += u64::from(verdict == Verdict::Reasserted);
        rule.renewed(sent_at, now);
        session.deadline = session.deadline.max(own_deadline(sent_at));
    }

    pub(super) fn leaves(&mut self) {
        if let Some(who) = self.some_session(|it| {
            it.is_seated() || matches!(it.state, State::Queued | State::Claiming)
        }) {
            self.ends(who);
        }
    }

    pub(super) fn goes_silent(&mut self) {
        let now = self.now;
        if let Some(who) = self.some_session(|it| it.is_seated() && it.silent.is_none()) {
            let server = &self.servers[self.sessions[who].server];
            self.sessions[who].silent = Some((now, server.halts, server.halted));
        }
    }

    pub(super) fn evict_one(&mut self) {
        if let Some(who) = self.some_session(Session::is_seated) {
            self.ends(who);
        }
    }

    /// A random session that fulfils `is_so` and whose server runs.
    fn some_session(&mut self, is_so: impl Fn(&Session<B>) -> bool) -> Option<Number> {
        let those = (0..self.sessions.len())
            .filter(|who| is_so(&self.sessions[*who]) && self.runs(self.sessions[*who].server));
        let those: Vec<_> = those.collect();
        let index = self.dice.index(those.len());
        those.get(index).copied()
    }

    /// The holders write if their deadlines allow it.
    pub(super) fn writes(&mut self) -> Lawful {
        for who in 0..self.sessions.len() {
            let session = &self.sessions[who];
            let State::Seated { rule, held } = &session.state else { continue };
            if !self.runs(session.server) {
                continue;
            }
            let now = self.local(session.server);
            if !rule.may_write(now) {
                self.seen.doubted += 1;
                continue;
            }
            if session.deadline <= now {
                let late = now - session.deadline;
                return Err(breach("G3", format!("{who} writes {late:?} after its deadline")));
            }
            let job = Job::Write { key: session.key, fence: held.fence };
            self.store(job);
        }
        Ok(())
    }

    pub(super) fn store(&mut self, job: Job) {
        // Storage is reliable and may be slow.
        let slow = if self.dice.in_a_hundred(5) { self.dice.below(4 * SECOND) } else { 0 };
        let there = self.travel().unwrap_or(SECOND);
        self.push(self.now + there + slow, Event::Stores(job));
    }

    pub(super) fn stores(&mut self, job: Job) -> Lawful {
        match job {
            Job::Ratify { who, key, fence } => {
                let ratified = self.database.ratify(key, who, fence);
                self.push(self.now + MS, Event::Ratified(who, ratified));
            }
            Job::Write { key, fence } => {
                let taken = self.database.write(key, fence)?;
                self.seen.written += u64::from(taken);
                self.seen.writes_refused += u64::from(!taken);
            }
        }
        Ok(())
    }
}
