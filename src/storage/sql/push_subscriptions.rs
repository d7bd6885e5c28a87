//! Browsers that receive pushes, on either engine.

use aws_lc_rs::digest::{SHA256, digest};
use chrono::{DateTime, Utc};

use crate::domain::ids::{PushSubscriptionId, UserId};
use crate::domain::user::User;
use crate::storage::decode::{corrupt, parse};
use crate::storage::error::StorageError;
use crate::storage::push_subscriptions::{PushAddress, PushLanguage, PushSubscription, StoredPush};

use super::dialect::{Engine, Moment, lock_users, read, single, transact};
use super::users::put_user;

/// The columns of a subscription.
type PushRow = (String, String, Vec<u8>, Vec<u8>, Option<String>, Option<Moment>, Moment);

impl Engine {
    pub(in crate::storage) async fn put_push_subscription(
        &self,
        user: &User,
        address: &PushAddress,
        keep: u32,
        now: DateTime<Utc>,
    ) -> Result<StoredPush, StorageError> {
        let hash = digest(&SHA256, address.endpoint.as_bytes());
        let id = PushSubscriptionId::generate();
        transact!(self, tx => {
            put_user(tx, user, now).await?;
            // Two registrations of a user count each other's.
            lock_users(tx, &user.id, &user.id).await?;
            let earlier: Option<String> =
                sqlx::query_scalar("SELECT id FROM push_subscriptions WHERE endpoint_hash = $1")
                    .bind(hash.as_ref())
                    .fetch_optional(&mut *tx)
                    .await?;
            // A new user's row has a new id: the former user knows the old one.
            let (id, Moment(created_at)): (String, Moment) = sqlx::query_as(
                "INSERT INTO push_subscriptions AS p (id, user_id, endpoint, endpoint_hash, p256dh, \
                   auth, lang, expires_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
                 ON CONFLICT (endpoint_hash) DO UPDATE SET \
                   id = CASE WHEN p.user_id = excluded.user_id THEN p.id ELSE excluded.id END, \
                   created_at = CASE WHEN p.user_id = excluded.user_id \
                     THEN p.created_at ELSE excluded.created_at END, \
                   user_id = excluded.user_id, p256dh = excluded.p256dh, auth = excluded.auth, \
                   lang = excluded.lang, expires_at = excluded.expires_at \
                 RETURNING id, created_at",
            )
            .bind(id.to_string())
            .bind(user.id.as_str())
            .bind(&address.endpoint)
            .bind(hash.as_ref())
            .bind(address.p256dh.as_slice())
            .bind(address.auth.as_slice())
            .bind(address.lang.map(PushLanguage::as_str))
            .bind(address.expires_at.map(Moment))
            .bind(Moment(now))
            .fetch_one(&mut *tx)
            .await?;
            sqlx::query(
                "DELETE FROM push_subscriptions WHERE user_id = $1 AND id <> $2 AND id NOT IN ( \
                   SELECT id FROM push_subscriptions WHERE user_id = $1 AND id <> $2 \
                   ORDER BY created_at DESC, id DESC LIMIT $3)",
            )
            .bind(user.id.as_str())
            .bind(&id)
            .bind(i64::from(keep) - 1)
            .execute(tx)
            .await?;
            Ok(StoredPush { id: parse(&id)?, created_at, is_new: earlier.is_none() })
        })
    }

    pub(in crate::storage) async fn push_subscriptions_of(
        &self,
        user: &UserId,
    ) -> Result<Vec<PushSubscription>, StorageError> {
        read!(self, connection => {
            let rows: Vec<PushRow> = sqlx::query_as(
                "SELECT id, endpoint, p256dh, auth, lang, expires_at, created_at \
                 FROM push_subscriptions WHERE user_id = $1 ORDER BY created_at, id",
            )
            .bind(user.as_str())
            .fetch_all(connection)
            .await?;
            Ok(rows.into_iter().map(subscription_from).collect::<Result<_, _>>()?)
        })
    }

    pub(in crate::storage) async fn delete_push_subscription(
        &self,
        user: &UserId,
        id: PushSubscriptionId,
    ) -> Result<bool, StorageError> {
        single!(self, tx => {
            let deleted =
                sqlx::query("DELETE FROM push_subscriptions WHERE id = $1 AND user_id = $2")
                    .bind(id.to_string())
                    .bind(user.as_str())
                    .execute(tx)
                    .await?;
            Ok(deleted.rows_affected() != 0)
        })
    }
}

fn subscription_from(row: PushRow) -> Result<PushSubscription, StorageError> {
    let (id, endpoint, p256dh, auth, lang, expires_at, Moment(created_at)) = row;
    let address = PushAddress {
        endpoint,
        p256dh: p256dh.try_into().map_err(|_bytes| corrupt("a key of a push subscription"))?,
        auth: auth.try_into().map_err(|_bytes| corrupt("a secret of a push subscription"))?,
        lang: lang.as_deref().and_then(PushLanguage::parse),
        expires_at: expires_at.map(|Moment(at)| at),
    };
    Ok(PushSubscription { id: parse(&id)?, address, created_at })
}
