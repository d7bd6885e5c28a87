//! Names of locks, and the Redis keys they stand for. The only place that spells a key.
//!
//! | key | is |
//! |---|---|
//! | `share-link:lock:<id>:<role>` | a seat: the value of whoever sits in it (CONTRACT §5) |
//! | `share-link:grant:<id>:<role>` | its *grant*: last fence, and who the holder is |
//! | `lock:<name>`, `lock:grant:<name>` | the same for any other lock |
//!
//! The keys of one lock differ in their prefix alone, so that what tells them apart on a Cluster
//! can be tagged in one place (`{<id>}`) and they share a slot. Every key begins with
//! `share-link:` or `lock:`, which is all that an ACL has to allow. A seat's grant does not begin
//! with `share-link:lock:`: whoever scans for seats finds seats only.

use std::fmt;
use std::sync::Arc;

use crate::domain::ids::ShareLinkId;
use crate::domain::seat::{Role, Seat};

const SEAT: &str = "share-link:lock:";
const SEAT_GRANT: &str = "share-link:grant:";
const NAMED: &str = "lock:";
const NAMED_GRANT: &str = "lock:grant:";

/// What a lock is called. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockName(Arc<str>);

impl LockName {
    /// The lock of a seat.
    #[must_use]
    pub fn seat(seat: Seat) -> Self {
        Self(seat.to_string().into())
    }

    /// Any other lock. By convention `<class>:<what>`; names that begin with `grant:` or
    /// `release:` are Galley's own.
    #[must_use]
    pub fn named(name: &str) -> Self {
        debug_assert!(!name.starts_with("grant:") && !name.starts_with("release:"), "{name}");
        Self(format!("{NAMED}{name}").into())
    }

    /// The key in Redis.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0
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
        match self.0.strip_prefix(SEAT) {
            Some(rest) => format!("{SEAT_GRANT}{rest}"),
            None => format!("{NAMED_GRANT}{}", self.0.strip_prefix(NAMED).unwrap_or(&self.0)),
        }
    }

    /// A name back from a key that a scan found.
    pub(super) fn from_seat_key(key: &str) -> Option<Self> {
        let name = Self(key.into());
        name.as_seat().map(|_| name)
    }

    /// What finds all seats in a scan.
    pub(super) fn seat_pattern() -> String {
        format!("{SEAT}*")
    }
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
        assert_eq!(LockName::from_seat_key(name.key()), Some(name.clone()));
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
        assert_eq!(LockName::from_seat_key("share-link:lock:nonsense"), None);
    }
}
