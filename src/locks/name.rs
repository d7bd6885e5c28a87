//! Names of locks and their Redis keys. Besides this module only the `Display` of
//! [`Seat`] spells a key: that of a seat.
//!
//! | key | holds |
//! |---|---|
//! | `share-link:lock:<id>:<role>` | a seat: the value of its session (`src/http/PROTOCOL.md`, *Redis keys*) |
//! | `share-link:grant:<id>:<role>` | its *grant*: the last fence, and the holder |
//! | `share-link:line:…`, `share-link:due:…`, `share-link:waiting:…` | its wait queue: arrivals, deadlines, and the waiters |
//! | `lock:<name>`, `lock:grant:<name>`, … | those of any other lock |
//!
//! The keys of one lock differ in their prefix alone. On a Cluster a hash tag surrounds their
//! common part, so that they share a slot: `share-link:lock:{<id>}:<role>`, `lock:{<name>}`. The
//! backend chooses between the two formats; a name does not depend on them. Every key begins with
//! `share-link:` or `lock:`, so an ACL allows only these two. A seat's grant does not begin with
//! `share-link:lock:`: a scan for seats finds seats only.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::redis_client::slots::{slot_of, slot_of_tag};
use galley_domain::ids::{NodeId, ShareLinkId};
use galley_domain::seat::{Role, Seat};

const SEAT: &str = "share-link:lock:";
const SEAT_KEYS: &str = "share-link:";
const NAMED: &str = "lock:";
/// Matches [`SEAT`] and [`NAMED`], companion keys of named locks, and foreign keys.
pub(super) const SCAN_PATTERN: &str = "*lock:*";
/// Prefixes that the name of a lock must not have: companion keys and channels use them.
const RESERVED: [&str; 6] = ["grant:", "line:", "due:", "waiting:", "release:", "check:"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyFormat {
    Plain,
    Tagged,
}

/// The name of a lock. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockName(Arc<str>);

impl LockName {
    /// The lock of a seat.
    #[must_use]
    pub fn seat(seat: Seat) -> Self {
        Self(seat.to_string().into())
    }

    /// Any other lock. By convention `<class>:<what>`. Different names have different keys, for any
    /// characters in them. This function percent-encodes `%` and braces, which would separate a key from
    /// its companions on a Cluster. It escapes a reserved prefix (`grant:`, `line:`, `due:`,
    /// `waiting:`, `release:` or `check:`), which would collide with a companion key.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let escaped = escaped(name, &['%', '{', '}']);
        let front = if is_reserved(&escaped) { "%" } else { "" };
        Self(format!("{NAMED}{front}{escaped}").into())
    }

    /// One lock for two parties, in either order.
    #[must_use]
    pub fn pair(class: &str, one: &str, other: &str) -> Self {
        let (first, second) = if one <= other { (one, other) } else { (other, one) };
        let [first, second] = [first, second].map(|who| escaped(who, &['+', ':']));
        Self::named(&format!("{class}:{first}:{second}"))
    }

    /// The key in a single Redis. [`Locks::key_of`](crate::Locks::key_of) returns the
    /// backend's key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0
    }

    /// The name without the prefix that all seats, or all other locks, share.
    #[must_use]
    pub fn what(&self) -> &str {
        self.rest()
    }

    pub(super) fn key_as(&self, key_format: KeyFormat) -> Cow<'_, str> {
        match key_format {
            KeyFormat::Plain => Cow::Borrowed(&self.0),
            KeyFormat::Tagged => match self.0.strip_prefix(SEAT) {
                Some(_) => Cow::Owned(self.beside("lock", key_format)),
                None => Cow::Owned(format!("{NAMED}{{{}}}", self.rest())),
            },
        }
    }

    pub(super) fn slot(&self) -> u16 {
        let rest = self.rest();
        match rest.split_once(':') {
            Some((link, _role)) if self.0.starts_with(SEAT) => slot_of_tag(link),
            _ => slot_of_tag(rest),
        }
    }

    /// The seat, if the lock is one.
    #[must_use]
    pub fn as_seat(&self) -> Option<Seat> {
        let (link, role) = self.0.strip_prefix(SEAT)?.split_once(':')?;
        let link: ShareLinkId = link.parse().ok()?;
        let role: Role = role.parse().ok()?;
        Some(Seat::new(link, role))
    }

    /// The class of the lock, from a small set: metrics carry it as a label.
    #[must_use]
    pub fn class(&self) -> &str {
        match self.0.strip_prefix(NAMED) {
            Some(name) => name.split(':').next().unwrap_or(name),
            None => "seat",
        }
    }

    pub(super) fn grant_key(&self, key_format: KeyFormat) -> String {
        self.beside("grant", key_format)
    }

    pub(super) fn due_key(&self, key_format: KeyFormat) -> String {
        self.beside("due", key_format)
    }

    /// All keys of the lock, in the order that `claim.lua` and `release.lua` expect.
    pub(super) fn keys(&self, key_format: KeyFormat) -> [String; 5] {
        let [line, waiting] = ["line", "waiting"].map(|what| self.beside(what, key_format));
        let (lock, grant) = (self.key_as(key_format).into_owned(), self.grant_key(key_format));
        [lock, grant, line, self.due_key(key_format), waiting]
    }

    fn beside(&self, what: &str, key_format: KeyFormat) -> String {
        let rest = self.rest();
        match (self.0.starts_with(SEAT), key_format) {
            (true, KeyFormat::Plain) => [SEAT_KEYS, what, ":", rest].concat(),
            (true, KeyFormat::Tagged) => {
                let (link, role) = rest.split_once(':').unwrap_or((rest, ""));
                [SEAT_KEYS, what, ":{", link, "}:", role].concat()
            }
            (false, KeyFormat::Plain) => [NAMED, what, ":", rest].concat(),
            (false, KeyFormat::Tagged) => [NAMED, what, ":{", rest, "}"].concat(),
        }
    }

    fn rest(&self) -> &str {
        let rest = self.0.strip_prefix(SEAT).or_else(|| self.0.strip_prefix(NAMED));
        rest.unwrap_or(&self.0)
    }

    /// The name of a key that a scan returned; none if the key is not a lock.
    pub(super) fn from_key(key: &str, key_format: KeyFormat) -> Option<Self> {
        let name = match key_format {
            KeyFormat::Plain => Self(key.into()),
            KeyFormat::Tagged => {
                let (prefix, tagged) = key.split_once('{')?;
                let (tag, rest) = tagged.split_once('}')?;
                // Companion keys have another prefix.
                let is_lock = prefix == SEAT || (prefix == NAMED && rest.is_empty());
                is_lock.then(|| Self(format!("{prefix}{tag}{rest}").into()))?
            }
        };
        let is_named = name.0.strip_prefix(NAMED).is_some_and(|rest| !is_reserved(rest));
        (is_named || name.as_seat().is_some()).then_some(name)
    }
}

/// `name` with each character of `strange` written as the mark (its first) and two hex digits.
fn escaped(name: &str, strange: &[char]) -> String {
    let mark = strange.first().copied().unwrap_or('%');
    let mut out = String::with_capacity(name.len());
    for letter in name.chars() {
        if strange.contains(&letter) {
            out.push_str(&format!("{mark}{:02X}", u32::from(letter)));
        } else {
            out.push(letter);
        }
    }
    out
}

fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|reserved| name.starts_with(reserved))
}

/// Unused keys of both kinds, on which `server` exercises its permissions.
pub(super) fn check_keys(server: NodeId) -> [String; 2] {
    [SEAT_KEYS, NAMED].map(|prefix| format!("{prefix}check:{server}"))
}

/// The check keys on a Cluster, in a slot for which `is_there` is true: the node to check serves it. None
/// if there is no such slot.
pub(super) fn check_keys_in(server: NodeId, is_there: impl Fn(u16) -> bool) -> Option<[String; 2]> {
    // The search misses a node with a hundredth of all slots once in 10^87 times.
    let tag = (0..20_000)
        .map(|number| format!("{{{server}.{number}}}"))
        .find(|tag| is_there(slot_of(tag)))?;
    Some([SEAT_KEYS, NAMED].map(|prefix| format!("{prefix}check:{tag}")))
}

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
    fn the_key_of_a_seat_parses_back_to_the_seat() {
        let seat = Seat::new(ShareLinkId::generate(), Role::Reviewer);
        let name = LockName::seat(seat);
        assert_eq!(name.key(), format!("share-link:lock:{}:reviewer", seat.link));
        assert_eq!(name.key_as(KeyFormat::Plain), name.key());
        let grant = format!("share-link:grant:{}:reviewer", seat.link);
        assert_eq!(name.grant_key(KeyFormat::Plain), grant);
        assert_eq!(LockName::from_key(name.key(), KeyFormat::Plain), Some(name.clone()));
        assert_eq!(name.as_seat(), Some(seat));
        assert_eq!(name.class(), "seat");
    }

    #[test]
    fn other_locks_have_their_own_keys() {
        let name = LockName::named("export:doc_1");
        assert_eq!(name.key(), "lock:export:doc_1");
        assert_eq!(name.grant_key(KeyFormat::Plain), "lock:grant:export:doc_1");
        assert_eq!(name.class(), "export");
        assert_eq!(name.as_seat(), None);
        assert_eq!(LockName::from_key(name.key(), KeyFormat::Plain), Some(name.clone()));
        let beside = &name.keys(KeyFormat::Plain)[1..];
        for key in beside.iter().map(String::as_str).chain(["share-link:lock:nonsense", "other"]) {
            assert_eq!(LockName::from_key(key, KeyFormat::Plain), None, "{key}");
        }
    }

    #[test]
    fn on_a_cluster_the_keys_of_a_lock_share_a_slot_and_parse_back() {
        let seat = Seat::new(ShareLinkId::generate(), Role::Writer);
        let (seat, job) = (LockName::seat(seat), LockName::named("export:doc_1"));
        let link = seat.rest().split(':').next().expect("an id").to_owned();
        assert_eq!(seat.key_as(KeyFormat::Tagged), format!("share-link:lock:{{{link}}}:writer"));
        assert_eq!(job.key_as(KeyFormat::Tagged), "lock:{export:doc_1}");
        assert_eq!(job.grant_key(KeyFormat::Tagged), "lock:grant:{export:doc_1}");
        for (name, tag) in [(seat, link.as_str()), (job, "export:doc_1")] {
            let keys = name.keys(KeyFormat::Tagged);
            assert!(keys.iter().all(|key| slot_of(key) == name.slot()), "{keys:?}");
            assert_eq!(name.slot(), slot_of(tag));
            assert_eq!(LockName::from_key(&keys[0], KeyFormat::Tagged), Some(name.clone()));
            for key in keys[1..].iter().map(String::as_str).chain([name.key(), "lock:{}x", "x{y}"])
            {
                assert_eq!(LockName::from_key(key, KeyFormat::Tagged), None, "{key}");
            }
        }
        let keys = check_keys_in(NodeId::generate(), |slot| slot % 100 == 7).expect("a slot");
        assert!(keys.iter().all(|key| slot_of(key) % 100 == 7), "{keys:?}");
    }

    #[test]
    fn no_name_collides_with_another_lock_or_a_companion_key() {
        for (name, key) in [
            ("export:문서 1", "lock:export:문서 1"),
            ("grant:x", "lock:%grant:x"),
            ("%grant:x", "lock:%25grant:x"),
            ("a{b}", "lock:a%7Bb%7D"),
            ("a%7Bb%7D", "lock:a%257Bb%257D"),
        ] {
            let name = LockName::named(name);
            assert_eq!(name.key(), key);
            assert_eq!(LockName::from_key(key, KeyFormat::Plain), Some(name));
        }
        let [one, other] =
            [("a:b", "c"), ("a", "b:c")].map(|(one, other)| LockName::pair("p", one, other));
        assert_ne!(one, other);
        assert_ne!(LockName::pair("p", "a+3Ab", "c"), one);
    }

    #[test]
    fn a_pair_is_one_lock_in_either_order() {
        let pair = LockName::pair("request", "lee", "kim");
        assert_eq!(pair.key(), "lock:request:kim:lee");
        assert_eq!(pair, LockName::pair("request", "kim", "lee"));
        assert_eq!(pair.class(), "request");
    }
}
