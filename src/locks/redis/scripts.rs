//! The Lua scripts and their calls.

use std::time::Duration;

use redis::{Cmd, Pipeline};

use crate::name::{KeyFormat, LockName, release_channel};
use crate::reclaim_token::ReclaimToken;
use crate::redis::args::{LockCall, Packed};
use crate::types::{Claim, HeldLock, Owner, Takeover};
use crate::wait_queue::{QUEUE_ENTRY_TTL, QUEUE_LENGTH_MAX, QueueEntry};
use crate::{GRANT_TTL, REASSERT_GRACE};
use galley_domain::ids::NodeId;

/// Locks in one call of the renewal script. A call blocks Redis for some 0.3 ms at this size.
/// Larger calls gain nothing.
pub(crate) const LOCKS_PER_CALL: usize = 250;

/// The first fence that no script mints: Lua counts in doubles, which are exact up to 2^53.
pub(crate) const FENCE_END: i64 = 1 << 53;

/// The functions of a claim and of a release, then `one_lock.lua`, which calls them.
const SEVERAL: &str = concat!(
    include_str!("lua/wait_queue.lua"),
    include_str!("lua/claim.lua"),
    include_str!("lua/release.lua"),
    include_str!("lua/one_lock.lua"),
);

/// A script and its SHA-1 for `EVALSHA`.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) source: String,
    hash: String,
}

#[derive(Debug)]
pub(crate) struct Scripts {
    /// The key format of this Redis: plain, or with a hash tag on a Cluster.
    pub(crate) key_format: KeyFormat,
    pub(crate) one_lock: Script,
    pub(crate) renew: Script,
    pub(crate) reassert: Script,
    pub(crate) holders: Script,
    pub(crate) waiters: Script,
    pub(crate) check: Script,
}

impl Script {
    /// Removes comments and blank lines: a renewal sends the source in each pipeline. So the line
    /// number of a Lua error counts the remaining lines.
    pub(crate) fn new(source: &str) -> Self {
        let is_code = |line: &&str| !line.is_empty() && !line.trim_start().starts_with("--");
        let source = source.lines().filter(is_code).collect::<Vec<_>>().join("\n");
        Self { hash: redis::Script::new(&source).get_hash().to_owned(), source }
    }

    /// Adds `SCRIPT LOAD` to the pipeline of the calls that follow. After `SCRIPT FLUSH` or an
    /// empty restart Redis refuses each call of an unknown script, and the caller cannot repeat
    /// part of a renewal pipeline. The reply is not among the replies.
    pub(crate) fn load(&self, pipeline: &mut Pipeline) {
        pipeline.add_command(self.loading()).ignore();
    }

    pub(crate) fn loading(&self) -> Cmd {
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(&self.source);
        load
    }

    /// The beginning of a call; the caller appends `keys` keys and then the arguments.
    fn call(&self, keys: usize) -> Cmd {
        let mut call = redis::cmd("EVALSHA");
        call.arg(&self.hash).arg(keys);
        call
    }
}

impl Scripts {
    pub(crate) fn new(key_format: KeyFormat) -> Self {
        Self {
            key_format,
            one_lock: Script::new(&one_lock_source()),
            renew: Script::new(include_str!("lua/renew.lua")),
            reassert: Script::new(include_str!("lua/reassert.lua")),
            holders: Script::new(include_str!("lua/holders.lua")),
            waiters: Script::new(include_str!("lua/waiters.lua")),
            check: Script::new(include_str!("lua/check.lua")),
        }
    }

    /// The greeting of a connection: loads the script that its calls do not load.
    pub(crate) fn greeting(&self) -> Pipeline {
        let mut pipeline = pipeline();
        self.one_lock.load(&mut pipeline);
        pipeline
    }

    /// A claim, release or single renewal. `graces` are those of the node's identity.
    pub(crate) fn one_lock(&self, item: &LockCall, graces: Option<[Duration; 2]>) -> Cmd {
        let mut call = self.one_lock.call(5);
        call.arg(&item.name.keys(self.key_format)).arg(item.args.as_bytes());
        if let Some(graces) = graces {
            call.arg(&graces.map(millis_or_none));
        }
        call
    }

    pub(crate) fn claim(&self, claim: &Claim, waiter: Option<&QueueEntry>) -> LockCall {
        let (from, whose) = match &claim.over {
            Takeover::None => ("none", ""),
            Takeover::Value(value) => ("value", value.as_str()),
            Takeover::SameOwner => ("user", ""),
            Takeover::ReclaimToken(pass) => ("pass", pass.as_str()),
        };
        let mut args = Packed::new();
        args.text("claim")
            .text(&claim.value)
            .text(millis(claim.ttl))
            .text(claim.floor.0)
            .packed(&packed(&claim.owner));
        // The item omits trailing arguments with their usual value.
        if waiter.is_some() || claim.over != Takeover::None {
            args.text(from).text(whose);
        }
        if let Some(waiter) = waiter {
            args.text(waiter.server).text(waiter.arrival).text(millis_or_none(waiter.remembers));
        }
        LockCall { name: claim.name.clone(), args }
    }

    /// A release; the lock stays unavailable for `rest`.
    pub(crate) fn release(&self, name: &LockName, value: &str, rest: Duration) -> LockCall {
        let mut args = Packed::new();
        args.text("release").text(value);
        if !rest.is_zero() {
            args.text(millis(rest));
        }
        LockCall { name: name.clone(), args }
    }

    pub(crate) fn renew_one(&self, held: &HeldLock, ttl: Duration) -> LockCall {
        let mut args = Packed::new();
        args.text("renew").text(&held.value).text(millis(ttl));
        LockCall { name: held.name.clone(), args }
    }

    pub(crate) fn renew(&self, held: &[(&HeldLock, Duration)]) -> Cmd {
        let mut call = self.renew.call(held.len());
        for (held, _ttl) in held {
            call.arg(&*held.name.key_as(self.key_format));
        }
        call.arg(only_ttl(held));
        for (held, _ttl) in held {
            call.arg(&held.value);
        }
        call
    }

    pub(crate) fn reassert(&self, held: &[(&HeldLock, Duration)]) -> Cmd {
        let mut call = self.reassert.call(5 * held.len());
        for (held, _ttl) in held {
            call.arg(&held.name.keys(self.key_format));
        }
        call.arg(only_ttl(held)).arg(millis(GRANT_TTL));
        for (held, _ttl) in held {
            call.arg(&held.value)
                .arg(held.fence.0)
                .arg(held.since.timestamp_micros())
                .arg(packed(&held.owner).as_bytes());
        }
        call
    }

    /// Exercises the commands of all scripts with `keys`, as `server`.
    pub(crate) fn check(&self, keys: &[String; 2], server: NodeId) -> Cmd {
        let mut call = self.check.call(2);
        call.arg(keys).arg(release_channel(server));
        call
    }

    pub(crate) fn waiters(&self, name: &LockName, most: usize) -> Cmd {
        let [_lock, _grant, line, due, waiting] = name.keys(self.key_format);
        let mut call = self.waiters.call(3);
        call.arg(&[line, due, waiting]).arg(most);
        call
    }

    pub(crate) fn holders(&self, names: &[LockName]) -> Cmd {
        let mut call = self.holders.call(3 * names.len());
        for name in names {
            call.arg(&*name.key_as(self.key_format))
                .arg(name.grant_key(self.key_format))
                .arg(name.due_key(self.key_format));
        }
        call
    }
}

/// The source of the script of one lock, with the constants that `wait_queue.lua` reads.
fn one_lock_source() -> String {
    let (grant_ttl, deadline) = (millis(GRANT_TTL), millis(QUEUE_ENTRY_TTL));
    let back = millis(REASSERT_GRACE);
    format!(
        "local grant_ttl, queue_entry_ttl, queue_length_max, reassert_grace, fence_end = \
         '{grant_ttl}', '{deadline}', '{QUEUE_LENGTH_MAX}', '{back}', {FENCE_END}\n{SEVERAL}"
    )
}

/// A pipeline with separate replies: an error in one does not hide the others.
pub(crate) fn pipeline() -> Pipeline {
    let mut pipeline = redis::pipe();
    pipeline.ignore_errors();
    pipeline
}

/// An owner in the scripts' format. An empty reclaim token means none; no token is empty.
fn packed(owner: &Owner) -> Packed {
    let mut packed = Packed::new();
    packed.text(owner.id.as_str()).text(&owner.name).text(owner.node);
    packed.text(owner.pass.as_ref().map_or("", ReclaimToken::as_str));
    packed
}

fn only_ttl(held: &[(&HeldLock, Duration)]) -> u64 {
    held.first().map_or(1, |(_held, ttl)| millis(*ttl))
}

/// Whole milliseconds, at least one: Redis refuses a TTL of zero.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Like [`millis`], but 0 for a zero duration only.
fn millis_or_none(duration: Duration) -> u64 {
    if duration.is_zero() { 0 } else { millis(duration) }
}
