//! What must be true of the keeper, said a second time: who has a lock by its clock, who waits in
//! which order, what may happen next. Each answer of the keeper is held against it.

use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::locks::memory::table::Left;
use crate::locks::model::{Breach, Lawful, Number, breach};
use crate::locks::redis::wait_queue::LINE_DEADLINE;
use crate::locks::types::Verdict;

/// What is to be known of one lock. Sessions are known by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// Who has it, and until when by the keeper's clock.
    holder: Option<(Number, Instant)>,
    /// The fence of the last grant, and whose it was if it was not released. None if nothing was
    /// ever given, as far as the keeper remembers.
    last: Option<(Fence, Option<Number>)>,
    /// Whose release came last.
    released: Option<Number>,
    line: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    who: Number,
    arrival: u64,
    due: Instant,
}

/// A question to the keeper, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) who: Number,
    pub(crate) floor: Fence,
    /// Whom it may take the lock from, if that one has it.
    pub(crate) over: Option<Number>,
    /// Whether it waits in the line; with when it came before, or 0.
    pub(crate) waits: Option<u64>,
    /// Whether a holder may come back.
    pub(crate) left: Left,
    /// By the keeper's clock.
    pub(crate) now: Instant,
    /// How long it gets the lock for.
    pub(crate) until: Instant,
}

/// What the keeper said to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// The value was spent.
    Spent,
    Granted {
        fence: Fence,
        replaced: Option<Number>,
    },
    InLine {
        position: usize,
        arrival: u64,
    },
    Refused,
}

impl Account {
    /// Who has the lock at `now`.
    pub(crate) fn holder(&self, now: Instant) -> Option<Number> {
        self.holder.filter(|(_, until)| now < *until).map(|(who, _)| who)
    }

    /// Who would keep it by their own count, although it has ended by the keeper's.
    pub(crate) fn expired(&self, now: Instant) -> Option<Number> {
        self.holder.filter(|(_, until)| *until <= now).map(|(who, _)| who)
    }

    /// Those who wait and live.
    pub(crate) fn waiting(&self, now: Instant) -> usize {
        self.line.iter().filter(|place| now < place.due).count()
    }

    /// A claim, or a look from the line: what was said, and who was told that it is theirs.
    pub(crate) fn asked(&mut self, it: Asked, said: Said, told: Option<Number>) -> Lawful {
        self.line.retain(|place| it.now < place.due);
        let holder = self.holder(it.now);
        if self.released == Some(it.who) && holder != Some(it.who) {
            return agree("G6", said == Said::Spent, "a value that was released is spent", &said);
        }
        let knows_nothing = self.last.is_none();
        let first = self.line.first().copied();
        match holder {
            Some(holder) if holder == it.who => self.again(it, said)?,
            Some(holder) if it.over == Some(holder) && !it.left.any => {
                self.take(it, said, Some(holder))?;
            }
            Some(_) => self.refuse(it, said, "G1", "somebody else has it")?,
            None if it.left.any || (knows_nothing && it.left.unknown) => {
                self.refuse(it, said, "G1", "its holder may come back")?;
            }
            None => match first.filter(|first| first.who != it.who) {
                Some(first) => {
                    agree("G5", told == Some(first.who), "the first in the line is told", &told)?;
                    self.hand_to(first);
                    return self.refuse(it, said, "G5", "somebody waited before");
                }
                None => self.take(it, said, None)?,
            },
        }
        agree("G5", told.is_none(), "nobody is told of what did not come free", &told)
    }

    /// What it has already, unless the database refused that.
    fn again(&mut self, it: Asked, said: Said) -> Lawful {
        let Some((fence, _)) = self.last else { return Err(breach("G1", "held, and never given")) };
        if fence <= it.floor {
            return self.take(it, said, None);
        }
        let same = Said::Granted { fence, replaced: None };
        agree("G1", said == same, "a claim asked again is the same grant", &said)?;
        self.holder = Some((it.who, it.until));
        Ok(())
    }

    fn take(&mut self, it: Asked, said: Said, from: Option<Number>) -> Lawful {
        let Said::Granted { fence, replaced } = said else {
            return Err(breach("G4", format!("it is {}'s to have, and was {said:?}", it.who)));
        };
        agree("G1", replaced == from, "who lost it is told", &replaced)?;
        agree("G2", it.floor < fence, "a fence is above what the database ratified", &fence)?;
        let last = self.last.map_or(Fence::ZERO, |(fence, _)| fence);
        agree("G2", last < fence, "a fence is above the last one", &(last, fence))?;
        self.line.retain(|place| place.who != it.who);
        self.holder = Some((it.who, it.until));
        self.last = Some((fence, Some(it.who)));
        Ok(())
    }

    fn refuse(&mut self, it: Asked, said: Said, law: &'static str, why: &str) -> Lawful {
        match said {
            Said::InLine { position, arrival } if it.waits.is_some() => {
                self.stands(it, position, arrival)
            }
            Said::Refused if it.waits.is_none() => Ok(()),
            _ => Err(breach(law, format!("{}: {} was {said:?}", why, it.who))),
        }
    }

    /// It stands where it came, whatever happened meanwhile.
    fn stands(&mut self, it: Asked, position: usize, arrival: u64) -> Lawful {
        let due = it.now + LINE_DEADLINE;
        if let Some(place) = self.line.iter_mut().find(|place| place.who == it.who) {
            agree("G5", place.arrival == arrival, "a place is kept", &(place.arrival, arrival))?;
            place.due = due;
        } else {
            let index = self.line.iter().filter(|place| place.arrival <= arrival).count();
            let comes_back = it.waits == Some(arrival);
            let is_right = comes_back || (it.waits == Some(0) && index == self.line.len());
            agree("G5", is_right, "who comes is the last", &(it.who, arrival, &self.line))?;
            self.line.insert(index, Place { who: it.who, arrival, due });
        }
        let index = self.line.iter().position(|place| place.who == it.who);
        let is_so = index.is_some_and(|index| index + 1 == position);
        agree("G5", is_so, "the place is the one in the order of coming", &(position, &self.line))
    }

    /// The lock comes free and goes to who is first, for as long as they are believed to live.
    fn hand_to(&mut self, first: Place) {
        self.line.retain(|place| place.who != first.who);
        self.holder = Some((first.who, first.due));
        // Its fence is seen when it asks.
        let above = self.last.map_or(Fence::ZERO, |(fence, _)| Fence(fence.0 + 1));
        self.last = Some((above, Some(first.who)));
    }

    /// The fence of a grant that was handed over.
    pub(crate) fn saw_fence(&mut self, fence: Fence) -> Lawful {
        let Some((last, _)) = &mut self.last else { return Ok(()) };
        agree("G2", *last <= fence, "a fence is above the last one", &(*last, fence))?;
        *last = fence;
        Ok(())
    }

    /// A release: whether it freed anything, and who was told that it is theirs now.
    pub(crate) fn gave(
        &mut self,
        who: Number,
        now: Instant,
        freed: bool,
        told: Option<Number>,
        left: Left,
    ) -> Lawful {
        self.line.retain(|place| place.who != who && now < place.due);
        let holder = self.holder(now);
        let is_its = holder == Some(who);
        agree("G6", freed == is_its, "a release frees its own grant and no other", &(who, holder))?;
        if holder.is_some() && !is_its {
            return agree("G6", told.is_none(), "nothing came free", &told);
        }
        self.released = Some(who);
        let is_given = !left.any && (is_its || self.last.is_some());
        let first = self.line.first().copied().filter(|_| is_given);
        let next = first.map(|first| first.who);
        agree("G5", told == next, "the first who lives is told, and nobody else", &(told, next))?;
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

    /// A renewal until `until`, and its verdict.
    pub(crate) fn kept(
        &mut self,
        who: Number,
        fence: Fence,
        now: Instant,
        until: Instant,
        verdict: Verdict,
    ) -> Lawful {
        let holder = self.holder(now);
        // Its grant is the last one, or that is an older one; and it was not given back.
        let is_last = |(last, whose)| last < fence || (last == fence && whose == Some(who));
        let nobody_between = self.last.is_none_or(is_last);
        let expected = match holder {
            Some(holder) if holder == who => Verdict::Renewed,
            _ if nobody_between && self.released != Some(who) => Verdict::Reasserted,
            _ => Verdict::Lost,
        };
        let law = if expected == Verdict::Lost { "G6" } else { "a seat that was there first" };
        agree(law, verdict == expected, "the verdict on a renewal", &(who, verdict, expected))?;
        if expected == Verdict::Reasserted {
            self.last = Some((fence, Some(who)));
            self.line.retain(|place| place.who != who);
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
