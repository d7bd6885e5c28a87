//! The scripts, and how they are called.

use std::time::Duration;

use redis::{Cmd, Pipeline};

use crate::domain::ids::NodeId;
use crate::locks::GRANT_KEPT_FOR;
use crate::locks::acquaintance::Acquaintance;
#[cfg(feature = "broken")]
use crate::locks::broken;
use crate::locks::item::Item;
use crate::locks::line::{LINE_DEADLINE, LINE_MAX, Waiter};
use crate::locks::name::{LockName, Spelling, release_channel};
use crate::locks::pass::Pass;
use crate::locks::words::{Claim, Held, Over, Owner};

/// Locks in one call of the renewal script. A call holds Redis for itself: some 0.3 ms at this
/// size. Larger calls gain nothing.
pub(super) const LOCKS_PER_CALL: usize = 250;

/// Both scripts as functions, and who calls them. Their `KEYS` and `ARGV` are those of one item.
const SEVERAL: &str = concat!(
    "local function claim(KEYS, ARGV)\n",
    include_str!("line.lua"),
    include_str!("claim.lua"),
    "\nend\nlocal function release(KEYS, ARGV)\n",
    include_str!("line.lua"),
    include_str!("release.lua"),
    "\nend\n",
    include_str!("several.lua"),
);

/// A script and the hash that Redis knows it by.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) source: &'static str,
    hash: String,
}

/// All scripts.
#[derive(Debug)]
pub(super) struct Scripts {
    /// How keys are spelled where these are called.
    pub(super) spelling: Spelling,
    /// Claims and releases, one or several at a time.
    pub(super) several: Script,
    pub(super) renew: Script,
    pub(super) reassert: Script,
    pub(super) holders: Script,
    pub(super) behind: Script,
    pub(super) check: Script,
}

impl Script {
    pub(super) fn new(source: &'static str) -> Self {
        Self { source, hash: redis::Script::new(source).get_hash().to_owned() }
    }

    /// Makes Redis know the script, in the same pipeline as the calls that follow: after a
    /// `SCRIPT FLUSH` or an empty restart they would all be refused, and a pipeline of renewals
    /// cannot be picked apart to repeat some of it. The answer is left out of the replies.
    pub(super) fn load(&self, pipeline: &mut Pipeline) {
        #[cfg(feature = "broken")]
        if broken::loads_no_script() {
            return;
        }
        pipeline.add_command(self.loading()).ignore();
    }

    /// The command that does so.
    pub(super) fn loading(&self) -> Cmd {
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(self.source);
        load
    }

    /// The beginning of a call: `keys` keys and then the arguments are to follow.
    fn call(&self, keys: usize) -> Cmd {
        let mut call = redis::cmd("EVALSHA");
        call.arg(&self.hash).arg(keys);
        call
    }
}

impl Scripts {
    pub(super) fn new(spelling: Spelling) -> Self {
        let scripts = Self {
            spelling,
            several: Script::new(SEVERAL),
            renew: Script::new(include_str!("renew.lua")),
            reassert: Script::new(include_str!("reassert.lua")),
            holders: Script::new(include_str!("holders.lua")),
            behind: Script::new(include_str!("behind.lua")),
            check: Script::new(include_str!("check.lua")),
        };
        #[cfg(feature = "broken")]
        let scripts = broken::scripts(scripts);
        scripts
    }

    /// Makes Redis know the one that does not come along with its calls, and tell who it is.
    pub(super) fn greeting(&self) -> Pipeline {
        let mut pipeline = pipeline();
        self.several.load(&mut pipeline);
        #[cfg(feature = "broken")]
        broken::load_once(self, &mut pipeline);
        Acquaintance::ask(&mut pipeline);
        pipeline
    }

    /// Claims and releases in one call. All their keys are in it: on a Cluster they are of one slot.
    pub(super) fn several<'a>(
        &self,
        items: impl Iterator<Item = &'a Item> + Clone,
        acquaintance: &Acquaintance,
    ) -> Cmd {
        let mut call = self.several.call(5 * items.clone().count());
        items.clone().for_each(|item| {
            call.arg(&item.keys);
        });
        items.for_each(|item| {
            call.arg(item.packed(acquaintance));
        });
        call
    }

    /// A claim, by somebody who waits or does not.
    pub(super) fn claim(&self, claim: &Claim, waiter: Option<&Waiter>) -> Item {
        let (from, value) = match &claim.over {
            Over::Nobody => ("nobody", ""),
            Over::Value(value) => ("value", value.as_str()),
            Over::SameUser => ("user", ""),
            Over::Pass(pass) => ("pass", pass.as_str()),
        };
        let what = if waiter.is_some() { "wait" } else { "claim" };
        let mut call = Item::new(what, claim.name.keys(self.spelling));
        call.arg(&claim.value)
            .arg(millis(claim.ttl))
            .arg(claim.floor.0)
            .arg(claim.owner.user.id.as_str())
            .arg(&claim.owner.user.name)
            .arg(claim.owner.node)
            .arg(from)
            .arg(value)
            .arg(millis(GRANT_KEPT_FOR))
            .arg(pass_of(&claim.owner));
        match waiter {
            Some(waiter) => call.arg(waiter.server),
            None => call.arg(""),
        };
        call.arg(millis(LINE_DEADLINE))
            .arg(waiter.map_or(0, |waiter| waiter.arrival))
            .arg(LINE_MAX);
        call.leaves_it(claim.floor, waiter.map_or(Duration::ZERO, |waiter| waiter.remembers));
        call
    }

    /// A release; the lock stays taken for `rest`.
    pub(super) fn release(&self, name: &LockName, value: &str, rest: Duration) -> Item {
        let mut call = Item::new("release", name.keys(self.spelling));
        call.arg(value).arg(millis(GRANT_KEPT_FOR));
        call.arg(if rest.is_zero() { 0 } else { millis(rest) });
        call
    }

    /// Lets one lease run anew.
    pub(super) fn keep(&self, held: &Held, ttl: Duration) -> Item {
        let mut call = Item::new("keep", held.name.keys(self.spelling));
        call.arg(&held.value).arg(millis(ttl));
        call
    }

    /// Renews locks of one TTL.
    pub(super) fn renew(&self, held: &[(&Held, Duration)]) -> Cmd {
        let mut call = self.renew.call(held.len());
        for (held, _ttl) in held {
            call.arg(&*held.name.key_as(self.spelling));
        }
        call.arg(only_ttl(held));
        for (held, _ttl) in held {
            call.arg(&held.value);
        }
        call
    }

    /// Puts back locks of one TTL.
    pub(super) fn reassert(&self, held: &[(&Held, Duration)]) -> Cmd {
        let mut call = self.reassert.call(2 * held.len());
        for (held, _ttl) in held {
            call.arg(&*held.name.key_as(self.spelling)).arg(held.name.grant_key(self.spelling));
        }
        call.arg(only_ttl(held)).arg(millis(GRANT_KEPT_FOR));
        for (held, _ttl) in held {
            call.arg(&held.value)
                .arg(held.fence.0)
                .arg(held.owner.user.id.as_str())
                .arg(&held.owner.user.name)
                .arg(held.owner.node.to_string())
                .arg(held.since.timestamp_micros())
                .arg(pass_of(&held.owner));
        }
        call
    }

    /// Tries everything once with `keys`, as `server`.
    pub(super) fn check(&self, keys: &[String; 2], server: NodeId) -> Cmd {
        let mut call = self.check.call(2);
        call.arg(keys).arg(release_channel(server));
        call
    }

    /// Who waits for a lock.
    pub(super) fn behind(&self, name: &LockName, most: usize) -> Cmd {
        let [_lock, _grant, line, due, waiting] = name.keys(self.spelling);
        let mut call = self.behind.call(3);
        call.arg(&[line, due, waiting]).arg(most);
        call
    }

    pub(super) fn holders(&self, names: &[LockName]) -> Cmd {
        let mut call = self.holders.call(3 * names.len());
        for name in names {
            call.arg(&*name.key_as(self.spelling))
                .arg(name.grant_key(self.spelling))
                .arg(name.due_key(self.spelling));
        }
        call
    }
}

/// A pipeline whose answers are looked at one by one: an error in one does not hide the others.
pub(super) fn pipeline() -> Pipeline {
    let mut pipeline = redis::pipe();
    pipeline.ignore_errors();
    pipeline
}

/// As the scripts want it: empty for none, which no pass is.
fn pass_of(owner: &Owner) -> &str {
    owner.pass.as_ref().map_or("", Pass::as_str)
}

/// The TTL that all of these have.
fn only_ttl(held: &[(&Held, Duration)]) -> u64 {
    held.first().map_or(1, |(_held, ttl)| millis(*ttl))
}

/// Whole milliseconds, at least one: Redis refuses a lifetime of none.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1)
}
