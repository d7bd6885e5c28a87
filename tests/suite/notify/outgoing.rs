//! The one place that sends requests out, against servers that misbehave.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use galley::outgoing::destination::{Destination, HostScope};
use galley::outgoing::{OUTGOING_PER_HOST_MAX, Outgoing, Reply, SendError};
use hyper::HeaderMap;
use rustls::RootCertStore;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout};

use crate::support::fixtures::apart;
use crate::support::push_service::{PushService, Response};
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::tls::TestTls;

/// Long for a request on this host, and short for a test.
const SHORT: Duration = Duration::from_millis(400);

fn trusting_nothing(time_limit: Duration) -> Outgoing {
    Outgoing::trusting(RootCertStore::empty(), time_limit)
}

fn destination(url: &str, scope: HostScope) -> Destination {
    Destination::parse(url, scope).expect("a destination")
}

async fn post(outgoing: &Outgoing, to: &Destination) -> Result<Reply, SendError> {
    let sent = outgoing.post("push", to, HeaderMap::new(), Bytes::from_static(b"body"));
    timeout(TEST_TIMEOUT, sent).await.expect("it ends within its time limit")
}

#[tokio::test]
async fn a_request_arrives_with_its_host_path_and_body() {
    let service = PushService::start().await;
    let to = destination(&format!("{}/a?b=c#d", service.url), HostScope::Anywhere);
    let reply = post(&trusting_nothing(TEST_TIMEOUT), &to).await.expect("a reply");
    assert_eq!((reply.status, reply.explanation.as_str()), (201, ""));
    let received = service.received().pop().expect("a request");
    assert_eq!((received.path.as_str(), received.body.as_slice()), ("/a?b=c", &b"body"[..]));
    assert_eq!(received.header("host"), Some(service.address().to_string().as_str()));
}

/// The name leads to this host, as a name of an attacker's zone can.
#[tokio::test]
async fn g17_a_name_with_a_private_address_gets_no_connection() {
    let service = PushService::start().await;
    let port = service.address().port();
    let outgoing = trusting_nothing(TEST_TIMEOUT);
    for host in ["localhost", "LOCALHOST"] {
        let to = destination(&format!("https://{host}:{port}/x"), HostScope::Public);
        assert_eq!(post(&outgoing, &to).await, Err(SendError::NotPublic), "{host}");
    }
    assert_eq!(service.connections(), 0);
}

#[tokio::test]
async fn g17_a_redirect_is_not_followed() {
    let (service, other) = (PushService::start().await, PushService::start().await);
    let location = format!("Location: {}/x\r\n", other.url).leak();
    service.script([301, 302, 303, 307, 308].map(|status| Response::Status(status, location)));
    let to = destination(&service.url, HostScope::Anywhere);
    let outgoing = trusting_nothing(TEST_TIMEOUT);
    for status in [301, 302, 303, 307, 308] {
        assert_eq!(post(&outgoing, &to).await.expect("a reply").status, status);
    }
    assert_eq!((service.connections(), other.connections()), (5, 0));
}

#[tokio::test]
async fn g16_a_slow_server_delays_a_request_up_to_its_time_limit() {
    let service = PushService::start().await;
    let to = destination(&service.url, HostScope::Anywhere);
    let outgoing = trusting_nothing(SHORT);
    service.script([Response::Silence, Response::SlowBody]);
    let silent = post(&outgoing, &to).await;
    assert!(matches!(silent, Err(SendError::NoResponse(_))), "{silent:?}");
    // The status has arrived; only the rest of the explanation has not.
    let slow = post(&outgoing, &to).await.expect("a reply");
    assert_eq!(slow.status, 400);
    assert!(slow.explanation.starts_with('x'), "{slow:?}");
}

#[tokio::test]
async fn g13_an_endless_response_is_read_up_to_its_bound() {
    let service = PushService::start().await;
    let to = destination(&service.url, HostScope::Anywhere);
    let outgoing = trusting_nothing(TEST_TIMEOUT);
    service.script([Response::EndlessHead, Response::EndlessBody]);
    let head = post(&outgoing, &to).await;
    assert!(matches!(head, Err(SendError::NoResponse(_))), "{head:?}");
    let body = post(&outgoing, &to).await.expect("a reply");
    assert_eq!((body.status, body.explanation.len()), (400, 200));
}

/// A caller repeats a request that cannot have arrived, and no other.
#[tokio::test]
async fn a_failure_says_whether_the_request_may_have_arrived() {
    let service = PushService::start().await;
    let to = destination(&service.url, HostScope::Anywhere);
    let outgoing = trusting_nothing(TEST_TIMEOUT);
    service.script([Response::Close, Response::CloseEarly]);
    for _ in 0..2 {
        let broken = post(&outgoing, &to).await;
        assert!(matches!(broken, Err(SendError::NoResponse(_))), "{broken:?}");
    }
    let free = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let closed = format!("http://{}/", free.local_addr().expect("an address"));
    drop(free);
    let refused = post(&outgoing, &destination(&closed, HostScope::Anywhere)).await;
    assert!(matches!(refused, Err(SendError::Unreachable(_))), "{refused:?}");
    let unknown = destination("http://no-such-host.invalid/", HostScope::Anywhere);
    let unresolved = post(&outgoing, &unknown).await;
    assert!(matches!(unresolved, Err(SendError::Unreachable(_))), "{unresolved:?}");
}

#[tokio::test]
async fn a_server_proves_its_name_by_a_certificate() {
    let tls = TestTls::make();
    let service = PushService::secure(&tls).await;
    let to = destination(&service.url, HostScope::Anywhere);
    let trusting = Outgoing::trusting(tls.roots(), TEST_TIMEOUT);
    assert_eq!(post(&trusting, &to).await.expect("a reply").status, 201);
    let distrusting = post(&trusting_nothing(TEST_TIMEOUT), &to).await;
    assert!(matches!(distrusting, Err(SendError::Unreachable(_))), "{distrusting:?}");
    // The certificate names `localhost`, and not every name of this host.
    let other = service.url.replace("localhost", "127.0.0.2");
    let misnamed = post(&trusting, &destination(&other, HostScope::Anywhere)).await;
    assert!(matches!(misnamed, Err(SendError::Unreachable(_))), "{misnamed:?}");
    assert_eq!(service.received().len(), 1);
}

#[tokio::test]
async fn g17_one_slow_host_leaves_the_others_their_slots() {
    let (slow, quick) = (PushService::start().await, PushService::start().await);
    slow.script(std::iter::repeat_n(Response::Silence, 2 * OUTGOING_PER_HOST_MAX));
    let outgoing = trusting_nothing(TEST_TIMEOUT);
    let to_slow = destination(&slow.url, HostScope::Anywhere);
    let pending: Vec<_> = (0..2 * OUTGOING_PER_HOST_MAX)
        .map(|_| {
            let (outgoing, to) = (outgoing.clone(), to_slow.clone());
            apart(async move { post(&outgoing, &to).await })
        })
        .collect();
    slow.has(OUTGOING_PER_HOST_MAX).await;
    // Both have the address of this host; its name differs.
    let other = quick.url.replace("127.0.0.1", "localhost");
    let to_quick = destination(&other, HostScope::Anywhere);
    let began = Instant::now();
    let replies = join_all((0..50).map(|_| post(&outgoing, &to_quick))).await;
    assert!(replies.iter().all(|reply| reply.as_ref().is_ok_and(Reply::is_success)));
    assert!(began.elapsed() < TEST_TIMEOUT);
    // No further connection to the slow host is opened meanwhile.
    sleep(Duration::from_millis(50)).await;
    assert_eq!(slow.connections(), OUTGOING_PER_HOST_MAX);
    pending.iter().for_each(tokio::task::JoinHandle::abort);
}
