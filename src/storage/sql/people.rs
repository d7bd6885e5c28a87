//! Handles and personal links, on either engine.

use chrono::{DateTime, Utc};

use crate::domain::handle::Handle;
use crate::domain::limits::{HANDLE_RESERVED_FOR, HANDLES_RESERVED_MAX};
use crate::domain::user::User;
use crate::storage::decode::parse;
use crate::storage::error::StorageError;
use crate::storage::people::{Address, HandleSet, NewPersonalLink, UserKey};

use super::dialect::{
    Connection, Engine, Moment, TxError, lock_users, read, transact, user as user_from,
};
use super::users::put_user;

impl Engine {
    pub(in crate::storage) async fn find_or_create_address(
        &self,
        user: &User,
        link: &NewPersonalLink,
        now: DateTime<Utc>,
    ) -> Result<Address, StorageError> {
        let stored = read!(self, connection => { fetch(connection, user).await })?;
        if let Some(stored) = stored {
            return Ok(stored);
        }
        transact!(self, tx => {
            put_user(tx, user, now).await?;
            put_missing_link(tx, user, link).await?;
            fetch_stored(tx, user).await
        })
    }

    pub(in crate::storage) async fn renew_personal_link(
        &self,
        user: &User,
        link: &NewPersonalLink,
        now: DateTime<Utc>,
    ) -> Result<Address, StorageError> {
        transact!(self, tx => {
            put_user(tx, user, now).await?;
            sqlx::query(
                "INSERT INTO personal_links (user_id, link_id, link_hash) VALUES ($1, $2, $3) \
                 ON CONFLICT (user_id) DO UPDATE \
                 SET link_id = excluded.link_id, link_hash = excluded.link_hash",
            )
            .bind(user.id.as_str())
            .bind(link.id.to_string())
            .bind(link.hash.as_slice())
            .execute(&mut *tx)
            .await?;
            fetch_stored(tx, user).await
        })
    }

    pub(in crate::storage) async fn set_handle(
        &self,
        user: &User,
        handle: Option<&Handle>,
        link: &NewPersonalLink,
        now: DateTime<Utc>,
    ) -> Result<HandleSet, StorageError> {
        transact!(self, tx => {
            put_user(tx, user, now).await?;
            put_missing_link(tx, user, link).await?;
            // The lock puts the changes of one user in order.
            lock_users(tx, &user.id, &user.id).await?;
            if let Some(handle) = handle && !put_handle(tx, user, handle, now).await? {
                return Ok(HandleSet::Taken);
            }
            release_handles(tx, user, handle, now).await?;
            Ok(HandleSet::Done(fetch_stored(tx, user).await?))
        })
    }

    pub(in crate::storage) async fn find_user(
        &self,
        key: &UserKey,
    ) -> Result<Option<User>, StorageError> {
        read!(self, connection => {
            let query = match key {
                UserKey::Id(id) => {
                    sqlx::query_as("SELECT id, name FROM users WHERE id = $1").bind(id.as_str())
                }
                UserKey::Handle(handle) => sqlx::query_as(
                    "SELECT u.id, u.name FROM handles h JOIN users u ON u.id = h.user_id \
                     WHERE h.handle = $1 AND h.released_at IS NULL",
                )
                .bind(handle.as_str()),
                UserKey::Link(hash) => sqlx::query_as(
                    "SELECT u.id, u.name FROM personal_links l JOIN users u ON u.id = l.user_id \
                     WHERE l.link_hash = $1",
                )
                .bind(hash.as_slice()),
            };
            let row: Option<(String, String)> = query.fetch_optional(connection).await?;
            Ok(row.map(|(id, name)| user_from(&id, name)).transpose()?)
        })
    }
}

async fn put_missing_link(
    connection: &mut Connection,
    user: &User,
    link: &NewPersonalLink,
) -> Result<(), TxError> {
    sqlx::query(
        "INSERT INTO personal_links (user_id, link_id, link_hash) VALUES ($1, $2, $3) \
         ON CONFLICT (user_id) DO NOTHING",
    )
    .bind(user.id.as_str())
    .bind(link.id.to_string())
    .bind(link.hash.as_slice())
    .execute(connection)
    .await?;
    Ok(())
}

/// Gives a user a handle beside the former one. False: another user has it, or it is reserved for them.
async fn put_handle(
    connection: &mut Connection,
    user: &User,
    handle: &Handle,
    now: DateTime<Utc>,
) -> Result<bool, TxError> {
    // PostgreSQL waits for another transaction that inserts the same handle.
    let put = sqlx::query(
        "INSERT INTO handles (handle, user_id) VALUES ($1, $2) ON CONFLICT (handle) DO UPDATE \
         SET user_id = excluded.user_id, released_at = NULL \
         WHERE handles.user_id = excluded.user_id OR handles.released_at < $3",
    );
    let put =
        put.bind(handle.as_str()).bind(user.id.as_str()).bind(Moment(now - HANDLE_RESERVED_FOR));
    Ok(0 < put.execute(connection).await?.rows_affected())
}

/// Releases the handles of a user except `current`. The newest ones stay reserved.
async fn release_handles(
    connection: &mut Connection,
    user: &User,
    current: Option<&Handle>,
    now: DateTime<Utc>,
) -> Result<(), TxError> {
    sqlx::query(
        "UPDATE handles SET released_at = $3 \
         WHERE user_id = $1 AND released_at IS NULL AND ($2 IS NULL OR handle <> $2)",
    )
    .bind(user.id.as_str())
    .bind(current.map(Handle::as_str))
    .bind(Moment(now))
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "DELETE FROM handles WHERE user_id = $1 AND released_at IS NOT NULL AND handle NOT IN ( \
           SELECT handle FROM handles WHERE user_id = $1 AND released_at >= $2 \
           ORDER BY released_at DESC, handle LIMIT $3)",
    )
    .bind(user.id.as_str())
    .bind(Moment(now - HANDLE_RESERVED_FOR))
    .bind(HANDLES_RESERVED_MAX)
    .execute(connection)
    .await?;
    Ok(())
}

async fn fetch(connection: &mut Connection, user: &User) -> Result<Option<Address>, TxError> {
    let row: Option<(String, Option<String>)> = sqlx::query_as(
        "SELECT l.link_id, h.handle FROM personal_links l \
         LEFT JOIN handles h ON h.user_id = l.user_id AND h.released_at IS NULL \
         WHERE l.user_id = $1",
    )
    .bind(user.id.as_str())
    .fetch_optional(connection)
    .await?;
    let address = |(link, handle): (String, Option<String>)| {
        let handle = handle.as_deref().map(parse).transpose()?;
        Ok::<_, StorageError>(Address { handle, link: parse(&link)? })
    };
    Ok(row.map(address).transpose()?)
}

async fn fetch_stored(connection: &mut Connection, user: &User) -> Result<Address, TxError> {
    Ok(fetch(connection, user).await?.ok_or(sqlx::Error::RowNotFound)?)
}
