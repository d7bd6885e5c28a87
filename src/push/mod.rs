//! Notifications of users who have no page open: Web Push.
//!
//! [`Notify::push`] sends a [`Notification`] to each browser of a user and reports the outcome of each.
//! [`Notify::push_in_background`] does so without delay for the caller. A push is an addition to the
//! page: a failed one fails no request.

pub mod background;
pub mod encryption;
pub(crate) mod http;
pub mod notification;
mod pauses;
mod retries;
pub mod settings;
pub mod store;
pub mod vapid;
pub mod web_push;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::bounds::shares::Shares;
use crate::domain::ids::{PushSubscriptionId, UserId};
use crate::domain::limits::OUTGOING_MAX;
use crate::domain::user::User;
use crate::outgoing::Outgoing;
use crate::push::background::Cause;
use crate::push::encryption::is_point;
use crate::push::notification::Notification;
use crate::push::retries::Retry;
use crate::push::store::{PushAddress, PushSubscription, StoredPush};
use crate::push::web_push::{PushOptions, PushOutcome, WebPush};
use crate::storage::Storage;
use crate::storage::error::StorageError;

/// Browsers of one user that receive pushes. A further one replaces the oldest.
pub const PUSH_SUBSCRIPTIONS_MAX: u32 = 10;
/// Pushes that wait for another attempt, in all: some 5 MB.
const PUSH_RETRIES_MAX: u64 = 1_024;
/// Pushes of one user that wait for another attempt: two for each browser.
pub const PUSH_RETRIES_PER_USER_MAX: u64 = 20;

#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    #[error("this server sends no pushes")]
    Off,
    #[error("{field}: {fault}")]
    Invalid { field: &'static str, fault: &'static str },
    #[error("the server has no room for new subscriptions")]
    StorageSpent,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushReport {
    pub subscription: PushSubscriptionId,
    pub outcome: PushOutcome,
}

#[derive(Clone)]
pub struct Notify(Arc<Inner>);

struct Inner {
    storage: Storage,
    web_push: Option<WebPush>,
    background: Shares<Cause>,
    tasks: TaskTracker,
}

impl Notify {
    /// Without `push` the server sends no pushes.
    #[must_use]
    pub fn new(storage: Storage, outgoing: Outgoing, push: Option<PushOptions>) -> Self {
        let web_push = push.map(|options| WebPush::new(options, outgoing));
        let (background, tasks) = (Shares::default(), TaskTracker::new());
        Self(Arc::new(Inner { storage, web_push, background, tasks }))
    }

    /// The public key for which browsers subscribe.
    pub fn push_key(&self) -> Result<&str, NotifyError> {
        Ok(self.web_push()?.key())
    }

    /// An endpoint leaves its former user, and the oldest of more than [`PUSH_SUBSCRIPTIONS_MAX`]
    /// browsers is removed.
    /// [`NotifyError`] if the subscription is invalid, or the database cannot commit.
    pub async fn subscribe(
        &self,
        user: &User,
        address: &PushAddress,
        now: DateTime<Utc>,
    ) -> Result<StoredPush, NotifyError> {
        let invalid = |field, fault| NotifyError::Invalid { field, fault };
        let destination = self.web_push()?.destination(&address.endpoint);
        destination.map_err(|error| invalid("endpoint", error.0))?;
        if !is_point(&address.p256dh) {
            return Err(invalid("keys.p256dh", "it is no point of P-256"));
        }
        if address.expires_at.is_some_and(|end| end <= now) {
            return Err(invalid("expirationTime", "it is over"));
        }
        if !self.0.storage.has_room() {
            return Err(NotifyError::StorageSpent);
        }
        let keep = PUSH_SUBSCRIPTIONS_MAX;
        Ok(store::put_push_subscription(&self.0.storage, user, address, keep, now).await?)
    }

    /// The oldest first.
    pub async fn subscriptions_of(
        &self,
        user: &UserId,
    ) -> Result<Vec<PushSubscription>, StorageError> {
        store::push_subscriptions_of(&self.0.storage, user).await
    }

    /// False: the user has no such browser.
    pub async fn unsubscribe(
        &self,
        user: &UserId,
        id: PushSubscriptionId,
    ) -> Result<bool, StorageError> {
        store::delete_push_subscription(&self.0.storage, user, id).await
    }

    /// Waits for the first attempt of each push. Without browsers, or without Web Push, the report is
    /// empty. On an error nothing was sent.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped future may have sent a part.
    pub async fn push(
        &self,
        user: &UserId,
        notification: &Notification,
    ) -> Result<Vec<PushReport>, StorageError> {
        if self.0.web_push.is_none() {
            return Ok(Vec::new());
        }
        let notification = Arc::new(notification.clone());
        let subscriptions = store::push_subscriptions_of(&self.0.storage, user).await?;
        let pushes = subscriptions.iter().map(|it| self.push_one(user, it, &notification));
        Ok(join_all(pushes).await)
    }

    /// Pushes in the background. When too many pushes run, in all or for this cause, it drops the push.
    #[expect(clippy::disallowed_methods, reason = "under the permit")]
    pub fn push_in_background(&self, cause: Cause, user: UserId, notification: Notification) {
        if self.0.web_push.is_none() {
            return;
        }
        let Some(permit) = background::take(&self.0.background, cause) else {
            count(PushOutcome::Dropped);
            return;
        };
        let notify = self.clone();
        self.0.tasks.spawn(async move {
            if let Err(error) = notify.push(&user, &notification).await {
                tracing::warn!(%error, "a push was not sent");
            }
            drop(permit);
        });
    }

    /// Makes the further attempts of pushes, until the caller drops the future.
    #[expect(clippy::disallowed_methods, reason = "under the slot")]
    pub async fn run_retries(self) {
        let Some(web_push) = &self.0.web_push else { return std::future::pending().await };
        let slots = Arc::new(Semaphore::new(OUTGOING_MAX));
        loop {
            let retry = web_push.retries.next().await;
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            let notify = self.clone();
            self.0.tasks.spawn(async move {
                notify.push_again(retry).await;
                drop(slot);
            });
        }
    }

    fn web_push(&self) -> Result<&WebPush, NotifyError> {
        self.0.web_push.as_ref().ok_or(NotifyError::Off)
    }

    async fn push_one(
        &self,
        user: &UserId,
        subscription: &PushSubscription,
        notification: &Arc<Notification>,
    ) -> PushReport {
        let is_over = subscription.address.expires_at.is_some_and(|end| end <= Utc::now());
        let outcome = match &self.0.web_push {
            Some(web_push) if !is_over => web_push.push(user, subscription, notification).await,
            Some(_) | None => PushOutcome::Removed,
        };
        self.finish(user, subscription.id, outcome).await;
        PushReport { subscription: subscription.id, outcome }
    }

    async fn push_again(&self, retry: Retry) {
        let Some(web_push) = &self.0.web_push else { return };
        let (user, id) = (retry.user.clone(), retry.subscription);
        // The user may have removed the browser meanwhile.
        let subscription = match store::push_subscriptions_of(&self.0.storage, &user).await {
            Ok(all) => all.into_iter().find(|it| it.id == id),
            Err(error) => {
                tracing::debug!(%error, "a push has lost its subscription");
                None
            }
        };
        let outcome = match subscription {
            Some(subscription) => web_push.push_again(&subscription, retry).await,
            None => PushOutcome::Dropped,
        };
        self.finish(&user, id, outcome).await;
    }

    async fn finish(&self, user: &UserId, id: PushSubscriptionId, outcome: PushOutcome) {
        count(outcome);
        if outcome == PushOutcome::Removed
            && let Err(error) = store::delete_push_subscription(&self.0.storage, user, id).await
        {
            tracing::warn!(%error, "the subscription of an unsubscribed browser remains");
        }
    }
}

fn count(outcome: PushOutcome) {
    metrics::counter!("galley_push_total", "outcome" => outcome.as_str()).increment(1);
}
