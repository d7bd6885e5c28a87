//! The lock backend of the model: the real table and a lagging replica of it. The oracle checks each
//! reply. A [`Wrong`] makes the backend break one rule.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use crate::memory::table::{Left, Moment, Table};
use crate::model::oracle::{Account, ClaimFacts, ClaimReply};
use crate::model::{Breach, Lawful, Number, Wrong, breach};
use crate::name::LockName;
use crate::types::{Claim, HeldLock, Released, Takeover, Verdict};
use crate::wait_queue::{QueueEntry, QueueStatus};
use galley_domain::fence::Fence;
use galley_domain::ids::NodeId;

/// Number of stored snapshots.
const SNAPSHOTS: usize = 4;

#[derive(Clone, Debug, Default)]
struct State {
    table: Table,
    accounts: Vec<Account>,
}

pub(crate) struct ModelBackend {
    state: State,
    replica: State,
    /// Stored snapshots, oldest first.
    snapshots: Vec<State>,
    names: Vec<LockName>,
    server: NodeId,
    wrong: Option<Wrong>,
}

/// A pending claim or poll.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) claim: Claim,
    pub(crate) key: usize,
    pub(crate) who: Number,
    /// The arrival time of a waiter, or 0 at its first claim; none if it does not wait.
    pub(crate) waits: Option<u64>,
    /// The rest of the reassert grace of a restarted backend.
    pub(crate) grace: Duration,
    /// How long former holders may still reassert at a backend that has lost the grant.
    pub(crate) remembers: Duration,
}

/// The backend's reply, and the waiter that it notified.
pub(crate) struct Answered<T> {
    pub(crate) reply: T,
    pub(crate) notified: Option<Number>,
}

impl ModelBackend {
    pub(crate) fn new(keys: usize, wrong: Option<Wrong>) -> Self {
        let names = (0..keys).map(|key| LockName::named(&format!("model:{key}"))).collect();
        let state = State { table: Table::default(), accounts: vec![Account::default(); keys] };
        let (replica, server) = (state.clone(), NodeId::generate());
        Self { snapshots: vec![state.clone()], state, replica, names, server, wrong }
    }

    pub(crate) fn name(&self, key: usize) -> &LockName {
        &self.names[key]
    }

    /// The holder, by the oracle's account.
    pub(crate) fn holder(&self, key: usize, now: Instant) -> Option<Number> {
        self.state.accounts[key].holder(now)
    }

    /// The last holder, if its lease expired.
    pub(crate) fn expired(&self, key: usize, now: Instant) -> Option<Number> {
        self.state.accounts[key].expired(now)
    }

    /// The number of waiters.
    pub(crate) fn waiting(&self, key: usize, now: Instant) -> usize {
        self.state.accounts[key].waiting(now)
    }

    pub(crate) fn empty(&mut self) {
        let keys = self.names.len();
        self.state = State { table: Table::default(), accounts: vec![Account::default(); keys] };
    }

    pub(crate) fn copy_to_replica(&mut self) {
        self.replica = self.state.clone();
    }

    /// Takes a snapshot.
    pub(crate) fn save(&mut self) {
        if self.snapshots.len() >= SNAPSHOTS {
            self.snapshots.remove(0);
        }
        self.snapshots.push(self.state.clone());
    }

    pub(crate) fn snapshots(&self) -> usize {
        self.snapshots.len()
    }

    /// Restores a snapshot.
    pub(crate) fn restore(&mut self, number: usize) {
        if let Some(snapshot) = self.snapshots.get(number) {
            self.state = snapshot.clone();
        }
    }

    pub(crate) fn fail_over(&mut self) {
        self.state = self.replica.clone();
    }

    /// Claims the lock; `over` is the holder that the claim may replace.
    pub(crate) fn claim(
        &mut self,
        request: &Request,
        over: Option<Number>,
        now: Instant,
    ) -> Result<Answered<Option<QueueStatus>>, Breach> {
        let Request { claim, key, who, waits, grace, remembers } = request;
        let mut waiter =
            waits.map(|arrival| QueueEntry { server: self.server, arrival, remembers: *remembers });
        let mut claim = claim.clone();
        let mut left = Left { any: !grace.is_zero(), unknown: !remembers.is_zero() };
        match self.wrong {
            Some(Wrong::BareCounter) => claim.floor = Fence::ZERO,
            Some(Wrong::NoGrace) => left = Left::default(),
            Some(Wrong::GraceOfTheEmpty) => {
                left = Left { any: false, unknown: left.any || left.unknown };
            }
            Some(Wrong::TakeoverByAnyUser) if claim.over == Takeover::SameOwner => {
                let holder = self.state.table.holder(&claim.name, now);
                claim.over = Takeover::Value(holder.map_or(String::new(), |holder| holder.value));
            }
            Some(Wrong::NewcomersFirst) => {
                waiter = waiter.map(|it| QueueEntry { arrival: 1_000_000 - *who as u64, ..it });
            }
            _ => {}
        }
        let moment = self.moment(now);
        let (status, notified) = self.state.table.claim(&claim, waiter.as_ref(), left, moment);
        let reply = match &status {
            None => ClaimReply::Spent,
            Some(QueueStatus::Granted(grant)) => ClaimReply::Granted {
                fence: grant.fence,
                replaced: grant.replaced.as_ref().map(|holder| number_of(&holder.value)),
            },
            Some(QueueStatus::Queued { position, arrival, .. }) => {
                ClaimReply::Queued { position: *position, arrival: *arrival }
            }
            Some(QueueStatus::Refused(_)) => ClaimReply::Refused,
        };
        let facts = ClaimFacts {
            who: *who,
            floor: request.claim.floor,
            over,
            waits: *waits,
            left: Left { any: !grace.is_zero(), unknown: !remembers.is_zero() },
            now,
            until: now + claim.ttl,
        };
        let notified = notified.map(|(value, _handover)| number_of(&value));
        self.state.accounts[*key].claimed(facts, reply, notified)?;
        self.compare(*key, now, "G1")?;
        Ok(Answered { reply: status, notified })
    }

    pub(crate) fn release(
        &mut self,
        key: usize,
        who: Number,
        left: Left,
        now: Instant,
    ) -> Result<Answered<Released>, Breach> {
        let name = self.names[key].clone();
        let mut value = value_of(who);
        if self.wrong == Some(Wrong::ReleaseWithoutCompare)
            && let Some(holder) = self.state.table.holder(&name, now)
        {
            value = holder.value;
        }
        let moment = self.moment(now);
        let (reply, notified) =
            self.state.table.release(&name, &value, Duration::ZERO, left, moment);
        let notified = notified.map(|(value, _handover)| number_of(&value));
        self.state.accounts[key].released(who, now, reply == Released::Freed, notified, left)?;
        self.compare(key, now, "G6")?;
        Ok(Answered { reply, notified })
    }

    pub(crate) fn renew(
        &mut self,
        key: usize,
        held: &HeldLock,
        now: Instant,
        ttl: Duration,
    ) -> Result<Verdict, Breach> {
        let holder = self.state.table.holder(&held.name, now);
        let is_free = holder.is_none();
        let mut verdict = self.state.table.renew(held, now, ttl);
        match self.wrong {
            Some(Wrong::NoFenceComparison)
                if holder.is_some_and(|holder| holder.value != held.value) =>
            {
                verdict = Verdict::Lost;
            }
            Some(Wrong::RenewalRaisesReleased) if is_free => verdict = Verdict::Reasserted,
            Some(Wrong::RestartForgets) if is_free => verdict = Verdict::Lost,
            _ => {}
        }
        let who = number_of(&held.value);
        self.state.accounts[key].renewed(who, held.fence, now, now + ttl, verdict)?;
        self.compare(key, now, "G6")?;
        Ok(verdict)
    }

    /// Compares holder, number of waiters and fence of the table with the oracle's account.
    fn compare(&mut self, key: usize, now: Instant, law: &'static str) -> Lawful {
        let account = &mut self.state.accounts[key];
        let seen = self.state.table.holder(&self.names[key], now);
        let who = seen.as_ref().map(|holder| number_of(&holder.value));
        if who != account.holder(now) {
            let expected = account.holder(now);
            return Err(breach(law, format!("{who:?} holds the lock instead of {expected:?}")));
        }
        let Some(holder) = seen else { return Ok(()) };
        if holder.waiting != account.waiting(now) {
            return Err(breach("G5", format!("{} wait: {account:?}", holder.waiting)));
        }
        account.saw_fence(holder.fence)
    }

    fn moment(&self, now: Instant) -> Moment {
        let wall = match self.wrong {
            // The bare counter ignores the time and the floor.
            Some(Wrong::BareCounter) => DateTime::UNIX_EPOCH,
            _ => wall(now),
        };
        Moment { at: now, wall }
    }
}

/// Fences rise with the clock on which leases run, as in Redis.
fn wall(now: Instant) -> DateTime<Utc> {
    let since = now.saturating_duration_since(super::beginning());
    DateTime::from_timestamp(1_790_000_000, 0).unwrap_or_default() + since
}

pub(crate) fn value_of(who: Number) -> String {
    format!("s{who}")
}

fn number_of(value: &str) -> Number {
    value.strip_prefix('s').and_then(|number| number.parse().ok()).unwrap_or(Number::MAX)
}
