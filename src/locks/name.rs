//! Names of locks, and the Redis keys they stand for. The only place that spells a key.
//!
//! | key | is |
//! |---|---|
//! | `share-link:lock:<id>:<role>` | a seat: the value of whoever sits in it (CONTRACT §5) |
//! | `share-link:grant:<id>:<role>` | its *grant*: last fence, and who the holder is |
//! | `share-link:line:…`, `share-link:due:…`, `share-link:waiting:…` | who waits for it: since when, until when they are believed to live, and who they are |
//! | `lock:<name>`, `lock:grant:<name>`, … | the same for any other lock |
//!
//! The keys of one lock differ in their prefix alone, so that what tells them apart on a Cluster
//! can be tagged in one place (`{<id>}`) and they share a slot. Every key begins with
//! `share-link:` or `lock:`, which is all that an ACL has to allow. A seat's grant does not begin
//! with `share-link:lock:`: whoever scans for seats finds seats only.

use std::fmt;
use std::sync::Arc;

use crate::domain::ids::{NodeId, ShareLinkId};
use crate::domain::seat::{Role, Seat};

const SEAT: &str = "share-link:lock:";
const SEAT_KEYS: &str = "share-link:";
const NAMED: &str = "lock:";
/// What names of locks may not begin with: keys and channels beside a lock do.
const RESERVED: [&str; 6] = ["grant:", "line:", "due:", "waiting:", "release:", "check:"];

/// What a lock is called. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockName(Arc<str>);

impl LockName {
    /// The lock of a seat.
    #[must_use]
    pub fn seat(seat: Seat) -> Self {
        Self(seat.to_string().into())
    }

    /// Any other lock. By convention `<class>:<what>`; names that begin with `grant:`, `line:`,
    /// `due:`, `waiting:`, `release:` or `check:` are Galley's own.
    #[must_use]
    pub fn named(name: &str) -> Self {
        debug_assert!(!is_reserved(name), "{name}");
        Self(format!("{NAMED}{name}").into())
    }

    /// One lock for two, whichever of them is named first. Neither may contain a `:`.
    #[must_use]
    pub fn pair(class: &str, one: &str, other: &str) -> Self {
        debug_assert!(!one.contains(':') && !other.contains(':'), "{one} {other}");
        let (first, second) = if one <= other { (one, other) } else { (other, one) };
        Self::named(&format!("{class}:{first}:{second}"))
    }

    /// The key in Redis.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0
    }

    /// What it is called: the key without the prefix that all seats, or all other locks, share.
    #[must_use]
    pub fn what(&self) -> &str {
        let key = self.key();
        key.strip_prefix(SEAT).or_else(|| key.strip_prefix(NAMED)).unwrap_or(key)
    }

    /// The seat, if the key is that of one.
    #[must_use]
    pub fn as_seat(&self) -> Option<Seat> {
        let (link, role) = self.0.strip_prefix(SEAT)?.split_once(':')?;
        let link: ShareLinkId = link.parse().ok()?;
        let role: Role = role.parse().ok()?;
        Some(Seat::new(link, role))
    }

    /// What the lock is for, from a small set: metrics have it as a label.
    #[must_use]
    pub fn class(&self) -> &str {
        match self.0.strip_prefix(NAMED) {
            Some(name) => name.split(':').next().unwrap_or(name),
            None => "seat",
        }
    }

    /// Where Redis keeps the last fence and who the holder is.
    pub(super) fn grant_key(&self) -> String {
        self.beside("grant")
    }

    /// Where Redis keeps until when those in the line are believed to live.
    pub(super) fn due_key(&self) -> String {
        self.beside("due")
    }

    /// All keys of the lock, in the order in which `claim.lua` and `release.lua` want them.
    pub(super) fn keys(&self) -> [String; 5] {
        let [line, waiting] = ["line", "waiting"].map(|what| self.beside(what));
        [self.0.to_string(), self.grant_key(), line, self.due_key(), waiting]
    }

    fn beside(&self, what: &str) -> String {
        match self.0.strip_prefix(SEAT) {
            Some(rest) => format!("{SEAT_KEYS}{what}:{rest}"),
            None => {
                format!("{NAMED}{what}:{}", self.0.strip_prefix(NAMED).unwrap_or(&self.0))
            }
        }
    }

    /// A name back from a key that a scan found; none if it is no lock's.
    pub(super) fn from_key(key: &str) -> Option<Self> {
        let name = Self(key.into());
        let is_named = key.strip_prefix(NAMED).is_some_and(|rest| !is_reserved(rest));
        (is_named || name.as_seat().is_some()).then_some(name)
    }

    /// What finds all seats in a scan.
    pub(super) fn seat_pattern() -> String {
        format!("{SEAT}*")
    }

    /// What finds all other locks in a scan, and what is beside them.
    pub(super) fn named_pattern() -> String {
        format!("{NAMED}*")
    }
}

fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|reserved| name.starts_with(reserved))
}

/// Keys of each kind, which nothing else uses, for `server` to try what it may do with them.
pub(super) fn check_keys(server: NodeId) -> [String; 2] {
    [SEAT_KEYS, NAMED].map(|prefix| format!("{prefix}check:{server}"))
}

/// The channel on which a server is told of what was handed to its waiters.
pub(super) fn release_channel(server: NodeId) -> String {
    format!("{NAMED}release:{server}")
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_found_again_in_its_key() {
        let seat = Seat::new(ShareLinkId::generate(), Role::Reviewer);
        let name = LockName::seat(seat);
        assert_eq!(name.key(), format!("share-link:lock:{}:reviewer", seat.link));
        assert_eq!(name.grant_key(), format!("share-link:grant:{}:reviewer", seat.link));
        assert_eq!(LockName::from_key(name.key()), Some(name.clone()));
        assert_eq!(name.as_seat(), Some(seat));
        assert_eq!(name.class(), "seat");
    }

    #[test]
    fn other_locks_have_keys_of_their_own() {
        let name = LockName::named("export:doc_1");
        assert_eq!(name.key(), "lock:export:doc_1");
        assert_eq!(name.grant_key(), "lock:grant:export:doc_1");
        assert_eq!(name.class(), "export");
        assert_eq!(name.as_seat(), None);
        assert_eq!(LockName::from_key(name.key()), Some(name.clone()));
        let beside = &name.keys()[1..];
        for key in beside.iter().map(String::as_str).chain(["share-link:lock:nonsense", "other"]) {
            assert_eq!(LockName::from_key(key), None, "{key}");
        }
    }

    #[test]
    fn a_pair_is_one_lock_whichever_is_named_first() {
        let pair = LockName::pair("request", "lee", "kim");
        assert_eq!(pair.key(), "lock:request:kim:lee");
        assert_eq!(pair, LockName::pair("request", "kim", "lee"));
        assert_eq!(pair.class(), "request");
    }
}
