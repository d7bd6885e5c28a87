//! All held locks of the cluster, by class, in pages.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::admin::Console;
use crate::domain::fence::Fence;
use crate::domain::ids::{NodeId, SessionId, ShareLinkId};
use crate::domain::seat::Role;
use crate::domain::user::User;
use crate::locks::{Alarm, Holder, LockName};
use crate::seats::SeatError;

#[derive(Clone, Debug, Default)]
pub struct LockPage {
    pub class: Option<String>,
    pub limit: usize,
    /// Only locks after this cursor.
    pub after: Option<LockCursor>,
}

/// A position in the list: the class, the grant time in µs, and the key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockCursor {
    class: String,
    since: i64,
    key: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid cursor")]
pub struct InvalidLockCursor;

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LockList {
    /// Totals of each class, independent of the page.
    pub classes: Vec<ClassInfo>,
    /// The held locks by class, the oldest first.
    pub locks: Vec<LockInfo>,
    /// Alarms, computed from the last five minutes of the answering server.
    pub alarms: Vec<AlarmInfo>,
    /// The server that answers.
    pub node: NodeId,
    /// `cursor` of the next page; `null` on the last.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct ClassInfo {
    pub class: String,
    pub held: usize,
    pub waiting: usize,
    /// The age of the oldest lock, in ms; `null` if every grant time is unknown.
    pub oldest_age_ms: Option<u64>,
}

/// The list omits the lock's value, which is a secret. A field is `null` if it is unknown: an operator set the
/// key by hand. Only seats have the last three fields.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "HeldLock"))]
pub struct LockInfo {
    /// The class of the lock.
    pub class: String,
    /// The name of the lock.
    pub name: String,
    /// The key in Redis.
    pub lock_key: String,
    /// The server that renews it.
    pub node: Option<NodeId>,
    /// When it was granted.
    pub since: Option<DateTime<Utc>>,
    /// How long ago that was.
    pub age_ms: Option<u64>,
    /// The rest of the lease; `null` if it does not expire.
    pub ttl_ms: Option<u64>,
    /// The fence of the grant.
    pub fence: Option<Fence>,
    /// The number of waiters.
    pub waiting: usize,
    /// The user who holds it; `null` if it has none.
    pub user: Option<User>,
    #[serde(flatten)]
    pub seat: Option<SeatInfo>,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SeatInfo {
    pub share_link_id: ShareLinkId,
    pub role: Role,
    /// The session; `null` if the value is no session's id. Such a value is not listed.
    pub session_id: Option<SessionId>,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct AlarmInfo {
    pub class: String,
    /// More than 5 % of at least 20 attempts failed; the mean wait was longer than 1 s; a lock was held for
    /// longer than 5 s. Seats have only the first alarm.
    #[cfg_attr(test, schemars(extend("enum" = ["failures", "wait", "hold"])))]
    pub alarm: &'static str,
    pub since: DateTime<Utc>,
    /// A share between 0 and 1 of failures, seconds of waits and holds.
    pub measured: f64,
    /// The limit of the value.
    pub limit: f64,
    /// The remedy.
    pub remedy: &'static str,
}

impl Console {
    /// Of all servers; the alarms are those of this one.
    pub async fn locks(&self, page: &LockPage) -> Result<LockList, SeatError> {
        let now = Utc::now();
        let is_wanted = |class: &str| page.class.as_ref().is_none_or(|wanted| wanted == class);
        let mut held = self.locks.held().await?;
        held.retain(|(name, _holder)| is_wanted(name.class()));
        held.sort_by_cached_key(|(name, holder)| LockCursor::of(name, holder));
        let classes = classes(&held, now);
        if let Some(after) = &page.after {
            let begins = held.partition_point(|(name, by)| LockCursor::of(name, by) <= *after);
            held.drain(..begins);
        }
        let has_more = page.limit < held.len();
        held.truncate(page.limit);
        let last = held.last().filter(|_| has_more);
        let next_cursor = last.map(|(name, holder)| LockCursor::of(name, holder).to_string());
        let mut alarms = self.locks.alarms();
        alarms.retain(|alarm| is_wanted(&alarm.class));
        Ok(LockList {
            classes,
            locks: held
                .into_iter()
                .map(|(name, holder)| self.lock_info(&name, holder, now))
                .collect(),
            alarms: alarms.into_iter().map(AlarmInfo::from).collect(),
            node: self.peers.node(),
            next_cursor,
        })
    }
}

impl Console {
    fn lock_info(&self, name: &LockName, holder: Holder, now: DateTime<Utc>) -> LockInfo {
        let has_grant = holder.has_grant();
        let seat = name.as_seat().map(|seat| SeatInfo {
            share_link_id: seat.link,
            role: seat.role,
            session_id: holder.value.parse().ok(),
        });
        let is_for_a_person = has_grant && !holder.owner.name.is_empty();
        LockInfo {
            class: name.class().to_owned(),
            name: name.what().to_owned(),
            lock_key: self.locks.key_of(name),
            node: has_grant.then_some(holder.owner.node),
            since: has_grant.then_some(holder.since),
            age_ms: has_grant.then(|| age_ms(now, holder.since)),
            ttl_ms: u64::try_from(holder.ttl.as_millis()).ok(),
            fence: has_grant.then_some(holder.fence),
            waiting: holder.waiting,
            user: is_for_a_person.then(|| holder.owner.into()),
            seat,
        }
    }
}

impl From<Alarm> for AlarmInfo {
    fn from(alarm: Alarm) -> Self {
        Self {
            class: alarm.class,
            alarm: alarm.kind.as_str(),
            since: alarm.since,
            measured: alarm.measured,
            limit: alarm.limit,
            remedy: alarm.kind.remedy(),
        }
    }
}

impl LockCursor {
    fn of(name: &LockName, holder: &Holder) -> Self {
        let since = holder.since.timestamp_micros();
        Self { class: name.class().to_owned(), since, key: name.key().to_owned() }
    }
}

impl std::fmt::Display for LockCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}:{}", self.since, self.class, self.key)
    }
}

impl std::str::FromStr for LockCursor {
    type Err = InvalidLockCursor;

    fn from_str(text: &str) -> Result<Self, InvalidLockCursor> {
        let (since, name) = text.split_once('-').ok_or(InvalidLockCursor)?;
        let since = since.parse().map_err(|_not_a_number| InvalidLockCursor)?;
        // A class contains no colon: it ends before the first one.
        let (class, key) = name.split_once(':').ok_or(InvalidLockCursor)?;
        Ok(Self { class: class.to_owned(), since, key: key.to_owned() })
    }
}

fn classes(held: &[(LockName, Holder)], now: DateTime<Utc>) -> Vec<ClassInfo> {
    let mut classes = BTreeMap::new();
    for (name, holder) in held {
        let class = classes.entry(name.class()).or_insert_with(|| ClassInfo {
            class: name.class().to_owned(),
            held: 0,
            waiting: 0,
            oldest_age_ms: None,
        });
        class.held += 1;
        class.waiting += holder.waiting;
        let age = holder.has_grant().then(|| age_ms(now, holder.since));
        class.oldest_age_ms = class.oldest_age_ms.max(age);
    }
    classes.into_values().collect()
}

fn age_ms(now: DateTime<Utc>, since: DateTime<Utc>) -> u64 {
    u64::try_from((now - since).num_milliseconds()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_cursor_round_trips_through_text_and_other_text_is_rejected() {
        let name = LockName::named("export:doc_1");
        let cursor =
            LockCursor { class: "export".to_owned(), since: 42, key: name.key().to_owned() };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in ["", "42", "x-export:lock:a:b", "42-", "42-other"] {
            assert_eq!(text.parse::<LockCursor>(), Err(InvalidLockCursor), "{text}");
        }
    }
}
