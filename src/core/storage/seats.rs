//! Seats in the database: the last fence that it ratified for each.
//!
//! The lock service decides which session holds a seat; the database decides whose writes count. The
//! database ratifies a grant only if its fence exceeds every earlier one. Afterwards a write under any
//! other fence changes no row (G2). The lease alone does not prevent two writers: a paused process
//! resumes and still trusts its lease. The database then rejects its older fence.

use chrono::{DateTime, Utc};

use crate::domain::fence::Fence;
use crate::domain::ids::{SessionId, UserId};
use crate::domain::seat::Seat;
use crate::storage::decode;
use crate::storage::error::StorageError;
pub use crate::storage::guard::{FenceGuard, Guarded, Ratified, SeatLookup};
use crate::storage::sql::links::link_of;
use crate::storage::statement::Row;
use crate::storage::tx::run;
use crate::storage::tx_error::TxError;
use crate::storage::webhooks::NewGrant;
use crate::storage::{Engine, Storage, StorageFuture, boxed_on_engine, postgres};

/// Reads a link with the columns `fence` and `named_at`.
pub(super) fn lookup_of(row: &Row) -> Result<SeatLookup, TxError> {
    let floor: Option<Fence> = row.get("fence")?;
    let floor = floor.unwrap_or(Fence::ZERO);
    Ok(SeatLookup { link: link_of(row)?, floor, named_at: row.get("named_at")? })
}

/// Seats with their fences, from rows of an index into `wanted` and a fence. A fence that does not
/// parse is left out: it concerns no other seat.
pub(super) fn fences_of(wanted: &[Seat], rows: Vec<(i64, Option<i64>)>) -> Vec<(Seat, Fence)> {
    let found = rows.into_iter().filter_map(|(at, number)| {
        let seat = wanted.get(usize::try_from(at).ok()?)?;
        let fence = number.map_or(Ok(Fence::ZERO), decode::fence).ok()?;
        Some((*seat, fence))
    });
    found.collect()
}

impl Storage {
    /// Reads the state that a claim of a seat depends on. `None`: there is no such link.
    pub fn seat_lookup(&self, seat: Seat) -> StorageFuture<'_, Option<SeatLookup>> {
        boxed_on_engine!(self, seat_lookup(seat))
    }

    /// Ratifies a grant if its fence exceeds the last ratified one. A repeated call with the same
    /// session and fence returns the same outcome.
    pub async fn ratify(
        &self,
        seat: Seat,
        fence: Fence,
        session: SessionId,
        user: &UserId,
        now: DateTime<Utc>,
    ) -> Result<Ratified, StorageError> {
        match &self.engine {
            Engine::Sqlite(engine) => engine.ratify(seat, fence, session, user, now).await,
            Engine::Postgres(_) => {
                let grant = NewGrant { seat, fence, user: user.as_str(), now };
                run!(self, Write, tx => { postgres::seats::ratify(tx, session, grant).await }).await
            }
        }
    }

    /// The ratified fences of those seats whose link is active; zero for a seat without one.
    pub fn fences<'a>(&'a self, seats: &'a [Seat]) -> StorageFuture<'a, Vec<(Seat, Fence)>> {
        boxed_on_engine!(self, fences(seats))
    }

    /// From now on the database rejects writes under `fence`, before another session acquires the
    /// seat. It changes nothing if the seat has another fence.
    pub fn vacate(&self, seat: Seat, fence: Fence) -> StorageFuture<'_, ()> {
        boxed_on_engine!(self, vacate(seat, fence))
    }
}
