//! Seats, on `SQLite`.

use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;

use crate::domain::fence::Fence;
use crate::domain::ids::{SessionId, ShareLinkId, UserId};
use crate::domain::seat::Seat;
use crate::storage::decode::{corrupt, fence as fence_from, fence_column};
use crate::storage::error::StorageError;
use crate::storage::seats::{FenceGuard, GuardError, Guarded, Ratified, SeatLookup, fences_of};
use crate::storage::sqlite::ratify::Grant;
use crate::storage::sqlite::write_cache::Invalidate;
use crate::storage::sqlite::{Sqlite, links};

/// Seats of one statement.
pub(super) const DOORS_MAX: usize = 1_024;

impl Sqlite {
    pub(in crate::storage) async fn door(
        &self,
        seat: Seat,
    ) -> Result<Option<SeatLookup>, StorageError> {
        self.doors.ask(seat, |seats| self.doors_of(seats)).await
    }

    async fn doors_of(&self, seats: Vec<Seat>) -> Result<Vec<Option<SeatLookup>>, StorageError> {
        let wanted: Vec<_> =
            seats.iter().map(|seat| (seat.link.to_string(), seat.role.as_str())).collect();
        let rows = links::fetch_with_fences(&self.readers, &wanted).await?;
        let mut doors = vec![None; seats.len()];
        for (at, link, fence, named_at) in rows {
            let floor = fence.map_or(Ok(Fence::ZERO), fence_from)?;
            if let Some(door) = doors.get_mut(at) {
                *door = Some(SeatLookup { link, floor, named_at });
            }
        }
        Ok(doors)
    }

    pub(in crate::storage) async fn ratify(
        &self,
        seat: Seat,
        fence: Fence,
        session: SessionId,
        user: &UserId,
        now: DateTime<Utc>,
    ) -> Result<Ratified, StorageError> {
        let number = fence_column(fence)?;
        let (user, now_ms) = (user.as_str().to_owned(), now.timestamp_millis());
        self.ratify_together(Grant { seat, fence, number, session, user, now_ms }).await
    }

    pub(in crate::storage) async fn fences(
        &self,
        seats: &[Seat],
    ) -> Result<Vec<(Seat, Fence)>, StorageError> {
        let wanted: Vec<_> =
            seats.iter().map(|seat| (seat.link.to_string(), seat.role.as_str())).collect();
        let rows: Vec<(i64, Option<i64>)> = sqlx::query_as(
            "SELECT w.key, s.fence FROM json_each($1) w \
             CROSS JOIN share_links l ON l.id = w.value ->> 0 AND l.revoked_at IS NULL \
             LEFT JOIN seats s ON s.link_id = l.id AND s.role = w.value ->> 1",
        )
        .bind(serde_json::to_string(&wanted).map_err(corrupt)?)
        .fetch_all(&self.readers)
        .await?;
        Ok(fences_of(seats, rows))
    }

    pub(in crate::storage) async fn vacate(
        &self,
        seat: Seat,
        fence: Fence,
    ) -> Result<(), StorageError> {
        let mut tx = self.write(Invalidate::Seats(vec![seat])).await?;
        sqlx::query(
            "UPDATE seats SET fence = fence + 1 WHERE link_id = $1 AND role = $2 AND fence = $3",
        )
        .bind(seat.link.to_string())
        .bind(seat.role.as_str())
        .bind(fence_column(fence)?)
        .execute(&mut *tx)
        .await?;
        Ok(tx.commit().await?)
    }
}

/// Refuses unless the seat has that fence and its link is active (D2). Inside a write transaction,
/// so the result stays valid until the commit.
pub(super) async fn require_seat(
    connection: &mut SqliteConnection,
    guard: FenceGuard,
) -> Result<(), GuardError> {
    let holds: Option<i64> = sqlx::query_scalar(
        "SELECT 1 FROM seats s JOIN share_links l ON l.id = s.link_id \
         WHERE s.link_id = $1 AND s.role = $2 AND s.fence = $3 AND l.revoked_at IS NULL",
    )
    .bind(guard.seat.link.to_string())
    .bind(guard.seat.role.as_str())
    .bind(fence_column(guard.fence)?)
    .fetch_optional(connection)
    .await?;
    holds.map(|_| ()).ok_or(GuardError::Refused(Guarded::Fenced))
}

/// Whether the link exists and is not revoked.
pub(super) async fn is_active(
    connection: &mut SqliteConnection,
    link: ShareLinkId,
) -> Result<bool, StorageError> {
    let active: Option<i64> =
        sqlx::query_scalar("SELECT 1 FROM share_links WHERE id = $1 AND revoked_at IS NULL")
            .bind(link.to_string())
            .fetch_optional(connection)
            .await?;
    Ok(active.is_some())
}

pub(super) async fn last_fence(
    connection: &mut SqliteConnection,
    seat: Seat,
) -> Result<Fence, StorageError> {
    let last: Option<i64> =
        sqlx::query_scalar("SELECT fence FROM seats WHERE link_id = $1 AND role = $2")
            .bind(seat.link.to_string())
            .bind(seat.role.as_str())
            .fetch_optional(connection)
            .await?;
    last.map_or(Ok(Fence::ZERO), fence_from)
}
