//! Seats, on PostgreSQL.
//!
//! A transaction that changes the rows of a guard also increments `documents.grants`, under the lock of
//! the document. So a group of edits detects the change in that row.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::domain::fence::Fence;
use crate::domain::ids::ShareLinkId;
use crate::domain::ids::{SessionId, UserId};
use crate::domain::seat::{Role, Seat};
use crate::storage::decode::{fence as fence_from, fence_column};
use crate::storage::error::StorageError;
use crate::storage::postgres::dialect::{read, transact};
use crate::storage::postgres::encoding::Moment;
use crate::storage::postgres::locks::lock_of;
use crate::storage::postgres::tx_error::TxError;
use crate::storage::postgres::webhook_seats::note_grant;
use crate::storage::postgres::{Postgres, own_links};
use crate::storage::seats::{FenceGuard, Guarded, Ratified, SeatLookup, fences_of};
use crate::storage::webhooks::NewGrant;

impl Postgres {
    pub(in crate::storage) async fn seat_lookup(
        &self,
        seat: Seat,
    ) -> Result<Option<SeatLookup>, StorageError> {
        let read =
            read!(self, connection => { own_links::fetch_with_fence(connection, seat).await })?;
        let Some((link, fence, named_at)) = read else {
            return Ok(None);
        };
        let floor = fence.map_or(Ok(Fence::ZERO), fence_from)?;
        Ok(Some(SeatLookup { link, floor, named_at }))
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
        transact!(self, tx => {
            lock_of(tx, seat.link).await?;
            let ratified = sqlx::query(
                "WITH active AS ( \
                   SELECT id, document_id FROM share_links WHERE id = $1 AND revoked_at IS NULL \
                   AND ($2 <> 'reviewer' OR reviewer_id = $5) \
                 ), ratified AS ( \
                   INSERT INTO seats AS s (link_id, role, fence, session_id, user_id, ratified_at) \
                   SELECT a.id, $2, $3, $4, $5, $6 FROM active a \
                   ON CONFLICT (link_id, role) DO UPDATE SET fence = excluded.fence, \
                     session_id = excluded.session_id, user_id = excluded.user_id, \
                     ratified_at = excluded.ratified_at \
                   WHERE s.fence < excluded.fence \
                     OR (s.fence = excluded.fence AND s.session_id = excluded.session_id) \
                   RETURNING 1 \
                 ) UPDATE documents d SET grants = d.grants + 1 FROM active a, ratified \
                 WHERE d.id = a.document_id",
            )
            .bind(seat.link.to_string())
            .bind(seat.role.as_str())
            .bind(number)
            .bind(session.to_string())
            .bind(user.as_str())
            .bind(Moment(now))
            .execute(&mut *tx)
            .await?;
            if 0 < ratified.rows_affected() {
                let new = NewGrant { seat, fence, user: user.as_str(), now };
                note_grant(tx, &self.hooks, new).await?;
                return Ok(Ratified::Accepted);
            }
            let reviewer: Option<Option<String>> = sqlx::query_scalar(
                "SELECT reviewer_id FROM share_links WHERE id = $1 AND revoked_at IS NULL",
            )
            .bind(seat.link.to_string())
            .fetch_optional(&mut *tx)
            .await?;
            let Some(reviewer) = reviewer else { return Ok(Ratified::Gone) };
            if seat.role == Role::Reviewer && reviewer.as_deref() != Some(user.as_str()) {
                return Ok(Ratified::NotTheReviewer);
            }
            Ok(Ratified::Refused { last: last_fence(tx, seat).await? })
        })
    }

    pub(in crate::storage) async fn fences(
        &self,
        seats: &[Seat],
    ) -> Result<Vec<(Seat, Fence)>, StorageError> {
        let (links, roles): (Vec<String>, Vec<&str>) =
            seats.iter().map(|seat| (seat.link.to_string(), seat.role.as_str())).unzip();
        let read = read!(self, connection => {
            let rows: Vec<(i64, Option<i64>)> = sqlx::query_as(
                "SELECT w.at - 1, s.fence \
                 FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS w (link_id, role, at) \
                 JOIN share_links l ON l.id = w.link_id AND l.revoked_at IS NULL \
                 LEFT JOIN seats s ON s.link_id = w.link_id AND s.role = w.role",
            )
            .bind(links.as_slice())
            .bind(roles.as_slice())
            .fetch_all(connection)
            .await?;
            Ok(rows)
        })?;
        Ok(fences_of(seats, read))
    }

    pub(in crate::storage) async fn vacate(
        &self,
        seat: Seat,
        fence: Fence,
    ) -> Result<(), StorageError> {
        let number = fence_column(fence)?;
        transact!(self, tx => {
            lock_of(tx, seat.link).await?;
            sqlx::query(
                "WITH vacated AS ( \
                   UPDATE seats SET fence = fence + 1 \
                   WHERE link_id = $1 AND role = $2 AND fence = $3 RETURNING link_id \
                 ) UPDATE documents d SET grants = d.grants + 1 \
                 FROM vacated v JOIN share_links l ON l.id = v.link_id \
                 WHERE d.id = l.document_id",
            )
            .bind(seat.link.to_string())
            .bind(seat.role.as_str())
            .bind(number)
            .execute(tx)
            .await?;
            Ok(())
        })
    }
}

/// Raises the fence of the reviewer's seat, under the lock of the link's document: no write under an
/// earlier grant counts any more.
pub(super) async fn vacate_reviewer(
    connection: &mut PgConnection,
    link: ShareLinkId,
) -> Result<(), TxError> {
    sqlx::query(
        "WITH vacated AS ( \
           UPDATE seats SET fence = fence + 1 WHERE link_id = $1 AND role = 'reviewer' \
           RETURNING link_id \
         ) UPDATE documents d SET grants = d.grants + 1 \
         FROM vacated v JOIN share_links l ON l.id = v.link_id WHERE d.id = l.document_id",
    )
    .bind(link.to_string())
    .execute(connection)
    .await?;
    Ok(())
}

/// Refuses unless the seat has that fence and its link is active (D2). It locks the link's document
/// first, so the result stays valid until the commit.
pub(super) async fn require_seat(
    connection: &mut PgConnection,
    guard: FenceGuard,
) -> Result<(), TxError> {
    lock_of(connection, guard.seat.link).await?;
    let holds = sqlx::query(
        "SELECT 1 FROM seats s JOIN share_links l ON l.id = s.link_id \
         WHERE s.link_id = $1 AND s.role = $2 AND s.fence = $3 AND l.revoked_at IS NULL",
    )
    .bind(guard.seat.link.to_string())
    .bind(guard.seat.role.as_str())
    .bind(fence_column(guard.fence)?)
    .fetch_optional(connection)
    .await?;
    holds.map(|_| ()).ok_or(TxError::Refused(Guarded::Fenced))
}

async fn last_fence(connection: &mut PgConnection, seat: Seat) -> Result<Fence, TxError> {
    let last: Option<i64> =
        sqlx::query_scalar("SELECT fence FROM seats WHERE link_id = $1 AND role = $2")
            .bind(seat.link.to_string())
            .bind(seat.role.as_str())
            .fetch_optional(connection)
            .await?;
    Ok(last.map_or(Ok(Fence::ZERO), fence_from)?)
}
