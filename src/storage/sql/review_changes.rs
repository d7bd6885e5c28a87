//! Numbered changes of reviews, on either engine.

use crate::domain::ids::{DocumentId, ReviewId, ShareLinkId};
use crate::domain::limits::DECIDED_ONE_BY_ONE_MAX;
use crate::domain::seat::Seat;
use crate::storage::decisions::ManyChanged;
use crate::storage::decode::parse;
use crate::storage::error::StorageError;
use crate::storage::review_changes::{DELETIONS_MAX, DeletedReview, ReviewChanges};

use super::dialect::{Connection, Engine, TxError, snapshot, user};
use super::review_rows::{fetch_one, verdict};
use super::turn_rows::turn_after;

impl Engine {
    pub(in crate::storage) async fn review_changes(
        &self,
        document: DocumentId,
        after: i64,
    ) -> Result<Option<ReviewChanges>, StorageError> {
        snapshot!(self, tx => { fetch(tx, document, after).await })
    }
}

/// Inside a transaction that sees one state, because it runs several statements.
async fn fetch(
    connection: &mut Connection,
    document: DocumentId,
    after: i64,
) -> Result<Option<ReviewChanges>, TxError> {
    let upto: Option<i64> =
        sqlx::query_scalar("SELECT review_changes FROM documents WHERE id = $1")
            .bind(document.to_string())
            .fetch_optional(&mut *connection)
            .await?;
    let Some(upto) = upto else { return Ok(None) };
    let mut changes = ReviewChanges { upto, ..ReviewChanges::default() };
    let changed: Vec<(String, String, i64, i64)> = sqlx::query_as(
        "SELECT r.link_id, r.id, r.version, r.last_change FROM share_links l JOIN reviews r ON r.link_id = l.id \
         WHERE l.document_id = $1 AND l.revoked_at IS NULL AND r.last_change > $2 \
         ORDER BY r.last_change",
    )
    .bind(document.to_string())
    .bind(after)
    .fetch_all(&mut *connection)
    .await?;
    for same in changed.chunk_by(|one, next| one.3 == next.3) {
        if DECIDED_ONE_BY_ONE_MAX < same.len()
            && let Some(many) = fetch_many(connection, same).await?
        {
            changes.decided.push(many);
            continue;
        }
        for (link, id, _, _) in same {
            changes.changed.extend(fetch_one(connection, parse(link)?, parse(id)?).await?);
        }
    }
    let deleted: Vec<(i64, String, String)> = sqlx::query_as(
        "SELECT change, review_id, link_id FROM deleted_reviews \
         WHERE document_id = $1 AND change > $2 ORDER BY change",
    )
    .bind(document.to_string())
    .bind(after)
    .fetch_all(&mut *connection)
    .await?;
    for (change, id, link) in deleted {
        changes.deleted.push(DeletedReview { id: parse(&id)?, link: parse(&link)?, change });
    }
    changes.turn = turn_after(connection, document, after).await?;
    Ok(Some(changes))
}

/// The decision that changed these reviews, or its undo. `None`: the database has it no more.
async fn fetch_many(
    connection: &mut Connection,
    same: &[(String, String, i64, i64)],
) -> Result<Option<ManyChanged>, TxError> {
    let Some((link, _, _, change)) = same.first() else { return Ok(None) };
    let row: Option<(String, String, String, String, bool)> = sqlx::query_as(
        "SELECT d.id, d.verdict, u.id, u.name, d.change = $2 FROM decisions d \
         JOIN users u ON u.id = d.decided_by \
         WHERE d.link_id = $1 AND (d.change = $2 OR d.undo_change = $2)",
    )
    .bind(link)
    .bind(change)
    .fetch_optional(connection)
    .await?;
    let Some((id, name, by, by_name, is_made)) = row else { return Ok(None) };
    let made = if is_made { Some((verdict(&name)?, user(&by, by_name)?)) } else { None };
    let reviews = same.iter().map(|(_, id, version, _)| Ok((parse(id)?, *version)));
    let reviews = reviews.collect::<Result<_, StorageError>>()?;
    Ok(Some(ManyChanged { change: *change, id: parse(&id)?, made, reviews }))
}

/// Takes the next change number of the link's document, in the transaction of the change.
pub(super) async fn next_number(
    connection: &mut Connection,
    link: ShareLinkId,
) -> Result<i64, TxError> {
    next_numbers(connection, link, 1).await
}

/// Takes the next change numbers of the link's document, in the transaction of the changes. Returns the
/// last one.
pub(super) async fn next_numbers(
    connection: &mut Connection,
    link: ShareLinkId,
    count: i64,
) -> Result<i64, TxError> {
    let number = sqlx::query_scalar(
        "UPDATE documents SET review_changes = review_changes + $2 \
         WHERE id = (SELECT document_id FROM share_links WHERE id = $1) RETURNING review_changes",
    );
    Ok(number.bind(link.to_string()).bind(count).fetch_one(connection).await?)
}

/// Numbers the change of a review in this transaction, and stores the user who holds the seat.
pub(super) async fn note_change(
    connection: &mut Connection,
    seat: Seat,
    id: ReviewId,
) -> Result<(), TxError> {
    let change = next_number(connection, seat.link).await?;
    sqlx::query(
        "UPDATE reviews SET last_change = $2, changed_by_number = $2, \
         changed_by = (SELECT user_id FROM seats WHERE link_id = $3 AND role = $4), \
         first_change = CASE WHEN version = 1 THEN $2 ELSE first_change END WHERE id = $1",
    )
    .bind(id.to_string())
    .bind(change)
    .bind(seat.link.to_string())
    .bind(seat.role.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

/// Numbers the deletion of a review in this transaction. Returns the number.
pub(super) async fn note_deletion(
    connection: &mut Connection,
    link: ShareLinkId,
    id: ReviewId,
) -> Result<i64, TxError> {
    let change = next_numbers(connection, link, 1).await?;
    sqlx::query(
        "INSERT INTO deleted_reviews (document_id, change, review_id, link_id) \
         SELECT document_id, $2, $3, id FROM share_links WHERE id = $1",
    )
    .bind(link.to_string())
    .bind(change)
    .bind(id.to_string())
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "DELETE FROM deleted_reviews WHERE change <= $2 \
         AND document_id = (SELECT document_id FROM share_links WHERE id = $1)",
    )
    .bind(link.to_string())
    .bind(change - DELETIONS_MAX)
    .execute(connection)
    .await?;
    Ok(change)
}
