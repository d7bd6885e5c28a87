//! Invites and the reviewer's end, on either engine.

use chrono::{DateTime, Utc};

use crate::domain::ids::{ShareLinkId, UserId};
use crate::domain::limits::{ATTEMPT_AGAIN_AFTER, ATTEMPTS_PER_LINK_MAX};
use crate::storage::decode::parse;
use crate::storage::error::StorageError;
use crate::storage::invites::{Attempt, Invitation, NewInvite, Removed, Replaced};

use super::dialect::{Connection, Engine, Moment, TxError, lock_of, snapshot, transact, user};
use super::partners::are_partners;
use super::seats::vacate_reviewer;

type Row = (Option<String>, Moment, Option<Moment>);

impl Engine {
    pub(in crate::storage) async fn invitation(
        &self,
        link: ShareLinkId,
    ) -> Result<Option<Invitation>, StorageError> {
        snapshot!(self, tx => {
            let row: Option<Row> = sqlx::query_as(
                "SELECT invite_id, COALESCE(invited_at, created_at), joined_at \
                 FROM share_links WHERE id = $1 AND revoked_at IS NULL",
            )
            .bind(link.to_string())
            .fetch_optional(&mut *tx)
            .await?;
            let Some((invite, Moment(invited_at), since)) = row else { return Ok(None) };
            let rows: Vec<(String, String, Moment)> = sqlx::query_as(
                "SELECT u.id, u.name, a.attempted_at FROM invite_attempts a \
                 JOIN users u ON u.id = a.user_id WHERE a.link_id = $1 \
                 ORDER BY a.attempted_at DESC, a.user_id LIMIT $2",
            )
            .bind(link.to_string())
            .bind(ATTEMPTS_PER_LINK_MAX)
            .fetch_all(tx)
            .await?;
            let attempts = rows.into_iter().map(|(id, name, Moment(at))| {
                Ok(Attempt { user: user(&id, name)?, at })
            });
            Ok(Some(Invitation {
                invite: invite.as_deref().map(parse).transpose()?,
                invited_at,
                reviewer_since: since.map(|Moment(at)| at),
                attempts: attempts.collect::<Result<_, StorageError>>()?,
            }))
        })
    }

    pub(in crate::storage) async fn renew_invite(
        &self,
        link: ShareLinkId,
        invite: &NewInvite,
    ) -> Result<bool, StorageError> {
        transact!(self, tx => {
            lock_of(tx, link).await?;
            put_invite(tx, link, invite).await
        })
    }

    pub(in crate::storage) async fn remove_reviewer(
        &self,
        link: ShareLinkId,
        invite: &NewInvite,
    ) -> Result<Removed, StorageError> {
        transact!(self, tx => {
            lock_of(tx, link).await?;
            let Some(reviewer) = reviewer(tx, link).await? else { return Ok(Removed::Gone) };
            let Some(former) = reviewer else { return Ok(Removed::NoReviewer) };
            put_invite(tx, link, invite).await?;
            sqlx::query(
                "UPDATE share_links SET reviewer_id = NULL, joined_at = NULL WHERE id = $1",
            )
            .bind(link.to_string())
            .execute(&mut *tx)
            .await?;
            vacate_reviewer(tx, link).await?;
            Ok(Removed::Done(former))
        })
    }

    pub(in crate::storage) async fn replace_reviewer(
        &self,
        link: ShareLinkId,
        user: &UserId,
        now: DateTime<Utc>,
    ) -> Result<Replaced, StorageError> {
        transact!(self, tx => {
            lock_of(tx, link).await?;
            let Some(former) = reviewer(tx, link).await? else { return Ok(Replaced::Gone) };
            if former.as_ref() == Some(user) {
                return Ok(Replaced::Done(None));
            }
            if !forget_attempt(tx, link, user).await? {
                if !is_partner_of_owner(tx, link, user).await? {
                    return Ok(Replaced::NotAPartner);
                }
                if former.is_some() {
                    return Ok(Replaced::ReviewerExists);
                }
            }
            sqlx::query("UPDATE share_links SET reviewer_id = $2, joined_at = $3 WHERE id = $1")
                .bind(link.to_string())
                .bind(user.as_str())
                .bind(Moment(now))
                .execute(&mut *tx)
                .await?;
            vacate_reviewer(tx, link).await?;
            Ok(Replaced::Done(former))
        })
    }
}

/// The reviewer of an active link, under the lock of its document. The outer `None`: there is no such
/// link.
async fn reviewer(
    connection: &mut Connection,
    link: ShareLinkId,
) -> Result<Option<Option<UserId>>, TxError> {
    let select = "SELECT reviewer_id FROM share_links WHERE id = $1 AND revoked_at IS NULL";
    let row: Option<Option<String>> =
        sqlx::query_scalar(select).bind(link.to_string()).fetch_optional(connection).await?;
    let Some(id) = row else { return Ok(None) };
    Ok(Some(id.as_deref().map(parse).transpose()?))
}

/// Whether a user is a partner of the owner of a link's document.
async fn is_partner_of_owner(
    connection: &mut Connection,
    link: ShareLinkId,
    user: &UserId,
) -> Result<bool, TxError> {
    let select = "SELECT d.owner_id FROM share_links l JOIN documents d ON d.id = l.document_id \
                  WHERE l.id = $1";
    let owner: String =
        sqlx::query_scalar(select).bind(link.to_string()).fetch_one(&mut *connection).await?;
    are_partners(connection, &parse(&owner)?, user).await
}

async fn put_invite(
    connection: &mut Connection,
    link: ShareLinkId,
    invite: &NewInvite,
) -> Result<bool, TxError> {
    let renewed = sqlx::query(
        "UPDATE share_links SET invite_id = $2, invite_hash = $3, invited_at = $4 \
         WHERE id = $1 AND revoked_at IS NULL",
    )
    .bind(link.to_string())
    .bind(invite.id.to_string())
    .bind(invite.hash.as_slice())
    .bind(Moment(invite.now))
    .execute(connection)
    .await?;
    Ok(0 < renewed.rows_affected())
}

/// Stores that the link refused a user who has a row, under the lock of its document. False: the user's
/// last attempt was a moment ago, and nothing changes.
pub(super) async fn note_attempt(
    connection: &mut Connection,
    link: ShareLinkId,
    user: &UserId,
    now: DateTime<Utc>,
) -> Result<bool, TxError> {
    let noted = sqlx::query(
        "INSERT INTO invite_attempts AS a (link_id, user_id, attempted_at) VALUES ($1, $2, $3) \
         ON CONFLICT (link_id, user_id) DO UPDATE SET attempted_at = excluded.attempted_at \
         WHERE a.attempted_at <= $4",
    )
    .bind(link.to_string())
    .bind(user.as_str())
    .bind(Moment(now))
    .bind(Moment(now - ATTEMPT_AGAIN_AFTER))
    .execute(&mut *connection)
    .await?;
    if noted.rows_affected() == 0 {
        return Ok(false);
    }
    sqlx::query(
        "DELETE FROM invite_attempts WHERE link_id = $1 AND user_id IN ( \
           SELECT user_id FROM invite_attempts WHERE link_id = $1 \
           ORDER BY attempted_at DESC, user_id LIMIT 1000 OFFSET $2)",
    )
    .bind(link.to_string())
    .bind(ATTEMPTS_PER_LINK_MAX)
    .execute(connection)
    .await?;
    Ok(true)
}

/// Deletes a user's attempt, because the user becomes the reviewer. False: there was none.
pub(super) async fn forget_attempt(
    connection: &mut Connection,
    link: ShareLinkId,
    user: &UserId,
) -> Result<bool, TxError> {
    let deleted = sqlx::query("DELETE FROM invite_attempts WHERE link_id = $1 AND user_id = $2")
        .bind(link.to_string())
        .bind(user.as_str())
        .execute(connection)
        .await?;
    Ok(0 < deleted.rows_affected())
}
