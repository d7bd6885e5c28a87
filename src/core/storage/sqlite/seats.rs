//! The grants that `SQLite` ratifies, by one statement.

use crate::domain::fence::Fence;
use crate::domain::ids::SessionId;
use crate::domain::seat::Seat;
use crate::storage::statement::{json, sql};
use crate::storage::tx::Tx;
use crate::storage::tx_error::TxError;
use crate::storage::webhook_seats::Grant;

/// Stores the grants that exceed the last fence of their seat. Returns the stored ones, unordered.
pub(crate) async fn accept(
    tx: &mut Tx,
    group: &[Grant],
) -> Result<Vec<(Seat, Fence, SessionId)>, TxError> {
    let grant = |it: &Grant| {
        let Seat { link, role } = it.seat;
        let now = it.now.timestamp_millis();
        (link, role.as_str(), it.fence.0, it.session, it.user.clone(), now)
    };
    let stored = sql!(
        "INSERT INTO seats (link_id, role, fence, session_id, user_id, ratified_at) \
         SELECT l.id, w.value ->> 1, w.value ->> 2, w.value ->> 3, w.value ->> 4, w.value ->> 5 \
         FROM {@rows:{grants}} CROSS JOIN share_links l \
         WHERE l.id = w.value ->> 0 AND l.revoked_at IS NULL \
         AND (w.value ->> 1 <> 'reviewer' OR l.reviewer_id = w.value ->> 4) \
         ON CONFLICT (link_id, role) DO UPDATE SET fence = excluded.fence, \
           session_id = excluded.session_id, user_id = excluded.user_id, \
           ratified_at = excluded.ratified_at \
         WHERE seats.fence < excluded.fence \
           OR (seats.fence = excluded.fence AND seats.session_id = excluded.session_id) \
         RETURNING link_id, role, fence, session_id",
        grants = json(&group.iter().map(grant).collect::<Vec<_>>())?
    );
    let mut accepted = Vec::with_capacity(group.len());
    for row in stored.rows(tx).await? {
        let seat = Seat::new(row.get("link_id")?, row.get("role")?);
        accepted.push((seat, row.get("fence")?, row.get("session_id")?));
    }
    Ok(accepted)
}
