//! A second account of the backend's rules: the holder of each lock by the backend's clock, the
//! order of the wait queue, the legal next steps. The model compares each reply of the backend with
//! it.

use tokio::time::Instant;

use crate::memory::table::Left;
use crate::model::{Breach, Lawful, Number, breach};
use crate::types::Verdict;
use crate::wait_queue::QUEUE_ENTRY_TTL;
use galley_domain::fence::Fence;

/// The state of one lock. Numbers identify sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// The holder, and the end of its lease by the backend's clock.
    holder: Option<(Number, Instant)>,
    /// The fence of the last grant, and its session if the grant was not released. None if the
    /// backend remembers no grant.
    last: Option<(Fence, Option<Number>)>,
    /// The session that released last.
    released: Option<Number>,
    queue: Vec<OracleSlot>,
}

#[derive(Clone, Copy, Debug)]
struct OracleSlot {
    who: Number,
    arrival: u64,
    due: Instant,
}

/// The part of a claim that the oracle needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimFacts {
    pub(crate) who: Number,
    pub(crate) floor: Fence,
    /// The holder that this claim may replace.
    pub(crate) over: Option<Number>,
    /// The arrival time if the claimant waits, or 0 at its first claim.
    pub(crate) waits: Option<u64>,
    /// Whether former holders may still reassert.
    pub(crate) left: Left,
    /// By the backend's clock.
    pub(crate) now: Instant,
    /// The end of the lease after a grant.
    pub(crate) until: Instant,
}

/// The backend's reply to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimReply {
    /// The value belongs to a released grant.
    Spent,
    Granted {
        fence: Fence,
        replaced: Option<Number>,
    },
    Queued {
        position: usize,
        arrival: u64,
    },
    Refused,
}

impl Account {
    /// The holder of the lock at `now`.
    pub(crate) fn holder(&self, now: Instant) -> Option<Number> {
        self.holder.filter(|(_, until)| now < *until).map(|(who, _)| who)
    }

    /// The session whose lease has expired by the backend's clock, without a release.
    pub(crate) fn expired(&self, now: Instant) -> Option<Number> {
        self.holder.filter(|(_, until)| *until <= now).map(|(who, _)| who)
    }

    /// The number of live waiters.
    pub(crate) fn waiting(&self, now: Instant) -> usize {
        self.queue.iter().filter(|slot| now < slot.due).count()
    }

    /// Checks the reply to a claim or a poll, and the notified waiter.
    pub(crate) fn claimed(
        &mut self,
        it: ClaimFacts,
        reply: ClaimReply,
        notified: Option<Number>,
    ) -> Lawful {
        self.queue.retain(|slot| it.now < slot.due);
        let holder = self.holder(it.now);
        if self.released == Some(it.who) && holder != Some(it.who) {
            return agree(
                "G6",
                reply == ClaimReply::Spent,
                "a value that was released is spent",
                &reply,
            );
        }
        let knows_nothing = self.last.is_none();
        let first = self.queue.first().copied();
        match holder {
            Some(holder) if holder == it.who => self.again(it, reply)?,
            Some(holder) if it.over == Some(holder) && !it.left.any => {
                self.take(it, reply, Some(holder))?;
            }
            Some(_) => self.refuse(it, reply, "G1", "another session holds it")?,
            None if it.left.any || (knows_nothing && it.left.unknown) => {
                self.refuse(it, reply, "G1", "its holder may still reassert")?;
            }
            None => match first.filter(|first| first.who != it.who) {
                Some(first) => {
                    agree(
                        "G5",
                        notified == Some(first.who),
                        "the first waiter is notified",
                        &notified,
                    )?;
                    self.hand_to(first);
                    return self.refuse(it, reply, "G5", "another session waits before it");
                }
                None => self.take(it, reply, None)?,
            },
        }
        agree("G5", notified.is_none(), "a lock that is not free notifies no waiter", &notified)
    }

    /// A repeated claim of the holder returns its grant, unless the database rejected that grant.
    fn again(&mut self, it: ClaimFacts, reply: ClaimReply) -> Lawful {
        let Some((fence, _)) = self.last else { return Err(breach("G1", "held without a grant")) };
        if fence <= it.floor {
            return self.take(it, reply, None);
        }
        let same = ClaimReply::Granted { fence, replaced: None };
        agree("G1", reply == same, "a repeated claim returns the same grant", &reply)?;
        self.holder = Some((it.who, it.until));
        Ok(())
    }

    fn take(&mut self, it: ClaimFacts, reply: ClaimReply, from: Option<Number>) -> Lawful {
        let ClaimReply::Granted { fence, replaced } = reply else {
            return Err(breach("G4", format!("{} must acquire it, but got {reply:?}", it.who)));
        };
        agree("G1", replaced == from, "the reply names the replaced holder", &replaced)?;
        agree("G2", it.floor < fence, "a fence exceeds the ratified floor", &fence)?;
        let last = self.last.map_or(Fence::ZERO, |(fence, _)| fence);
        agree("G2", last < fence, "a fence exceeds the last one", &(last, fence))?;
        self.queue.retain(|slot| slot.who != it.who);
        self.holder = Some((it.who, it.until));
        self.last = Some((fence, Some(it.who)));
        Ok(())
    }

    fn refuse(
        &mut self,
        it: ClaimFacts,
        reply: ClaimReply,
        law: &'static str,
        why: &str,
    ) -> Lawful {
        match reply {
            ClaimReply::Queued { position, arrival } if it.waits.is_some() => {
                self.check_position(it, position, arrival)
            }
            ClaimReply::Refused if it.waits.is_none() => Ok(()),
            _ => Err(breach(law, format!("{}: {} got {reply:?}", why, it.who))),
        }
    }

    /// A waiter keeps its arrival time and its position.
    fn check_position(&mut self, it: ClaimFacts, position: usize, arrival: u64) -> Lawful {
        let due = it.now + QUEUE_ENTRY_TTL;
        if let Some(slot) = self.queue.iter_mut().find(|slot| slot.who == it.who) {
            agree("G5", slot.arrival == arrival, "a position is kept", &(slot.arrival, arrival))?;
            slot.due = due;
        } else {
            let index = self.queue.iter().filter(|slot| slot.arrival <= arrival).count();
            let comes_back = it.waits == Some(arrival);
            let is_right = comes_back || (it.waits == Some(0) && index == self.queue.len());
            agree("G5", is_right, "a new waiter is the last", &(it.who, arrival, &self.queue))?;
            self.queue.insert(index, OracleSlot { who: it.who, arrival, due });
        }
        let index = self.queue.iter().position(|slot| slot.who == it.who);
        let is_so = index.is_some_and(|index| index + 1 == position);
        agree("G5", is_so, "the position follows the order of arrival", &(position, &self.queue))
    }

    /// Hands the free lock over to the first waiter, until that waiter's queue entry expires.
    fn hand_to(&mut self, first: OracleSlot) {
        self.queue.retain(|slot| slot.who != first.who);
        self.holder = Some((first.who, first.due));
        // The waiter's next poll returns the exact fence.
        let above = self.last.map_or(Fence::ZERO, |(fence, _)| Fence(fence.0 + 1));
        self.last = Some((above, Some(first.who)));
    }

    /// The fence of a handed-over grant.
    pub(crate) fn saw_fence(&mut self, fence: Fence) -> Lawful {
        let Some((last, _)) = &mut self.last else { return Ok(()) };
        agree("G2", *last <= fence, "a fence exceeds the last one", &(*last, fence))?;
        *last = fence;
        Ok(())
    }

    /// Checks a release: whether it freed a lock, and the notified waiter.
    pub(crate) fn released(
        &mut self,
        who: Number,
        now: Instant,
        freed: bool,
        notified: Option<Number>,
        left: Left,
    ) -> Lawful {
        self.queue.retain(|slot| slot.who != who && now < slot.due);
        let holder = self.holder(now);
        let is_its = holder == Some(who);
        agree("G6", freed == is_its, "a release frees its own grant and no other", &(who, holder))?;
        if holder.is_some() && !is_its {
            return agree("G6", notified.is_none(), "no lock came free", &notified);
        }
        self.released = Some(who);
        let is_given = !left.any && (is_its || self.last.is_some());
        let first = self.queue.first().copied().filter(|_| is_given);
        let next = first.map(|first| first.who);
        agree("G5", notified == next, "only the first live waiter is notified", &(notified, next))?;
        if let Some(first) = first {
            self.hand_to(first);
            return Ok(());
        }
        if is_its || self.last.is_some_and(|(_, whose)| whose == Some(who)) {
            self.last = self.last.map(|(fence, _)| (Fence(fence.0 + 1), None));
            self.holder = None;
        }
        Ok(())
    }

    /// Checks the verdict of a renewal that lasts until `until`.
    pub(crate) fn renewed(
        &mut self,
        who: Number,
        fence: Fence,
        now: Instant,
        until: Instant,
        verdict: Verdict,
    ) -> Lawful {
        let holder = self.holder(now);
        // Its grant is the last one or a newer one, and it was not released.
        let is_last = |(last, whose)| last < fence || (last == fence && whose == Some(who));
        let is_last_grant = self.last.is_none_or(is_last);
        let expected = match holder {
            Some(holder) if holder == who => Verdict::Renewed,
            _ if is_last_grant && self.released != Some(who) => Verdict::Reasserted,
            _ => Verdict::Lost,
        };
        let law = if expected == Verdict::Lost { "G6" } else { "reassertion" };
        agree(law, verdict == expected, "the verdict on a renewal", &(who, verdict, expected))?;
        if expected == Verdict::Reasserted {
            self.last = Some((fence, Some(who)));
            self.queue.retain(|slot| slot.who != who);
        }
        if expected != Verdict::Lost {
            self.holder = Some((who, until));
        }
        Ok(())
    }
}

fn agree(law: &'static str, is_so: bool, what: &str, saw: &dyn std::fmt::Debug) -> Lawful {
    if is_so { Ok(()) } else { Err(breach(law, format!("{what}: {saw:?}"))) }
}

impl From<Breach> for String {
    fn from(breach: Breach) -> Self {
        format!("{}: {}", breach.law, breach.what)
    }
}
