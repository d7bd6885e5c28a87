//! How users find each other: by an exact handle, by a personal link, by id. There is no search.
//!
//! A handle belongs to one user, and a user has one handle at most. One that a user gave up stays
//! reserved for them for [`HANDLE_RESERVED_FOR`]. A personal link is a secret, like
//! an invite: the database stores its id, from which a server computes it, and its hash.

use crate::domain::handle::Handle;
use crate::domain::ids::{PersonalLinkId, UserId};
use crate::domain::user::User;
use crate::storage::locks::lock_users;
use crate::storage::statement::{Row, sql};
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::users::put_user;
use crate::storage::{Storage, StorageFuture};
use chrono::{DateTime, TimeDelta, Utc};

/// How long a handle that its user gave up is reserved for them. Another user with it would receive the
/// requests of those who know the former one.
const HANDLE_RESERVED_FOR: TimeDelta = TimeDelta::days(30);
/// Reserved handles of one user, so that changes take no name away from others.
const HANDLES_RESERVED_MAX: i64 = 3;

#[derive(Clone, Debug)]
pub struct NewPersonalLink {
    pub id: PersonalLinkId,
    pub hash: [u8; 32],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub handle: Option<Handle>,
    pub link: PersonalLinkId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandleSet {
    Done(Address),
    Taken,
}

#[derive(Clone, Debug)]
pub enum UserKey {
    Id(UserId),
    Handle(Handle),
    /// SHA-256 of the token of the personal link.
    Link([u8; 32]),
}

/// Stores `link` if the user has no address.
pub fn find_or_create_address<'a>(
    storage: &'a Storage,
    user: &'a User,
    link: &'a NewPersonalLink,
    now: DateTime<Utc>,
) -> StorageFuture<'a, Address> {
    Box::pin(async move {
        let stored = run!(storage, Read, tx => { fetch(tx, user).await });
        if let Some(stored) = stored.await? {
            return Ok(stored);
        }
        let create = run!(storage, Write, tx => {
            put_user(tx, user, now).await?;
            put_missing_link(tx, user, link).await?;
            fetch_stored(tx, user).await
        });
        create.await
    })
}

/// Replaces the personal link of a user: the older token is unknown from the commit on.
pub fn renew_personal_link<'a>(
    storage: &'a Storage,
    user: &'a User,
    link: &'a NewPersonalLink,
    now: DateTime<Utc>,
) -> StorageFuture<'a, Address> {
    run!(storage, Write, tx => {
        put_user(tx, user, now).await?;
        sql!(
            "INSERT INTO personal_links (user_id, link_id, link_hash) \
             VALUES ({user.id}, {link.id}, {link.hash}) ON CONFLICT (user_id) DO UPDATE \
             SET link_id = excluded.link_id, link_hash = excluded.link_hash"
        )
        .run(tx)
        .await?;
        fetch_stored(tx, user).await
    })
}

/// Replaces the handle of a user, or removes it; the former one is reserved for the user for
/// [`HANDLE_RESERVED_FOR`]. `link` is stored if the user has no personal link. Of two users who choose
/// one handle at the same time, one gets it.
pub fn set_handle<'a>(
    storage: &'a Storage,
    user: &'a User,
    handle: Option<&'a Handle>,
    link: &'a NewPersonalLink,
    now: DateTime<Utc>,
) -> StorageFuture<'a, HandleSet> {
    let reserved_since = now - HANDLE_RESERVED_FOR;
    run!(storage, Write, tx => {
        put_user(tx, user, now).await?;
        put_missing_link(tx, user, link).await?;
        // The lock puts the changes of one user in order.
        lock_users(tx, &user.id, &user.id).await?;
        if let Some(handle) = handle {
            // PostgreSQL waits for another transaction that inserts the same handle.
            let put = sql!(
                "INSERT INTO handles (handle, user_id) VALUES ({handle}, {user.id}) \
                 ON CONFLICT (handle) DO UPDATE \
                 SET user_id = excluded.user_id, released_at = NULL \
                 WHERE handles.user_id = excluded.user_id OR handles.released_at < {reserved_since}"
            );
            // Another user has it, or it is reserved for them.
            if put.run(tx).await? == 0 {
                return Ok(HandleSet::Taken);
            }
        }
        sql!(
            "UPDATE handles SET released_at = {now} \
             WHERE user_id = {user.id} AND released_at IS NULL AND ({handle} IS NULL \
             OR handle <> {handle})"
        )
        .run(tx)
        .await?;
        // The newest released ones stay reserved.
        sql!(
            "DELETE FROM handles \
             WHERE user_id = {user.id} AND released_at IS NOT NULL AND handle NOT IN ( \
               SELECT handle FROM handles WHERE user_id = {user.id} \
               AND released_at >= {reserved_since} \
               ORDER BY released_at DESC, handle LIMIT {HANDLES_RESERVED_MAX})"
        )
        .run(tx)
        .await?;
        Ok(HandleSet::Done(fetch_stored(tx, user).await?))
    })
}

pub fn find_user<'a>(storage: &'a Storage, key: &'a UserKey) -> StorageFuture<'a, Option<User>> {
    run!(storage, Read, tx => {
        let found = match key {
            UserKey::Id(id) => sql!("SELECT id, name FROM users WHERE id = {id}"),
            UserKey::Handle(handle) => sql!(
                "SELECT u.id, u.name FROM handles h JOIN users u ON u.id = h.user_id \
                 WHERE h.handle = {handle} AND h.released_at IS NULL"
            ),
            UserKey::Link(hash) => sql!(
                "SELECT u.id, u.name FROM personal_links l JOIN users u ON u.id = l.user_id \
                 WHERE l.link_hash = {hash}"
            ),
        };
        found.row(tx).await?.map(|row| row.user("id", "name")).transpose()
    })
}

async fn put_missing_link(tx: &mut Tx, user: &User, link: &NewPersonalLink) -> Result<(), TxError> {
    sql!(
        "INSERT INTO personal_links (user_id, link_id, link_hash) \
         VALUES ({user.id}, {link.id}, {link.hash}) ON CONFLICT (user_id) DO NOTHING"
    )
    .run(tx)
    .await
    .map(drop)
}

async fn fetch(tx: &mut Tx, user: &User) -> Result<Option<Address>, TxError> {
    let row = sql!(
        "SELECT l.link_id, h.handle FROM personal_links l \
         LEFT JOIN handles h ON h.user_id = l.user_id AND h.released_at IS NULL \
         WHERE l.user_id = {user.id}"
    );
    let address = |row: Row| Ok(Address { handle: row.get("handle")?, link: row.get("link_id")? });
    row.row(tx).await?.map(address).transpose()
}

async fn fetch_stored(tx: &mut Tx, user: &User) -> Result<Address, TxError> {
    fetch(tx, user).await?.ok_or_else(TxError::missing_row)
}
