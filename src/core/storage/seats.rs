//! Seats in the database: the last fence that it ratified for each.
//!
//! The lock service decides which session holds a seat; the database decides whose writes count. The
//! database ratifies a grant only if its fence exceeds every earlier one. Afterwards a write under any
//! other fence changes no row (G2). The lease alone does not prevent two writers: a paused process
//! resumes and still trusts its lease. The database then rejects its older fence.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::domain::fence::Fence;
use crate::domain::ids::{SessionId, UserId};
use crate::domain::seat::{Role, Seat};
use crate::storage::batcher::Batcher;
use crate::storage::decode::corrupt;
use crate::storage::error::StorageError;
use crate::storage::links::{LINK_COLUMNS, LINK_JOINS, ShareLink, link_of};
use crate::storage::locks::{lock_free, lock_of, vacate};
use crate::storage::statement::{Row, json, sql};
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::webhook_seats::{Grant, note_grant};
use crate::storage::{Engine, Storage, StorageFuture};

/// Calls of one statement. PostgreSQL locks the documents of so many grants for 40 ms, and edits wait.
const BATCH_MAX: usize = 256;

/// The calls that wait for the statement before them.
#[derive(Debug)]
pub(super) struct SeatBatches {
    lookups: Batcher<Seat, Option<SeatLookup>>,
    /// `None`: the grant is to be ratified alone.
    grants: Batcher<Grant, Option<Ratified>>,
}

impl Default for SeatBatches {
    fn default() -> Self {
        Self { lookups: Batcher::new(BATCH_MAX), grants: Batcher::new(BATCH_MAX) }
    }
}

// The rows come first: otherwise SQLite reads every link. PostgreSQL probes the index for each row (`OFFSET 0`
// keeps the subquery whole): a plan that it made for an empty table would join by reading the whole index.
const WANTED: &str = " FROM (SELECT w.value FROM {@rows:{wanted}}) wanted CROSS JOIN ";
const AT: &str = ", CAST(wanted.value ->> 2 AS bigint) AS at";
const SEAT_COLUMNS: &str = ", s.fence, CASE wanted.value ->> 1 WHEN 'writer' THEN w.updated_at \
    ELSE r.updated_at END AS named_at";
const OF_WANTED: &str = "LEFT JOIN seats s ON s.link_id = l.id AND s.role = wanted.value ->> 1 \
    WHERE l.id = wanted.value ->> 0";

/// Stores the grants that exceed the last fence of their seat.
const ACCEPT: &str = "INSERT INTO seats AS s (link_id, role, fence, session_id, user_id, ratified_at) \
    SELECT l.id, w.value ->> 1, CAST(w.value ->> 2 AS bigint), w.value ->> 3, w.value ->> 4, {now} \
    FROM {@rows:{grants}} CROSS JOIN ";
const UNLESS_LATER: &str = " AND l.revoked_at IS NULL \
    AND (w.value ->> 1 <> 'reviewer' OR l.reviewer_id = w.value ->> 4) \
    ON CONFLICT (link_id, role) DO UPDATE SET fence = excluded.fence, session_id = excluded.session_id, \
      user_id = excluded.user_id, ratified_at = excluded.ratified_at \
    WHERE s.fence < excluded.fence \
      OR (s.fence = excluded.fence AND s.session_id = excluded.session_id) \
    RETURNING link_id, role, fence, session_id";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatLookup {
    /// The link, also a revoked one.
    pub link: ShareLink,
    /// The last ratified fence of the seat; a grant must exceed it.
    pub floor: Fence,
    /// The time of the token that carries the name of the seat's user. `None`: the seat has no user.
    pub named_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ratified {
    /// From now on the database accepts only writes under this fence.
    Accepted,
    /// The fence does not exceed the last one. The session acquires a grant above `last`.
    Refused { last: Fence },
    /// The link is missing or revoked: the seat no longer exists.
    Gone,
    /// The owner removed or replaced this reviewer after the claim began.
    NotTheReviewer,
}

/// The right of a session to write under its seat, as the database has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatRight {
    /// The link is revoked or missing.
    Revoked,
    /// The user is not the reviewer of the link.
    Removed,
    /// The last ratified fence of the seat, zero without one: writes under any other are rejected.
    Ratified(Fence),
}

impl Storage {
    /// Reads the state that a claim of a seat depends on. `None`: there is no such link.
    pub fn seat_lookup(&self, seat: Seat) -> StorageFuture<'_, Option<SeatLookup>> {
        Box::pin(self.seats.lookups.run(seat, |seats| self.seat_lookups(seats)))
    }

    /// As [`Self::seat_lookup`], without a batch: for a caller with a time-out, which would end that of others.
    pub async fn seat_lookup_alone(&self, seat: Seat) -> Result<Option<SeatLookup>, StorageError> {
        Ok(self.seat_lookups(vec![seat]).await?.pop().flatten())
    }

    fn seat_lookups(&self, seats: Vec<Seat>) -> StorageFuture<'_, Vec<Option<SeatLookup>>> {
        run!(self, Read, tx => {
            let wanted: Vec<_> = (0_u32..).zip(&seats).map(|(at, it)| (it.link, it.role.as_str(), at)).collect();
            // One JSON text, so any number of seats is the same statement.
            let rows = sql!(
                sqlite: [
                    "SELECT ", LINK_COLUMNS, SEAT_COLUMNS, AT, WANTED, "share_links l ", LINK_JOINS,
                    OF_WANTED,
                ],
                postgres: [
                    "SELECT l.*", AT, WANTED, "LATERAL (SELECT ", LINK_COLUMNS, SEAT_COLUMNS,
                    " FROM share_links l ", LINK_JOINS, OF_WANTED, " OFFSET 0) l",
                ],
                wanted = json(&wanted)?
            );
            let mut lookups = vec![None; seats.len()];
            for row in rows.rows(tx).await? {
                if let Some(seat) = lookups.get_mut(row.get::<usize>("at")?) {
                    *seat = Some(lookup_of(&row)?);
                }
            }
            Ok(lookups)
        })
    }

    /// Ratifies a grant if its fence exceeds the last ratified one. A repeated call with the same
    /// session and fence returns the same outcome. Grants that arrive together share a commit.
    pub async fn ratify(
        &self,
        seat: Seat,
        fence: Fence,
        session: SessionId,
        user: &UserId,
        now: DateTime<Utc>,
    ) -> Result<Ratified, StorageError> {
        let grant = Grant { seat, fence, session, user: user.clone(), now };
        // The events of a group would hold its documents for three round trips to PostgreSQL a grant.
        let is_alone = matches!(self.engine, Engine::Postgres(_)) && self.wants_seat_events();
        if !is_alone {
            let group = |group| self.ratify_all(group, false);
            if let Some(ratified) = self.seats.grants.run(grant.clone(), group).await? {
                return Ok(ratified);
            }
        }
        let alone = self.ratify_all(vec![grant], true).await?;
        alone.into_iter().next().flatten().ok_or_else(|| corrupt("no outcome"))
    }

    /// Ratifies grants in one transaction, with one statement and one commit. `None`: the grant is to be ratified
    /// alone, since another transaction has locked the document, or it is refused or a second one of its seat.
    fn ratify_all(
        &self,
        group: Vec<Grant>,
        waits: bool,
    ) -> StorageFuture<'_, Vec<Option<Ratified>>> {
        run!(self, One, tx => {
            let links: Vec<_> = group.iter().map(|grant| grant.seat.link).collect();
            let locked = match links.as_slice() {
                &[link] if waits => HashMap::from([(link, lock_of(tx, link).await?)]),
                _ => lock_free(tx, &links).await?,
            };
            let mut seats = HashSet::new();
            let locks: Vec<_> = group
                .iter()
                .map(|it| locked.get(&it.seat.link).filter(|_| seats.insert(it.seat)))
                .collect();
            let own = group.iter().zip(&locks).filter_map(|(grant, lock)| lock.and(Some(grant)));
            let accepted = accept(tx, &own.collect::<Vec<_>>()).await?;
            let mut outcomes = Vec::with_capacity(group.len());
            for (grant, lock) in group.iter().zip(&locks) {
                outcomes.push(match lock {
                    None => None,
                    Some(lock) if accepted.contains(&(grant.seat, grant.fence, grant.session)) => {
                        note_grant(tx, **lock, grant).await?;
                        Some(Ratified::Accepted)
                    }
                    // Others wait for the documents of the group: it spends no time on a refusal.
                    Some(_) if group.len() > 1 => None,
                    Some(_) => Some(refusal(tx, grant).await?),
                });
            }
            Ok(outcomes)
        })
    }

    /// The rights of these users to their seats, by position, read in one statement. `None`: a fence that
    /// does not parse, which concerns no other seat.
    pub fn seat_rights<'a>(
        &'a self,
        seats: &'a [(Seat, UserId)],
    ) -> StorageFuture<'a, Vec<Option<SeatRight>>> {
        run!(self, Read, tx => {
            let wanted: Vec<_> = (0_u32..)
                .zip(seats)
                .map(|(at, (seat, user))| (seat.link, seat.role.as_str(), user, at))
                .collect();
            let found = sql!(
                "SELECT CAST(w.value ->> 3 AS bigint) AS at, l.id IS NULL AS is_revoked, s.fence, \
                 w.value ->> 1 = 'reviewer' AND l.reviewer_id IS DISTINCT FROM w.value ->> 2 AS is_removed \
                 FROM {@rows:{json(&wanted)?}} \
                 LEFT JOIN share_links l ON l.id = w.value ->> 0 AND l.revoked_at IS NULL \
                 LEFT JOIN seats s ON s.link_id = l.id AND s.role = w.value ->> 1"
            );
            let mut rights = vec![None; seats.len()];
            for row in found.rows(tx).await? {
                if let Some(right) = rights.get_mut(row.get::<usize>("at")?) {
                    *right = right_of(&row).ok();
                }
            }
            Ok(rights)
        })
    }

    /// From now on the database rejects writes under `fence`, before another session acquires the
    /// seat. It changes nothing if the seat has another fence.
    pub fn vacate(&self, seat: Seat, fence: Fence) -> StorageFuture<'_, ()> {
        run!(self, Write, tx => {
            let locked = lock_of(tx, seat.link).await?;
            vacate(tx, locked, seat, Some(fence)).await
        })
    }
}

/// Reads a link with the columns `fence` and `named_at`.
fn lookup_of(row: &Row) -> Result<SeatLookup, TxError> {
    let floor: Option<Fence> = row.get("fence")?;
    let floor = floor.unwrap_or(Fence::ZERO);
    Ok(SeatLookup { link: link_of(row)?, floor, named_at: row.get("named_at")? })
}

fn right_of(row: &Row) -> Result<SeatRight, TxError> {
    if row.get("is_revoked")? {
        return Ok(SeatRight::Revoked);
    }
    if row.get("is_removed")? {
        return Ok(SeatRight::Removed);
    }
    let fence: Option<Fence> = row.get("fence")?;
    Ok(SeatRight::Ratified(fence.unwrap_or(Fence::ZERO)))
}

/// Runs [`ACCEPT`] for grants of different seats, whose documents are locked. In PostgreSQL it also increments
/// `documents.grants`, so that a group of edits detects the change of its guards. Triggers mark it in SQLite.
async fn accept(
    tx: &mut Tx,
    group: &[&Grant],
) -> Result<HashSet<(Seat, Fence, SessionId)>, TxError> {
    let Some(now) = group.iter().map(|grant| grant.now).max() else { return Ok(HashSet::new()) };
    let grant = |it: &&Grant| {
        let Seat { link, role } = it.seat;
        (link, role.as_str(), it.fence.0, it.session, it.user.clone())
    };
    let stored = sql!(
        sqlite: [ACCEPT, "share_links l WHERE l.id = w.value ->> 0", UNLESS_LATER],
        postgres: [
            "WITH ratified AS (", ACCEPT,
            "LATERAL (SELECT * FROM share_links WHERE id = w.value ->> 0 OFFSET 0) l WHERE TRUE", UNLESS_LATER,
            "), changed AS ( \
               UPDATE documents SET grants = grants + 1 WHERE id = ANY(ARRAY( \
                 SELECT (SELECT l.document_id FROM share_links l WHERE l.id = r.link_id) FROM ratified r)) \
             ) SELECT link_id, role, fence, session_id FROM ratified",
        ],
        grants = json(&group.iter().map(grant).collect::<Vec<_>>())?,
        now
    );
    let mut accepted = HashSet::new();
    for row in stored.rows(tx).await? {
        let seat = Seat::new(row.get("link_id")?, row.get("role")?);
        accepted.insert((seat, row.get("fence")?, row.get("session_id")?));
    }
    Ok(accepted)
}

async fn refusal(tx: &mut Tx, grant: &Grant) -> Result<Ratified, TxError> {
    let Grant { seat, ref user, .. } = *grant;
    let link =
        sql!("SELECT reviewer_id FROM share_links WHERE id = {seat.link} AND revoked_at IS NULL");
    let Some(link) = link.row(tx).await? else { return Ok(Ratified::Gone) };
    let reviewer: Option<String> = link.get("reviewer_id")?;
    if seat.role == Role::Reviewer && reviewer.as_deref() != Some(user.as_str()) {
        return Ok(Ratified::NotTheReviewer);
    }
    let last = sql!("SELECT fence FROM seats WHERE link_id = {seat.link} AND role = {seat.role}");
    Ok(Ratified::Refused { last: last.value(tx).await?.unwrap_or(Fence::ZERO) })
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
    use crate::storage::sqlite::Sqlite;

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
        let (storage, user) = (Storage::of(Engine::Sqlite(sqlite.clone())), "kim".parse().unwrap());
        let ratify = |seat| {
            storage.ratify(seat, Fence(9), SessionId::generate(), &user, DateTime::UNIX_EPOCH)
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
        let seat_lookup =
            storage.seat_lookup(taker).await.expect("it can be read").expect("a link");
        assert_eq!(seat_lookup.floor, Fence::ZERO, "the cancelled grant was not ratified");
    }
}
