//! The deletion of what the rows have of a user.
//!
//! Each function runs in a transaction of its own and may run again. A user is named by the own rows, by the
//! rows of the own documents, and by the rows of share links on which the user was the reviewer, as
//! `link_members` has them. The references to `users` prove that no other row is left: the row of the user is
//! deleted last.

use chrono::DateTime;
use serde_json::{Value, json};

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::limits::DECIDED_ONE_BY_ONE_MAX;
use crate::domain::user::User;
use crate::storage::decode::corrupt;
use crate::storage::document_webhooks::{Departure, put_left};
use crate::storage::documents::delete_rows;
use crate::storage::invites::{NewInvite, put_invite};
use crate::storage::locks::{Locked, change_guards, lock_histories, lock_of, vacate_reviewer};
use crate::storage::review_changes::{DELETIONS_MAX, MISSED_MAX, next_numbers};
use crate::storage::statement::sql;
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::users::put_user;
use crate::storage::versions::authors_json;
use crate::storage::{Storage, StorageFuture};

/// Webhooks that one transaction changes, at most.
const WEBHOOKS_AT_ONCE: u32 = 500;

/// A user whom a deletion forgets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forgotten {
    pub user: UserId,
    /// The id of the deleted user in the documents of others.
    pub deleted: UserId,
    /// The reviews in documents of others are deleted too.
    pub with_reviews: bool,
}

impl Storage {
    /// The reviewer of an active link leaves it. False: the user is not its reviewer.
    pub fn leave_link<'a>(
        &'a self,
        link: ShareLinkId,
        reviewer: &'a UserId,
        invite: &'a NewInvite,
    ) -> StorageFuture<'a, bool> {
        run!(self, Write, tx => {
            let locked = lock_of(tx, link).await?;
            let is_active =
                sql!("SELECT 1 FROM share_links WHERE id = {link} AND revoked_at IS NULL");
            let is_active = is_active.row(tx).await?.is_some();
            Ok(is_active && leave(tx, (locked, link), reviewer, invite, Departure::Own).await?)
        })
    }
}

/// Deletes a document of the user with all that depends on it.
pub async fn forget_document(tx: &mut Tx, id: DocumentId, who: &Forgotten) -> Result<(), TxError> {
    let locked = sql!("SELECT 1 FROM documents WHERE id = {id}{@for update}");
    if locked.row(tx).await?.is_none() {
        return Ok(());
    }
    // These rows outlive the document until its sessions have ended.
    sql!(
        "UPDATE webhook_seats SET user_id = {who.deleted} WHERE user_id = {who.user} \
         AND link_id IN (SELECT id FROM share_links WHERE document_id = {id})"
    )
    .run(tx)
    .await?;
    delete_rows(tx, id).await
}

/// Replaces the user in all rows of a link of another owner, and of its document.
pub async fn forget_member(
    tx: &mut Tx,
    link: ShareLinkId,
    who: &Forgotten,
    invite: &NewInvite,
) -> Result<(), TxError> {
    let locked = lock_of(tx, link).await?;
    let document = sql!("SELECT document_id FROM share_links WHERE id = {link}");
    let Some(document) = document.value::<DocumentId>(tx).await? else { return Ok(()) };
    // A version that is being stored meanwhile may name the user.
    lock_histories(tx, &[document.to_string()]).await?;
    let Forgotten { user, deleted, .. } = who;
    let nameless = User { id: deleted.clone(), name: String::new() };
    put_user(tx, &nameless, DateTime::UNIX_EPOCH).await?;
    leave(tx, (locked, link), user, invite, Departure::Deleted).await?;
    forget_reviews(tx, link, who).await?;
    forget_authors(tx, document, who).await?;
    for statement in [
        sql!(
            "UPDATE decisions SET decided_by = {deleted} WHERE link_id = {link} \
             AND decided_by = {user}"
        ),
        sql!("UPDATE turns SET by_id = {deleted} WHERE link_id = {link} AND by_id = {user}"),
        sql!("UPDATE seats SET user_id = {deleted} WHERE link_id = {link} AND user_id = {user}"),
        sql!(
            "UPDATE webhook_seats SET user_id = {deleted} WHERE link_id = {link} \
             AND user_id = {user}"
        ),
        sql!("DELETE FROM seen_marks WHERE link_id = {link} AND user_id = {user}"),
        sql!("DELETE FROM absent_waiters WHERE link_id = {link} AND user_id = {user}"),
        // Files name the authors. A build that runs stores no file without its row.
        sql!("DELETE FROM exports WHERE link_id = {link}"),
        sql!("DELETE FROM export_builds WHERE link_id = {link}"),
        sql!("DELETE FROM link_members WHERE link_id = {link} AND user_id = {user}"),
    ] {
        statement.run(tx).await?;
    }
    change_guards(tx, document).await
}

/// Ends the membership of the reviewer under the lock of the link's document, and replaces the invite. False:
/// the user is not its reviewer.
async fn leave(
    tx: &mut Tx,
    (locked, link): (Locked, ShareLinkId),
    reviewer: &UserId,
    invite: &NewInvite,
    why: Departure,
) -> Result<bool, TxError> {
    let left = sql!(
        "UPDATE share_links SET reviewer_id = NULL, joined_at = NULL \
         WHERE id = {link} AND reviewer_id = {reviewer}"
    );
    if left.run(tx).await? == 0 {
        return Ok(false);
    }
    put_left(tx, link, reviewer, why, invite.now).await?;
    put_invite(tx, link, invite).await?;
    vacate_reviewer(tx, locked, link).await?;
    Ok(true)
}

/// Deletes the reviews and replies of the user, or replaces their author. Each changed review has a new number,
/// so that open pages follow; what their users have seen stays seen.
async fn forget_reviews(tx: &mut Tx, link: ShareLinkId, who: &Forgotten) -> Result<(), TxError> {
    let Forgotten { user, deleted, with_reviews } = who;
    if *with_reviews {
        delete_reviews(tx, link, user).await?;
    }
    let named = sql!(
        "SELECT count(*) FROM reviews r WHERE r.link_id = {link} AND (r.author_id = {user} \
         OR r.decided_by = {user} OR r.changed_by = {user} OR EXISTS (SELECT 1 FROM replies p \
         WHERE p.author_id = {user} AND p.review_id = r.id))"
    );
    let named: i64 = named.one(tx).await?.get(0)?;
    if named == 0 {
        return Ok(());
    }
    // Beyond some, the members read the list again.
    let is_many = usize::try_from(named).map_err(corrupt)? > DECIDED_ONE_BY_ONE_MAX;
    let step = if is_many { MISSED_MAX + 1 } else { 1 };
    let change = next_numbers(tx, link, step).await?;
    sql!(
        "UPDATE reviews SET \
         author_id = CASE WHEN author_id = {user} THEN {deleted} ELSE author_id END, \
         decided_by = CASE WHEN decided_by = {user} THEN {deleted} ELSE decided_by END, \
         changed_by = NULL, version = version + 1, last_change = {change}, \
         bytes = bytes - CASE WHEN {with_reviews} THEN \
         COALESCE((SELECT SUM(octet_length(p.body)) FROM replies p \
         WHERE p.author_id = {user} AND p.review_id = reviews.id), 0) ELSE 0 END \
         WHERE link_id = {link} AND (author_id = {user} OR decided_by = {user} \
         OR changed_by = {user} OR EXISTS (SELECT 1 FROM replies p WHERE p.author_id = {user} \
         AND p.review_id = reviews.id))"
    )
    .run(tx)
    .await?;
    match with_reviews {
        true => sql!(
            "DELETE FROM replies WHERE author_id = {user} \
             AND review_id IN (SELECT id FROM reviews WHERE link_id = {link})"
        ),
        false => sql!(
            "UPDATE replies SET author_id = {deleted} WHERE author_id = {user} \
             AND review_id IN (SELECT id FROM reviews WHERE link_id = {link})"
        ),
    }
    .run(tx)
    .await?;
    sql!(
        "UPDATE seen_marks SET change = {change} WHERE link_id = {link} \
         AND change >= {change - step}"
    )
    .run(tx)
    .await?;
    Ok(())
}

async fn delete_reviews(tx: &mut Tx, link: ShareLinkId, user: &UserId) -> Result<(), TxError> {
    let own = sql!("SELECT count(*) FROM reviews WHERE author_id = {user} AND link_id = {link}");
    let own = own.one(tx).await?.get(0)?;
    let last = next_numbers(tx, link, own).await?;
    for statement in [
        sql!(
            "INSERT INTO deleted_reviews (document_id, change, review_id, link_id) \
             SELECT l.document_id, {last} + 1 - ROW_NUMBER() OVER (ORDER BY r.id), r.id, l.id \
             FROM reviews r JOIN share_links l ON l.id = r.link_id \
             WHERE r.author_id = {user} AND r.link_id = {link}"
        ),
        sql!("DELETE FROM reviews WHERE author_id = {user} AND link_id = {link}"),
        sql!(
            "DELETE FROM deleted_reviews WHERE change <= {last - DELETIONS_MAX} \
             AND document_id = (SELECT document_id FROM share_links WHERE id = {link})"
        ),
    ] {
        statement.run(tx).await?;
    }
    Ok(())
}

async fn forget_authors(tx: &mut Tx, document: DocumentId, who: &Forgotten) -> Result<(), TxError> {
    let named = sql!(
        "SELECT id, authors FROM versions WHERE document_id = {document} \
         AND authors LIKE '%' || {who.user} || '%'"
    );
    for row in named.rows(tx).await? {
        let authors: String = row.get("authors")?;
        let mut authors: Vec<User> = serde_json::from_str(&authors).map_err(corrupt)?;
        for author in authors.iter_mut().filter(|author| author.id == who.user) {
            *author = User { id: who.deleted.clone(), name: String::new() };
        }
        let version: String = row.get("id")?;
        sql!("UPDATE versions SET authors = {authors_json(&authors)?} WHERE id = {version}")
            .run(tx)
            .await?;
    }
    Ok(())
}

/// Deletes the rows that belong to the user and to no document, and replaces the user in the audit.
pub async fn forget_rows(tx: &mut Tx, who: &Forgotten) -> Result<(), TxError> {
    let user = &who.user;
    // Each offer is the lock of its claims.
    sql!(
        "SELECT 1 FROM review_offers WHERE id IN (SELECT offer_id FROM review_claims \
         WHERE user_id = {user} AND ended_at IS NULL) ORDER BY id{@for update}"
    )
    .rows(tx)
    .await?;
    for statement in [
        sql!(
            "UPDATE review_offers SET claimed = claimed - 1 WHERE id IN ( \
             SELECT offer_id FROM review_claims WHERE user_id = {user} AND ended_at IS NULL)"
        ),
        sql!("DELETE FROM review_claims WHERE user_id = {user}"),
        sql!("DELETE FROM review_offers WHERE owner_id = {user}"),
        sql!("DELETE FROM review_requests WHERE sender_id = {user} OR receiver_id = {user}"),
        sql!("DELETE FROM partners WHERE low_id = {user} OR high_id = {user}"),
        sql!("DELETE FROM handles WHERE user_id = {user}"),
        sql!("DELETE FROM personal_links WHERE user_id = {user}"),
        sql!("DELETE FROM push_subscriptions WHERE user_id = {user}"),
        sql!("DELETE FROM reminder_settings WHERE user_id = {user}"),
        sql!("DELETE FROM transfer_codes WHERE user_id = {user}"),
        sql!("DELETE FROM invite_attempts WHERE user_id = {user}"),
        sql!("DELETE FROM revocations WHERE subject = {user}"),
        // The one change that the audit admits.
        sql!(
            "UPDATE audit SET actor = CASE WHEN actor = {user} THEN {who.deleted} ELSE actor END, \
             user_id = CASE WHEN user_id = {user} THEN {who.deleted} ELSE user_id END, \
             target = CASE WHEN target = {user} THEN {who.deleted} ELSE target END, \
             peer = CASE WHEN actor = {user} THEN '' ELSE peer END \
             WHERE actor = {user} OR user_id = {user} OR target = {user}"
        ),
    ] {
        statement.run(tx).await?;
    }
    Ok(())
}

/// Replaces the user in webhooks that are not delivered, after number `after`, and removes the titles of documents
/// that are gone. Returns the number to continue after.
pub async fn forget_webhooks(
    tx: &mut Tx,
    who: &Forgotten,
    after: i64,
) -> Result<Option<i64>, TxError> {
    let rows = sql!(
        "SELECT w.id, w.seq, w.data, w.document_id IS NOT NULL AND d.id IS NULL AS is_gone \
         FROM webhooks w LEFT JOIN documents d ON d.id = w.document_id \
         WHERE w.seq > {after} AND (w.data LIKE '%\"' || {who.user} || '\"%' OR (d.id IS NULL \
         AND w.document_id IS NOT NULL AND (w.external_id IS NOT NULL \
         OR w.data LIKE '%\"title\":\"_%'))) \
         ORDER BY w.seq LIMIT {WEBHOOKS_AT_ONCE}"
    );
    let rows = rows.rows(tx).await?;
    for row in &rows {
        let mut data: Value = serde_json::from_str(&row.get::<String>("data")?).map_err(corrupt)?;
        let is_gone = row.get("is_gone")?;
        forget_in(&mut data, who, is_gone);
        let id: String = row.get("id")?;
        sql!(
            "UPDATE webhooks SET data = {data.to_string()}, \
             external_id = CASE WHEN {is_gone} THEN NULL ELSE external_id END WHERE id = {id}"
        )
        .run(tx)
        .await?;
    }
    rows.last().map(|row| row.get("seq")).transpose()
}

/// A role or a state may have the text of an id: only fields that name users are replaced.
fn forget_in(data: &mut Value, who: &Forgotten, is_gone: bool) {
    let Value::Object(fields) = data else { return };
    let is_user = |value: &Value| value.as_str() == Some(who.user.as_str());
    if fields.contains_key("name") && fields.get("id").is_some_and(is_user) {
        fields.insert("id".to_owned(), json!(who.deleted));
        fields.insert("name".to_owned(), Value::Null);
    }
    for (name, value) in fields {
        match name.as_str() {
            "author_id" | "owner_id" | "user_id" | "decided_by" | "from_id" | "to_id"
                if is_user(value) =>
            {
                *value = json!(who.deleted);
            }
            "author_ids" => {
                for id in value.as_array_mut().into_iter().flatten().filter(|id| is_user(id)) {
                    *id = json!(who.deleted);
                }
            }
            "title" if is_gone => *value = json!(""),
            _ => forget_in(value, who, is_gone),
        }
    }
}
