//! Pushes: encryption, signature, and what follows each response of a push service.

use std::sync::Arc;
use std::time::Duration;

use crate::storage::database::user;
use chrono::{TimeDelta, Utc};
use futures_util::future::join_all;
use galley::domain::user::User;
use galley::outgoing::Outgoing;
use galley::push::background::Cause;
use galley::push::notification::{Notification, NotificationKind, Urgency};
use galley::push::store;
use galley::push::store::{PushAddress, PushLanguage};
use galley::push::vapid::PushKey;
use galley::push::web_push::{PushOptions, PushOutcome};
use galley::push::{Notify, NotifyError, PUSH_RETRIES_PER_USER_MAX};
use galley::storage::Storage;
use rustls::RootCertStore;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::jobs::address_of;
use crate::support::fixtures::{apart, until};
use crate::support::push_service::{Browser, PushService, Response};
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::tls::TestTls;

/// Longer than any test.
const RETRY_LATER: &str = "Retry-After: 600\r\n";
const RETRY_SOON: &str = "Retry-After: 1\r\n";

/// A server's part that pushes, without the server.
struct Pusher {
    notify: Notify,
    storage: Storage,
    key: String,
    _folder: TempDir,
    _stop: DropGuard,
}

impl Pusher {
    async fn start() -> Self {
        Self::with(true, Outgoing::trusting(RootCertStore::empty(), TEST_TIMEOUT)).await
    }

    async fn with(allow_private: bool, outgoing: Outgoing) -> Self {
        let folder = TempDir::new().expect("a folder");
        let url = format!("sqlite://{}", folder.path().join("galley.db").display());
        let storage = Storage::open(&url).await.expect("a database");
        let key = PushKey::parse(&PushKey::generate().expect("random")).expect("a key");
        let public = key.public().to_owned();
        let subject = Some("mailto:ops@example.com".to_owned());
        let options = PushOptions { key, subject, allow_private, hosts: Vec::new() };
        let notify = Notify::new(storage.clone(), outgoing, Some(options));
        let stop = CancellationToken::new();
        let pushing = notify.clone().run_retries();
        drop(apart(stop.clone().run_until_cancelled_owned(pushing)));
        Self { notify, storage, key: public, _folder: folder, _stop: stop.drop_guard() }
    }

    async fn subscribe(&self, user: &User, service: &PushService) -> Browser {
        let browser = Browser::new();
        let address = address(&browser.subscription(service));
        self.notify.subscribe(user, &address, Utc::now()).await.expect("subscribed");
        browser
    }

    async fn push(&self, user: &User) -> Vec<PushOutcome> {
        let notification = Notification::new(NotificationKind::SeatFree, "/");
        let reports = self.notify.push(&user.id, &notification).await.expect("subscriptions");
        reports.into_iter().map(|report| report.outcome).collect()
    }

    async fn count(&self, user: &User) -> usize {
        self.notify.subscriptions_of(&user.id).await.expect("a list").len()
    }
}

fn address(subscription: &Value) -> PushAddress {
    PushAddress { lang: Some(PushLanguage::Korean), ..address_of(subscription) }
}

#[tokio::test]
async fn a_push_is_encrypted_for_its_browser_and_signed_by_the_server() {
    let tls = TestTls::make();
    let service = PushService::secure(&tls).await;
    let pusher = Pusher::with(true, Outgoing::trusting(tls.roots(), TEST_TIMEOUT)).await;
    let kim = user("kim");
    let browsers = [pusher.subscribe(&kim, &service).await, pusher.subscribe(&kim, &service).await];
    let notification = Notification {
        urgency: Urgency::High,
        ttl: Duration::from_secs(3_600),
        ..Notification::new(NotificationKind::RequestReceived, "/#requests")
            .with("from", "이하나 👩‍👩‍👧")
            .about("request 1")
    };
    let reports = pusher.notify.push(&kim.id, &notification).await.expect("a report");
    assert!(reports.iter().all(|report| report.outcome == PushOutcome::Sent), "{reports:?}");
    let received = service.has(2).await;
    for browser in &browsers {
        let push = received.iter().find(|it| it.path == browser.path).expect("its push");
        let (key, claims) = push.signer(&service.url);
        assert_eq!((key, &claims["sub"]), (pusher.key.clone(), &json!("mailto:ops@example.com")));
        let headers = ["ttl", "urgency", "content-encoding"].map(|name| push.header(name));
        assert_eq!(headers, [Some("3600"), Some("high"), Some("aes128gcm")]);
        let payload = browser.decrypt(&push.body);
        assert_eq!(push.header("topic"), payload["tag"].as_str());
        assert_eq!(payload["kind"], "request.received");
        assert_eq!(payload["params"], json!({ "from": "이하나 👩‍👩‍👧" }));
        assert_eq!((&payload["url"], &payload["lang"]), (&json!("/#requests"), &json!("ko")));
    }
    let [one, two] = [&received[0], &received[1]].map(|it| it.header("authorization"));
    assert_eq!(one, two, "one signature serves a push service for hours");
}

#[tokio::test]
async fn a_browser_that_has_unsubscribed_gets_no_further_push() {
    let (pusher, service, kim) = (Pusher::start().await, PushService::start().await, user("kim"));
    for status in [404, 410] {
        pusher.subscribe(&kim, &service).await;
        service.script([Response::Status(status, "")]);
        assert_eq!(pusher.push(&kim).await, [PushOutcome::Removed]);
        assert_eq!(pusher.count(&kim).await, 0);
    }
    assert_eq!(pusher.push(&kim).await, []);
    assert_eq!(service.received().len(), 2);
}

#[tokio::test]
async fn g11_a_delayed_push_arrives_once_after_the_time_of_its_service() {
    let (pusher, service, kim) = (Pusher::start().await, PushService::start().await, user("kim"));
    let browser = pusher.subscribe(&kim, &service).await;
    service.script([Response::Status(429, RETRY_SOON), Response::Status(503, RETRY_SOON)]);
    assert_eq!(pusher.push(&kim).await, [PushOutcome::Queued]);
    let received = service.has(3).await;
    for pair in received.windows(2) {
        assert!(Duration::from_secs(1) <= pair[1].at - pair[0].at);
    }
    assert_eq!(browser.decrypt(&received[2].body)["kind"], "seat.free");
    assert_ne!(received[1].body, received[2].body, "each attempt has keys of its own");
    service.has_only(3).await;
}

/// Another attempt could show the notification twice.
#[tokio::test]
async fn g11_a_push_that_may_have_arrived_is_not_repeated() {
    let outgoing = Outgoing::trusting(RootCertStore::empty(), Duration::from_millis(400));
    let (pusher, service) = (Pusher::with(true, outgoing).await, PushService::start().await);
    let kim = user("kim");
    pusher.subscribe(&kim, &service).await;
    service.script([Response::Silence, Response::Close, Response::EndlessHead]);
    for _ in 0..3 {
        assert_eq!(pusher.push(&kim).await, [PushOutcome::Uncertain]);
    }
    service.has_only(3).await;
    assert_eq!(pusher.count(&kim).await, 1, "the browser may still be subscribed");
}

#[tokio::test]
async fn a_refused_push_is_not_repeated_and_its_browser_remains() {
    let (pusher, service, kim) = (Pusher::start().await, PushService::start().await, user("kim"));
    pusher.subscribe(&kim, &service).await;
    let redirect = Response::Status(302, "Location: http://127.0.0.1:1/\r\n");
    let statuses = [400, 401, 403, 413].map(|status| Response::Status(status, RETRY_SOON));
    service.script(statuses.into_iter().chain([redirect, Response::EndlessBody]));
    for _ in 0..6 {
        assert_eq!(pusher.push(&kim).await, [PushOutcome::Refused]);
    }
    assert_eq!((service.received().len(), pusher.count(&kim).await), (6, 1));
}

/// A subscription from before the rule, or a host that has moved into the network.
#[tokio::test]
async fn g17_no_push_goes_to_a_private_address() {
    let service = PushService::start().await;
    let outgoing = Outgoing::trusting(RootCertStore::empty(), TEST_TIMEOUT);
    let (pusher, kim) = (Pusher::with(false, outgoing).await, user("kim"));
    let port = service.address().port();
    for host in ["localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433"] {
        let endpoint = format!("https://{host}:{port}/push");
        let address = address(&Browser::new().subscription_at(&endpoint));
        let subscribed = pusher.notify.subscribe(&kim, &address, Utc::now()).await;
        let is_invalid = matches!(subscribed, Err(NotifyError::Invalid { field: "endpoint", .. }));
        assert!(is_invalid, "{host}: {subscribed:?}");
        store::put_push_subscription(&pusher.storage, &kim, &address, 10, Utc::now())
            .await
            .expect("stored");
    }
    assert_eq!(pusher.push(&kim).await, [PushOutcome::Refused; 5]);
    assert_eq!(service.connections(), 0);
}

#[tokio::test]
async fn g17_pushes_that_wait_are_bounded_for_each_user() {
    let (pusher, service) = (Pusher::start().await, PushService::start().await);
    let (kim, lee) = (user("kim"), user("lee"));
    pusher.subscribe(&kim, &service).await;
    let lees = pusher.subscribe(&lee, &service).await;
    let pushes = usize::try_from(PUSH_RETRIES_PER_USER_MAX).expect("a small number") + 5;
    service.script(std::iter::repeat_n(Response::Status(503, RETRY_LATER), pushes));
    let outcomes = join_all((0..pushes).map(|_| pusher.push(&kim))).await.concat();
    let queued = outcomes.iter().filter(|outcome| **outcome == PushOutcome::Queued).count();
    assert_eq!(queued, pushes - 5);
    let dropped = outcomes.iter().filter(|outcome| **outcome == PushOutcome::Dropped).count();
    assert_eq!(dropped, 5);
    // The refusals of one user's pushes delay no other user.
    assert_eq!(pusher.push(&lee).await, [PushOutcome::Sent]);
    assert!(service.received().iter().any(|it| it.path == lees.path));
}

#[tokio::test]
async fn a_service_that_refuses_three_users_gets_a_pause() {
    let (pusher, service) = (Pusher::start().await, PushService::start().await);
    let users = ["kim", "lee", "park", "choi"].map(user);
    for user in &users {
        pusher.subscribe(user, &service).await;
    }
    service.script(std::iter::repeat_n(Response::Status(503, RETRY_LATER), 3));
    for user in &users {
        assert_eq!(pusher.push(user).await, [PushOutcome::Queued]);
    }
    assert_eq!(service.connections(), 3);
}

#[tokio::test]
async fn a_removed_browser_ends_its_waiting_push() {
    let (pusher, service, kim) = (Pusher::start().await, PushService::start().await, user("kim"));
    pusher.subscribe(&kim, &service).await;
    service.script([Response::Status(503, RETRY_SOON)]);
    assert_eq!(pusher.push(&kim).await, [PushOutcome::Queued]);
    let id = pusher.notify.subscriptions_of(&kim.id).await.expect("a list")[0].id;
    assert!(pusher.notify.unsubscribe(&kim.id, id).await.expect("removed"));
    pusher.subscribe(&kim, &service).await;
    // Longer than the time after which the service asked for another attempt.
    sleep(Duration::from_millis(1_300)).await;
    assert_eq!(service.received().len(), 1);
}

#[tokio::test]
async fn an_expired_subscription_is_removed_without_a_request() {
    let (pusher, service, kim) = (Pusher::start().await, PushService::start().await, user("kim"));
    let subscription = Browser::new().subscription(&service);
    let over = Utc::now() - TimeDelta::seconds(1);
    let expired = PushAddress { expires_at: Some(over), ..address(&subscription) };
    let refused = pusher.notify.subscribe(&kim, &expired, Utc::now()).await;
    assert!(matches!(refused, Err(NotifyError::Invalid { field: "expirationTime", .. })));
    store::put_push_subscription(&pusher.storage, &kim, &expired, 10, Utc::now())
        .await
        .expect("stored");
    assert_eq!(pusher.push(&kim).await, [PushOutcome::Removed]);
    assert_eq!((pusher.count(&kim).await, service.connections()), (0, 0));
}

#[tokio::test]
async fn a_background_push_does_not_delay_its_request() {
    let (pusher, service, kim) = (Pusher::start().await, PushService::start().await, user("kim"));
    let browser = Arc::new(pusher.subscribe(&kim, &service).await);
    service.script([Response::Silence]);
    for number in 0..2 {
        let notification = Notification::new(NotificationKind::RequestAccepted, "/")
            .with("by", number.to_string());
        pusher.notify.push_in_background(Cause::User(kim.id.clone()), kim.id.clone(), notification);
    }
    until("both pushes", async || service.received().len() == 2).await;
    assert!(service.received().iter().all(|it| it.path == browser.path));
}
