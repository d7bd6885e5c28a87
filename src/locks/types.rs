//! What is said about locks: who asks, who holds, and what came of it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::domain::ids::{NodeId, UserId};
use crate::domain::user::User;
use crate::locks::name::LockName;
use crate::locks::reclaim_token::Pass;

/// Who asks for a lock, and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The person it is for.
    pub user: User,
    /// The server that will renew it.
    pub node: NodeId,
    /// By what the same person may come back to it from anywhere. Never told of a holder.
    pub pass: Option<Pass>,
}

impl Owner {
    /// Stands for a holder of whom nothing is known: a key that somebody set by hand. Its ids are
    /// new each time, so that it equals nobody.
    pub(super) fn unknown() -> Self {
        Self {
            user: User { id: UserId::generate(), name: String::new() },
            node: NodeId::generate(),
            pass: None,
        }
    }
}

/// One wish for a lock.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Which lock.
    pub name: LockName,
    /// The secret that tells this acquisition from every other: never used for two.
    pub value: String,
    /// Who asks.
    pub owner: Owner,
    /// The last fence that the database ratified for this lock.
    pub floor: Fence,
    /// How long the lock is held if it is never renewed.
    pub ttl: Duration,
    /// From whom it may be taken.
    pub over: Over,
}

/// From whom a lock may be taken that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// From nobody.
    Nobody,
    /// From exactly the holder with this value, if it still holds.
    Value(String),
    /// From any holder that is the same user as the one who asks.
    SameUser,
    /// From the holder that is the same user and was granted it with this pass: whoever presents
    /// its secret is who left, and comes before everybody in the line.
    Pass(Pass),
}

/// What came of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The lock is the claimant's.
    Granted(Grant),
    /// It is somebody else's.
    Busy(Holder),
}

/// A lock that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its number: higher than that of every earlier grant of the same lock.
    pub fence: Fence,
    /// When it was given, by the clock of whoever keeps the locks.
    pub since: DateTime<Utc>,
    /// When the claim was sent: the lease is counted from here.
    pub sent_at: Instant,
    /// Who lost it to this grant.
    pub replaced: Option<Holder>,
}

/// Who has a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The secret of the acquisition.
    pub value: String,
    /// Who it is.
    pub owner: Owner,
    /// The number of the grant.
    pub fence: Fence,
    /// Since when.
    pub since: DateTime<Utc>,
    /// How long it lasts if it is not renewed.
    pub ttl: Duration,
    /// How many wait in line for it.
    pub waiting: usize,
}

impl Holder {
    /// Whether Galley gave it. Of a key that somebody set by hand only the value and the TTL are so;
    /// its owner is nobody, with ids that are new each time.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.since != DateTime::UNIX_EPOCH
    }
}

/// Somebody who waits for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InLine {
    /// Who it is.
    pub user: User,
    /// On which server.
    pub node: NodeId,
    /// Since when.
    pub since: DateTime<Utc>,
}

/// What came of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// It was held and is free now.
    Freed,
    /// It was not held under that value; nothing was freed.
    NotHeld,
}

/// A lock that its holder wants to keep: all that is needed to put it back where Redis lost it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which lock.
    pub name: LockName,
    /// The secret it was taken with.
    pub value: String,
    /// Who holds it.
    pub owner: Owner,
    /// The number of the grant.
    pub fence: Fence,
    /// Since when.
    pub since: DateTime<Utc>,
}

/// What came of a round of renewals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// When the renewals were sent: the new leases are counted from here.
    pub sent_at: Instant,
    /// One for each lock, by position.
    pub verdicts: Vec<Verdict>,
}

/// What became of one lock in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Still held; the lease runs anew.
    Renewed,
    /// The key was gone, nobody had it in between, and it is back.
    Reasserted,
    /// It is somebody else's, or was, or was released.
    Lost,
    /// There is no telling: the node that has it gave no answer. It may or may not have been
    /// renewed, and its old deadline stays in force.
    Unknown,
}

/// How things stand for somebody who does not have the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Place in the line: 1 is next. For somebody who does not wait, the place they would have.
    pub position: usize,
    /// Who has the lock, since when, for how long at least, and how many wait in all.
    pub holder: Holder,
    /// When it is worth to ask again. Who waits in line does so by itself.
    pub retry_at: Instant,
}

/// Why there is no lock, or no longer one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// Somebody else has it.
    #[error("the lock is held by somebody else")]
    Busy(Box<Place>),
    /// It did not come free in time. The place is the last that was known.
    #[error("the lock did not come free in time")]
    WaitTimeout(Option<Box<Place>>),
    /// It was held, and is not any more.
    #[error("the lock was lost: {0}")]
    Lost(Loss),
    /// There is no telling.
    #[error(transparent)]
    Unavailable(#[from] LocksError),
}

/// How a lock was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// It is somebody else's, or was released by somebody else.
    #[error("somebody else has it")]
    Taken,
    /// It could not be renewed in time.
    #[error("it was not renewed in time")]
    Expired,
    /// It was held for as long as it may be.
    #[error("it was held for too long")]
    HeldTooLong,
    /// The locks were closed.
    #[error("the locks were closed")]
    Closed,
}

/// Why a lock could not be asked about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocksError {
    /// Out of reach, or no answer in time. Nothing is granted on a time-out.
    #[error("locks are out of reach: {0}")]
    Unavailable(String),
    /// Somebody has to change a setting.
    #[error("locks are misconfigured: {0}")]
    Misconfigured(String),
    /// This kind of lock server is not spoken to.
    #[error("locks are not supported: {0}")]
    Unsupported(String),
}
