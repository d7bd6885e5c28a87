//! What the scripts answer, in our words.
//!
//! Answers come from another program and are read as such: anything unexpected is an error, never
//! a guess.

use std::time::Duration;

use chrono::{DateTime, Utc};
use redis::Value;
use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::domain::user::User;
use crate::locks::redis::error::Fault;
use crate::locks::redis::wait_queue::{Standing, Turn};
use crate::locks::types::{Claimed, Grant, Holder, InLine, LocksError, Owner, Released};

/// The answer of `claim.lua`; none if the lock is left to a holder who may come back.
pub(in crate::locks) fn claimed(reply: &Value, sent_at: Instant) -> Result<Option<Claimed>, Fault> {
    match standing(reply, sent_at)? {
        Standing::Granted(grant) => Ok(Some(Claimed::Granted(grant))),
        Standing::Refused(holder) => Ok(holder.map(Claimed::Busy)),
        Standing::InLine { .. } => Err(Fault::Unknown(unexpected())),
    }
}

/// The answer of `claim.lua` to somebody who waits.
pub(in crate::locks) fn standing(reply: &Value, sent_at: Instant) -> Result<Standing, Fault> {
    match reply {
        Value::Array(fields) if matches!(fields.as_slice(), [Value::Int(-1)]) => {
            Err(Fault::Refused(spent()))
        }
        reply => read_standing(reply, sent_at).ok_or_else(|| Fault::Unknown(unexpected())),
    }
}

/// The answer of `release.lua`.
pub(in crate::locks) fn released(reply: &Value) -> Result<Released, LocksError> {
    match integer(reply) {
        Some(1) => Ok(Released::Freed),
        Some(0) => Ok(Released::NotHeld),
        Some(_) | None => Err(unexpected()),
    }
}

/// The answer of `renew.lua` and `reassert.lua`: one byte for each of `asked`.
pub(in crate::locks) fn verdicts(reply: &Value, asked: usize) -> Result<&[u8], LocksError> {
    match reply {
        Value::BulkString(bytes) if bytes.len() == asked => Ok(bytes),
        _ => Err(unexpected()),
    }
}

/// The answer of `holders.lua`, for `asked` locks.
pub(in crate::locks) fn holders(
    reply: &Value,
    asked: usize,
) -> Result<Vec<Option<Holder>>, LocksError> {
    let Value::Array(rows) = reply else { return Err(unexpected()) };
    if rows.len() != asked {
        return Err(unexpected());
    }
    rows.iter().map(|row| holder(row).ok_or_else(unexpected)).collect()
}

/// The message of `wait_queue.lua` to who has been handed a lock, and that one's value.
pub(in crate::locks) fn turn(message: &[u8]) -> Option<(&str, Turn)> {
    let message = std::str::from_utf8(message).ok()?;
    // The value is the last: what is in it is the claimant's business.
    let mut words = message.splitn(3, ' ');
    let fence = Fence(words.next()?.parse().ok()?);
    let since = DateTime::from_timestamp_micros(words.next()?.parse().ok()?)?;
    Some((words.next()?, Turn { fence, since }))
}

/// The answer of `batch.lua` to whether a lock was still held.
pub(in crate::locks) fn was_held(reply: &Value) -> Result<bool, LocksError> {
    released(reply).map(|released| released == Released::Freed)
}

/// The answer of `waiters.lua`.
pub(in crate::locks) fn behind(reply: &Value) -> Result<Vec<InLine>, LocksError> {
    let Value::Array(rows) = reply else { return Err(unexpected()) };
    let read = |row: &Value| {
        let Value::Array(fields) = row else { return None };
        let [user, name, node, arrival] = fields.as_slice() else { return None };
        let user = User { id: text(user)?.parse().ok()?, name: text(name)?.to_owned() };
        Some(InLine { user, node: text(node)?.parse().ok()?, since: time(arrival)? })
    };
    rows.iter().map(|row| read(row).ok_or_else(unexpected)).collect()
}

/// The value was released before.
pub(in crate::locks) fn spent() -> LocksError {
    let why = "the value of this claim was released already: claim with a new one";
    LocksError::Unavailable(why.to_owned())
}

/// Redis said something that our scripts do not say.
pub(in crate::locks) fn unexpected() -> LocksError {
    LocksError::Unavailable("Redis gave an unexpected answer".to_owned())
}

fn read_standing(reply: &Value, sent_at: Instant) -> Option<Standing> {
    let fields = match reply {
        Value::Array(fields) => fields,
        Value::Int(fence) => {
            return Some(Standing::Granted(Grant {
                fence: Fence(u64::try_from(*fence).ok()?),
                since: DateTime::from_timestamp_micros(*fence)?,
                sent_at,
                replaced: None,
            }));
        }
        _ => return None,
    };
    match fields.as_slice() {
        [granted, fence, since, replaced] if integer(granted) == Some(1) => {
            Some(Standing::Granted(Grant {
                fence: Fence(number(fence)?),
                since: time(since)?,
                sent_at,
                replaced: holder(replaced)?,
            }))
        }
        [granted, busy, place, arrival] if integer(granted) == Some(0) => {
            let holder = holder(busy)?;
            match usize::try_from(integer(place)?) {
                Ok(0) | Err(_) => Some(Standing::Refused(holder)),
                Ok(position) => {
                    Some(Standing::InLine { position, arrival: number(arrival)?, holder })
                }
            }
        }
        _ => None,
    }
}

/// A holder or nobody; `None` when it is neither.
fn holder(row: &Value) -> Option<Option<Holder>> {
    let fields = match row {
        Value::Nil | Value::Boolean(false) => return Some(None),
        Value::Array(fields) => fields.as_slice(),
        _ => return None,
    };
    let [value, ttl, waiting, told @ ..] = fields else { return None };
    let waiting = usize::try_from(integer(waiting)?).ok()?;
    let Value::BulkString(value) = value else { return None };
    // Ours are plain; one that was set by hand need not be.
    let value = String::from_utf8_lossy(value).into_owned();
    // Below zero: the key was set by hand and never ends.
    let ttl = u64::try_from(integer(ttl)?).map_or(Duration::MAX, Duration::from_millis);
    let holder = match told {
        [fence, user, name, node, since] => Holder {
            value,
            owner: Owner {
                user: User { id: text(user)?.parse().ok()?, name: text(name)?.to_owned() },
                node: text(node)?.parse().ok()?,
                pass: None,
            },
            fence: Fence(number(fence)?),
            since: time(since)?,
            ttl,
            waiting,
        },
        _ => {
            let (fence, since) = (Fence::ZERO, DateTime::UNIX_EPOCH);
            Holder { value, owner: Owner::unknown(), fence, since, ttl, waiting }
        }
    };
    Some(Some(holder))
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

fn number(value: &Value) -> Option<u64> {
    text(value)?.parse().ok()
}

/// A time in µs.
pub(in crate::locks) fn time(value: &Value) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(text(value)?.parse().ok()?)
}
