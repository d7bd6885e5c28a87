//! Grants that are ratified together.
//!
//! A commit is a wait for the disk, and there is one connection that writes: after a restart, when
//! thousands come back at the same moment, each would wait for the disks of all before it. So a
//! grant is put into a list, and whoever has its turn first ratifies all that are in it by then, in
//! one statement and one commit. While that waits for the disk, the next ones gather. With nobody
//! else there it is a group of one, at once.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

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
const GROUP_MAX: usize = 1_024;

/// A grant that is to be ratified.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) seat: Seat,
    pub(super) fence: Fence,
    /// The fence as its column has it.
    pub(super) number: i64,
    pub(super) session: SessionId,
    pub(super) user: String,
    pub(super) now_ms: i64,
}

#[derive(Debug)]
struct Waiting {
    grant: Grant,
    outcome: OnceLock<Result<Ratified, StorageError>>,
}

/// The grants that wait, and whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Ratifying {
    waiting: Mutex<Vec<Arc<Waiting>>>,
    turn: tokio::sync::Mutex<()>,
}

impl Ratifying {
    /// Takes out a group, `mine` first; the rest waits for the next turn.
    fn group(&self, mine: &Arc<Waiting>) -> Vec<Arc<Waiting>> {
        let mut waiting = self.waiting();
        waiting.retain(|other| !Arc::ptr_eq(other, mine));
        let others = waiting.len().min(GROUP_MAX - 1);
        std::iter::once(Arc::clone(mine)).chain(waiting.drain(..others)).collect()
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Arc<Waiting>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sqlite {
    /// Ratifies a grant, with all others that wait for it.
    pub(super) async fn ratify_together(&self, grant: Grant) -> Result<Ratified, StorageError> {
        let mine = Arc::new(Waiting { grant, outcome: OnceLock::new() });
        self.ratifying.waiting().push(Arc::clone(&mine));
        let _turn = self.ratifying.turn.lock().await;
        if let Some(outcome) = mine.outcome.get() {
            return outcome.clone();
        }
        // Whoever is taken along by somebody whose call is then dropped has no outcome, and does it
        // itself at its turn: nothing was committed.
        let group = self.ratifying.group(&mine);
        let outcomes = self.ratify_group(&group).await;
        for (at, waiting) in group.iter().enumerate() {
            let outcome = outcomes.as_ref().map(|outcomes| outcomes.get(at).copied());
            let outcome = match outcome {
                Ok(outcome) => Ok(outcome.unwrap_or(Ratified::Gone)),
                Err(error) => Err(error.clone()),
            };
            // Set once, by whoever has the turn.
            let _first = waiting.outcome.set(outcome);
        }
        outcomes.map(|outcomes| outcomes.first().copied().unwrap_or(Ratified::Gone))
    }

    async fn ratify_group(&self, group: &[Arc<Waiting>]) -> Result<Vec<Ratified>, StorageError> {
        let mut tx =
            self.write(Forget::Seats(group.iter().map(|it| it.grant.seat).collect())).await?;
        let accepted = accept(&mut tx, group).await?;
        let mut outcomes = Vec::with_capacity(group.len());
        for Waiting { grant, .. } in group.iter().map(AsRef::as_ref) {
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
    group: &[Arc<Waiting>],
) -> Result<HashSet<(Seat, Fence, SessionId)>, StorageError> {
    let mut query = QueryBuilder::<sqlx::Sqlite>::new(
        "WITH granted (link_id, role, fence, session_id, user_id, ratified_at) AS (",
    );
    query.push_values(group, |mut row, waiting| {
        let grant = &waiting.grant;
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use bytes::Bytes;
    use chrono::DateTime;

    use super::*;
    use crate::domain::ids::{DocumentId, ShareLinkId};
    use crate::domain::user::User;
    use crate::storage::documents::NewDocument;
    use crate::storage::links::NewShareLink;

    async fn link(sqlite: &Sqlite) -> ShareLinkId {
        let (id, now) = (DocumentId::generate(), DateTime::UNIX_EPOCH);
        let owner = User { id: "kim".parse().expect("an id"), name: "Kim".to_owned() };
        let (title, update) = (String::new(), Bytes::new());
        let document = NewDocument { id, title, owner, update, characters: 0, now };
        sqlite.create_document(&document).await.expect("a document");
        let link = ShareLinkId::generate();
        let new = NewShareLink { id: link, document_id: id, invite_hash: [0; 32], now };
        sqlite.find_or_create_link(&new).await.expect("a link");
        link
    }

    /// Whoever has the turn ratifies for all who wait, and may go away in the middle of it.
    #[tokio::test]
    async fn a_grant_is_ratified_though_whoever_took_it_along_goes_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite://{}", folder.path().join("galley.db").display());
        let sqlite = Sqlite::open(&url).await.expect("a new file");
        let link = link(&sqlite).await;
        let ratify = |role| {
            let (seat, session) = (Seat::new(link, role), SessionId::generate());
            let (user, now_ms) = ("kim".to_owned(), 0);
            let grant = Grant { seat, fence: Fence(9), number: 9, session, user, now_ms };
            sqlite.ratify_together(grant)
        };
        let mut context = Context::from_waker(Waker::noop());
        let turn = sqlite.ratifying.turn.lock().await;
        let mut first = Box::pin(ratify(Role::Writer));
        let mut second = pin!(ratify(Role::Reviewer));
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(second.as_mut().poll(&mut context).is_pending());
        let writer = sqlite.write(Forget::Nothing).await.expect("the connection");
        drop(turn);

        // It has the turn, takes both out of the list and waits for the connection.
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(sqlite.ratifying.waiting().is_empty());
        drop(first);
        drop(writer);

        assert_eq!(second.await, Ok(Ratified::Accepted));
    }
}
