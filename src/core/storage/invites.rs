//! Invites of a share link: renewed ones, the users whom the link refused, and its reviewer's end.
//!
//! A link has one invite at a time. A renewal replaces its hash, so every older invite is void. The
//! removal or replacement of the reviewer also raises the fence of the reviewer's seat in the same
//! transaction: from its commit on, the database rejects every guarded write of the former reviewer.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::domain::ids::{InviteId, ShareLinkId, UserId};
use crate::domain::limits::{ATTEMPT_AGAIN_AFTER, ATTEMPTS_PER_LINK_MAX};
use crate::domain::user::User;
use crate::storage::document_webhooks::{Departure, put_joined, put_left};
use crate::storage::locks::{lock_of, vacate_reviewer};
use crate::storage::partners::are_partners;
use crate::storage::statement::{Row, sql};
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::{Storage, StorageFuture};

/// An invite that replaces every older one of its link.
#[derive(Clone, Debug)]
pub struct NewInvite {
    /// Its id, from which the server computes it.
    pub id: InviteId,
    /// SHA-256 of the invite.
    pub hash: [u8; 32],
    pub now: DateTime<Utc>,
}

/// A user whom a link refused because it had a reviewer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    pub user: User,
    pub at: DateTime<Utc>,
}

/// The part of a link that only its owner sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InviteState {
    /// The id of the invite in force. `None`: the link's first invite.
    #[serde(skip)]
    pub invite: Option<InviteId>,
    pub invited_at: DateTime<Utc>,
    pub reviewer_since: Option<DateTime<Utc>>,
    /// The refused users, the last first.
    pub attempts: Vec<Attempt>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removed {
    /// This user was the reviewer.
    Done(UserId),
    NoReviewer,
    /// There is no such link, or it is revoked.
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplacedReviewer {
    /// The user is the reviewer. The former reviewer, if another user was.
    Done(Option<UserId>),
    /// The user is neither among the refused ones nor a partner of the owner.
    NotAPartner,
    /// The user is a partner whom the link did not refuse, and it has another reviewer.
    ReviewerExists,
    /// There is no such link, or it is revoked.
    Gone,
}

impl Storage {
    pub fn invite_state(&self, link: ShareLinkId) -> StorageFuture<'_, Option<InviteState>> {
        run!(self, Snapshot, tx => {
            let row = sql!(
                "SELECT invite_id, COALESCE(invited_at, created_at) AS invited_at, joined_at \
                 FROM share_links WHERE id = {link} AND revoked_at IS NULL"
            );
            let Some(row) = row.row(tx).await? else { return Ok(None) };
            let attempts = sql!(
                "SELECT u.id, u.name, a.attempted_at FROM invite_attempts a \
                 JOIN users u ON u.id = a.user_id WHERE a.link_id = {link} \
                 ORDER BY a.attempted_at DESC, a.user_id LIMIT {ATTEMPTS_PER_LINK_MAX}"
            );
            let attempts = attempts.rows(tx).await?;
            let attempt = |row: &Row| {
                Ok::<_, TxError>(Attempt { user: row.user("id", "name")?, at: row.get("attempted_at")? })
            };
            Ok(Some(InviteState {
                invite: row.get("invite_id")?,
                invited_at: row.get("invited_at")?,
                reviewer_since: row.get("joined_at")?,
                attempts: attempts.iter().map(attempt).collect::<Result<_, _>>()?,
            }))
        })
    }

    /// Replaces the invite of an active link; the reviewer stays. False: there is no such link.
    pub fn renew_invite<'a>(
        &'a self,
        link: ShareLinkId,
        invite: &'a NewInvite,
    ) -> StorageFuture<'a, bool> {
        run!(self, Write, tx => {
            lock_of(tx, link).await?;
            put_invite(tx, link, invite).await
        })
    }

    pub fn remove_reviewer<'a>(
        &'a self,
        link: ShareLinkId,
        invite: &'a NewInvite,
    ) -> StorageFuture<'a, Removed> {
        run!(self, Write, tx => {
            let locked = lock_of(tx, link).await?;
            let Some(reviewer) = reviewer(tx, link).await? else { return Ok(Removed::Gone) };
            let Some(former) = reviewer else { return Ok(Removed::NoReviewer) };
            put_invite(tx, link, invite).await?;
            sql!("UPDATE share_links SET reviewer_id = NULL, joined_at = NULL WHERE id = {link}")
                .run(tx)
                .await?;
            vacate_reviewer(tx, locked, link).await?;
            put_left(tx, link, &former, Departure::Removed, invite.now).await?;
            Ok(Removed::Done(former))
        })
    }

    /// Makes a refused user the reviewer, in place of the present one. A partner of the owner whom the
    /// link did not refuse becomes the reviewer of a link without one.
    pub fn replace_reviewer<'a>(
        &'a self,
        link: ShareLinkId,
        user: &'a UserId,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, ReplacedReviewer> {
        run!(self, Write, tx => {
            let locked = lock_of(tx, link).await?;
            let Some(former) = reviewer(tx, link).await? else { return Ok(ReplacedReviewer::Gone) };
            if former.as_ref() == Some(user) {
                return Ok(ReplacedReviewer::Done(None));
            }
            if !forget_attempt(tx, link, user).await? {
                let owner = sql!(
                    "SELECT d.owner_id FROM share_links l JOIN documents d ON d.id = l.document_id \
                     WHERE l.id = {link}"
                );
                let owner: UserId = owner.one(tx).await?.get(0)?;
                if !are_partners(tx, &owner, user).await? {
                    return Ok(ReplacedReviewer::NotAPartner);
                }
                if former.is_some() {
                    return Ok(ReplacedReviewer::ReviewerExists);
                }
            }
            sql!("UPDATE share_links SET reviewer_id = {user}, joined_at = {now} WHERE id = {link}")
                .run(tx)
                .await?;
            vacate_reviewer(tx, locked, link).await?;
            if let Some(former) = &former {
                put_left(tx, link, former, Departure::Removed, now).await?;
            }
            put_joined(tx, link, user, now).await?;
            Ok(ReplacedReviewer::Done(former))
        })
    }
}

/// The reviewer of an active link, under the lock of its document. The outer `None`: there is no such
/// link.
async fn reviewer(tx: &mut Tx, link: ShareLinkId) -> Result<Option<Option<UserId>>, TxError> {
    sql!("SELECT reviewer_id FROM share_links WHERE id = {link} AND revoked_at IS NULL")
        .value(tx)
        .await
}

pub(crate) async fn put_invite(
    tx: &mut Tx,
    link: ShareLinkId,
    invite: &NewInvite,
) -> Result<bool, TxError> {
    let renewed = sql!(
        "UPDATE share_links SET invite_id = {invite.id}, invite_hash = {invite.hash}, \
         invited_at = {invite.now} WHERE id = {link} AND revoked_at IS NULL"
    );
    Ok(renewed.run(tx).await? > 0)
}

/// Stores that the link refused a user who has a row, under the lock of its document. False: the user's
/// last attempt was a moment ago, and nothing changes.
pub async fn note_attempt(
    tx: &mut Tx,
    link: ShareLinkId,
    user: &UserId,
    now: DateTime<Utc>,
) -> Result<bool, TxError> {
    let noted = sql!(
        "INSERT INTO invite_attempts AS a (link_id, user_id, attempted_at) \
         VALUES ({link}, {user}, {now}) ON CONFLICT (link_id, user_id) DO UPDATE \
         SET attempted_at = excluded.attempted_at \
         WHERE a.attempted_at <= {now - ATTEMPT_AGAIN_AFTER}"
    );
    if noted.run(tx).await? == 0 {
        return Ok(false);
    }
    sql!(
        "DELETE FROM invite_attempts WHERE link_id = {link} AND user_id IN ( \
           SELECT user_id FROM invite_attempts WHERE link_id = {link} \
           ORDER BY attempted_at DESC, user_id LIMIT 1000 OFFSET {ATTEMPTS_PER_LINK_MAX})"
    )
    .run(tx)
    .await?;
    Ok(true)
}

/// Deletes a user's attempt, because the user becomes the reviewer. False: there was none.
pub(crate) async fn forget_attempt(
    tx: &mut Tx,
    link: ShareLinkId,
    user: &UserId,
) -> Result<bool, TxError> {
    let deleted = sql!("DELETE FROM invite_attempts WHERE link_id = {link} AND user_id = {user}");
    Ok(deleted.run(tx).await? > 0)
}
