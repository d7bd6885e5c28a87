//! Requests of the server to other programs: push services, webhooks, and identity providers.
//!
//! # Invariants
//!
//! - **N1** The server resolves the host itself, checks every address, and connects to one of the checked
//!   addresses. No second look-up follows, so a name that changes its address gains nothing.
//! - **N2** One request is one connection to one host: no proxy, no redirect, no cookie, no retry.
//! - **N3** Time, bytes and number of requests are bounded, for one host and in all ([`slots`]).
//! - **N4** A failure says whether the request may have arrived, so the caller repeats no push that the
//!   service may have accepted.
//!
//! [`slots`]: crate::outgoing::slots

pub mod address;
pub mod destination;
mod exchange;
pub(crate) mod slots;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http_body_util::Full;
pub use hyper::header;
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_util::task::TaskTracker;

use crate::outgoing::address::is_public;
use crate::outgoing::destination::{Destination, HostScope};
use crate::outgoing::exchange::exchange;
use crate::outgoing::slots::{HostSlot, HostSlots};

/// Requests to one host at once: a slow host leaves most connections to others.
pub const OUTGOING_PER_HOST_MAX: usize = 16;
/// Look-ups of hosts at once whose last request succeeded, and as many of all others: a name that no
/// server of names resolves takes a thread until the system's resolver gives up.
const OUTGOING_LOOKUPS_MAX: usize = 8;
/// Time limit of one request to another program: look-up, connection, TLS and response.
pub(crate) const OUTGOING_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of the connection to one address.
const OUTGOING_CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The pause before the next address while the earlier ones do not answer (RFC 8305 §5: 0.1 to 2 s).
const OUTGOING_CONNECT_PACE: Duration = Duration::from_millis(200);
/// Addresses of one host that the server tries: each gets its whole time within that of the request.
const ADDRESSES_MAX: u32 = 32;
const _: () = assert!(
    OUTGOING_CONNECT_PACE.as_millis() * (ADDRESSES_MAX as u128)
        + OUTGOING_CONNECT_TIMEOUT.as_millis()
        < OUTGOING_TIMEOUT.as_millis()
);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// For this error, `Full` and `Unreachable` the server sent nothing.
    #[error("its host has an address that is not public")]
    NotPublic,
    #[error("too many requests are under way")]
    Full,
    #[error("cannot connect: {0}")]
    Unreachable(String),
    /// The connection broke, or the time was over, before the response. The request may have arrived.
    #[error("no response: {0}")]
    NoResponse(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    /// The value of `Retry-After`: seconds, or the time until its date.
    pub retry_after: Option<Duration>,
    /// The beginning of the body of a refusal, for the log. Empty for a success.
    pub explanation: String,
    /// The body of a success, if the caller reads it.
    pub body: Bytes,
}

impl Reply {
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

#[derive(Clone)]
pub struct Outgoing(Arc<Inner>);

struct Inner {
    slots: HostSlots,
    /// Look-ups of hosts that work, and of all others: names without an answer delay no push service.
    lookups: [Arc<Semaphore>; 2],
    tls: OnceCell<TlsConnector>,
    time_limit: Duration,
    /// Look-ups outlive a request whose time is over: their threads cannot be stopped.
    tasks: TaskTracker,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self::with(OUTGOING_TIMEOUT, OnceCell::new())
    }
}

impl Outgoing {
    /// Another time limit and other root certificates, for tests.
    #[must_use]
    pub fn trusting(roots: RootCertStore, time_limit: Duration) -> Self {
        Self::with(time_limit, OnceCell::new_with(Some(connector(roots))))
    }

    fn with(time_limit: Duration, tls: OnceCell<TlsConnector>) -> Self {
        let lookups = [(); 2].map(|()| Arc::new(Semaphore::new(OUTGOING_LOOKUPS_MAX)));
        let (slots, tasks) = (HostSlots::new(), TaskTracker::new());
        Self(Arc::new(Inner { slots, lookups, tls, time_limit, tasks }))
    }

    /// Posts `body` to a host that a user named. `purpose` labels the metrics. The time limit begins when
    /// the request has its slot.
    ///
    /// # Cancel safety
    ///
    /// A dropped future closes the connection; the request may have arrived.
    pub async fn post(
        &self,
        purpose: &'static str,
        to: &Destination,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Reply, SendError> {
        self.post_for(purpose, to, headers, body, 0).await
    }

    /// [`Self::post`], of whose success the caller reads a body of at most `bytes_max`.
    ///
    /// # Cancel safety
    ///
    /// A dropped future closes the connection; the request may have arrived.
    pub async fn post_for(
        &self,
        purpose: &'static str,
        to: &Destination,
        headers: HeaderMap,
        body: Bytes,
        bytes_max: usize,
    ) -> Result<Reply, SendError> {
        let slot = self.0.slots.take(to.host()).await.map_err(|_full| SendError::Full)?;
        let request = request(Method::POST, to, headers, body)?;
        let sent = self.send(self.lookups(&slot), purpose, to, request, bytes_max).await;
        slot.prove(sent.as_ref().is_ok_and(|reply| reply.status < 500));
        sent
    }

    /// The caller bounds its requests, which have no slot. `lookups` bounds those look-ups that share it.
    ///
    /// # Cancel safety
    ///
    /// A dropped future closes the connection; the request may have arrived.
    pub async fn post_unslotted(
        &self,
        lookups: &Arc<Semaphore>,
        purpose: &'static str,
        to: &Destination,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Reply, SendError> {
        let request = request(Method::POST, to, headers, body)?;
        self.send(lookups, purpose, to, request, 0).await
    }

    /// Reads a document of at most `bytes_max`. The caller bounds its requests, which have no slot. Any status but a
    /// success is a failure.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a dropped future closes the connection.
    pub async fn read(
        &self,
        purpose: &'static str,
        to: &Destination,
        bytes_max: usize,
    ) -> Result<Bytes, String> {
        let [lookups, _] = &self.0.lookups;
        let request = request(Method::GET, to, HeaderMap::new(), Bytes::new());
        let request = request.map_err(|error| error.to_string())?;
        let reply = self.send(lookups, purpose, to, request, bytes_max).await;
        let reply = reply.map_err(|error| error.to_string())?;
        match reply.is_success() {
            true => Ok(reply.body),
            false => Err(format!("status {} {}", reply.status, reply.explanation)),
        }
    }

    async fn send(
        &self,
        lookups: &Arc<Semaphore>,
        purpose: &'static str,
        to: &Destination,
        request: Request<Full<Bytes>>,
        bytes_max: usize,
    ) -> Result<Reply, SendError> {
        let began = Instant::now();
        let sent = self.send_in(lookups, to, request, bytes_max).await;
        metrics::histogram!("galley_outgoing_seconds", "purpose" => purpose)
            .record(began.elapsed());
        sent
    }

    fn lookups(&self, slot: &HostSlot) -> &Arc<Semaphore> {
        let [proven, others] = &self.0.lookups;
        if slot.is_proven() { proven } else { others }
    }

    async fn send_in(
        &self,
        lookups: &Arc<Semaphore>,
        to: &Destination,
        request: Request<Full<Bytes>>,
        bytes_max: usize,
    ) -> Result<Reply, SendError> {
        let deadline = Instant::now() + self.0.time_limit;
        let late = |_elapsed| SendError::Unreachable("it took too long".to_owned());
        let addresses = timeout_at(deadline, self.resolve(lookups, to)).await.map_err(late)??;
        let stream = timeout_at(deadline, connect(addresses)).await.map_err(late)??;
        if !to.is_secure() {
            return exchange(stream, request, deadline, bytes_max).await;
        }
        let secured = timeout_at(deadline, self.secure(to, stream)).await.map_err(late)??;
        exchange(secured, request, deadline, bytes_max).await
    }

    /// The addresses of the host, all of them checked (N1).
    async fn resolve(
        &self,
        lookups: &Arc<Semaphore>,
        to: &Destination,
    ) -> Result<Vec<SocketAddr>, SendError> {
        let unreachable = |cause: String| SendError::Unreachable(cause);
        let addresses = match to.literal() {
            Some(address) => vec![SocketAddr::new(address, to.port())],
            None => {
                let closed = |_error| SendError::Full;
                let permit = Arc::clone(lookups).acquire_owned().await.map_err(closed)?;
                let name = (to.host().to_owned(), to.port());
                #[expect(clippy::disallowed_methods, reason = "under the permit")]
                let looking = self.0.tasks.spawn(async move {
                    let found = lookup_host(name).await.map(Iterator::collect::<Vec<_>>);
                    drop(permit);
                    found
                });
                let found = looking.await.map_err(|error| unreachable(error.to_string()))?;
                found.map_err(|error| unreachable(error.to_string()))?
            }
        };
        let may_connect = |address: &SocketAddr| match to.scope() {
            HostScope::Public => is_public(address.ip()),
            HostScope::Anywhere => true,
            HostScope::Authentic => to.is_secure() || address.ip().is_loopback(),
        };
        if !addresses.iter().all(may_connect) {
            return Err(SendError::NotPublic);
        }
        Ok(addresses)
    }

    async fn secure(
        &self,
        to: &Destination,
        stream: TcpStream,
    ) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static, SendError> {
        let tasks = &self.0.tasks;
        #[expect(clippy::disallowed_methods, reason = "once in a process")]
        let connector = self.0.tls.get_or_try_init(|| async {
            let reading = tasks.spawn_blocking(system_roots).await;
            reading.map(connector).map_err(|error| SendError::Unreachable(error.to_string()))
        });
        let name = match to.literal() {
            Some(address) => ServerName::IpAddress(address.into()),
            None => ServerName::try_from(to.host().to_owned())
                .map_err(|error| SendError::Unreachable(error.to_string()))?,
        };
        let secured = connector.await?.connect(name, stream).await;
        secured.map_err(|error| SendError::Unreachable(error.to_string()))
    }
}

fn request(
    method: Method,
    to: &Destination,
    mut headers: HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, SendError> {
    let invalid = |error: &dyn std::fmt::Display| SendError::Unreachable(error.to_string());
    headers.insert(HOST, HeaderValue::from_str(to.authority()).map_err(|error| invalid(&error))?);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let request = Request::builder().method(method).uri(to.path()).body(Full::new(body));
    let mut request = request.map_err(|error| invalid(&error))?;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Connects to the address that answers first. The next attempt begins as soon as one fails, or after a
/// pause beside those under way: addresses without an answer delay the others by the pause.
async fn connect(addresses: Vec<SocketAddr>) -> Result<TcpStream, SendError> {
    let mut addresses = in_turns(addresses).take(ADDRESSES_MAX as usize);
    let mut attempts = FuturesUnordered::new();
    let mut cause = "its host has no address".to_owned();
    loop {
        attempts.extend(
            addresses
                .next()
                .map(|address| timeout(OUTGOING_CONNECT_TIMEOUT, TcpStream::connect(address))),
        );
        match timeout(OUTGOING_CONNECT_PACE, attempts.next()).await {
            Ok(Some(Ok(Ok(stream)))) => {
                // A request and its response are one exchange, and no packet waits for another.
                let _slower = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Some(Ok(Err(error)))) => cause = error.to_string(),
            Ok(Some(Err(_elapsed))) => "it took too long".clone_into(&mut cause),
            Ok(None) => return Err(SendError::Unreachable(cause)),
            Err(_pause_over) => {}
        }
    }
}

/// The families in turns, each in the order of the resolver, which puts the better family first (RFC 8305 §4).
fn in_turns(addresses: Vec<SocketAddr>) -> impl Iterator<Item = SocketAddr> {
    let is_first_family = addresses.first().map(SocketAddr::is_ipv4);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| Some(address.is_ipv4()) == is_first_family);
    let mut families = [first.into_iter(), second.into_iter()];
    std::iter::from_fn(move || {
        families.rotate_left(1);
        let [second, first] = &mut families;
        first.next().or_else(|| second.next())
    })
}

/// The certificates that the operating system trusts, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
fn system_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _unusable) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        tracing::warn!(
            errors = ?found.errors,
            "the system has no root certificates (package ca-certificates): every push fails"
        );
    }
    roots
}

fn connector(roots: RootCertStore) -> TlsConnector {
    // Another module may have installed it.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    #[tokio::test]
    async fn g17_names_without_an_answer_delay_no_look_up_of_a_push_service() {
        let outgoing = Outgoing::default();
        let to = Destination::parse("http://localhost:1/", HostScope::Anywhere).expect("valid");
        let slot = async || outgoing.0.slots.take(to.host()).await.expect("a slot");
        let first = slot().await;
        let most = u32::try_from(OUTGOING_LOOKUPS_MAX).expect("few");
        let _slow = outgoing.0.lookups[1].acquire_many(most).await.expect("open");
        let short = Duration::from_millis(50);
        assert!(timeout(short, outgoing.resolve(outgoing.lookups(&first), &to)).await.is_err());
        first.prove(true);
        let second = slot().await;
        let found = outgoing.resolve(outgoing.lookups(&second), &to).await;
        assert!(!found.expect("addresses").is_empty());
    }

    #[test]
    fn the_families_of_a_host_take_turns() {
        let read = |list: &[&str]| -> Vec<SocketAddr> {
            list.iter().map(|address| format!("{address}:1").parse().expect("an address")).collect()
        };
        let (a, b, c) = ("10.0.0.1", "10.0.0.2", "10.0.0.3");
        for (given, order) in [
            (&["[::1]", "[::2]", a, b, c][..], &["[::1]", a, "[::2]", b, c][..]),
            (&[a, b, "[::1]"], &[a, "[::1]", b]),
            (&[a, b], &[a, b]),
            (&[], &[]),
        ] {
            assert_eq!(in_turns(read(given)).collect::<Vec<_>>(), read(order));
        }
    }

    /// A port whose queue of connections is full: the system drops further ones, so that they hang.
    async fn silent() -> (SocketAddr, Vec<TcpStream>, TcpListener) {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let listener = socket.listen(1).expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut queued = Vec::new();
        while let Ok(stream) = timeout(OUTGOING_CONNECT_PACE, TcpStream::connect(address)).await {
            queued.push(stream.expect("a connection"));
        }
        (address, queued, listener)
    }

    /// Goal: the only address that works gets the connection, wherever it is in the list.
    #[tokio::test]
    async fn every_address_of_a_host_is_tried_in_the_time_of_a_request() {
        let works = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let works = works.local_addr().map(|address| (address, works)).expect("an address");
        let refuses = async || {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            listener.local_addr().expect("an address")
        };
        let (silent, _queued, _listener) = silent().await;
        let mut addresses = vec![silent; 5];
        for _ in 0..10 {
            addresses.push(refuses().await);
        }
        addresses.push(works.0);
        addresses.extend([silent; 5]);
        let connected = timeout(OUTGOING_TIMEOUT, connect(addresses)).await.expect("in time");
        assert_eq!(connected.expect("connected").peer_addr().expect("an address"), works.0);
        let refused = connect(vec![refuses().await; 4]).await;
        assert!(matches!(refused, Err(SendError::Unreachable(_))), "{refused:?}");
    }
}
