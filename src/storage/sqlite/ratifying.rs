//! Grants that are ratified together, in one statement and one commit.

use std::collections::HashSet;

use sqlx::{QueryBuilder, SqliteConnection};

use crate::domain::fence::Fence;
use crate::domain::ids::SessionId;
use crate::domain::seat::{Role, Seat};
use crate::storage::error::StorageError;
use crate::storage::rows::{fence as fence_from, parse};
use crate::storage::seats::Ratified;
use crate::storage::sqlite::Sqlite;
use crate::storage::sqlite::memory::Forget;
use crate::storage::sqlite::seats::{is_active, last_fence};

/// Grants of one statement: `SQLite` binds at most 32,766 values, and these have six.
pub(super) const GRANTS_MAX: usize = 1_024;

/// A grant that is to be ratified.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) seat: Seat,
    pub(super) fence: Fence,
    /// The fence as its column has it.
    pub(super) number: i64,
    pub(super) session: SessionId,
    pub(super) user: String,
    pub(super) now_ms: i64,
}

impl Sqlite {
    /// Ratifies a grant, with all others that wait for it.
    pub(super) async fn ratify_together(&self, grant: Grant) -> Result<Ratified, StorageError> {
        self.grants.ask(grant, |group| self.ratify_group(group)).await
    }

    async fn ratify_group(&self, group: Vec<Grant>) -> Result<Vec<Ratified>, StorageError> {
        let mut tx = self.write(Forget::Seats(group.iter().map(|it| it.seat).collect())).await?;
        let accepted = accept(&mut tx, &group).await?;
        let mut outcomes = Vec::with_capacity(group.len());
        for grant in &group {
            outcomes.push(if accepted.contains(&(grant.seat, grant.fence, grant.session)) {
                Ratified::Accepted
            } else if is_active(&mut tx, grant.seat.link).await? {
                Ratified::Refused { last: last_fence(&mut tx, grant.seat).await? }
            } else {
                Ratified::Gone
            });
        }
        tx.commit().await?;
        Ok(outcomes)
    }
}

/// Writes what is above the last fence of its seat; gives what was written, in whatever order.
async fn accept(
    connection: &mut SqliteConnection,
    group: &[Grant],
) -> Result<HashSet<(Seat, Fence, SessionId)>, StorageError> {
    let mut query = QueryBuilder::<sqlx::Sqlite>::new(
        "WITH granted (link_id, role, fence, session_id, user_id, ratified_at) AS (",
    );
    query.push_values(group, |mut row, grant| {
        row.push_bind(grant.seat.link.to_string())
            .push_bind(grant.seat.role.as_str())
            .push_bind(grant.number)
            .push_bind(grant.session.to_string())
            .push_bind(grant.user.as_str())
            .push_bind(grant.now_ms);
    });
    query.push(
        ") INSERT INTO seats (link_id, role, fence, session_id, user_id, ratified_at) \
         SELECT g.link_id, g.role, g.fence, g.session_id, g.user_id, g.ratified_at \
         FROM granted g JOIN share_links l ON l.id = g.link_id WHERE l.revoked_at IS NULL \
         ON CONFLICT (link_id, role) DO UPDATE SET fence = excluded.fence, \
           session_id = excluded.session_id, user_id = excluded.user_id, \
           ratified_at = excluded.ratified_at \
         WHERE seats.fence < excluded.fence \
           OR (seats.fence = excluded.fence AND seats.session_id = excluded.session_id) \
         RETURNING link_id, role, fence, session_id",
    );
    // As many statements as there are sizes of groups: but for the usual one of one, none is worth
    // keeping prepared.
    let query = query.build_query_as().persistent(group.len() == 1);
    let rows: Vec<(String, String, i64, String)> = query.fetch_all(connection).await?;
    let written = rows.into_iter().map(|(link, role, fence, session)| {
        let seat = Seat::new(parse(&link)?, parse::<Role>(&role)?);
        Ok((seat, fence_from(fence)?, parse(&session)?))
    });
    written.collect()
}
