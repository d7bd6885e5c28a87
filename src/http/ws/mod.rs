//! The websocket: `GET /ws/share-links/{id}/{role}` (CONTRACT §4).
//!
//! A refusal is a close code after the handshake, because a browser does not show a page why a
//! handshake failed. The one exception is a foreign `Origin`: that page is not to get a socket.

pub(super) mod inbound;
mod params;
pub mod upgrade;
mod waiting;

use std::collections::HashMap;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::HttpBody as _;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, Request, State};
use axum::http::header::ORIGIN;
use axum::http::{Extensions, HeaderMap};
use axum::response::Response;
use bytes::Bytes;
use chrono::Utc;
use futures_util::SinkExt as _;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::domain::limits::LONG_MESSAGE_BYTES;
use crate::domain::seat::Seat;
use crate::http::HttpState;
use crate::http::auth::caller::{By, Presented};
use crate::http::auth::tokens::Identity;
use crate::http::byte_budget::Payer;
use crate::http::error::ApiError;
use crate::http::extract::Path;
use crate::http::limit::Peer;
use crate::http::origin::OriginCheck;
use crate::http::tarpit::Tarpit;
use crate::http::ws::inbound::Inbound;
use crate::http::ws::params::{PROTOCOL, ask, identify, offered_tokens};
use crate::http::ws::waiting::{Early, Guest};
use crate::outbox::close::Close;
use crate::outbox::{OutboxReader, Outgoing};
use crate::seats::Sessions;
use crate::seats::claim::Ask;
use crate::seats::handle::{Ending, Seated};

/// What is read at a time, kept for as long as a socket lives: the largest part of what an idle one
/// takes. tungstenite's own choice is 128 KiB. A keystroke has some forty bytes, a cursor three
/// hundred; what is longer is read in parts.
const READ_BUFFER_BYTES: usize = 2 * 1_024;
/// Written bytes that are gathered before the kernel is given them.
const WRITE_BUFFER_BYTES: usize = 4 * 1_024;
/// What may wait in the write buffer beyond one message.
const WRITE_SLACK_BYTES: usize = 64 * 1_024;
/// Messages that are handed to the kernel with another.
const SENT_TOGETHER_MAX: usize = 64;
/// How long they may take to be handed to it before the reader counts as gone.
const SEND_PATIENCE: Duration = Duration::from_secs(10);
/// How long the other end has to answer a close.
const LINGER: Duration = Duration::from_secs(1);
/// The answer to who opens websockets too often. A stock client comes back a tenth of a second after
/// a close, so it is held back.
const TOO_MANY_JOINS: Close = Close::TooMuch("too-many-joins");
/// A socket is closed so if the budget rejects the bytes of its unfinished message.
const TOO_MANY_BYTES: Close = Close::TooMuch("too-many-bytes");
const JOIN_DELAY: Duration = Duration::from_secs(1);
/// What a socket is told that outlives its token, in the line or on the seat.
const TOKEN_EXPIRED: Close = Close::Unauthenticated("token-expired");

/// Where a socket comes from: its address, and what counts the bytes of its connection.
pub(crate) struct From {
    peer: Peer,
    inbound: Arc<Inbound>,
}

impl From {
    /// What the accept loop put beside the request.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let peer = extensions.get::<Peer>().copied().unwrap_or_default();
        Self { peer, inbound: extensions.get().cloned().unwrap_or_default() }
    }
}

/// `GET /ws/share-links/{id}/{role}`
pub(crate) async fn connect(
    State(state): State<HttpState>,
    presented: Option<Extension<Presented>>,
    Path((link, role)): Path<(String, String)>,
    Query(pairs): Query<Vec<(String, String)>>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
    request: Request,
) -> Result<Response, ApiError> {
    let presented = presented.map_or(Presented::Nothing, |Extension(presented)| presented);
    let from = From::of(request.extensions());
    if !request.body().is_end_stream() {
        return Err(ApiError::Malformed("a websocket has no body".to_owned()));
    }
    open(&state, presented, (&link, &role), from, pairs, &headers, upgrade)
}

/// The same, for who has taken the request apart already.
pub(crate) fn open(
    state: &HttpState,
    presented: Presented,
    (link, role): (&str, &str),
    From { peer, inbound }: From,
    mut pairs: Vec<(String, String)>,
    headers: &HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, ApiError> {
    let HttpState { sessions, tokens, origins, tarpit, limiter, security_log, budget, .. } = state;
    pairs.extend(offered_tokens(headers));
    let named = pairs.len();
    let query: HashMap<_, _> = pairs.into_iter().collect();
    let origin = origins.check(headers);
    let by_cookie = matches!(&presented, Presented::Person { by: By::Cookie, .. });
    match origin {
        OriginCheck::Ours => {}
        OriginCheck::Missing if !by_cookie || query.contains_key("token") => {}
        OriginCheck::Missing | OriginCheck::Foreign => {
            security_log.origin_refused(headers.get(ORIGIN), origins, peer);
            return Err(ApiError::ForeignOrigin);
        }
    }
    let log = |cause| security_log.token_refused(cause, peer);
    if !inbound.is_at_end() {
        let rule = "a client waits for the answer before it sends frames";
        return Err(ApiError::Malformed(rule.to_owned()));
    }
    let identity = identify(tokens, presented, &query, log);
    let user = identity.as_ref().ok().map(|identity| &identity.user.id);
    let may_join = limiter.may_join(user, peer);
    let payer = Payer::of(user, peer);
    inbound.begin(budget.open(payer.clone()));
    inbound.begin_wait(sessions.limits().message_bytes as u64);
    let asked = identity.and_then(|identity| {
        if query.len() < named {
            // Which of the two is meant, is nobody's guess.
            return Err(Close::Malformed("query"));
        }
        let store_budget = state.guest_bytes.budget_of(&identity, peer);
        let ask = Ask { store_budget, ..ask(&identity, link, role, &query)? };
        Ok((ask, identity))
    });
    let (message_bytes, document_bytes) =
        (sessions.limits().message_bytes, sessions.limits().document_bytes);
    let knock = match asked {
        _ if !may_join => Err((TOO_MANY_JOINS, JOIN_DELAY)),
        Ok((ask, identity)) => {
            let (sessions, tarpit) = (sessions.clone(), tarpit.clone());
            let early = Early::new(budget.open(payer));
            Ok(Box::new(Knock { sessions, ask, identity, tarpit, early }))
        }
        Err(close) => Err((close, Duration::ZERO)),
    };
    Ok(upgrade
        .protocols([PROTOCOL])
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_write_buffer_size(document_bytes * 2 + WRITE_SLACK_BYTES)
        // Above our own limit, so that a message a little over it still gets its close code.
        .max_message_size(message_bytes + WRITE_SLACK_BYTES)
        .max_frame_size(message_bytes + WRITE_SLACK_BYTES)
        .on_upgrade(move |socket| serve(Box::new(Wire { socket, inbound, long: None }), knock)))
}

/// A socket at the door.
struct Knock {
    sessions: Sessions,
    ask: Ask,
    identity: Identity,
    tarpit: Tarpit,
    early: Early,
}

/// A socket whose session has been seated.
struct Sat {
    seated: Seated,
    /// What the client sent before.
    early: Vec<Bytes>,
    outbox: OutboxReader,
    valid_until: Instant,
}

/// Seats the session and serves its socket until either ends.
///
/// Coming and going are boxed: they take more room than sitting does, and people sit for hours. So is
/// what is handed on, which would have its place in each task that hands it on.
async fn serve(mut wire: Box<Wire>, knock: Result<Box<Knock>, (Close, Duration)>) {
    let Some(mut sat) = Box::pin(wire.admit(knock)).await else { return };
    let ending = wire.run(&mut sat).await;
    Box::pin(async {
        sat.seated.leave(ending).await;
        wire.linger().await;
    })
    .await;
}

/// Both directions of a socket.
struct Wire {
    socket: WebSocket,
    /// Bytes of a message that is not whole yet.
    inbound: Arc<Inbound>,
    /// The last message, if it was long, until the next one is read.
    long: Option<Bytes>,
}

impl Wire {
    /// Seats the session. None if that came to nothing; the socket is at its end then.
    async fn admit(&mut self, knock: Result<Box<Knock>, (Close, Duration)>) -> Option<Box<Sat>> {
        let Knock { sessions, ask, identity, tarpit, early } = match knock {
            Ok(knock) => *knock,
            Err((close, delay)) => {
                self.refuse(close, delay).await;
                return None;
            }
        };
        let (user, seat) = (ask.user.id.clone(), Seat::new(ask.link, ask.role));
        let wants_events = ask.wants_events;
        let knocked_at = Instant::now();
        let gone = ask.gone.clone();
        let arriving = ask.arriving.clone();
        let (outbox, mut queue) = sessions.outbox();
        let valid_for = (identity.expires_at - Utc::now()).to_std().unwrap_or_default();
        let valid_until = Instant::now() + valid_for;
        let silence_max = sessions.terms().client_timeout;
        let guest = Guest { arriving, silence_max, valid_until };
        let sitting = sessions.sit(ask, outbox);
        let (seated, mut early) = self.wait_for(sitting, &mut queue, &gone, guest, early).await;
        let seated = match seated.map_err(|close| early.close.clone().unwrap_or(close)) {
            Ok(seated) => seated,
            Err(close) => {
                let is_taken = matches!(close, Close::SeatTaken { .. });
                // A page that understands events understands close codes too, and stays away.
                let delay = if is_taken && !wants_events {
                    tarpit.delay(&user, seat, knocked_at)
                } else if close == TOO_MANY_BYTES {
                    // Or a client that is closed at once sends as much again at once.
                    JOIN_DELAY
                } else {
                    Duration::ZERO
                };
                // What it was told last, in the line, comes before why it ends.
                if let Some(last) = queue.ready().and_then(|last| message(last).ok()) {
                    self.send(last, &queue).await;
                }
                self.refuse(close, delay).await;
                return None;
            }
        };
        tarpit.forgive(&user, seat);
        self.inbound.end_wait();
        if gone.is_cancelled() {
            // It never sat: there is nothing to come back to.
            if let Some(close) = &early.close {
                self.close(close).await;
            }
            seated.leave(Ending::Closed).await;
            self.linger().await;
            return None;
        }
        Some(Box::new(Sat { seated, early: early.take_messages(), outbox: queue, valid_until }))
    }

    /// Says why not, after a while, and ends the socket.
    async fn refuse(&mut self, close: Close, delay: Duration) {
        tracing::debug!(%close, "a socket was refused");
        sleep(delay).await;
        self.close(&close).await;
        self.linger().await;
    }

    /// Carries messages both ways until one side ends or the token does.
    async fn run(&mut self, sat: &mut Sat) -> Ending {
        let Sat { seated, early, outbox, valid_until } = sat;
        let early = std::mem::take(early);
        // It was seated in the moment in which its token ended.
        if *valid_until <= Instant::now() {
            self.close(&TOKEN_EXPIRED).await;
            return Ending::Closed;
        }
        let told = early.iter().try_for_each(|message| seated.receive(message));
        if let Err(close) = told {
            self.close(&close).await;
            return Ending::Closed;
        }
        // One timer for the socket's life, and not one for each message.
        let mut token_expired = pin!(sleep_until(*valid_until));
        loop {
            let close = tokio::select! {
                outgoing = outbox.next() => match message(outgoing) {
                    Ok(message) => {
                        if self.send(message, outbox).await {
                            continue;
                        }
                        return Ending::Broken;
                    }
                    Err(close) => close,
                },
                incoming = self.recv() => match take(seated, incoming) {
                    Taken::More => continue,
                    Taken::End(ending) => return ending,
                    Taken::Close(close) => close,
                },
                () = &mut token_expired => TOKEN_EXPIRED,
            };
            tracing::debug!(%close, "a socket was closed");
            self.close(&close).await;
            return Ending::Closed;
        }
    }

    /// Sends a message, and those that wait behind it. False when the other end is gone, or reads so
    /// slowly that it might as well be.
    async fn send(&mut self, first: Message, outbox: &OutboxReader) -> bool {
        tokio::select! {
            // Most are sent at once, and nothing is set up then for those that are not.
            biased;
            sent = timeout(SEND_PATIENCE, self.hand_over(first, outbox)) => match sent {
                Ok(sent) => sent.is_ok(),
                Err(_elapsed) => {
                    tracing::debug!("a socket was cut that takes nothing");
                    false
                }
            },
            () = outbox.overdue() => {
                tracing::debug!("a socket was cut that took nothing before its close");
                false
            }
        }
    }

    /// As few writes as can be: one costs more than all else that is done for a message.
    async fn hand_over(
        &mut self,
        first: Message,
        outbox: &OutboxReader,
    ) -> Result<(), axum::Error> {
        self.socket.feed(first).await?;
        let waiting = std::iter::from_fn(|| outbox.ready().and_then(|next| message(next).ok()));
        for next in waiting.take(SENT_TOGETHER_MAX) {
            self.socket.feed(next).await?;
        }
        self.socket.flush().await
    }

    /// The next message.
    ///
    /// A long one shares the library's read buffer, which would keep its size for the socket's life. The
    /// library takes a new buffer if the message is still there when it begins to read the next one.
    async fn recv(&mut self) -> Option<Result<Message, axum::Error>> {
        let Self { socket, inbound, long } = self;
        let mut receiving = pin!(socket.recv());
        let incoming = poll_fn(|context| {
            let polled = receiving.as_mut().poll(context);
            if let Some(message) = long.take() {
                inbound.release(message.len() as u64);
            }
            polled
        });
        let incoming = incoming.await;
        match &incoming {
            Some(Ok(Message::Binary(message))) if LONG_MESSAGE_BYTES < message.len() as u64 => {
                *long = Some(message.clone());
            }
            Some(Ok(Message::Binary(message))) => inbound.release(message.len() as u64),
            // The others have no counted bytes, or the socket ends with them.
            Some(_) | None => {}
        }
        incoming
    }

    async fn close(&mut self, close: &Close) {
        let frame = CloseFrame { code: close.code(), reason: close.reason().into() };
        // Gone already: then it needs no reason.
        let _told = timeout(LINGER, self.socket.send(Message::Close(Some(frame)))).await;
    }

    /// Waits for the other end's close, so that ours is read before the connection is reset.
    async fn linger(&mut self) {
        let rest = async { while let Some(Ok(_)) = self.socket.recv().await {} };
        let _gone = timeout(LINGER, rest).await;
    }
}

/// What is sent for it, or why the socket ends.
fn message(outgoing: Outgoing) -> Result<Message, Close> {
    match outgoing {
        Outgoing::Frame(frame) => Ok(Message::Binary(frame)),
        Outgoing::Ping(number) => Ok(Message::Ping(number)),
        Outgoing::Close(close) => Err(close),
    }
}

/// What an incoming message means for the socket.
enum Taken {
    More,
    Close(Close),
    End(Ending),
}

fn take(seated: &Seated, incoming: Option<Result<Message, axum::Error>>) -> Taken {
    match incoming {
        Some(Ok(message)) => {
            seated.heard();
            match message {
                Message::Binary(message) => match seated.receive(&message) {
                    Ok(()) => Taken::More,
                    Err(close) => Taken::Close(close),
                },
                Message::Text(_) => Taken::Close(Close::Malformed("text-frame")),
                Message::Pong(number) => {
                    seated.answered(&number);
                    Taken::More
                }
                Message::Ping(_) => Taken::More,
                Message::Close(_) => Taken::End(Ending::Closed),
            }
        }
        Some(Err(error)) => fault_of(error).map_or(Taken::End(Ending::Broken), Taken::Close),
        None => Taken::End(Ending::Broken),
    }
}

/// What the other end did wrong, if it is not just gone.
fn fault_of(error: axum::Error) -> Option<Close> {
    use tungstenite::Error as Is;
    use tungstenite::error::ProtocolError;
    match error.into_inner().downcast_ref()? {
        Is::Capacity(_) => Some(Close::TooLarge("message")),
        Is::Io(error) if error.kind() == ErrorKind::QuotaExceeded => Some(TOO_MANY_BYTES),
        Is::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
        Is::Protocol(_) | Is::Utf8(_) => Some(Close::Malformed("websocket")),
        _ => None,
    }
}
