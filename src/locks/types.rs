//! Arguments and results of the locks: owners, claims, grants, verdicts and errors.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use galley_domain::fence::Fence;
use galley_domain::ids::{NodeId, OwnerId};
use galley_domain::user::User;

use crate::name::LockName;
use crate::reclaim_token::ReclaimToken;

/// The claimant of a lock, and its server. The server of Galley claims a seat for a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Equal in all claims of one owner, on any server.
    pub id: OwnerId,
    /// For display. May be empty.
    pub name: String,
    /// The server that will renew the lock.
    pub node: NodeId,
    /// The token by which the same owner reclaims the lock on any server. No reply about a holder
    /// contains it.
    pub pass: Option<ReclaimToken>,
}

impl From<Owner> for User {
    fn from(owner: Owner) -> Self {
        Self { id: owner.id.into(), name: owner.name }
    }
}

impl Owner {
    /// The owner of a key without a grant, which an operator set by hand. Its ids are new each
    /// time, so that it equals no other owner.
    pub(super) fn unknown() -> Self {
        Self { id: OwnerId::generate(), name: String::new(), node: NodeId::generate(), pass: None }
    }
}

/// A request for a lock.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The lock.
    pub name: LockName,
    /// The secret of this acquisition. No two acquisitions share a value.
    pub value: String,
    /// The claimant.
    pub owner: Owner,
    /// The last fence that the database ratified for this lock.
    pub floor: Fence,
    /// The TTL of the key without renewal.
    pub ttl: Duration,
    /// Which holders the claim may replace.
    pub over: Takeover,
}

/// Which holders a claim may replace (takeover).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Takeover {
    /// None.
    None,
    /// The holder with exactly this value.
    Value(String),
    /// Any holder of the same owner.
    SameOwner,
    /// The holder of the same owner whose grant carries this token: the presented secret proves that
    /// the claimant held the lock. The claim overtakes the wait queue.
    ReclaimToken(ReclaimToken),
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The claimant holds the lock.
    Granted(Grant),
    /// Another value holds the lock.
    Busy(Holder),
}

/// A successful acquisition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The fence: higher than that of every earlier grant of the same lock.
    pub fence: Fence,
    /// The time of the grant, by the backend's clock.
    pub since: DateTime<Utc>,
    /// When the claim was sent: the lease starts here.
    pub sent_at: Instant,
    /// The holder that this grant replaced.
    pub replaced: Option<Holder>,
}

/// The holder of a lock, as any server reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The secret of the acquisition.
    pub value: String,
    /// Its owner and server.
    pub owner: Owner,
    /// The fence of the grant.
    pub fence: Fence,
    /// The time of the grant, by the backend's clock.
    pub since: DateTime<Utc>,
    /// The remaining lease without renewal.
    pub ttl: Duration,
    /// The length of the wait queue.
    pub waiting: usize,
}

impl Holder {
    /// Whether Galley granted the lock. Of a key that an operator set by hand only value and TTL
    /// are real; its owner has ids that are new each time.
    #[must_use]
    pub fn has_grant(&self) -> bool {
        self.since != DateTime::UNIX_EPOCH
    }
}

/// A waiter in the queue of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedClaim {
    /// Its owner, without the token.
    pub owner: Owner,
    /// Its arrival in the queue.
    pub since: DateTime<Utc>,
}

/// The result of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// The value held the lock, and the lock is free now.
    Freed,
    /// The value did not hold the lock; the release freed nothing.
    NotHeld,
}

/// A lock to renew, with all data that a reassert needs after Redis lost the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// The lock.
    pub name: LockName,
    /// The secret of the acquisition.
    pub value: String,
    /// The holder's owner and server.
    pub owner: Owner,
    /// The fence of the grant.
    pub fence: Fence,
    /// The time of the grant.
    pub since: DateTime<Utc>,
}

/// The result of a renewal round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// When the renewals were sent: the new leases start here.
    pub sent_at: Instant,
    /// One for each lock, by position.
    pub verdicts: Vec<Verdict>,
}

/// The result of a renewal round for one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The holder still holds the lock; the lease starts anew.
    Renewed,
    /// The key had vanished, no other holder came in between, and the script set it again.
    Reasserted,
    /// Another value holds or held the lock, or it was released.
    Lost,
    /// The node of the lock did not reply. It may or may not have renewed the lock, and the old
    /// deadline stays in force.
    Unknown,
}

/// The state of a lock and its queue, for a claimant that does not hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePosition {
    /// Position in the wait queue: 1 is next. For a claimant outside the queue, the position it
    /// would get.
    pub position: usize,
    /// The holder, the time of its grant, its remaining lease and the length of the queue.
    pub holder: Holder,
    /// When a new attempt is worthwhile. A waiter in the queue polls by itself.
    pub retry_at: Instant,
}

/// Why an acquisition failed, or a held lock was lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// Another holder has the lock.
    #[error("another holder has the lock")]
    Busy(Box<QueuePosition>),
    /// The wait timed out. Carries the last known position.
    #[error("the wait for the lock timed out")]
    WaitTimeout(Option<Box<QueuePosition>>),
    /// The guard held the lock and lost it.
    #[error("the lock was lost: {0}")]
    Lost(Loss),
    /// The backend did not reply.
    #[error(transparent)]
    Unavailable(#[from] LocksError),
}

/// How a lock was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// Another holder has the lock, or another process released it.
    #[error("another holder has it")]
    Taken,
    /// The holder could not renew the lock before its deadline.
    #[error("its lease was not renewed in time")]
    Expired,
    /// The maximum hold elapsed.
    #[error("its maximum hold elapsed")]
    HeldTooLong,
    /// [`Locks::close`](crate::Locks::close) ended the hold.
    #[error("the locks were closed")]
    Closed,
}

/// Why a call to the backend failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocksError {
    /// Unreachable, or no reply in time. A time-out grants nothing.
    #[error("locks are unavailable: {0}")]
    Unavailable(String),
    /// An operator must change a setting.
    #[error("locks are misconfigured: {0}")]
    Misconfigured(String),
    /// The URL names a backend that this module does not support.
    #[error("locks are not supported: {0}")]
    Unsupported(String),
}

/// Why a call has no result, and whether the backend executed it.
#[derive(Clone, Debug)]
pub(crate) enum CallError {
    Unsent(LocksError),
    /// The backend may have executed the call, or may still execute it.
    Unknown(LocksError),
    /// The backend refused the call.
    Refused(LocksError),
}

impl From<CallError> for LocksError {
    fn from(fault: CallError) -> Self {
        match fault {
            CallError::Unsent(error) | CallError::Unknown(error) | CallError::Refused(error) => {
                error
            }
        }
    }
}

pub(crate) fn spent() -> LocksError {
    let why = "the value of this claim is already released: claim with a new one";
    LocksError::Unavailable(why.to_owned())
}

pub(crate) fn unexpected() -> LocksError {
    LocksError::Unavailable("unexpected reply of Redis".to_owned())
}
