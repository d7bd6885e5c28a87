//! The websocket: `GET /ws/share-links/{id}/{role}` (`src/http/PROTOCOL.md`, *The websocket*).
//!
//! A refusal is a close code after the handshake, because a browser hides the cause of a failed
//! handshake from the page. A page of a foreign origin learns nothing more: its credential is not read.

pub(super) mod inbound;
mod params;
mod socket;
mod term;
mod waiting;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::HttpBody as _;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::extract::{Query, Request, State};
use axum::http::header::ORIGIN;
use axum::http::{Extensions, HeaderMap};
use axum::response::Response;
use bytes::Bytes;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::Instrument as _;

use crate::domain::seat::Seat;
use crate::http::HttpState;
use crate::http::auth::credential::{Credential, CredentialSource};
use crate::http::byte_budget::Payer;
use crate::http::error::ApiError;
use crate::http::extract::Path;
use crate::http::origin::OriginCheck;
use crate::http::peer::Peer;
use crate::http::request_id::RequestNames;
use crate::http::request_log::SOCKET;
use crate::http::security_log::SocketLog;
use crate::http::tarpit::Tarpit;
use crate::http::ws::inbound::Inbound;
use crate::http::ws::params::{PROTOCOL, identify, offered_tokens, seat_request};
use crate::http::ws::socket::{Socket, TOO_MANY_BYTES, fault_of, message};
use crate::http::ws::term::Term;
use crate::http::ws::waiting::{EarlyMessages, UnseatedSocket};
use crate::outbox::OutboxReader;
use crate::outbox::close::Close;
use crate::seats::Seats;
use crate::seats::claim::SeatRequest;
use crate::seats::handle::{SeatHandle, SocketEnd, TOO_MANY_MESSAGES};
use crate::storage::trace;
use crate::yjs::protocol;

/// Bytes of messages that the server stores for a waiter before the grant. A waiting client sends
/// one sync request and cursors; the server requests its edits after the grant.
const EARLY_BYTES_MAX: usize = 64 * 1024;

/// The read buffer is the largest part of an idle socket's memory; tungstenite's default is 128 KiB. A
/// keystroke has some forty bytes, a cursor three hundred; the library reads longer messages in parts.
const READ_BUFFER_BYTES: usize = 1_024;
/// Bytes that the library collects before it writes to the kernel.
const WRITE_BUFFER_BYTES: usize = 4 * 1_024;
/// Bytes that the write buffer holds beyond one message.
const WRITE_SLACK_BYTES: usize = 64 * 1_024;
/// The longest pause of reads. It is shorter than a seat tick, so that a paused socket reads on before its client
/// counts as silent.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A stock client reconnects a tenth of a second after a close, so the server delays it.
const TOO_MANY_JOINS: Close = Close::TooMuch("too-many-joins");
const JOIN_DELAY: Duration = Duration::from_secs(1);

pub(crate) struct From {
    peer: Peer,
    inbound: Arc<Inbound>,
    names: RequestNames,
}

impl From {
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let peer = extensions.get::<Peer>().copied().unwrap_or_default();
        let names = RequestNames::of(extensions);
        Self { peer, inbound: extensions.get().cloned().unwrap_or_default(), names }
    }
}

/// `GET /ws/share-links/{id}/{role}`
pub(crate) async fn connect(
    State(state): State<HttpState>,
    presented: Option<Extension<Credential>>,
    Path((link, role)): Path<(String, String)>,
    Query(pairs): Query<Vec<(String, String)>>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
    request: Request,
) -> Result<Response, ApiError> {
    let presented = presented.map_or(Credential::Nothing, |Extension(presented)| presented);
    let from = From::of(request.extensions());
    if !request.body().is_end_stream() {
        return Err(ApiError::Malformed("a websocket has no body".to_owned()));
    }
    open(&state, presented, (&link, &role), from, pairs, &headers, upgrade)
}

/// Opens a socket for a request that its caller has parsed: the router or the short path before it.
pub(crate) fn open(
    state: &HttpState,
    presented: Credential,
    (link, role): (&str, &str),
    From { peer, inbound, names }: From,
    mut pairs: Vec<(String, String)>,
    headers: &HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, ApiError> {
    let HttpState { seats, tokens, origins, tarpit, limiter, security_log, budget, .. } = state;
    pairs.extend(offered_tokens(headers));
    let named = pairs.len();
    let query: HashMap<_, _> = pairs.into_iter().collect();
    let origin = origins.check(headers);
    let by_cookie = matches!(&presented, Credential::Person { by: CredentialSource::Cookie, .. });
    let is_foreign = match origin {
        OriginCheck::Ours => false,
        OriginCheck::Missing | OriginCheck::Allowed => by_cookie && !query.contains_key("token"),
        OriginCheck::Foreign => true,
    };
    if is_foreign {
        security_log.origin_refused(headers.get(ORIGIN), origins, peer);
    }
    let log = |cause| security_log.token_refused(cause, peer);
    if !inbound.is_at_end() {
        let rule = "a client waits for the answer before it sends frames";
        return Err(ApiError::Malformed(rule.to_owned()));
    }
    let identity = match is_foreign {
        true => Err(Close::Forbidden("foreign-origin")),
        false => identify(tokens, presented, &query, log),
    };
    let user = identity.as_ref().ok().map(|identity| &identity.user.id);
    let may_join = limiter.may_join(user, peer);
    let of_socket = Box::new(SocketLog {
        log: security_log.clone(),
        server: seats.node(),
        seat: link.parse().ok().zip(role.parse().ok()).map(|(link, role)| Seat::new(link, role)),
        user: user.cloned(),
        peer,
        since: Instant::now(),
    });
    let payer = Payer::of(user, peer);
    // Above the server's own limit, so that a slightly longer message still gets its close code.
    let longest = seats.limits().message_bytes + WRITE_SLACK_BYTES;
    inbound.begin(budget.open(payer.clone()), longest as u64);
    inbound.begin_wait(seats.limits().message_bytes as u64);
    let claim = identity.and_then(|identity| {
        if query.len() < named {
            // A repeated parameter is ambiguous.
            return Err(Close::Malformed("query"));
        }
        let store_budget = state.guest_budgets.budget_of(&identity, peer);
        let request = SeatRequest { store_budget, ..seat_request(&identity, link, role, &query)? };
        Ok((request, Term::of(tokens, &identity)))
    });
    let document_bytes = seats.limits().document_bytes;
    let admission = match claim {
        _ if !may_join => Err((TOO_MANY_JOINS, JOIN_DELAY)),
        Ok((request, term)) => {
            let (seats, tarpit) = (seats.clone(), tarpit.clone());
            let early = EarlyMessages::new(budget.open(payer));
            Ok(Box::new(Admission { seats, request, term, tarpit, early }))
        }
        Err(close) => Err((close, Duration::ZERO)),
    };
    Ok(upgrade
        .protocols([PROTOCOL])
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_write_buffer_size(document_bytes * 2 + WRITE_SLACK_BYTES)
        .max_message_size(longest)
        .max_frame_size(longest)
        .on_upgrade(move |socket| {
            serve(Box::new(Socket::new(socket, inbound)), of_socket, admission, names)
        }))
}

struct Admission {
    seats: Seats,
    request: SeatRequest,
    term: Term,
    tarpit: Tarpit,
    early: EarlyMessages,
}

struct SeatedSocket {
    seated: SeatHandle,
    /// The messages that the client sent before the grant.
    early: Vec<Bytes>,
    outbox: OutboxReader,
    term: Term,
}

/// The futures of the claim and of the end are boxed: they are larger than that of the session, which
/// lives for hours. The arguments are boxed too, or each task on the way would reserve room for them.
///
/// Their log lines are in the span of the request, which no message enters.
async fn serve(
    mut socket: Box<Socket>,
    mut log: Box<SocketLog>,
    admission: Result<Box<Admission>, (Close, Duration)>,
    names: RequestNames,
) {
    let span = || names.span("GET", SOCKET);
    let admitting = trace::within(names.trace(), Box::pin(socket.admit(&mut log, admission)));
    let Some(mut seated_socket) = admitting.instrument(span()).await else { return };
    let ending = socket.run(&mut seated_socket).await;
    let leaving = async {
        log.ended(&ending, seated_socket.seated.session());
        seated_socket.seated.leave(ending).await;
        socket.linger().await;
    };
    Box::pin(leaving).instrument(span()).await;
}

impl Socket {
    /// Acquires the seat. `None` if the claim failed; the socket is closed then.
    async fn admit(
        &mut self,
        log: &mut SocketLog,
        admission: Result<Box<Admission>, (Close, Duration)>,
    ) -> Option<Box<SeatedSocket>> {
        let Admission { seats, request, mut term, tarpit, early } = match admission {
            Ok(admission) => *admission,
            Err((close, delay)) => {
                log.refused(&close, None);
                self.refuse(close, delay).await;
                return None;
            }
        };
        let (user, seat) = (request.user.id.clone(), Seat::new(request.link, request.role));
        let wants_events = request.wants_events;
        let claimed_at = Instant::now();
        let gone = request.gone.clone();
        let arriving = request.arriving.clone();
        let (outbox, mut queue) = seats.outbox();
        term.list(outbox.clone());
        let silence_max = seats.terms().client_timeout;
        let payer = (Arc::clone(seats.budgets()), user.clone());
        let unseated = UnseatedSocket { arriving: arriving.clone(), silence_max, payer };
        let claim = seats.acquire_seat(request, outbox);
        let waiting = self.wait_for(claim, &mut queue, &gone, unseated, early, &mut term);
        let (seated, mut early) = waiting.await;
        let seated = match seated.map_err(|close| early.close.clone().unwrap_or(close)) {
            Ok(seated) => seated,
            Err(close) => {
                log.refused(&close, arriving.session());
                let is_taken = matches!(close, Close::SeatTaken { .. });
                // A page that supports events reads close codes too, and does not reconnect.
                let delay = if is_taken && !wants_events {
                    tarpit.delay(&user, seat, claimed_at)
                } else if close == TOO_MANY_BYTES || close == TOO_MANY_MESSAGES {
                    // A client that is closed at once would send as much again at once.
                    JOIN_DELAY
                } else {
                    Duration::ZERO
                };
                // The last queue position precedes the close.
                if let Some(last) = queue.ready().and_then(|last| message(last).ok()) {
                    self.send(last, &queue).await;
                }
                self.refuse(close, delay).await;
                return None;
            }
        };
        tarpit.forgive(&user, seat);
        self.inbound.end_wait();
        log.since = Instant::now();
        if gone.is_cancelled() {
            // The socket ended before its session held the seat: there is nothing to resume.
            if let Some(close) = &early.close {
                self.close(close).await;
            }
            let ending = SocketEnd::Closed(early.close.unwrap_or(Close::Left));
            log.ended(&ending, seated.session());
            seated.leave(ending).await;
            self.linger().await;
            return None;
        }
        Some(Box::new(SeatedSocket { seated, early: early.take_messages(), outbox: queue, term }))
    }

    async fn refuse(&mut self, close: Close, delay: Duration) {
        sleep(delay).await;
        self.close(&close).await;
        self.linger().await;
    }

    /// Carries messages both ways until one side ends or the token expires.
    async fn run(&mut self, seated_socket: &mut SeatedSocket) -> SocketEnd {
        let SeatedSocket { seated, early, outbox, term } = seated_socket;
        let early = std::mem::take(early);
        // The token expired at the moment of the grant.
        let is_over = term.ends_at() <= Instant::now();
        let begun = if is_over { term.end() } else { Ok(()) };
        let receive = |()| early.iter().try_for_each(|message| seated.receive(message));
        if let Err(close) = begun.and_then(receive) {
            self.close(&close).await;
            return SocketEnd::Closed(close);
        }
        // One timer for the socket's life instead of one per message.
        let mut token_expired = pin!(sleep_until(term.ends_at()));
        // Boxed: a socket hardly ever pauses, and would reserve room for it.
        let mut pause = None;
        loop {
            let close = tokio::select! {
                outgoing = outbox.next() => match message(outgoing) {
                    Ok(message) => {
                        if self.send(message, outbox).await {
                            continue;
                        }
                        return SocketEnd::Broken;
                    }
                    Err(close) => close,
                },
                () = async { if let Some(pause) = &mut pause { pause.await } }, if pause.is_some() => {
                    pause = None;
                    continue;
                }
                incoming = self.recv(), if pause.is_none() => match take(seated, term, incoming) {
                    Received::Renewed => {
                        token_expired.as_mut().reset(term.ends_at());
                        continue;
                    }
                    Received::More => {
                        pause = seated.pause(PAUSE_MAX);
                        continue;
                    }
                    Received::End(ending) => return ending,
                    Received::Close(close) => close,
                },
                () = &mut token_expired => match term.end() {
                    Ok(()) => {
                        token_expired.as_mut().reset(term.ends_at());
                        continue;
                    }
                    Err(close) => close,
                },
            };
            self.close(&close).await;
            return SocketEnd::Closed(close);
        }
    }
}

/// The effect of an incoming message on the socket.
enum Received {
    More,
    /// The socket has a new end.
    Renewed,
    Close(Close),
    End(SocketEnd),
}

impl Received {
    fn of(received: Result<(), Close>) -> Self {
        received.map_or_else(Self::Close, |()| Self::More)
    }
}

fn take(
    seated: &SeatHandle,
    term: &mut Term,
    incoming: Option<Result<Message, axum::Error>>,
) -> Received {
    match incoming {
        Some(Ok(message)) => {
            seated.heard();
            match message {
                Message::Binary(message) => match protocol::renewal(&message) {
                    Some(token) => {
                        let renewed = seated.count_message().and_then(|()| term.renew(token));
                        renewed.map_or_else(Received::Close, |()| Received::Renewed)
                    }
                    None => Received::of(seated.receive(&message)),
                },
                Message::Text(_) => Received::Close(Close::Malformed("text-frame")),
                Message::Pong(number) => {
                    seated.answered(&number);
                    Received::of(seated.count_message())
                }
                Message::Ping(_) => Received::of(seated.count_message()),
                Message::Close(_) => Received::End(SocketEnd::Closed(Close::Left)),
            }
        }
        Some(Err(error)) => {
            fault_of(error).map_or(Received::End(SocketEnd::Broken), Received::Close)
        }
        None => Received::End(SocketEnd::Broken),
    }
}
