//! Share links: the one active invitation to work on a document.
//!
//! A document has at most one active link, also when several servers create it at once (G11): a
//! partial unique index enforces it.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, ShareLinkId, UserId};
use crate::domain::seat::{Role, Seat};
use crate::domain::user::User;
use crate::storage::document_webhooks::put_joined;
use crate::storage::guard::FenceGuard;
use crate::storage::invites::{forget_attempt, note_attempt};
use crate::storage::locks::{change_guards, lock, lock_of};
use crate::storage::pagination::{Cursor, Page};
use crate::storage::statement::{Row, json, sql};
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::users::put_user;
use crate::storage::{Storage, StorageFuture};

/// A link to create, unless the document has one.
#[derive(Clone, Debug)]
pub struct NewShareLink {
    pub id: ShareLinkId,
    /// The document. Its owner is the writer.
    pub document_id: DocumentId,
    /// SHA-256 of the invite.
    pub invite_hash: [u8; 32],
    pub now: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareLink {
    pub id: ShareLinkId,
    pub document_id: DocumentId,
    pub title: String,
    /// The document's owner.
    pub writer: User,
    pub reviewer: Option<User>,
    /// SHA-256 of the invite.
    pub invite_hash: [u8; 32],
    pub created_at: DateTime<Utc>,
    /// The time of its revocation. `None`: it is active.
    pub revoked_at: Option<DateTime<Utc>>,
}

impl ShareLink {
    /// The role of a user on the link.
    #[must_use]
    pub fn role_of(&self, user: &UserId) -> Option<Role> {
        if self.writer.id == *user {
            return Some(Role::Writer);
        }
        self.reviewer.as_ref().filter(|reviewer| reviewer.id == *user).map(|_| Role::Reviewer)
    }

    #[must_use]
    pub fn cursor(&self) -> Cursor<ShareLinkId> {
        Cursor { at: self.created_at, id: self.id }
    }
}

/// The proof that a user is the writer or the reviewer of an active link. [`Storage::member`] makes one of
/// the stored link, and `reviews::member` one of a ratified session. Either may be old: a statement whose
/// rows the user receives compares the member once more, and the transaction of a write the fence (D2).
///
/// [`Storage::member`]: crate::storage::Storage::member
#[derive(Clone, Debug)]
pub struct Membership {
    /// The link.
    pub id: ShareLinkId,
    pub(crate) document: DocumentId,
    pub(crate) role: Role,
    pub(crate) user: User,
    _proof: (),
}

impl Membership {
    pub(crate) fn of_link(link: &ShareLink, user: &User) -> Option<Self> {
        let (id, document) = (link.id, link.document_id);
        let role = link.role_of(&user.id).filter(|_| link.revoked_at.is_none())?;
        Some(Self { id, document, role, user: user.clone(), _proof: () })
    }

    /// `guard` is that of a ratified session of the user on the document.
    pub(crate) fn of_session(guard: FenceGuard, document: DocumentId, user: &User) -> Self {
        let Seat { link: id, role } = guard.seat;
        Self { id, document, role, user: user.clone(), _proof: () }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindOrCreate {
    Created,
    Existing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The caller is the reviewer, as of this call or before it.
    Reviewer(ShareLink),
    ReviewerExists {
        document: DocumentId,
        /// Whether the attempt was stored: it is the user's first within a minute.
        is_noted: bool,
    },
    /// There is no such link, or it is revoked.
    Gone,
}

pub(crate) const LINK_COLUMNS: &str = "l.id, l.document_id, d.title, w.id AS writer_id, \
    w.name AS writer_name, r.id AS reviewer_id, r.name AS reviewer_name, l.invite_hash, l.created_at, \
    l.revoked_at";

pub(crate) const LINK_JOINS: &str = "JOIN documents d ON d.id = l.document_id \
    JOIN users w ON w.id = d.owner_id LEFT JOIN users r ON r.id = l.reviewer_id ";

impl Storage {
    /// Creates the link if there is none. `None`: there is no such document.
    pub fn find_or_create_link<'a>(
        &'a self,
        new: &'a NewShareLink,
    ) -> StorageFuture<'a, Option<(ShareLink, FindOrCreate)>> {
        run!(self, Write, tx => {
            if lock(tx, new.document_id).await?.is_none() {
                return Ok(None);
            }
            find_or_create(tx, new).await
        })
    }

    /// Reads a link, also a revoked one.
    pub fn link(&self, id: ShareLinkId) -> StorageFuture<'_, Option<ShareLink>> {
        run!(self, Read, tx => { fetch(tx, id).await })
    }

    /// `None`: the link is not active, or the user is neither its writer nor its reviewer.
    pub fn member<'a>(
        &'a self,
        user: &'a User,
        id: ShareLinkId,
    ) -> StorageFuture<'a, Option<Membership>> {
        Box::pin(async move {
            Ok(self.link(id).await?.and_then(|link| Membership::of_link(&link, user)))
        })
    }

    pub fn link_of(&self, document: DocumentId) -> StorageFuture<'_, Option<ShareLink>> {
        run!(self, Read, tx => { fetch_active(tx, document).await })
    }

    /// Reads a page of the active links on which a user writes or reviews, newest first.
    pub fn links_of<'a>(
        &'a self,
        user: &'a UserId,
        page: &'a Page<ShareLinkId>,
    ) -> StorageFuture<'a, Vec<ShareLink>> {
        run!(self, Read, tx => {
            // Two selects, one for each index: `OR` across tables would read every link.
            let links = sql!([
                "SELECT ", LINK_COLUMNS, " FROM share_links l ", LINK_JOINS,
                "WHERE l.revoked_at IS NULL AND l.id IN ( \
                   SELECT id FROM share_links WHERE reviewer_id = {user} AND revoked_at IS NULL \
                   UNION \
                   SELECT s.id FROM documents o JOIN share_links s ON s.document_id = o.id \
                   WHERE o.owner_id = {user} AND s.revoked_at IS NULL \
                 ) AND ({page.before_at()} IS NULL \
                 OR (l.created_at, l.id) < ({page.before_at()}, {page.before_id()})) \
                 ORDER BY l.created_at DESC, l.id DESC LIMIT {page.rows()}",
            ]);
            links.rows(tx).await?.iter().map(link_of).collect()
        })
    }

    /// Makes `user` the reviewer, unless the link has another. The link then stores the attempt. The
    /// caller must check that `user` is not the writer.
    pub fn join_link<'a>(
        &'a self,
        id: ShareLinkId,
        user: &'a User,
        now: DateTime<Utc>,
    ) -> StorageFuture<'a, Joined> {
        run!(self, Write, tx => {
            lock_of(tx, id).await?;
            let before = fetch(tx, id).await?.filter(|link| link.revoked_at.is_none());
            let Some(before) = before else { return Ok(Joined::Gone) };
            put_user(tx, user, now).await?;
            if before.reviewer.is_some_and(|reviewer| reviewer.id != user.id) {
                let is_noted = note_attempt(tx, id, &user.id, now).await?;
                return Ok(Joined::ReviewerExists { document: before.document_id, is_noted });
            }
            put_reviewer(tx, id, &user.id, now).await?;
            let link = fetch(tx, id).await?.ok_or(sqlx::Error::RowNotFound)?;
            Ok(Joined::Reviewer(link))
        })
    }

    /// Revokes a link. From the commit on, the database rejects every guarded write of its seats, on
    /// every server. False: there is no such link, or it was revoked before.
    pub fn revoke_link(&self, id: ShareLinkId, now: DateTime<Utc>) -> StorageFuture<'_, bool> {
        run!(self, Write, tx => {
            lock_of(tx, id).await?;
            let revoked = sql!(
                "UPDATE share_links SET revoked_at = {now} WHERE id = {id} AND revoked_at IS NULL \
                 RETURNING document_id"
            );
            let Some(document) = revoked.value(tx).await? else { return Ok(false) };
            change_guards(tx, document).await?;
            Ok(true)
        })
    }

    /// The titles of the documents of these links, also of revoked ones, read in one statement.
    pub fn titles_of<'a>(
        &'a self,
        links: &'a [ShareLinkId],
    ) -> StorageFuture<'a, HashMap<ShareLinkId, String>> {
        run!(self, Read, tx => {
            let titles = sql!(
                "SELECT l.id, d.title FROM share_links l JOIN documents d ON d.id = l.document_id \
                 WHERE l.id IN (SELECT w.value FROM {@list:{json(links)?}})"
            );
            let rows = titles.rows(tx).await?;
            rows.iter().map(|row| Ok((row.get("id")?, row.get("title")?))).collect()
        })
    }

    /// The links of a document, revoked ones too.
    pub fn links_to(&self, document: DocumentId) -> StorageFuture<'_, Vec<ShareLinkId>> {
        run!(self, Read, tx => {
            sql!("SELECT id FROM share_links WHERE document_id = {document}").values(tx).await
        })
    }
}

/// Finds or creates the link of a document, under its lock. `None`: there is no such document.
pub async fn find_or_create(
    tx: &mut Tx,
    new: &NewShareLink,
) -> Result<Option<(ShareLink, FindOrCreate)>, TxError> {
    let made = sql!(
        "INSERT INTO share_links (id, document_id, invite_hash, created_at) \
         SELECT {new.id}, d.id, {new.invite_hash}, {new.now} FROM documents d \
         WHERE d.id = {new.document_id} AND d.deleted_at IS NULL \
         ON CONFLICT (document_id) WHERE revoked_at IS NULL DO NOTHING"
    );
    let is_old = made.run(tx).await? == 0;
    let found = if is_old { FindOrCreate::Existing } else { FindOrCreate::Created };
    let link = fetch_active(tx, new.document_id).await?;
    Ok(link.map(|link| (link, found)))
}

/// Makes a user who has a row the reviewer of a link without another, under the lock of its document.
pub async fn put_reviewer(
    tx: &mut Tx,
    link: ShareLinkId,
    user: &UserId,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    forget_attempt(tx, link, user).await?;
    let joined = sql!(
        "UPDATE share_links SET reviewer_id = {user}, joined_at = COALESCE(joined_at, {now}) \
         WHERE id = {link} AND reviewer_id IS DISTINCT FROM {user}"
    );
    if joined.run(tx).await? > 0 {
        put_joined(tx, link, user, now).await?;
    }
    Ok(())
}

async fn fetch(tx: &mut Tx, id: ShareLinkId) -> Result<Option<ShareLink>, TxError> {
    let link =
        sql!(["SELECT ", LINK_COLUMNS, " FROM share_links l ", LINK_JOINS, "WHERE l.id = {id}"]);
    link.row(tx).await?.as_ref().map(link_of).transpose()
}

pub async fn fetch_active(tx: &mut Tx, document: DocumentId) -> Result<Option<ShareLink>, TxError> {
    let link = sql!([
        "SELECT ",
        LINK_COLUMNS,
        " FROM share_links l ",
        LINK_JOINS,
        "WHERE l.document_id = {document} AND l.revoked_at IS NULL",
    ]);
    link.row(tx).await?.as_ref().map(link_of).transpose()
}

pub(crate) fn link_of(row: &Row) -> Result<ShareLink, TxError> {
    let reviewer: Option<UserId> = row.get("reviewer_id")?;
    let reviewer =
        reviewer.map(|id| Ok::<_, TxError>(User { id, name: row.get("reviewer_name")? }));
    Ok(ShareLink {
        id: row.get("id")?,
        document_id: row.get("document_id")?,
        title: row.get("title")?,
        writer: row.user("writer_id", "writer_name")?,
        reviewer: reviewer.transpose()?,
        invite_hash: row.get("invite_hash")?,
        created_at: row.get("created_at")?,
        revoked_at: row.get("revoked_at")?,
    })
}
