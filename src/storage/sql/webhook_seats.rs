//! The begin and the end of grants in the outbox, on either engine.
//!
//! Redis holds the seats, so no transaction releases one. A row of `webhook_seats` remembers the grant
//! whose `seat.left` is missing. The next grant, the server of the session, or the search for departed
//! sessions writes it; the row makes it one event.

use chrono::{DateTime, Utc};
use serde_json::json;

use crate::domain::fence::Fence;
use crate::domain::ids::DocumentId;
use crate::domain::seat::Seat;
use crate::domain::webhook::WebhookEvent;
use crate::storage::decode::{fence as fence_from, fence_column, parse};
use crate::storage::error::StorageError;
use crate::storage::seats::FenceGuard;
use crate::storage::webhooks::{Hooks, NewGrant, Subject, TakenSeat};

use super::dialect::{Connection, Engine, TxError, lock_of, read, transact};
use super::webhooks::put;

/// The fence of a grant, its user, its document, and the number of its reviews and replies.
type GrantRow = (i64, String, String, i64);
/// Share link, role, fence, and whether the database still accepts the grant's writes.
type TakenRow = (String, String, i64, bool);

/// Writes a new grant to the outbox, and the end of the one before it. In the transaction that ratifies
/// the grant.
pub(super) async fn note_grant(
    connection: &mut Connection,
    hooks: &Hooks,
    grant: NewGrant<'_>,
) -> Result<(), TxError> {
    if !hooks.want_seats() {
        return Ok(());
    }
    let NewGrant { seat, fence, user, now } = grant;
    let number = fence_column(fence)?;
    let (link, role) = (seat.link.to_string(), seat.role.as_str());
    let before: Option<GrantRow> = sqlx::query_as(
        "SELECT fence, user_id, document_id, reviews FROM webhook_seats \
         WHERE link_id = $1 AND role = $2",
    )
    .bind(&link)
    .bind(role)
    .fetch_optional(&mut *connection)
    .await?;
    if before.as_ref().is_some_and(|(last, ..)| *last == number) {
        // The ratification is repeated.
        return Ok(());
    }
    if let Some(before) = before {
        put_end(connection, hooks, seat, &before, now).await?;
    }
    let document: String = sqlx::query_scalar(
        "INSERT INTO webhook_seats (link_id, role, fence, user_id, document_id) \
         SELECT id, $2, $3, $4, document_id FROM share_links WHERE id = $1 \
         ON CONFLICT (link_id, role) DO UPDATE SET fence = excluded.fence, \
           user_id = excluded.user_id, reviews = 0 RETURNING document_id",
    )
    .bind(&link)
    .bind(role)
    .bind(number)
    .bind(user)
    .fetch_one(&mut *connection)
    .await?;
    let subject = Subject { document: Some(parse(&document)?), link: Some(seat.link) };
    let data = || json!({ "role": role, "user_id": user, "fence": number });
    put(connection, hooks, WebhookEvent::SeatTaken, (subject, now), data).await
}

/// Counts a review or a reply to the grant of its guard, in the transaction that stores it.
pub(super) async fn count_review(
    connection: &mut Connection,
    hooks: &Hooks,
    guard: FenceGuard,
) -> Result<(), TxError> {
    if !hooks.want_seats() {
        return Ok(());
    }
    sqlx::query(
        "UPDATE webhook_seats SET reviews = reviews + 1 \
         WHERE link_id = $1 AND role = $2 AND fence = $3",
    )
    .bind(guard.seat.link.to_string())
    .bind(guard.seat.role.as_str())
    .bind(fence_column(guard.fence)?)
    .execute(connection)
    .await?;
    Ok(())
}

impl Engine {
    pub(in crate::storage) async fn seat_left(
        &self,
        seat: Seat,
        fence: Fence,
        now: DateTime<Utc>,
    ) -> Result<bool, StorageError> {
        let number = fence_column(fence)?;
        transact!(self, tx => {
            lock_of(tx, seat.link).await?;
            let ended: Option<GrantRow> = sqlx::query_as(
                "DELETE FROM webhook_seats WHERE link_id = $1 AND role = $2 AND fence = $3 \
                 RETURNING fence, user_id, document_id, reviews",
            )
            .bind(seat.link.to_string())
            .bind(seat.role.as_str())
            .bind(number)
            .fetch_optional(&mut *tx)
            .await?;
            let Some(ended) = ended else { return Ok(false) };
            put_end(tx, &self.hooks, seat, &ended, now).await?;
            Ok(true)
        })
    }

    pub(in crate::storage) async fn taken_seats(
        &self,
        after: Option<Seat>,
        rows: u32,
    ) -> Result<Vec<TakenSeat>, StorageError> {
        read!(self, connection => {
            let rows: Vec<TakenRow> = sqlx::query_as(
                "SELECT w.link_id, w.role, w.fence, \
                   s.fence IS NOT NULL AND s.fence = w.fence AND l.id IS NOT NULL \
                 FROM webhook_seats w \
                 LEFT JOIN seats s ON s.link_id = w.link_id AND s.role = w.role \
                 LEFT JOIN share_links l ON l.id = w.link_id AND l.revoked_at IS NULL \
                 WHERE $1 IS NULL OR (w.link_id, w.role) > ($1, $2) \
                 ORDER BY w.link_id, w.role LIMIT $3",
            )
            .bind(after.map(|seat| seat.link.to_string()))
            .bind(after.map(|seat| seat.role.as_str()))
            .bind(i64::from(rows))
            .fetch_all(connection)
            .await?;
            let taken = |(link, role, fence, is_ratified): TakenRow| {
                let seat = Seat::new(parse(&link)?, parse(&role)?);
                Ok(TakenSeat { seat, fence: fence_from(fence)?, is_ratified })
            };
            Ok(rows.into_iter().map(taken).collect::<Result<_, StorageError>>()?)
        })
    }
}

/// Writes the end of a grant.
async fn put_end(
    connection: &mut Connection,
    hooks: &Hooks,
    seat: Seat,
    (fence, user, document, reviews): &GrantRow,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    let document: DocumentId = parse(document)?;
    let subject = Subject { document: Some(document), link: Some(seat.link) };
    let role = seat.role.as_str();
    let data = || json!({ "role": role, "user_id": user, "fence": fence, "reviews": reviews });
    put(connection, hooks, WebhookEvent::SeatLeft, (subject, now), data).await
}
