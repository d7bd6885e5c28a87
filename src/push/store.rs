//! Browsers that receive pushes for their users.
//!
//! An endpoint belongs to the user who registered it last. Its address is a capability that only the browser and the server know.

use crate::domain::ids::{PushSubscriptionId, UserId};
use crate::domain::user::User;
use crate::storage::decode::corrupt;
use crate::storage::locks::lock_users;
use crate::storage::statement::{Row, sql};
use crate::storage::tx::run;
use crate::storage::tx_error::TxError;
use crate::storage::users::put_user;
use crate::storage::{Storage, StorageFuture};
use aws_lc_rs::digest::{SHA256, digest};
use chrono::{DateTime, Utc};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushLanguage {
    /// `ko`
    Korean,
    /// `en`
    English,
}

impl PushLanguage {
    #[must_use]
    pub fn parse(tag: &str) -> Option<Self> {
        match tag {
            "ko" => Some(Self::Korean),
            "en" => Some(Self::English),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Korean => "ko",
            Self::English => "en",
        }
    }
}

/// The part of a subscription that the browser provides.
#[derive(Clone, PartialEq, Eq)]
pub struct PushAddress {
    pub endpoint: String,
    /// The public key of the browser: an uncompressed point of P-256.
    pub p256dh: [u8; 65],
    /// The secret that the browser shares with this server.
    pub auth: [u8; 16],
    pub lang: Option<PushLanguage>,
    /// The end that the push service announced.
    pub expires_at: Option<DateTime<Utc>>,
}

/// The address and the keys stay out of logs.
impl std::fmt::Debug for PushAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PushAddress").finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushSubscription {
    pub id: PushSubscriptionId,
    pub address: PushAddress,
    pub created_at: DateTime<Utc>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPush {
    pub id: PushSubscriptionId,
    pub created_at: DateTime<Utc>,
    /// Whether the endpoint was unknown before.
    pub is_new: bool,
}

/// Takes an endpoint from its former user. Beyond `keep` subscriptions of the user it deletes the
/// oldest.
pub fn put_push_subscription<'a>(
    storage: &'a Storage,
    user: &'a User,
    address: &'a PushAddress,
    keep: u32,
    now: DateTime<Utc>,
) -> StorageFuture<'a, StoredPush> {
    let hash = digest(&SHA256, address.endpoint.as_bytes());
    let new_id = PushSubscriptionId::generate();
    run!(storage, Write, tx => {
        put_user(tx, user, now).await?;
        // Two registrations of a user count each other's.
        lock_users(tx, &user.id, &user.id).await?;
        let earlier =
            sql!("SELECT id FROM push_subscriptions WHERE endpoint_hash = {hash.as_ref()}");
        let is_new = earlier.row(tx).await?.is_none();
        // A new user's row has a new id: the former user knows the old one.
        let stored = sql!(
            "INSERT INTO push_subscriptions AS p (id, user_id, endpoint, endpoint_hash, \
               p256dh, auth, lang, expires_at, created_at) \
             VALUES ({new_id}, {user.id}, {address.endpoint}, {hash.as_ref()}, \
             {address.p256dh.as_slice()}, {address.auth.as_slice()}, \
             {address.lang.map(PushLanguage::as_str)}, {address.expires_at}, {now}) \
             ON CONFLICT (endpoint_hash) DO UPDATE SET \
               id = CASE WHEN p.user_id = excluded.user_id THEN p.id ELSE excluded.id END, \
               created_at = CASE WHEN p.user_id = excluded.user_id \
                 THEN p.created_at ELSE excluded.created_at END, \
               user_id = excluded.user_id, p256dh = excluded.p256dh, auth = excluded.auth, \
               lang = excluded.lang, expires_at = excluded.expires_at \
             RETURNING id, created_at"
        );
        let stored = stored.one(tx).await?;
        let id: PushSubscriptionId = stored.get("id")?;
        sql!(
            "DELETE FROM push_subscriptions WHERE user_id = {user.id} AND id <> {id} \
             AND id NOT IN (SELECT id FROM push_subscriptions WHERE user_id = {user.id} \
               AND id <> {id} ORDER BY created_at DESC, id DESC LIMIT {i64::from(keep) - 1})"
        )
        .run(tx)
        .await?;
        Ok(StoredPush { id, created_at: stored.get("created_at")?, is_new })
    })
}

/// The subscriptions of a user, the oldest first. Registration bounds them.
pub fn push_subscriptions_of<'a>(
    storage: &'a Storage,
    user: &'a UserId,
) -> StorageFuture<'a, Vec<PushSubscription>> {
    run!(storage, Read, tx => {
        let rows = sql!(
            "SELECT id, endpoint, p256dh, auth, lang, expires_at, created_at \
             FROM push_subscriptions WHERE user_id = {user} ORDER BY created_at, id"
        );
        rows.rows(tx).await?.iter().map(subscription_of).collect()
    })
}

/// Deletes a subscription of `user`. False: the user has no such subscription.
pub fn delete_push_subscription<'a>(
    storage: &'a Storage,
    user: &'a UserId,
    id: PushSubscriptionId,
) -> StorageFuture<'a, bool> {
    run!(storage, One, tx => {
        let deleted = sql!("DELETE FROM push_subscriptions WHERE id = {id} AND user_id = {user}");
        Ok(deleted.run(tx).await? > 0)
    })
}

fn subscription_of(row: &Row) -> Result<PushSubscription, TxError> {
    let (p256dh, auth): (Vec<u8>, Vec<u8>) = (row.get("p256dh")?, row.get("auth")?);
    let address = PushAddress {
        endpoint: row.get("endpoint")?,
        p256dh: p256dh.try_into().map_err(|_bytes| corrupt("a key of a push subscription"))?,
        auth: auth.try_into().map_err(|_bytes| corrupt("a secret of a push subscription"))?,
        lang: row.get::<Option<String>>("lang")?.as_deref().and_then(PushLanguage::parse),
        expires_at: row.get("expires_at")?,
    };
    Ok(PushSubscription { id: row.get("id")?, address, created_at: row.get("created_at")? })
}
