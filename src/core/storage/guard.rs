//! Guarded writes: the condition of a write, and the outcomes.

use crate::domain::fence::Fence;
use crate::domain::seat::Seat;

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
