//! Accepts connections and serves them with hyper.
//!
//! `axum::serve` has no time limit for a request's head, so a few half-sent requests would hold as many
//! sockets for ever; this loop has a limit. Each connection holds a slot and a token of the task tracker
//! as long as its socket lives, even after an upgrade to a websocket. The slot limit therefore counts
//! websockets, and a graceful stop waits for them.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::http::connection_slots::{ConnectionLimits, ConnectionSlot, ConnectionSlots};
use crate::http::peer::Peer;
use crate::http::service::HttpService;
use crate::http::ws::inbound::FrameHeads;

/// Time limit of a request's head, counted from the end of the previous request.
const HEAD_MAX: Duration = Duration::from_secs(10);
const HEADERS_MAX: usize = 100;
const HEAD_BYTES_MAX: usize = 32 * 1_024;
/// Pause after a failed accept: without file descriptors the next accept fails at once too.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The server holds an unread response in memory until the connection ends.
const STALL_MAX: Duration = Duration::from_secs(30);
/// Read rate of a connection. No other limit counts frames that never become a message. The server
/// throttles a faster client.
const READING: ReadRate = ReadRate { bytes: 8 * 1_024 * 1_024, within: Duration::from_secs(1) };
/// Read rate of a session that waits for its seat: 1 MiB a second, in short steps. A client has hundreds
/// of waiters, and a waiter sends only cursors. A message of 2 MB takes two seconds, and the server ends
/// a client after ten seconds of silence.
const READING_A_WAITER: ReadRate =
    ReadRate { bytes: 64 * 1_024, within: Duration::from_micros(62_500) };
const SKIPPED_AT_A_TIME: usize = 16 * 1_024;
/// Time limit of responses in progress after a stop.
const FINISH_MAX: Duration = Duration::from_secs(5);

/// Length of the accept queue, within the system's limit. After a restart thousands of clients connect
/// at the same moment, and TCP retries a connection without a place only a second later.
const BACKLOG: u32 = 4_096;

pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // Without it a restart would have to wait until the previous server's connections leave TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves `service` until `stop`, then waits for responses in progress.
///
/// The function does not wait for websockets: they hold tokens of `tasks`, for which the caller waits.
pub async fn run(
    listener: TcpListener,
    service: HttpService,
    connections: ConnectionLimits,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let slots = ConnectionSlots::new(connections);
    let answering = TaskTracker::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_the_peers(&error) => continue,
            Err(error) => {
                tracing::error!(%error, "a connection could not be accepted");
                let _stopped = stop.run_until_cancelled(sleep(ACCEPT_PAUSE)).await;
                continue;
            }
        };
        // A proxy carries the connections of many clients, so no address counts them.
        let address = (!service.trusts(peer.ip())).then_some(peer.ip());
        let Some(slot) = slots.take(address) else { continue };
        // Without it the kernel may delay a keystroke until the client acknowledges the previous one.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection closed right after its accept");
            continue;
        }
        let socket = Socket::new(stream, slot, tasks.token());
        #[expect(clippy::disallowed_methods, reason = "under the slot")]
        answering.spawn(serve(socket, peer, service.clone(), stop.clone()));
    }
    drop(listener);
    answering.close();
    answering.wait().await;
}

fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind as Is;
    matches!(
        error.kind(),
        Is::ConnectionAborted | Is::ConnectionRefused | Is::ConnectionReset | Is::Interrupted
    )
}

/// Serves one connection until it ends or is upgraded; after `stop`, until its response is sent.
async fn serve(socket: Socket, peer: SocketAddr, service: HttpService, stop: CancellationToken) {
    let peer = Peer(peer.ip());
    let inbound = Arc::clone(socket.frames.inbound());
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        service.answer(request.map(Body::new), peer, &inbound)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let ended = match stop.run_until_cancelled(connection.as_mut()).await {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            let Ok(ended) = timeout(FINISH_MAX, connection).await else {
                tracing::warn!("a request was cut off by the stop");
                return;
            };
            ended
        }
    };
    if let Err(error) = ended {
        // Resets, half requests and slow heads are the client's faults and no event.
        tracing::debug!(%error, "a connection ended badly");
    }
}

struct Socket {
    stream: TcpStream,
    /// The deadline of a stalled write; `None` while the client reads.
    stalled: Option<Pin<Box<Sleep>>>,
    pace: ReadThrottle,
    frames: FrameHeads,
    /// Bytes that were read and not yet passed to hyper.
    rest: Vec<u8>,
    _slot: ConnectionSlot,
    _task: TaskTrackerToken,
}

impl Socket {
    fn new(stream: TcpStream, slot: ConnectionSlot, task: TaskTrackerToken) -> Self {
        metrics::gauge!("galley_connections").increment(1.0);
        let (pace, frames) = (ReadThrottle::new(READING), FrameHeads::new(Arc::default()));
        Self { stream, stalled: None, pace, frames, rest: Vec::new(), _slot: slot, _task: task }
    }

    /// Reads from the connection within the read rate.
    fn poll_stream(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(pause) = &mut self.pace.pause {
            ready!(pause.as_mut().poll(context));
            self.pace.pause = None;
        }
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        let rate = if self.frames.inbound().is_waiting() { READING_A_WAITER } else { READING };
        self.pace.read(buffer.filled().len().saturating_sub(before), rate);
        Poll::Ready(read)
    }

    /// Reads all bytes that are to be skipped. Returns false at the end of the connection.
    fn poll_skip(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.frames.to_skip() != 0 {
            let most = usize::try_from(self.frames.to_skip()).unwrap_or(usize::MAX);
            let skipped = if self.rest.is_empty() {
                let mut space = [MaybeUninit::uninit(); SKIPPED_AT_A_TIME];
                let space = space.get_mut(..most.min(SKIPPED_AT_A_TIME)).unwrap_or_default();
                let mut buffer = ReadBuf::uninit(space);
                ready!(self.poll_stream(context, &mut buffer))?;
                buffer.filled().len()
            } else {
                self.rest.drain(..most.min(self.rest.len())).len()
            };
            if skipped == 0 {
                return Poll::Ready(Ok(false));
            }
            self.frames.skipped(skipped);
        }
        Poll::Ready(Ok(true))
    }

    /// Reads bytes and passes on those that the frame parser allows. Returns the counts of both.
    fn poll_frames(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<(usize, usize)>> {
        let before = buffer.filled().len();
        let mut rest = std::mem::take(&mut self.rest);
        if rest.is_empty() {
            ready!(self.poll_stream(context, buffer))?;
        } else {
            let now = rest.len().min(buffer.remaining());
            buffer.put_slice(rest.drain(..now).as_slice());
        }
        let news = buffer.filled().get(before..).unwrap_or_default();
        let (came, taken) = (news.len(), self.frames.read(news)?);
        if taken < came {
            let back = news.iter().skip(taken).copied();
            rest.splice(..0, back);
            buffer.set_filled(before + taken);
        }
        self.rest = rest;
        Poll::Ready(Ok((came, taken)))
    }

    /// Starts the deadline of a stalled write, and clears it when the write proceeds.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(STALL_MAX)));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        metrics::gauge!("galley_connections").decrement(1.0);
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if !ready!(self.poll_skip(context))? {
                return Poll::Ready(Ok(()));
            }
            let (came, taken) = ready!(self.poll_frames(context, buffer))?;
            // The reader takes zero bytes as the end of the connection.
            if taken != 0 || came == 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReadRate {
    bytes: usize,
    within: Duration,
}

/// Throttles the reads of a connection. Reads the clock once per `bytes` of the rate.
struct ReadThrottle {
    rate: ReadRate,
    left: usize,
    since: Instant,
    /// The end of the current pause in reading.
    pause: Option<Pin<Box<Sleep>>>,
}

impl ReadThrottle {
    fn new(rate: ReadRate) -> Self {
        Self { rate, left: rate.bytes, since: Instant::now(), pause: None }
    }

    fn read(&mut self, bytes: usize, rate: ReadRate) {
        if self.rate != rate {
            *self = Self::new(rate);
        }
        self.left = self.left.saturating_sub(bytes);
        if self.left != 0 {
            return;
        }
        let (now, due) = (Instant::now(), self.since + rate.within);
        if now < due {
            self.pause = Some(Box::pin(sleep_until(due)));
        }
        (self.left, self.since) = (rate.bytes, due.max(now));
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn g13_a_client_that_sends_too_much_is_throttled() {
        let began = Instant::now();
        let mut pace = ReadThrottle::new(READING);
        for _ in 0..80 {
            pace.read(1_024 * 1_024, READING);
            futures_util::future::OptionFuture::from(pace.pause.take()).await;
        }
        assert_eq!(began.elapsed(), Duration::from_secs(10));
        // After a quiet minute a client has its whole burst again.
        sleep(Duration::from_secs(60)).await;
        pace.read(READING.bytes, READING);
        assert!(pace.pause.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn g17_a_waiter_is_read_in_short_steps_until_it_has_its_seat() {
        let began = Instant::now();
        let mut pace = ReadThrottle::new(READING);
        for _ in 0..128 {
            pace.read(SKIPPED_AT_A_TIME, READING_A_WAITER);
            futures_util::future::OptionFuture::from(pace.pause.take()).await;
        }
        assert_eq!(began.elapsed(), Duration::from_secs(2));
        pace.read(4 * 1_024 * 1_024, READING);
        assert!(pace.pause.is_none());
    }
}
