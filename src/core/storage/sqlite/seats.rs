//! Seats, on `SQLite`. One statement and one commit ratify all grants that are queued.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sqlx::{QueryBuilder, SqliteConnection};

use crate::domain::fence::Fence;
use crate::domain::ids::{SessionId, ShareLinkId, UserId};
use crate::domain::seat::{Role, Seat};
use crate::storage::decode::{corrupt, fence as fence_from, fence_column, parse, time};
use crate::storage::error::StorageError;
use crate::storage::guard::{FenceGuard, Guarded};
use crate::storage::seats::{Ratified, SeatLookup, fences_of, lookup_of};
use crate::storage::sql::links::{LINK_COLUMNS, LINK_JOINS};
use crate::storage::sql::webhook_seats::note_grant;
use crate::storage::sqlite::Sqlite;
use crate::storage::statement::{self, Sql, json};
use crate::storage::tx::{Conn, Tx, lock_of};
use crate::storage::tx_error::TxError;
use crate::storage::webhooks::NewGrant;

/// The links of the seats `$1`, each with the position of its seat, the last fence, and the time of its
/// user's name. The seats come first: otherwise SQLite reads every link. They are one JSON text, so any
/// number of them is the same statement.
static LOOKUPS: Sql = Sql::of(&[
    "SELECT ",
    LINK_COLUMNS,
    ", s.fence, wanted.key AS at, \
     CASE wanted.value ->> 1 WHEN 'writer' THEN w.updated_at ELSE r.updated_at END AS named_at \
     FROM json_each($1) wanted CROSS JOIN share_links l ON l.id = wanted.value ->> 0 ",
    LINK_JOINS,
    " LEFT JOIN seats s ON s.link_id = l.id AND s.role = wanted.value ->> 1",
]);

pub(super) const LOOKUPS_MAX: usize = 1_024;

/// Grants of one statement: `SQLite` binds at most 32,766 values, and a grant has six.
pub(super) const GRANTS_MAX: usize = 1_024;

#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) seat: Seat,
    pub(super) fence: Fence,
    /// The fence as its column stores it.
    pub(super) number: i64,
    pub(super) session: SessionId,
    pub(super) user: String,
    pub(super) now_ms: i64,
}

impl Sqlite {
    pub(crate) async fn seat_lookup(&self, seat: Seat) -> Result<Option<SeatLookup>, StorageError> {
        self.lookups.run(seat, |seats| self.lookups_of(seats)).await
    }

    async fn lookups_of(&self, seats: Vec<Seat>) -> Result<Vec<Option<SeatLookup>>, StorageError> {
        let wanted: Vec<_> =
            seats.iter().map(|seat| (seat.link.to_string(), seat.role.as_str())).collect();
        let rows = sqlx::query(LOOKUPS.text(false)).bind(json(&wanted)?);
        let mut lookups = vec![None; seats.len()];
        for row in rows.fetch_all(&self.readers).await? {
            let row = statement::Row::Sqlite(row);
            let lookup = lookup_of(&row).map_err(TxError::into_error)?;
            let at: usize = row.get("at").map_err(TxError::into_error)?;
            if let Some(seat) = lookups.get_mut(at) {
                *seat = Some(lookup);
            }
        }
        Ok(lookups)
    }

    pub(crate) async fn ratify(
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

    async fn ratify_together(&self, grant: Grant) -> Result<Ratified, StorageError> {
        self.grants.run(grant, |group| self.ratify_group(group)).await
    }

    async fn ratify_group(&self, group: Vec<Grant>) -> Result<Vec<Ratified>, StorageError> {
        let mut tx = Tx::of_sqlite(self.write().await?, self.hooks.clone());
        let outcome = ratify_in(&mut tx, &group).await;
        tx.end(outcome).await.map_err(TxError::into_error)
    }

    pub(crate) async fn fences(&self, seats: &[Seat]) -> Result<Vec<(Seat, Fence)>, StorageError> {
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

    pub(crate) async fn vacate(&self, seat: Seat, fence: Fence) -> Result<(), StorageError> {
        let mut tx = self.write().await?;
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

async fn ratify_in(tx: &mut Tx, group: &[Grant]) -> Result<Vec<Ratified>, TxError> {
    let accepted = accept(sqlite_of(tx)?, group).await?;
    let mut outcomes = Vec::with_capacity(group.len());
    for grant in group {
        let Grant { seat, fence, user, .. } = grant;
        outcomes.push(if accepted.contains(&(*seat, *fence, grant.session)) {
            let now = time(grant.now_ms)?;
            let locked = lock_of(tx, seat.link).await?;
            note_grant(tx, locked, NewGrant { seat: *seat, fence: *fence, user, now }).await?;
            Ratified::Accepted
        } else {
            refusal(sqlite_of(tx)?, grant).await?
        });
    }
    Ok(outcomes)
}

fn sqlite_of(tx: &mut Tx) -> Result<&mut SqliteConnection, TxError> {
    match tx.conn() {
        Conn::Sqlite(connection) => Ok(connection),
        Conn::Postgres(_) => Err(corrupt("a transaction of another engine").into()),
    }
}

/// Stores the grants that exceed the last fence of their seat. Returns the stored ones, unordered.
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
         AND (g.role <> 'reviewer' OR l.reviewer_id = g.user_id) \
         ON CONFLICT (link_id, role) DO UPDATE SET fence = excluded.fence, \
           session_id = excluded.session_id, user_id = excluded.user_id, \
           ratified_at = excluded.ratified_at \
         WHERE seats.fence < excluded.fence \
           OR (seats.fence = excluded.fence AND seats.session_id = excluded.session_id) \
         RETURNING link_id, role, fence, session_id",
    );
    // Each size of batch is another statement: except for single grants, none is worth preparing.
    let query = query.build_query_as().persistent(group.len() == 1);
    let rows: Vec<(String, String, i64, String)> = query.fetch_all(connection).await?;
    let written = rows.into_iter().map(|(link, role, fence, session)| {
        let seat = Seat::new(parse(&link)?, parse::<Role>(&role)?);
        Ok((seat, fence_from(fence)?, parse(&session)?))
    });
    written.collect()
}

pub(crate) async fn vacate_reviewer(
    connection: &mut SqliteConnection,
    link: ShareLinkId,
) -> Result<(), TxError> {
    sqlx::query("UPDATE seats SET fence = fence + 1 WHERE link_id = $1 AND role = 'reviewer'")
        .bind(link.to_string())
        .execute(connection)
        .await?;
    Ok(())
}

/// Refuses unless the seat has that fence and its link is active (D2). Inside a write transaction,
/// so the result stays valid until the commit.
pub(crate) async fn require_seat(
    connection: &mut SqliteConnection,
    guard: FenceGuard,
) -> Result<(), TxError> {
    let holds: Option<i64> = sqlx::query_scalar(
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

async fn refusal(
    connection: &mut SqliteConnection,
    grant: &Grant,
) -> Result<Ratified, StorageError> {
    let reviewer: Option<Option<String>> = sqlx::query_scalar(
        "SELECT reviewer_id FROM share_links WHERE id = $1 AND revoked_at IS NULL",
    )
    .bind(grant.seat.link.to_string())
    .fetch_optional(&mut *connection)
    .await?;
    Ok(match reviewer {
        None => Ratified::Gone,
        Some(id) if grant.seat.role == Role::Reviewer && id.as_ref() != Some(&grant.user) => {
            Ratified::NotTheReviewer
        }
        Some(_) => Ratified::Refused { last: last_fence(connection, grant.seat).await? },
    })
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

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use bytes::Bytes;
    use chrono::DateTime;
    use futures_util::FutureExt as _;
    use futures_util::future::poll_immediate;

    use super::*;
    use crate::domain::ids::{DocumentId, ShareLinkId};
    use crate::domain::user::User;
    use crate::storage::documents::NewDocument;
    use crate::storage::links::NewShareLink;
    use crate::storage::{Engine, Storage};

    async fn link(sqlite: &Sqlite) -> ShareLinkId {
        let (id, now) = (DocumentId::generate(), DateTime::UNIX_EPOCH);
        let owner = User { id: "kim".parse().expect("an id"), name: "Kim".to_owned() };
        let (title, update) = (String::new(), Bytes::new());
        let document = NewDocument {
            external_id: None,
            id,
            title,
            owner,
            update,
            characters: 0,
            sections: Vec::new(),
            now,
        };
        let storage = Storage::of(Engine::Sqlite(sqlite.clone()));
        storage.create_document(&document).await.expect("a document");
        let link = ShareLinkId::generate();
        let new = NewShareLink { id: link, document_id: id, invite_hash: [0; 32], now };
        storage.find_or_create_link(&new).await.expect("a link");
        link
    }

    /// The caller that has the mutex ratifies for all queued callers, and may be cancelled meanwhile.
    #[tokio::test]
    async fn a_grant_is_ratified_though_the_caller_that_runs_its_batch_is_cancelled() {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite://{}", folder.path().join("galley.db").display());
        let sqlite = Sqlite::open(&url).await.expect("a new file");
        let (other, third) = (link(&sqlite).await, link(&sqlite).await);
        let link = link(&sqlite).await;
        let ratify = |seat| {
            let (session, user) = (SessionId::generate(), "kim".to_owned());
            let grant = Grant { seat, fence: Fence(9), number: 9, session, user, now_ms: 0 };
            sqlite.ratify_together(grant)
        };
        // The first caller has the mutex and waits for the connection, so two others queue.
        let connection = sqlite.write().await.expect("the connection");
        let mut before = pin!(ratify(Seat::new(other, Role::Writer)));
        assert_eq!(poll_immediate(&mut before).await, None);
        let taker = Seat::new(link, Role::Writer);
        let mut takes = Box::pin(ratify(taker));
        let mut taken = pin!(ratify(Seat::new(third, Role::Writer)));
        assert!(takes.as_mut().now_or_never().is_none());
        assert_eq!(poll_immediate(&mut taken).await, None);
        drop(connection);
        assert_eq!(before.await, Ok(Ratified::Accepted));

        // The second caller runs the batch of both, and waits for the connection.
        let connection = sqlite.write().await.expect("the connection");
        assert!(takes.as_mut().now_or_never().is_none());
        drop(takes);
        drop(connection);

        assert_eq!(taken.await, Ok(Ratified::Accepted));
        let seat_lookup = sqlite.seat_lookup(taker).await.expect("it can be read").expect("a link");
        assert_eq!(seat_lookup.floor, Fence::ZERO, "the cancelled grant was not ratified");
    }
}
