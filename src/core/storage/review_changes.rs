//! Numbered changes of reviews: a server that missed a message reads them (G15).
//!
//! Each write of a review takes the next number of its document, in its own transaction. A server
//! delivers changes to its sockets in the order of these numbers, each once. It ignores a number
//! that it has delivered, and reads the database when one is missing.

use crate::domain::ids::{DecisionId, DocumentId, ReviewId, ShareLinkId};
use crate::domain::limits::DECIDED_ONE_BY_ONE_MAX;
use crate::domain::review::Verdict;
use crate::domain::seat::Seat;
use crate::domain::section::StoredSection;
use crate::domain::user::User;
use crate::storage::review_rows::{StoredReview, fetch_one};
use crate::storage::sections::sections_after;
use crate::storage::statement::sql;
use crate::storage::turns::{StoredTurn, turn_after};
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::{Storage, StorageFuture};

/// A room reads at most this many missed changes, and their deletions. It reconciles at each tick, and the
/// rate limit allows far fewer changes between two ticks.
pub const MISSED_MAX: i64 = 1_000;

/// The database stores a deletion for this many further changes of the document's reviews: some 4 MB. The
/// id of a deleted review is spent meanwhile. Afterwards a review begins above each version of it
/// (`insert` in `reviews.rs`), so a version that a client has read never names other words.
pub const DELETIONS_MAX: i64 = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedReview {
    pub id: ReviewId,
    pub link: ShareLinkId,
    pub change: i64,
}

/// A change of many reviews at once, announced as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManyChanged {
    /// Its number among the document's review changes.
    pub change: i64,
    pub id: DecisionId,
    /// The verdict and the writer of a decision; `None` for its undo.
    pub made: Option<(Verdict, User)>,
    pub reviews: Vec<(ReviewId, i64)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewChanges {
    pub upto: i64,
    /// Reviews of active links that changed, in the order of their last changes.
    pub changed: Vec<StoredReview>,
    /// Decisions and undos that changed many reviews at once, in the order of their numbers. The
    /// reviews are not among [`changed`](Self::changed).
    pub decided: Vec<ManyChanged>,
    /// Reviews that were deleted, in the order of the deletions.
    pub deleted: Vec<DeletedReview>,
    /// The turn of the active link, if it changed.
    pub turn: Option<StoredTurn>,
    /// The number of the change that set the sections, and the sections, if it is among the changes.
    pub sections: Option<(i64, Vec<StoredSection>)>,
}

impl ReviewChanges {
    /// Whether a room may deliver it; otherwise the members read all reviews again.
    #[must_use]
    pub fn is_whole(&self, after: i64) -> bool {
        self.upto - after <= MISSED_MAX
    }
}

struct Changed {
    link: ShareLinkId,
    id: ReviewId,
    version: i64,
    change: i64,
}

impl Storage {
    /// Reads a document's review changes after number `after`. `None`: there is no such document.
    pub fn review_changes(
        &self,
        document: DocumentId,
        after: i64,
    ) -> StorageFuture<'_, Option<ReviewChanges>> {
        run!(self, Snapshot, tx => {
            let upto = sql!("SELECT review_changes FROM documents WHERE id = {document}");
            let Some(upto) = upto.value(tx).await? else { return Ok(None) };
            let mut changes = ReviewChanges { upto, ..ReviewChanges::default() };
            if !changes.is_whole(after) {
                return Ok(Some(changes));
            }
            let changed = changed_after(tx, document, after).await?;
            for same in changed.chunk_by(|one, next| one.change == next.change) {
                if same.len() > DECIDED_ONE_BY_ONE_MAX
                    && let Some(many) = fetch_many(tx, same).await?
                {
                    changes.decided.push(many);
                    continue;
                }
                for Changed { link, id, .. } in same {
                    changes.changed.extend(fetch_one(tx, *link, None, *id).await?);
                }
            }
            let deleted = sql!(
                "SELECT change, review_id, link_id FROM deleted_reviews \
                 WHERE document_id = {document} AND change > {after} ORDER BY change"
            );
            for row in deleted.rows(tx).await? {
                let (id, link) = (row.get("review_id")?, row.get("link_id")?);
                changes.deleted.push(DeletedReview { id, link, change: row.get("change")? });
            }
            changes.turn = turn_after(tx, document, after).await?;
            changes.sections = sections_after(tx, document, after).await?;
            Ok(Some(changes))
        })
    }
}

async fn changed_after(
    tx: &mut Tx,
    document: DocumentId,
    after: i64,
) -> Result<Vec<Changed>, TxError> {
    let rows = sql!(
        "SELECT r.link_id, r.id, r.version, r.last_change \
         FROM share_links l JOIN reviews r ON r.link_id = l.id \
         WHERE l.document_id = {document} AND l.revoked_at IS NULL AND r.last_change > {after} \
         ORDER BY r.last_change"
    );
    let mut changed = Vec::new();
    for row in rows.rows(tx).await? {
        let (link, id) = (row.get("link_id")?, row.get("id")?);
        let (version, change) = (row.get("version")?, row.get("last_change")?);
        changed.push(Changed { link, id, version, change });
    }
    Ok(changed)
}

/// The decision that changed these reviews, or its undo. `None`: the database has it no more.
async fn fetch_many(tx: &mut Tx, same: &[Changed]) -> Result<Option<ManyChanged>, TxError> {
    let Some(Changed { link, change, .. }) = same.first() else { return Ok(None) };
    let row = sql!(
        "SELECT d.id, d.verdict, u.id AS by_id, u.name AS by_name, d.change = {change} AS is_made \
         FROM decisions d JOIN users u ON u.id = d.decided_by \
         WHERE d.link_id = {link} AND (d.change = {change} OR d.undo_change = {change})"
    );
    let Some(row) = row.row(tx).await? else { return Ok(None) };
    let made = if row.get("is_made")? {
        Some((row.get("verdict")?, row.user("by_id", "by_name")?))
    } else {
        None
    };
    let reviews = same.iter().map(|it| (it.id, it.version)).collect();
    Ok(Some(ManyChanged { change: *change, id: row.get("id")?, made, reviews }))
}

/// Takes the next change numbers of the link's document, in the transaction of the changes. Returns the
/// last one.
pub(crate) async fn next_numbers(
    tx: &mut Tx,
    link: ShareLinkId,
    count: i64,
) -> Result<i64, TxError> {
    let number = sql!(
        "UPDATE documents SET review_changes = review_changes + {count} \
         WHERE id = (SELECT document_id FROM share_links WHERE id = {link}) \
         RETURNING review_changes"
    );
    number.one(tx).await?.get(0)
}

/// Numbers the change of a review in this transaction, and stores the user who holds the seat.
pub(crate) async fn note_change(tx: &mut Tx, seat: Seat, id: ReviewId) -> Result<(), TxError> {
    let change = next_numbers(tx, seat.link, 1).await?;
    sql!(
        "UPDATE reviews SET last_change = {change}, changed_by_number = {change}, \
         changed_by = (SELECT user_id FROM seats WHERE link_id = {seat.link} \
         AND role = {seat.role}), first_change = CASE WHEN first_change = 0 THEN {change} \
         ELSE first_change END WHERE id = {id}"
    )
    .run(tx)
    .await?;
    Ok(())
}

/// Numbers the deletion of a review in this transaction. Returns the number.
pub(crate) async fn note_deletion(
    tx: &mut Tx,
    link: ShareLinkId,
    id: ReviewId,
) -> Result<i64, TxError> {
    let change = next_numbers(tx, link, 1).await?;
    sql!(
        "INSERT INTO deleted_reviews (document_id, change, review_id, link_id) \
         SELECT document_id, {change}, {id}, id FROM share_links WHERE id = {link}"
    )
    .run(tx)
    .await?;
    sql!(
        "DELETE FROM deleted_reviews WHERE change <= {change - DELETIONS_MAX} \
         AND document_id = (SELECT document_id FROM share_links WHERE id = {link})"
    )
    .run(tx)
    .await?;
    Ok(change)
}
