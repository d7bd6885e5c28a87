//! A TCP proxy before Redis that injects network faults.
//!
//! There are two kinds of faults. Faults of the network affect all connections: [`Proxy::delay`],
//! [`Proxy::hold`], [`Proxy::end_all`]. Faults of one message are armed in advance, and affect the
//! next message that contains the given text, once: [`Proxy::on_request`], [`Proxy::on_answer`]. Only
//! [`Proxy::refuse`] affects each of them. A
//! stream has no gaps, so a held message also holds the later ones of its connection. Only
//! unsolicited messages of Redis can be lost alone ([`Proxy::lose_messages`]).

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::support::redis_server::{Server, TEST_TIMEOUT};
use crate::support::resp;
use crate::support::tcp_side::{Parting, Side};

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToServer,
    ToClient,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Server,
    Client,
}

/// The fate of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    /// This many bytes of it arrive, and then both ends see the connection closed.
    CutAfter(usize),
    /// It does not arrive, and both ends see the connection reset.
    Reset,
    /// The proxy holds it and the later ones until [`Proxy::heal`]. Its sender may be gone then.
    Hold,
    /// It does not arrive. One end closes, and the other end receives no notice.
    Forsake(End),
    /// This error arrives in its place.
    Replace(&'static str),
}

/// Ends when it is dropped.
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    stop: CancellationToken,
}

struct Shared {
    delay: watch::Sender<Duration>,
    /// Directions in which no message arrives.
    held: watch::Sender<[bool; 2]>,
    /// The number of affected messages.
    struck: watch::Sender<usize>,
    faults: Mutex<Faults>,
    lines: Mutex<Vec<Weak<Line>>>,
}

#[derive(Default)]
struct Faults {
    armed: Vec<(Way, String, Fate)>,
    /// Armed faults that have not yet met a message.
    pending: usize,
    loses_messages: bool,
    /// A text in requests, and the error in the place of their replies.
    refused: Option<(&'static str, &'static str)>,
    /// The length of the last affected message of each direction.
    lengths: [usize; 2],
    /// Messages held until after their sender was gone.
    late: usize,
}

/// One connection.
struct Line {
    shared: Arc<Shared>,
    server: Side,
    client: Side,
    /// The fates of the pending replies, in order.
    requests: Mutex<VecDeque<Fate>>,
    held: watch::Sender<[bool; 2]>,
}

/// A message in flight, with its due time. None is the end of the stream.
type DelayedMessage = Option<(Instant, Vec<u8>, Fate)>;

impl Proxy {
    pub(crate) async fn to(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared {
            delay: watch::Sender::default(),
            held: watch::Sender::default(),
            struck: watch::Sender::default(),
            faults: Mutex::default(),
            lines: Mutex::default(),
        });
        let stop = CancellationToken::new();
        let accept = accept(listener, server.port(), Arc::clone(&shared), stop.clone());
        TaskTracker::new().spawn(stop.clone().run_until_cancelled_owned(accept));
        Self { port, shared, stop }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Delays every message by this from now on.
    pub(crate) fn delay(&self, delay: Duration) {
        self.shared.delay.send_replace(delay);
    }

    /// Holds every message of this direction until [`Self::heal`] delivers them.
    pub(crate) fn hold(&self, way: Way) {
        self.shared.held.send_modify(|held| held[way as usize] = true);
    }

    /// Delivers all held messages.
    pub(crate) fn heal(&self) {
        self.shared.held.send_replace([false; 2]);
        for line in self.lines() {
            line.held.send_replace([false; 2]);
        }
    }

    /// Ends every connection, visibly to both ends.
    pub(crate) fn end_all(&self, parting: Parting) {
        for line in self.lines() {
            line.client.end(parting);
            line.server.end(parting);
        }
    }

    /// Ends every connection for one end. The other end receives no notice.
    pub(crate) fn forsake_all(&self, gone: End) {
        self.lines().iter().for_each(|line| line.side(gone).end(Parting::Reset));
    }

    /// Drops all unsolicited messages of Redis from now on.
    pub(crate) fn lose_messages(&self) {
        self.shared.faults().loses_messages = true;
    }

    /// Arms a fate for the next request that contains `text`.
    pub(crate) fn on_request(&self, text: &str, fate: Fate) {
        self.shared.arm(Way::ToServer, text, fate);
    }

    /// Arms a fate for the reply to the next request that contains `text`.
    pub(crate) fn on_answer(&self, text: &str, fate: Fate) {
        self.shared.arm(Way::ToClient, text, fate);
    }

    /// From now on Redis seems to reply with `error` to each request that contains `text`.
    pub(crate) fn refuse(&self, text: &'static str, error: &'static str) {
        self.shared.faults().refused = Some((text, error));
    }

    /// Waits until every armed fault has met its message.
    pub(crate) async fn has_struck(&self) {
        let mut struck = self.shared.struck.subscribe();
        let all = struck.wait_for(|_| self.shared.faults().pending == 0);
        timeout(TEST_TIMEOUT, all).await.expect("it strikes in time").expect("the proxy is there");
    }

    /// Waits until the proxy has delivered a request whose sender was gone.
    pub(crate) async fn was_late(&self) {
        let mut struck = self.shared.struck.subscribe();
        let late = struck.wait_for(|_| 0 < self.shared.faults().late);
        timeout(TEST_TIMEOUT, late).await.expect("it is delivered").expect("the proxy is there");
    }

    /// The lengths of the last affected request and reply.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        self.shared.faults().lengths.into()
    }

    fn lines(&self) -> Vec<Arc<Line>> {
        let lines = self.shared.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.cancel();
        self.end_all(Parting::Close);
    }
}

impl Shared {
    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arm(&self, way: Way, text: &str, fate: Fate) {
        let mut faults = self.faults();
        faults.armed.push((way, text.to_owned(), fate));
        faults.pending += 1;
    }

    /// Takes the armed fate of a message.
    fn strike(&self, way: Way, message: &[u8]) -> Option<Fate> {
        let mut faults = self.faults();
        let has = |text: &str| message.windows(text.len()).any(|part| part == text.as_bytes());
        let refused = faults.refused.filter(|(text, _)| way == Way::ToClient && has(text));
        if let Some((_, error)) = refused {
            return Some(Fate::Replace(error));
        }
        let at = faults.armed.iter().position(|(armed, text, _)| *armed == way && has(text))?;
        Some(faults.armed.remove(at).2)
    }

    fn has_struck(&self, way: Way, length: usize) {
        let mut faults = self.faults();
        faults.lengths[way as usize] = length;
        faults.pending -= 1;
        drop(faults);
        self.struck.send_modify(|struck| *struck += 1);
    }
}

async fn accept(listener: TcpListener, server: u16, shared: Arc<Shared>, stop: CancellationToken) {
    let tasks = TaskTracker::new();
    loop {
        let (client, _) = listener.accept().await.expect("a connection");
        // Without a server the proxy accepts no connection.
        let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { continue };
        for socket in [&client, &server] {
            socket.set_nodelay(true).expect("an open socket");
        }
        let line = Arc::new(Line {
            shared: Arc::clone(&shared),
            server: Side::new(server),
            client: Side::new(client),
            requests: Mutex::default(),
            held: watch::Sender::default(),
        });
        shared.lines.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&line));
        for way in [Way::ToServer, Way::ToClient] {
            let (queue, parcels) = mpsc::unbounded_channel();
            let (takes, gives) = (Arc::clone(&line), Arc::clone(&line));
            let takes = async move { takes.take(way, &queue).await };
            tasks.spawn(stop.clone().run_until_cancelled_owned(takes));
            let gives = async move { gives.give(way, parcels).await };
            tasks.spawn(stop.clone().run_until_cancelled_owned(gives));
        }
    }
}

impl Line {
    fn side(&self, end: End) -> &Side {
        match end {
            End::Server => &self.server,
            End::Client => &self.client,
        }
    }

    /// The sender's and the receiver's side.
    fn sides(&self, way: Way) -> (&Side, &Side) {
        match way {
            Way::ToServer => (&self.client, &self.server),
            Way::ToClient => (&self.server, &self.client),
        }
    }

    /// Reads messages until the stream ends.
    async fn take(&self, way: Way, queue: &mpsc::UnboundedSender<DelayedMessage>) {
        let (from, _to) = self.sides(way);
        let mut bytes = Vec::new();
        while let Some(()) = from.read(&mut bytes).await {
            while let Some(length) = resp::length(&bytes) {
                let message: Vec<_> = bytes.drain(..length).collect();
                let due = Instant::now() + *self.shared.delay.borrow();
                let delayed = self.fate(way, &message).map(|fate| Some((due, message, fate)));
                let _sent = delayed.map(|delayed| queue.send(delayed));
            }
        }
        let _sent = queue.send(Some((Instant::now(), bytes, Fate::Pass)));
        let _sent = queue.send(None);
    }

    /// The fate of a message; none if it is lost alone.
    fn fate(&self, way: Way, message: &[u8]) -> Option<Fate> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let fate = match way {
            Way::ToServer => {
                // Redis replies to it with an unsolicited message.
                if !message.windows(9).any(|part| part == b"SUBSCRIBE") {
                    let fate = self.shared.strike(Way::ToClient, message);
                    requests.push_back(fate.unwrap_or(Fate::Pass));
                }
                self.shared.strike(way, message)
            }
            Way::ToClient if message[0] == b'>' => {
                let is_message = message.windows(9).any(|part| part == b"\r\nmessage");
                return (!is_message || !self.shared.faults().loses_messages).then_some(Fate::Pass);
            }
            Way::ToClient => requests.pop_front(),
        };
        Some(fate.unwrap_or(Fate::Pass))
    }

    /// Writes messages until the stream ends.
    async fn give(&self, way: Way, mut parcels: mpsc::UnboundedReceiver<DelayedMessage>) {
        let (from, to) = self.sides(way);
        while let Some(Some((due, message, fate))) = parcels.recv().await {
            sleep_until(due).await;
            if !matches!(fate, Fate::Pass | Fate::Replace(_)) {
                self.shared.has_struck(way, message.len());
            }
            if fate == Fate::Hold {
                self.held.send_modify(|held| held[way as usize] = true);
            }
            self.is_open(way).await;
            let whole = message.as_slice();
            match fate {
                Fate::Pass | Fate::Hold => {
                    let is_late = fate == Fate::Hold && from.is_over();
                    self.shared.faults().late += usize::from(is_late);
                    to.write(whole).await;
                    self.shared.struck.send_modify(|struck| *struck += 1);
                }
                Fate::CutAfter(bytes) => {
                    to.write(&whole[..bytes.min(whole.len())]).await;
                    self.server.end(Parting::Close);
                    self.client.end(Parting::Close);
                }
                Fate::Reset => {
                    self.server.end(Parting::Reset);
                    self.client.end(Parting::Reset);
                }
                Fate::Replace(error) => {
                    to.write(format!("-{error}\r\n").as_bytes()).await;
                }
                Fate::Forsake(gone) => self.side(gone).end(Parting::Reset),
            }
        }
        // The proxy closes the other end after it has delivered all messages.
        if from.has_left.load(Relaxed) {
            to.end(Parting::Close);
        }
    }

    async fn is_open(&self, way: Way) {
        let (mut here, mut anywhere) = (self.held.subscribe(), self.shared.held.subscribe());
        let _closed = anywhere.wait_for(|held| !held[way as usize]).await.is_ok();
        let _closed = here.wait_for(|held| !held[way as usize]).await.is_ok();
    }
}
