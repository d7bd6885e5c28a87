//! Web Push: one push to each browser of a user (RFC 8030).
//!
//! | response | outcome |
//! |---|---|
//! | 2xx | sent |
//! | 404, 410 | the browser has unsubscribed: the subscription is removed |
//! | 429, 5xx, or no connection | another attempt, after `Retry-After` or a growing pause |
//! | another status | refused: another attempt would be, too |
//! | none, though the request was sent | uncertain: another attempt could show the notification twice |
//!
//! Further attempts wait in the memory of the server, at most for [`PUSH_RETRY_WINDOW`].

use std::sync::Arc;
use std::time::Duration;

use crate::outgoing::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue,
};
use bytes::Bytes;
use chrono::Utc;
use tokio::time::Instant;

use crate::domain::ids::{PushSubscriptionId, UserId};
use crate::outgoing::address::is_private_name;
use crate::outgoing::destination::{Destination, HostScope, InvalidDestination};
use crate::outgoing::{Outgoing, Reply, SendError};
use crate::push::encryption::encrypt;
use crate::push::notification::Notification;
use crate::push::pauses::Pauses;
use crate::push::retries::{Retries, Retry};
use crate::push::store::PushSubscription;
use crate::push::vapid::PushKey;

/// Longest address of a push service's endpoint, in bytes. The services use some 200 to 800.
const PUSH_ENDPOINT_BYTES_MAX: usize = 2 * 1024;
/// Attempts of one push, the first one included.
const PUSH_ATTEMPTS_MAX: u32 = 5;
/// How long a push waits for further attempts. A later one would report an old state.
const PUSH_RETRY_WINDOW: Duration = Duration::from_hours(1);

/// Bounds of the pause before another attempt. A service may ask for a longer one; then the push ends
/// with its window.
const DELAY_MIN: Duration = Duration::from_secs(1);
const DELAY_MAX: Duration = PUSH_RETRY_WINDOW;
/// The pause before the second attempt, if the service names none. It is four times as long each time.
const DELAY_FIRST: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct PushOptions {
    pub key: PushKey,
    /// The operator's contact for push services: `mailto:` or `https:`.
    pub subject: Option<String>,
    /// Whether push services may have private addresses, and no TLS. For tests.
    pub allow_private: bool,
    /// The hosts of push services, `*.` before a domain for all under it. Empty: every public host.
    pub hosts: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushOutcome {
    Sent,
    Queued,
    /// The browser has unsubscribed; the server has removed the subscription.
    Removed,
    Refused,
    Uncertain,
    /// The queue is full, or the push waited too long.
    Dropped,
}

impl PushOutcome {
    pub const ALL: [Self; 6] =
        [Self::Sent, Self::Queued, Self::Removed, Self::Refused, Self::Uncertain, Self::Dropped];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Queued => "queued",
            Self::Removed => "removed",
            Self::Refused => "refused",
            Self::Uncertain => "uncertain",
            Self::Dropped => "dropped",
        }
    }
}

enum Attempt {
    Sent,
    Gone,
    Refused,
    Uncertain,
    /// This server had no slot for the request; the push service knows nothing of it.
    Full,
    /// Another attempt may follow, after this time if the service named one.
    Again(Option<Duration>),
}

pub(super) struct WebPush {
    options: PushOptions,
    outgoing: Outgoing,
    pauses: Pauses,
    pub(super) retries: Retries,
}

impl WebPush {
    pub(super) fn new(options: PushOptions, outgoing: Outgoing) -> Self {
        Self { options, outgoing, pauses: Pauses::default(), retries: Retries::default() }
    }

    pub(super) fn key(&self) -> &str {
        self.options.key.public()
    }

    /// The destination of an endpoint, if the server pushes to it.
    pub(super) fn destination(&self, endpoint: &str) -> Result<Destination, InvalidDestination> {
        if endpoint.len() > PUSH_ENDPOINT_BYTES_MAX {
            return Err(InvalidDestination("it is too long"));
        }
        if self.options.allow_private {
            return Destination::parse(endpoint, HostScope::Anywhere);
        }
        let to = Destination::parse(endpoint, HostScope::Public)?;
        if !to.is_literal() && is_private_name(to.host()) {
            return Err(InvalidDestination("its host is not public"));
        }
        let hosts = &self.options.hosts;
        if !hosts.is_empty() && !hosts.iter().any(|rule| is_under(to.host(), rule)) {
            return Err(InvalidDestination("its host is not in push.hosts"));
        }
        Ok(to)
    }

    /// Queues another attempt if one may succeed. `Removed` asks the caller to delete the subscription.
    pub(super) async fn push(
        &self,
        user: &UserId,
        subscription: &PushSubscription,
        notification: &Arc<Notification>,
    ) -> PushOutcome {
        let (now, ttl) = (Instant::now(), notification.ttl);
        let first = Retry {
            user: user.clone(),
            subscription: subscription.id,
            notification: Arc::clone(notification),
            attempts: 0,
            give_up_at: now + ttl.min(PUSH_RETRY_WINDOW),
            ends_at: now + ttl,
        };
        self.push_again(subscription, first).await
    }

    pub(super) async fn push_again(
        &self,
        subscription: &PushSubscription,
        mut retry: Retry,
    ) -> PushOutcome {
        let destination = self.destination(&subscription.address.endpoint);
        let Ok(to) = destination.inspect_err(|error| refused(subscription.id, error)) else {
            return PushOutcome::Refused;
        };
        if let Some(rest) = self.pauses.rest(to.host()) {
            return self.queue(retry, rest);
        }
        retry.attempts += 1;
        // A later attempt does not prolong the push: it may end with the begin of quiet hours.
        let ttl = retry.ends_at.saturating_duration_since(Instant::now());
        match self.attempt(&to, subscription, (&retry.notification, ttl)).await {
            Attempt::Sent => {
                self.pauses.accepted(to.host());
                PushOutcome::Sent
            }
            Attempt::Gone => PushOutcome::Removed,
            Attempt::Refused => PushOutcome::Refused,
            Attempt::Uncertain => {
                self.pauses.refused(to.host(), &retry.user, DELAY_FIRST);
                PushOutcome::Uncertain
            }
            Attempt::Full => {
                let delay = delay_after(retry.attempts);
                self.queue(retry, delay)
            }
            Attempt::Again(delay) => {
                let delay = delay.unwrap_or_else(|| delay_after(retry.attempts));
                let delay = delay.clamp(DELAY_MIN, DELAY_MAX);
                self.pauses.refused(to.host(), &retry.user, delay);
                self.queue(retry, delay)
            }
        }
    }

    fn queue(&self, retry: Retry, delay: Duration) -> PushOutcome {
        let at = Instant::now() + delay;
        let is_worth_it = retry.attempts < PUSH_ATTEMPTS_MAX && at < retry.give_up_at;
        if is_worth_it && self.retries.add(retry, at) {
            PushOutcome::Queued
        } else {
            PushOutcome::Dropped
        }
    }

    async fn attempt(
        &self,
        to: &Destination,
        subscription: &PushSubscription,
        (notification, ttl): (&Notification, Duration),
    ) -> Attempt {
        let address = &subscription.address;
        let payload = notification.payload(address.lang);
        let headers = self.headers(to, notification, ttl);
        let body = encrypt(&payload, &address.p256dh, &address.auth);
        let (Some(headers), Ok(body)) = (headers, body) else {
            tracing::warn!(subscription = %subscription.id, "a push could not be encrypted or signed");
            return Attempt::Refused;
        };
        let sent = self.outgoing.post("push", to, headers, Bytes::from(body)).await;
        if let Err(error) = &sent {
            tracing::debug!(%error, subscription = %subscription.id, host = to.host(), "a push failed");
        }
        match sent {
            Ok(reply) => judge(&reply, subscription.id, to.host()),
            Err(SendError::NotPublic) => {
                refused(subscription.id, &SendError::NotPublic);
                Attempt::Refused
            }
            Err(SendError::Full) => Attempt::Full,
            Err(SendError::Unreachable(_)) => Attempt::Again(None),
            Err(SendError::NoResponse(_)) => Attempt::Uncertain,
        }
    }

    fn headers(
        &self,
        to: &Destination,
        notification: &Notification,
        ttl: Duration,
    ) -> Option<HeaderMap> {
        let subject = self.options.subject.as_deref();
        let authorization = self.options.key.authorization(&to.origin(), subject, Utc::now());
        let mut authorization = HeaderValue::try_from(authorization.ok()?).ok()?;
        authorization.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, authorization);
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("aes128gcm"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        headers.insert("ttl", HeaderValue::from(whole_seconds(ttl)));
        headers.insert("urgency", HeaderValue::from_static(notification.urgency.as_str()));
        if let Some(topic) = notification.topic_header() {
            headers.insert("topic", HeaderValue::try_from(topic).ok()?);
        }
        Some(headers)
    }
}

fn judge(reply: &Reply, subscription: PushSubscriptionId, host: &str) -> Attempt {
    match reply.status {
        200..=299 => Attempt::Sent,
        404 | 410 => Attempt::Gone,
        429 | 500..=599 => Attempt::Again(reply.retry_after),
        status => {
            // 401 and 403: the key is not the one for which the browser subscribed.
            let explanation = &reply.explanation;
            tracing::warn!(%subscription, host, status, explanation, "a push service refused a push");
            Attempt::Refused
        }
    }
}

fn refused(subscription: PushSubscriptionId, error: &dyn std::fmt::Display) {
    tracing::warn!(%subscription, %error, "the server does not push to the endpoint of a browser");
}

/// The time to live in whole seconds: the first attempt, some microseconds later, has all of it.
fn whole_seconds(ttl: Duration) -> u64 {
    ttl.saturating_add(Duration::from_millis(500)).as_secs()
}

fn delay_after(attempts: u32) -> Duration {
    DELAY_FIRST * 4_u32.saturating_pow(attempts.saturating_sub(1))
}

/// Whether `host` matches a rule of `push.hosts`.
fn is_under(host: &str, rule: &str) -> bool {
    match rule.strip_prefix("*.") {
        Some(domain) => host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')),
        None => host == rule,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web_push(allow_private: bool, hosts: &[&str]) -> WebPush {
        let key = PushKey::parse(&PushKey::generate().expect("random")).expect("a key");
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let options = PushOptions { key, subject: None, allow_private, hosts };
        WebPush::new(options, Outgoing::default())
    }

    #[test]
    fn an_endpoint_is_public_and_short() {
        let push = web_push(false, &[]);
        let accepts = |endpoint: &str| push.destination(endpoint).is_ok();
        assert!(accepts("https://fcm.googleapis.com/fcm/send/x"));
        assert!(!accepts("http://fcm.googleapis.com/fcm/send/x"));
        assert!(!accepts("https://localhost/x") && !accepts("https://redis:6379/x"));
        assert!(!accepts(&format!("https://push.example/{}", "x".repeat(PUSH_ENDPOINT_BYTES_MAX))));
        assert!(web_push(true, &[]).destination("http://127.0.0.1:9/x").is_ok());
    }

    #[test]
    fn an_operator_may_name_the_push_services() {
        let push = web_push(false, &["fcm.googleapis.com", "*.push.apple.com"]);
        let accepts = |endpoint: &str| push.destination(endpoint).is_ok();
        assert!(accepts("https://fcm.googleapis.com/x") && accepts("https://web.push.apple.com/x"));
        assert!(!accepts("https://push.apple.com/x") && !accepts("https://evilpush.apple.com/x"));
        assert!(!accepts("https://push.example/x"));
    }

    #[test]
    fn the_pause_grows_with_each_attempt() {
        let pauses = [1, 2, 3, 4].map(|attempts| delay_after(attempts).as_secs());
        assert_eq!(pauses, [2, 8, 32, 128]);
    }
}
