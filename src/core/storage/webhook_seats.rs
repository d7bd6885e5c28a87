//! The begin and the end of grants in the outbox.
//!
//! Redis holds the seats, so no transaction releases one. A row of `webhook_seats` remembers the grant
//! whose `seat.left` is missing. The next grant, the server of the session, or the search for departed
//! sessions writes it; the row makes it one event.

use chrono::{DateTime, Utc};
use serde_json::json;

use crate::domain::fence::Fence;
use crate::domain::ids::{SessionId, UserId};
use crate::domain::seat::Seat;
use crate::domain::webhook::WebhookEvent;
use crate::storage::guard::FenceGuard;
use crate::storage::locks::{Locked, lock_of};
use crate::storage::statement::{Row, sql};
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::webhooks::{Subject, put};
use crate::storage::{Storage, StorageFuture};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenSeat {
    pub seat: Seat,
    pub fence: Fence,
    /// Whether the database still accepts its writes.
    pub is_ratified: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) seat: Seat,
    pub(crate) fence: Fence,
    pub(crate) session: SessionId,
    pub(crate) user: UserId,
    pub(crate) now: DateTime<Utc>,
}

/// Writes a new grant to the outbox, and the end of the one before it. In the transaction that ratifies
/// the grant.
pub(crate) async fn note_grant(tx: &mut Tx, locked: Locked, grant: &Grant) -> Result<(), TxError> {
    if !tx.hooks.want_seats() {
        return Ok(());
    }
    let Grant { seat, fence, ref user, now, .. } = *grant;
    let before = sql!(
        "SELECT fence, user_id, document_id, reviews FROM webhook_seats \
         WHERE link_id = {seat.link} AND role = {seat.role}"
    );
    if let Some(before) = before.row(tx).await? {
        if before.get::<Fence>("fence")? == fence {
            // The ratification is repeated.
            return Ok(());
        }
        put_end(tx, (locked, seat), &before, now).await?;
    }
    let document = sql!(
        "INSERT INTO webhook_seats (link_id, role, fence, user_id, document_id) \
         SELECT id, {seat.role}, {fence}, {user}, document_id FROM share_links \
         WHERE id = {seat.link} ON CONFLICT (link_id, role) DO UPDATE SET fence = excluded.fence, \
           user_id = excluded.user_id, reviews = 0 RETURNING document_id"
    );
    let document = document.one(tx).await?.get(0)?;
    let subject = Subject::document(locked, document, Some(seat.link));
    let data = || json!({ "role": seat.role.as_str(), "user_id": user, "fence": fence.0 });
    put(tx, WebhookEvent::SeatTaken, (subject, now), data).await
}

/// Counts a review or a reply to the grant of its guard, in the transaction that stores it.
pub(crate) async fn count_review(tx: &mut Tx, guard: FenceGuard) -> Result<(), TxError> {
    if !tx.hooks.want_seats() {
        return Ok(());
    }
    sql!(
        "UPDATE webhook_seats SET reviews = reviews + 1 \
         WHERE link_id = {guard.seat.link} AND role = {guard.seat.role} AND fence = {guard.fence}"
    )
    .run(tx)
    .await?;
    Ok(())
}

impl Storage {
    /// Writes the end of a grant to the outbox. False: the outbox has it, or never had its begin.
    pub fn seat_left(
        &self,
        seat: Seat,
        fence: Fence,
        now: DateTime<Utc>,
    ) -> StorageFuture<'_, bool> {
        if !self.wants_seat_events() {
            return Box::pin(async { Ok(false) });
        }
        run!(self, Write, tx => {
            let locked = lock_of(tx, seat.link).await?;
            let ended = sql!(
                "DELETE FROM webhook_seats WHERE link_id = {seat.link} AND role = {seat.role} \
                 AND fence = {fence} RETURNING fence, user_id, document_id, reviews"
            );
            let Some(ended) = ended.row(tx).await? else { return Ok(false) };
            put_end(tx, (locked, seat), &ended, now).await?;
            Ok(true)
        })
    }

    /// Reads the grants whose end the outbox does not have yet, sorted by seat, after `after`.
    pub fn taken_seats(&self, after: Option<Seat>, rows: u32) -> StorageFuture<'_, Vec<TakenSeat>> {
        run!(self, Read, tx => {
            let taken = sql!(
                "SELECT w.link_id, w.role, w.fence, \
                   s.fence IS NOT NULL AND s.fence = w.fence AND l.id IS NOT NULL AS is_ratified \
                 FROM webhook_seats w \
                 LEFT JOIN seats s ON s.link_id = w.link_id AND s.role = w.role \
                 LEFT JOIN share_links l ON l.id = w.link_id AND l.revoked_at IS NULL \
                 WHERE {link} IS NULL OR (w.link_id, w.role) > ({link}, {role}) \
                 ORDER BY w.link_id, w.role LIMIT {rows}",
                link = after.map(|seat| seat.link),
                role = after.map(|seat| seat.role)
            );
            let of = |row: &Row| {
                let seat = Seat::new(row.get("link_id")?, row.get("role")?);
                let (fence, is_ratified) = (row.get("fence")?, row.get("is_ratified")?);
                Ok(TakenSeat { seat, fence, is_ratified })
            };
            taken.rows(tx).await?.iter().map(of).collect()
        })
    }
}

/// Writes the end of the grant of a row.
async fn put_end(
    tx: &mut Tx,
    (locked, seat): (Locked, Seat),
    grant: &Row,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    let subject = Subject::document(locked, grant.get("document_id")?, Some(seat.link));
    let data = json!({
        "role": seat.role.as_str(),
        "user_id": grant.get::<String>("user_id")?,
        "fence": grant.get::<i64>("fence")?,
        "reviews": grant.get::<i64>("reviews")?,
    });
    put(tx, WebhookEvent::SeatLeft, (subject, now), || data).await
}
