//! Grants and guarded writes: the condition of a write, and the outcomes.

use chrono::{DateTime, Utc};

use crate::domain::fence::Fence;
use crate::domain::seat::Seat;
use crate::storage::links::ShareLink;

/// The condition of a guarded write: the seat still has this fence, and its link is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FenceGuard {
    pub seat: Seat,
    pub fence: Fence,
}

/// The outcome of a guarded write. Only `Done` changes rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guarded<T> {
    Done(T),
    /// The seat has another fence now, or its link is revoked.
    Fenced,
    /// The link has no such review, or the document does not exist.
    NotFound,
    /// The review changed since the caller read it; the caller reads it again.
    VersionMismatch {
        current: i64,
    },
    /// The document changed since the caller read it; the caller reads it again.
    Stale,
    /// A limit of count or size is reached.
    Full,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatLookup {
    /// The link, also a revoked one.
    pub link: ShareLink,
    /// The last ratified fence of the seat; a grant must exceed it.
    pub floor: Fence,
    /// The time of the token that carries the name of the seat's user. `None`: the seat has no user.
    pub named_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ratified {
    /// From now on the database accepts only writes under this fence.
    Accepted,
    /// The fence does not exceed the last one. The session acquires a grant above `last`.
    Refused { last: Fence },
    /// The link is missing or revoked: the seat no longer exists.
    Gone,
    /// The owner removed or replaced this reviewer after the claim began.
    NotTheReviewer,
}
