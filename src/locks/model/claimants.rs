//! The claimants of the model, from the claim to the seat or the end: the same operations as in
//! `seats::claim`, `locks::client::wait` and `locks::redis::pending_releases`.

use std::time::Duration;

use tokio::time::Instant;

use crate::REASSERT_GRACE;
use crate::model::backend::{Request, value_of};
use crate::model::database::Job;
use crate::model::deadlines::DeadlineRule;
use crate::model::plan::{MS, Manner, SECOND};
use crate::model::world::{Call, Event, Operation, Reply, World};
use crate::model::{KEYS, Number, RENEW_EVERY, SERVERS, TTL, USERS};
use crate::reclaim_token::ReclaimToken;
use crate::types::{Claim, Grant, HeldLock, Owner, Released, Takeover};
use crate::wait_queue::{POLL_INTERVAL, QueueStatus};
use galley_domain::fence::Fence;
use galley_domain::ids::NodeId;

/// Timeout of a single call.
const CALL_TIMEOUT: u64 = SECOND;

pub(crate) struct Session<B> {
    pub(super) server: usize,
    pub(super) user: usize,
    pub(super) key: usize,
    claim: Claim,
    pub(super) state: State<B>,
    tries: u32,
    arrival: u64,
    /// Number of its polls.
    pub(super) polls: u64,
    is_polling: bool,
    was_notified: bool,
    poll_failed: bool,
    /// The end of the holder's lease that it waits for, as far as the claimant knows.
    holder_until: Instant,
    /// A claim had no reply; the backend may have executed it or may still execute it.
    is_in_doubt: bool,
    denials: u32,
    /// Time of the client's last pong if it is silent, with the number and total length of its
    /// server's halts until then.
    pub(super) silent: Option<(u64, u64, u64)>,
    pub(super) ended: Option<u64>,
    /// The backend has executed its release.
    pub(super) is_released: bool,
    /// The run of the backend that granted the seat.
    pub(super) run: u64,
    /// Total of the backend clock's steps back at the session's arrival.
    pub(super) stepped_back: u64,
    /// Its write deadline, which the model computes here from send and reply times.
    pub(super) deadline: Instant,
    /// Number of disturbances when its lease last started again.
    pub(super) disturbances: u64,
}

pub(crate) enum State<B> {
    Claiming,
    Queued,
    Ratifying { grant: Grant, sent_at: Instant },
    Seated { rule: B, held: HeldLock },
    Ended,
}

impl<B: DeadlineRule> World<B> {
    pub(super) fn comes(&mut self, manner: Manner) {
        let (server, user, key) =
            (self.dice.index(SERVERS), self.dice.index(USERS), self.dice.index(KEYS));
        let over = match manner {
            Manner::Tries | Manner::Waits => Takeover::None,
            Manner::TakesOver => Takeover::SameOwner,
            Manner::Resumes => match self.silent_one(server, key) {
                Some(who) => {
                    let user = self.sessions[who].user;
                    // A resume by reclaim token, or a takeover after an unanswered liveness probe.
                    let after_probe = Takeover::Value(value_of(who));
                    let over = pass_of(who)
                        .filter(|_| who % 2 == 0)
                        .map_or(after_probe, Takeover::ReclaimToken);
                    return self.start_claim(server, user, key, over, false);
                }
                None => return,
            },
        };
        self.start_claim(server, user, key, over, manner == Manner::Waits);
    }

    fn silent_one(&self, server: usize, key: usize) -> Option<Number> {
        self.sessions.iter().position(|it| {
            it.server == server && it.key == key && it.silent.is_some() && it.is_seated()
        })
    }

    pub(super) fn start_claim(
        &mut self,
        server: usize,
        user: usize,
        key: usize,
        over: Takeover,
        waits: bool,
    ) {
        let who = self.sessions.len();
        let id = format!("u{user}").parse().expect("an owner's id");
        let claim = Claim {
            name: self.backend.name(key).clone(),
            value: value_of(who),
            owner: Owner { id, name: String::new(), node: node(), pass: pass_of(who) },
            floor: self.database.floor(key),
            ttl: TTL,
            over,
        };
        let now = self.local(server);
        self.sessions.push(Session {
            server,
            user,
            key,
            claim,
            state: State::Claiming,
            tries: 0,
            arrival: 0,
            polls: 0,
            is_polling: false,
            was_notified: false,
            poll_failed: false,
            holder_until: now,
            is_in_doubt: false,
            denials: 0,
            silent: None,
            ended: None,
            is_released: false,
            run: 0,
            stepped_back: self.stepped_back,
            deadline: now,
            disturbances: 0,
        });
        if waits { self.poll(who) } else { self.claim(who) }
    }

    fn claim(&mut self, who: Number) {
        let session = &self.sessions[who];
        let request = Request {
            claim: session.claim.clone(),
            key: session.key,
            who,
            waits: None,
            grace: self.grace(session.server),
            remembers: Duration::ZERO,
        };
        self.call(session.server, Operation::Lock(Box::new(request)), CALL_TIMEOUT);
    }

    /// A waiter polls the wait queue.
    pub(super) fn poll(&mut self, who: Number) {
        let server = self.sessions[who].server;
        let (now, met) = (self.local(server), self.grace(server));
        let session = &mut self.sessions[who];
        if session.is_polling || !matches!(session.state, State::Claiming | State::Queued) {
            return;
        }
        (session.is_polling, session.was_notified) = (true, false);
        let failed = if session.poll_failed { REASSERT_GRACE } else { Duration::ZERO };
        let request = Request {
            claim: session.claim.clone(),
            key: session.key,
            who,
            waits: Some(session.arrival),
            grace: met,
            remembers: session.holder_until.saturating_duration_since(now).max(failed),
        };
        self.call(server, Operation::Lock(Box::new(request)), CALL_TIMEOUT);
    }

    /// The rest of the reassert grace, in which a restarted backend serves only the former holders.
    pub(super) fn grace(&self, server: usize) -> Duration {
        self.servers[server].grace_until.saturating_duration_since(self.local(server))
    }

    pub(super) fn notify(&mut self, who: Number) {
        self.sessions[who].was_notified = true;
        self.poll(who);
    }

    fn poll_in(&mut self, who: Number, time: u64) {
        let session = &mut self.sessions[who];
        session.polls += 1;
        let (server, polls) = (session.server, session.polls);
        self.push(self.now + self.true_time(server, time), Event::Polls(who, polls));
    }

    /// A reply before the timeout.
    pub(super) fn answered(&mut self, call: &Call, reply: Reply) {
        match (&call.operation, reply) {
            (Operation::Lock(request), Reply::QueueStatus(status)) => {
                self.sessions[request.who].is_polling = false;
                self.take_status(request.who, call.sent_at, status);
            }
            (Operation::Renew(held), Reply::Verdicts(verdicts)) => {
                for ((who, _), verdict) in held.iter().zip(verdicts) {
                    self.apply_verdict(*who, call.sent_at, verdict);
                }
            }
            (Operation::Release(who), Reply::Released(released)) => {
                let session = &mut self.sessions[*who];
                session.denials += 1;
                let is_sure = !session.is_in_doubt || session.denials >= 2;
                if released == Released::NotHeld && !is_sure {
                    self.call(call.server, Operation::Release(*who), CALL_TIMEOUT);
                }
            }
            (Operation::Lock(_) | Operation::Renew(_) | Operation::Release(_), _) => {}
        }
    }

    pub(super) fn timed_out(&mut self, call: &Call) {
        match &call.operation {
            Operation::Lock(request) if request.waits.is_some() && request.waits != Some(0) => {
                let session = &mut self.sessions[request.who];
                (session.is_polling, session.poll_failed) = (false, true);
                self.poll_in(request.who, 200 * MS);
            }
            Operation::Lock(request) => {
                // The backend may have executed it, or may still execute it.
                self.sessions[request.who].is_in_doubt = true;
                self.ends(request.who);
            }
            Operation::Renew(_) => self.tick_in(call.server, RENEW_EVERY / 4),
            Operation::Release(who) => {
                self.call(call.server, Operation::Release(*who), CALL_TIMEOUT);
            }
        }
    }

    fn take_status(&mut self, who: Number, sent_at: Instant, status: Option<QueueStatus>) {
        let (now, key) = (self.now, self.sessions[who].key);
        let session = &mut self.sessions[who];
        if matches!(session.state, State::Ended) {
            return;
        }
        session.poll_failed = false;
        match status {
            None | Some(QueueStatus::Refused(_)) => {
                session.state = State::Ended;
                session.ended = Some(now);
                self.seen.refused += 1;
            }
            Some(QueueStatus::Granted(grant)) => {
                let (server, fence, replaced) = (session.server, grant.fence, &grant.replaced);
                let former = replaced.as_ref().and_then(|it| it.value.get(1..)?.parse().ok());
                session.state = State::Ratifying { grant, sent_at };
                self.seen.granted += 1;
                self.seen.taken_over += u64::from(former.is_some());
                // The other servers learn it at their next renewal.
                let is_here = |it: &Number| self.sessions[*it].server == server;
                if let Some(former) = former.filter(is_here) {
                    self.ends(former);
                }
                self.store(Job::Ratify { who, key, fence });
            }
            Some(QueueStatus::Queued { arrival, holder, .. }) => {
                session.state = State::Queued;
                session.arrival = arrival;
                let lease = holder.as_ref().map_or(REASSERT_GRACE, |holder| holder.ttl);
                let next =
                    if session.was_notified { Duration::ZERO } else { lease.min(POLL_INTERVAL) };
                let server = session.server;
                if let Some(holder) = holder {
                    self.sessions[who].holder_until = self.local(server) + holder.ttl.min(TTL);
                }
                let next = u64::try_from(next.as_micros()).unwrap_or(u64::MAX);
                self.poll_in(who, next + 2 * MS);
            }
        }
    }

    /// The database's reply to the registration of a grant.
    pub(super) fn ratified(&mut self, who: Number, ratified: Result<(), Fence>) {
        let now = self.local(self.sessions[who].server);
        let session = &mut self.sessions[who];
        let State::Ratifying { grant, sent_at } = &session.state else { return };
        match ratified {
            Ok(()) => {
                let claim = &session.claim;
                let held = HeldLock {
                    name: claim.name.clone(),
                    value: claim.value.clone(),
                    owner: claim.owner.clone(),
                    fence: grant.fence,
                    since: grant.since,
                };
                session.deadline = own_deadline(*sent_at);
                session.run = self.run;
                let rule = B::begin(held.clone(), TTL, *sent_at, now);
                session.state = State::Seated { rule, held };
                self.seen.seated += 1;
            }
            Err(last) if session.tries < 3 => {
                session.tries += 1;
                session.claim.floor = last;
                // A claim does not repeat a successful takeover.
                session.claim.over = Takeover::None;
                session.state = State::Claiming;
                self.seen.fences_refused += 1;
                self.claim(who);
            }
            Err(_) => self.ends(who),
        }
    }

    /// Ends the session and releases its grant.
    pub(super) fn ends(&mut self, who: Number) {
        let now = self.now;
        let session = &mut self.sessions[who];
        let was_claiming = matches!(session.state, State::Claiming);
        if let State::Seated { rule, .. } = &session.state {
            rule.end();
        }
        if matches!(std::mem::replace(&mut session.state, State::Ended), State::Ended) {
            return;
        }
        // A pending claim may still return a grant.
        session.is_in_doubt |= session.is_polling || was_claiming;
        session.ended = Some(now);
        let server = session.server;
        self.call(server, Operation::Release(who), CALL_TIMEOUT);
    }

    /// Its process is dead and sends no release.
    pub(super) fn kill(&mut self, who: Number) {
        let session = &mut self.sessions[who];
        session.state = State::Ended;
        session.ended.get_or_insert(self.now);
    }
}

impl<B> Session<B> {
    pub(super) fn is_seated(&self) -> bool {
        matches!(self.state, State::Seated { .. })
    }
}

/// The deadline of a lease whose call was sent at `sent_at`: a second implementation for comparison.
pub(super) fn own_deadline(sent_at: Instant) -> Instant {
    sent_at + Duration::from_millis(10_500)
}

/// The reclaim token of a session.
pub(super) fn pass_of(who: Number) -> Option<ReclaimToken> {
    Some(ReclaimToken::of(&value_of(who)))
}

fn node() -> NodeId {
    static NODE: std::sync::LazyLock<NodeId> = std::sync::LazyLock::new(NodeId::generate);
    *NODE
}
