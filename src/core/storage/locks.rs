//! The locks of a transaction, and the guards that it checks under them. In PostgreSQL a transaction locks
//! the document first, then users, then other rows. A write transaction of SQLite has the lock of the whole file.

use std::collections::HashMap;

use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::seat::{Role, Seat};
use crate::storage::guard::{FenceGuard, Guarded};
use crate::storage::statement::{json, sql};
use crate::storage::tx::Tx;
use crate::storage::tx_error::TxError;

/// "VERS": separates the advisory locks of version histories from others.
const HISTORY_SEED: i64 = 0x5645_5253;

const VACATE: &str = "UPDATE seats SET fence = fence + 1 \
    WHERE link_id = {link} AND role = {role} AND fence = COALESCE({fence}, fence)";

/// The proof that a transaction holds the lock of a document. A webhook takes it, because two transactions
/// without the lock could both write the first row of a lane.
#[derive(Clone, Copy, Debug)]
pub struct Locked(());

/// Locks a document for a change of its dependent rows. Later statements see every commit under the
/// lock. `None`: there is no such document. (SQLite: a proof; the statements find a missing document.)
pub async fn lock(tx: &mut Tx, id: DocumentId) -> Result<Option<Locked>, TxError> {
    let is_there = tx.has_file_lock() || {
        let lock = sql!("SELECT 1 FROM documents d WHERE id = {id}{@lock:d}");
        lock.row(tx).await?.is_some()
    };
    Ok(is_there.then_some(Locked(())))
}

/// Locks the document of a link, if there is one.
pub async fn lock_of(tx: &mut Tx, link: ShareLinkId) -> Result<Locked, TxError> {
    if !tx.has_file_lock() {
        let lock = sql!(
            "SELECT 1 FROM share_links l JOIN documents d ON d.id = l.document_id \
             WHERE l.id = {link}{@lock:d}"
        );
        lock.run(tx).await?;
    }
    Ok(Locked(()))
}

/// Locks the documents of these links that no other transaction has locked. Returns the links of the locked ones.
pub(crate) async fn lock_free(
    tx: &mut Tx,
    links: &[ShareLinkId],
) -> Result<HashMap<ShareLinkId, Locked>, TxError> {
    let free = sql!(
        sqlite: ["SELECT w.value AS id FROM {@list:{links}}"],
        postgres: [
            "SELECT l.id FROM share_links l JOIN documents d ON d.id = l.document_id \
             WHERE l.id = ANY(ARRAY(SELECT w.value FROM {@list:{links}})){@lock:d} SKIP LOCKED",
        ],
        links = json(links)?
    );
    let free = free.rows(tx).await?;
    free.iter().map(|row| Ok((row.get("id")?, Locked(())))).collect()
}

/// Takes the advisory locks of these documents' histories; `documents` is sorted. It locks no row: an edit
/// would wait for it, and through its group the edits of other documents. A decision on versions still stays
/// valid until the commit: only transactions under the advisory lock change versions, and `last_seq` only rises.
pub(crate) async fn lock_histories(tx: &mut Tx, documents: &[String]) -> Result<(), TxError> {
    let documents = if tx.has_file_lock() { &[] } else { documents };
    for document in documents {
        let lock = sql!(
            sqlite: ["SELECT {document}, {HISTORY_SEED}"],
            postgres: [
                "SELECT pg_advisory_xact_lock(hashtextextended({document}, {HISTORY_SEED}))",
            ]
        );
        lock.run(tx).await?;
    }
    Ok(())
}

/// The transaction sees every row of the audit, and no other appends one until it ends: in PostgreSQL it waits
/// for those that do, whose rows are invisible until they commit.
pub async fn lock_audit(tx: &mut Tx) -> Result<(), TxError> {
    if !tx.has_file_lock() {
        let lock = sql!(
            sqlite: ["SELECT 1"],
            postgres: ["LOCK TABLE audit IN SHARE ROW EXCLUSIVE MODE"]
        );
        lock.run(tx).await?;
    }
    Ok(())
}

/// Locks two users for a change of what both share, the lower id first. A transaction that also locks a
/// document has locked it before. Rows that refer to the users do not wait for it.
pub async fn lock_users(tx: &mut Tx, one: &UserId, other: &UserId) -> Result<(), TxError> {
    if !tx.has_file_lock() {
        let lock = sql!("SELECT 1 FROM users u WHERE id IN ({one}, {other}) ORDER BY id{@lock:u}");
        lock.run(tx).await?;
    }
    Ok(())
}

/// Marks a change of the guards of a locked document, so that a group of edits detects it. Triggers mark it
/// in SQLite.
pub(crate) async fn change_guards(tx: &mut Tx, id: DocumentId) -> Result<(), TxError> {
    if !tx.has_file_lock() {
        let change = sql!(
            sqlite: ["SELECT {id}"],
            postgres: ["UPDATE documents SET grants = grants + 1 WHERE id = {id}"]
        );
        change.run(tx).await?;
    }
    Ok(())
}

/// Refuses unless the guard is of that link, its seat has that fence and the link is active (D2); the
/// result stays valid until the commit.
pub(crate) async fn require_seat(
    tx: &mut Tx,
    link: ShareLinkId,
    guard: FenceGuard,
) -> Result<Locked, TxError> {
    let FenceGuard { seat, fence } = guard;
    if seat.link != link {
        return Err(TxError::Refused(Guarded::Fenced));
    }
    let locked = lock_of(tx, link).await?;
    let holds = sql!(
        "SELECT 1 FROM seats s JOIN share_links l ON l.id = s.link_id \
         WHERE s.link_id = {seat.link} AND s.role = {seat.role} AND s.fence = {fence} \
         AND l.revoked_at IS NULL"
    );
    let holds = holds.row(tx).await?.is_some();
    holds.then_some(locked).ok_or(TxError::Refused(Guarded::Fenced))
}

/// Raises the fence of the reviewer's seat: no write under an earlier grant counts any more.
pub(crate) async fn vacate_reviewer(
    tx: &mut Tx,
    locked: Locked,
    link: ShareLinkId,
) -> Result<(), TxError> {
    vacate(tx, locked, Seat::new(link, Role::Reviewer), None).await
}

/// Raises the fence of a seat, if it is `fence` or that is `None`, under the lock of the link's document.
pub(crate) async fn vacate(
    tx: &mut Tx,
    _: Locked,
    seat: Seat,
    fence: Option<Fence>,
) -> Result<(), TxError> {
    let vacate = sql!(
        sqlite: [VACATE],
        postgres: [
            "WITH vacated AS (", VACATE, " RETURNING link_id) \
             UPDATE documents d SET grants = d.grants + 1 \
             FROM vacated v JOIN share_links l ON l.id = v.link_id WHERE d.id = l.document_id",
        ],
        link = seat.link,
        role = seat.role,
        fence
    );
    vacate.run(tx).await.map(drop)
}
