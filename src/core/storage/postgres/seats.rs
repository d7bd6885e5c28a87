//! Seats, on PostgreSQL.
//!
//! A transaction that changes the rows of a guard also increments `documents.grants`, under the lock of
//! the document. So a group of edits detects the change in that row.

use sqlx::PgConnection;

use crate::domain::fence::Fence;
use crate::domain::ids::{SessionId, ShareLinkId};
use crate::domain::seat::{Role, Seat};
use crate::storage::decode::fence_column;
use crate::storage::error::StorageError;
use crate::storage::guard::{FenceGuard, Guarded};
use crate::storage::postgres::locks;
use crate::storage::postgres::{Postgres, WRITE, reading, transaction};
use crate::storage::seats::{Ratified, SeatLookup, fences_of, lookup_of};
use crate::storage::sql::links::{LINK_COLUMNS, LINK_JOINS};
use crate::storage::sql::webhook_seats::note_grant;
use crate::storage::statement::{Row, Sql, sql};
use crate::storage::tx::{Tx, lock_of};
use crate::storage::tx_error::TxError;
use crate::storage::webhooks::NewGrant;

static LOOKUP: Sql = Sql::of(&[
    "SELECT ",
    LINK_COLUMNS,
    ", s.fence, CASE $2 WHEN 'writer' THEN w.updated_at ELSE r.updated_at END AS named_at \
     FROM share_links l ",
    LINK_JOINS,
    " LEFT JOIN seats s ON s.link_id = l.id AND s.role = $2 WHERE l.id = $1",
]);

impl Postgres {
    pub(crate) async fn seat_lookup(&self, seat: Seat) -> Result<Option<SeatLookup>, StorageError> {
        let read = reading!(self.others, connection => {
            let row = sqlx::query(LOOKUP.text(true))
                .bind(seat.link.to_string())
                .bind(seat.role.as_str())
                .fetch_optional(connection)
                .await?;
            row.map(|row| lookup_of(&Row::Postgres(row))).transpose()
        });
        read.map_err(TxError::into_error)
    }

    pub(crate) async fn fences(&self, seats: &[Seat]) -> Result<Vec<(Seat, Fence)>, StorageError> {
        let (links, roles): (Vec<String>, Vec<&str>) =
            seats.iter().map(|seat| (seat.link.to_string(), seat.role.as_str())).unzip();
        let read = reading!(self.others, connection => {
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
        })
        .map_err(TxError::into_error)?;
        Ok(fences_of(seats, read))
    }

    pub(crate) async fn vacate(&self, seat: Seat, fence: Fence) -> Result<(), StorageError> {
        let number = fence_column(fence)?;
        let vacated = transaction!(self.others, WRITE, tx => {
            locks::lock_of(tx, seat.link).await?;
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
        });
        vacated.map_err(TxError::into_error)
    }
}

pub(crate) async fn ratify(
    tx: &mut Tx,
    session: SessionId,
    grant: NewGrant<'_>,
) -> Result<Ratified, TxError> {
    let NewGrant { seat, fence, user, now } = grant;
    let locked = lock_of(tx, seat.link).await?;
    let ratified = sql!(
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
        seat.link,
        seat.role,
        fence,
        session,
        user,
        now
    );
    if ratified.run(tx).await? > 0 {
        note_grant(tx, locked, grant).await?;
        return Ok(Ratified::Accepted);
    }
    let link =
        sql!("SELECT reviewer_id FROM share_links WHERE id = $1 AND revoked_at IS NULL", seat.link);
    let Some(link) = link.row(tx).await? else { return Ok(Ratified::Gone) };
    let reviewer: Option<String> = link.get("reviewer_id")?;
    if seat.role == Role::Reviewer && reviewer.as_deref() != Some(user) {
        return Ok(Ratified::NotTheReviewer);
    }
    let last =
        sql!("SELECT fence FROM seats WHERE link_id = $1 AND role = $2", seat.link, seat.role);
    Ok(Ratified::Refused { last: last.value(tx).await?.unwrap_or(Fence::ZERO) })
}

pub(crate) async fn vacate_reviewer(
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
pub(crate) async fn require_seat(
    connection: &mut PgConnection,
    guard: FenceGuard,
) -> Result<(), TxError> {
    locks::lock_of(connection, guard.seat.link).await?;
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
