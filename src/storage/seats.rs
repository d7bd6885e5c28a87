//! Seats, as the database knows them: the last fence it ratified for each.
//!
//! The lock service says who may sit; the database says whose writes count. A grant is ratified
//! only if its fence is higher than every one before, and from then on a write under an older
//! fence changes no row (G2). That, not the lease, is what makes two writers impossible: a
//! process that was paused wakes up believing in its lease, and finds the fence moved on.

use std::convert::Infallible;

use chrono::{DateTime, Utc};

use crate::domain::fence::Fence;
use crate::domain::ids::{SessionId, UserId};
use crate::domain::seat::Seat;
use crate::storage::decode;
use crate::storage::error::StorageError;
use crate::storage::links::ShareLink;
use crate::storage::{Storage, on_engine};

/// The condition of a guarded write: this seat still has this fence, and its link is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The seat in whose right the write is made.
    pub seat: Seat,
    /// The fence under which it was granted.
    pub fence: Fence,
}

/// What became of a guarded write. Whatever is not `Done` changed no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guarded<T> {
    /// It is committed.
    Done(T),
    /// The seat has another fence now, or its link was revoked.
    Fenced,
    /// There is no such review on that link.
    NotFound,
    /// It has changed since the caller looked; look again.
    VersionMismatch {
        /// The version it has now.
        current: i64,
    },
    /// The document has changed since the caller looked; look again.
    Stale,
    /// The limit for things of this kind is reached.
    Full,
}

/// Why a guarded write stopped half-way: lets `?` carry a refusal as well as a failure.
#[derive(Debug)]
pub(crate) enum Halt {
    /// A typed answer, and nothing is committed.
    Refused(Guarded<Infallible>),
    /// The database failed.
    Failed(StorageError),
}

impl<E: Into<StorageError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Parts the answers from the failures.
pub(crate) fn settle<T>(result: Result<T, Halt>) -> Result<Guarded<T>, StorageError> {
    let refused = match result {
        Ok(done) => return Ok(Guarded::Done(done)),
        Err(Halt::Failed(error)) => return Err(error),
        Err(Halt::Refused(refused)) => refused,
    };
    Ok(match refused {
        Guarded::Done(never) => match never {},
        Guarded::Fenced => Guarded::Fenced,
        Guarded::NotFound => Guarded::NotFound,
        Guarded::VersionMismatch { current } => Guarded::VersionMismatch { current },
        Guarded::Stale => Guarded::Stale,
        Guarded::Full => Guarded::Full,
    })
}

/// What somebody who wants to sit down finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    /// The link, also a revoked one.
    pub link: ShareLink,
    /// The last fence that was ratified for the seat; a grant must be above it.
    pub floor: Fence,
    /// The time of the token that the name of the seat's user is from; none of a seat without a user.
    pub named_at: Option<DateTime<Utc>>,
}

/// What the database says to a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ratified {
    /// From now on only writes under this fence count.
    Accepted,
    /// The fence is not above the last one. Ask for a grant above `last`.
    Refused {
        /// What was ratified last.
        last: Fence,
    },
    /// The link is not there, or was revoked: nobody sits here any more.
    Gone,
}

/// Seats with their fences, from rows that say at which place of `asked` each stands. A fence that
/// does not parse is left out: it concerns no other seat.
pub(super) fn fences_of(asked: &[Seat], rows: Vec<(i64, Option<i64>)>) -> Vec<(Seat, Fence)> {
    let found = rows.into_iter().filter_map(|(at, number)| {
        let seat = asked.get(usize::try_from(at).ok()?)?;
        let fence = number.map_or(Ok(Fence::ZERO), decode::fence).ok()?;
        Some((*seat, fence))
    });
    found.collect()
}

impl Storage {
    /// What is looked at before a seat is claimed. `None`: there is no such link.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn door(&self, seat: Seat) -> Result<Option<Door>, StorageError> {
        on_engine!(self, door(seat))
    }

    /// Registers a grant: accepted only above the last ratified fence. Asking again for the same
    /// session and fence gives the same answer.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn ratify(
        &self,
        seat: Seat,
        fence: Fence,
        session: SessionId,
        user: &UserId,
        now: DateTime<Utc>,
    ) -> Result<Ratified, StorageError> {
        on_engine!(self, ratify(seat, fence, session, user, now))
    }

    /// The ratified fences of those seats whose link is active; zero of a seat without one.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be read.
    pub async fn fences(&self, seats: &[Seat]) -> Result<Vec<(Seat, Fence)>, StorageError> {
        on_engine!(self, fences(seats))
    }

    /// From now on writes under `fence` are refused, though nobody else sits there yet. Does
    /// nothing when the seat has another fence.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn vacate(&self, seat: Seat, fence: Fence) -> Result<(), StorageError> {
        on_engine!(self, vacate(seat, fence))
    }
}
