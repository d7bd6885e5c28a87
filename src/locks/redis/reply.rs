//! Parses the replies of the scripts.
//!
//! Replies come from another program: an unexpected reply is an error, and the parser assumes
//! nothing.

use std::time::Duration;

use chrono::{DateTime, Utc};
use redis::Value;
use tokio::time::Instant;

use crate::types::{
    CallError, Claimed, Grant, Holder, LocksError, Owner, QueuedClaim, Released, spent, unexpected,
};
use crate::wait_queue::{Handover, QueueStatus};
use galley_domain::fence::Fence;

/// Parses the reply of `claim.lua`; `None` during the reassert grace of the lock.
pub(crate) fn claimed(reply: &Value, sent_at: Instant) -> Result<Option<Claimed>, CallError> {
    match queue_status(reply, sent_at)? {
        QueueStatus::Granted(grant) => Ok(Some(Claimed::Granted(grant))),
        QueueStatus::Refused(holder) => Ok(holder.map(Claimed::Busy)),
        QueueStatus::Queued { .. } => Err(CallError::Unknown(unexpected())),
    }
}

pub(crate) fn queue_status(reply: &Value, sent_at: Instant) -> Result<QueueStatus, CallError> {
    match reply {
        Value::Array(fields) if matches!(fields.as_slice(), [Value::Int(-1)]) => {
            Err(CallError::Refused(spent()))
        }
        reply => read_queue_status(reply, sent_at).ok_or_else(|| CallError::Unknown(unexpected())),
    }
}

pub(crate) fn released(reply: &Value) -> Result<Released, LocksError> {
    match integer(reply) {
        Some(1) => Ok(Released::Freed),
        Some(0) => Ok(Released::NotHeld),
        Some(_) | None => Err(unexpected()),
    }
}

/// Parses the reply of `renew.lua` and `reassert.lua`: one byte for each of `locks` locks.
pub(crate) fn verdicts(reply: &Value, locks: usize) -> Result<&[u8], LocksError> {
    match reply {
        Value::BulkString(bytes) if bytes.len() == locks => Ok(bytes),
        _ => Err(unexpected()),
    }
}

pub(crate) fn holders(reply: &Value, locks: usize) -> Result<Vec<Option<Holder>>, LocksError> {
    let Value::Array(rows) = reply else { return Err(unexpected()) };
    if rows.len() != locks {
        return Err(unexpected());
    }
    rows.iter().map(|row| holder(row).ok_or_else(unexpected)).collect()
}

/// Parses the hand-over message of `wait_queue.lua`: the waiter's value, fence and time of the
/// grant.
pub(crate) fn handover(message: &[u8]) -> Option<(&str, Handover)> {
    let message = std::str::from_utf8(message).ok()?;
    // The value is last, because a claimant chooses its text.
    let mut words = message.splitn(3, ' ');
    let fence = Fence(words.next()?.parse().ok()?);
    let since = DateTime::from_timestamp_micros(words.next()?.parse().ok()?)?;
    Some((words.next()?, Handover { fence, since }))
}

/// Parses the reply of `one_lock.lua` to a renewal: whether the lock was still held.
pub(crate) fn was_held(reply: &Value) -> Result<bool, LocksError> {
    released(reply).map(|released| released == Released::Freed)
}

pub(crate) fn waiters(reply: &Value) -> Result<Vec<QueuedClaim>, LocksError> {
    let Value::Array(rows) = reply else { return Err(unexpected()) };
    let read = |row: &Value| {
        let Value::Array(fields) = row else { return None };
        let [id, name, node, arrival] = fields.as_slice() else { return None };
        Some(QueuedClaim { owner: owner(id, name, node)?, since: time(arrival)? })
    };
    rows.iter().map(|row| read(row).ok_or_else(unexpected)).collect()
}

fn read_queue_status(reply: &Value, sent_at: Instant) -> Option<QueueStatus> {
    let Value::Array(fields) = reply else { return None };
    match fields.as_slice() {
        [granted, fence, since, replaced] if integer(granted) == Some(1) => {
            Some(QueueStatus::Granted(Grant {
                fence: Fence(number(fence)?),
                since: time(since)?,
                sent_at,
                replaced: holder(replaced)?,
            }))
        }
        [granted, busy, position, arrival] if integer(granted) == Some(0) => {
            let holder = holder(busy)?;
            match usize::try_from(integer(position)?) {
                Ok(0) | Err(_) => Some(QueueStatus::Refused(holder)),
                Ok(position) => {
                    Some(QueueStatus::Queued { position, arrival: number(arrival)?, holder })
                }
            }
        }
        _ => None,
    }
}

/// Parses a holder or its absence; `None` if the row is neither.
fn holder(row: &Value) -> Option<Option<Holder>> {
    let fields = match row {
        Value::Nil | Value::Boolean(false) => return Some(None),
        Value::Array(fields) => fields.as_slice(),
        _ => return None,
    };
    let [value, ttl, waiting, grant @ ..] = fields else { return None };
    let waiting = usize::try_from(integer(waiting)?).ok()?;
    let Value::BulkString(value) = value else { return None };
    // Galley's values are plain text; an operator's may be any bytes.
    let value = String::from_utf8_lossy(value).into_owned();
    // A negative TTL: an operator set the key, without an expiry.
    let ttl = u64::try_from(integer(ttl)?).map_or(Duration::MAX, Duration::from_millis);
    let holder = match grant {
        [fence, id, name, node, since] => Holder {
            value,
            owner: owner(id, name, node)?,
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

/// Parses an owner. No reply contains its token.
fn owner(id: &Value, name: &Value, node: &Value) -> Option<Owner> {
    let (id, name) = (text(id)?.parse().ok()?, text(name)?.to_owned());
    Some(Owner { id, name, node: text(node)?.parse().ok()?, pass: None })
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
pub(crate) fn time(value: &Value) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(text(value)?.parse().ok()?)
}
