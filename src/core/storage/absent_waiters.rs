//! The users who left the queue of a seat by a disconnect. A feature reads them.

use chrono::{DateTime, Utc};

use crate::domain::ids::UserId;
use crate::domain::seat::Seat;
use crate::storage::statement::sql;
use crate::storage::tx::run;
use crate::storage::{Storage, StorageFuture};

impl Storage {
    /// The user left by a disconnect, and still has the role. A seat has one absent waiter, the last one.
    pub fn put_absent_waiter<'a>(
        &'a self,
        seat: Seat,
        user: &'a UserId,
        left_at: DateTime<Utc>,
    ) -> StorageFuture<'a, ()> {
        run!(self, One, tx => {
            sql!(
                "INSERT INTO absent_waiters (link_id, role, user_id, left_at) \
                 SELECT l.id, {seat.role}, {user}, {left_at} FROM share_links l \
                 JOIN documents d ON d.id = l.document_id \
                 WHERE l.id = {seat.link} AND l.revoked_at IS NULL AND {user} = \
                   CASE WHEN {seat.role} = 'writer' THEN d.owner_id ELSE l.reviewer_id END \
                 ON CONFLICT (link_id, role) DO UPDATE \
                 SET user_id = excluded.user_id, left_at = excluded.left_at"
            )
            .run(tx)
            .await
            .map(drop)
        })
    }

    /// Deletes the absent waiter of a seat, if it is this user.
    pub fn delete_absent_waiter<'a>(
        &'a self,
        seat: Seat,
        user: &'a UserId,
    ) -> StorageFuture<'a, ()> {
        run!(self, One, tx => {
            sql!(
                "DELETE FROM absent_waiters WHERE link_id = {seat.link} AND role = {seat.role} \
                 AND user_id = {user}"
            )
            .run(tx)
            .await
            .map(drop)
        })
    }
}
