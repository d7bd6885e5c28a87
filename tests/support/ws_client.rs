//! A client that speaks the y-websocket protocol and holds a real Yjs document.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use galley::yjs::awareness::{AwarenessEntry, decode_awareness, encode_awareness};
use galley::yjs::protocol::{self, ClientFrame};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use tokio_util::task::TaskTracker;
use yrs::updates::decoder::Decode;
use yrs::updates::encoder::Encode;
use yrs::{
    Assoc, Doc, GetString, IndexedSequence as _, OffsetKind, Options, ReadTxn, StateVector, Text,
    TextRef, Transact, Update,
};

use crate::support::contract;
use crate::support::redis_server::TEST_TIMEOUT;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A connected client. A background task serves its socket; dropping the client cuts the connection without a
/// close.
pub(crate) struct Peer {
    state: Arc<Mutex<State>>,
    changed: watch::Receiver<u64>,
    outgoing: mpsc::UnboundedSender<Message>,
    task: AbortHandle,
}

/// The messages that arrived.
pub(crate) struct State {
    doc: Doc,
    content: TextRef,
    pub(crate) events: Vec<Value>,
    pub(crate) presence: BTreeMap<u64, (u64, Option<Value>)>,
    pub(crate) closed: Option<(u16, String)>,
    synced: bool,
    /// The last edit inserted text: a state vector that covers this document names it.
    is_last_edit_named: bool,
    /// Empty frames, which stop a stock client from counting the silence as a lost connection.
    pub(crate) keep_alives: usize,
    clock: u64,
}

impl Peer {
    pub(crate) async fn connect(
        url: &str,
        link: &str,
        role: &str,
        token: &str,
        query: &str,
    ) -> Self {
        let request = request(url, link, role, token, query);
        let connecting = timeout(TEST_TIMEOUT, connect_async(request));
        let (socket, _) = connecting.await.expect("an answer in time").expect("a handshake");
        Self::over(socket, empty())
    }

    /// Connects with an existing document. `None`: no server accepts the connection.
    pub(crate) async fn come(
        url: &str,
        link: &str,
        role: &str,
        token: &str,
        query: &str,
        doc: Doc,
    ) -> Option<Self> {
        let request = request(url, link, role, token, query);
        let (socket, _) = timeout(TEST_TIMEOUT, connect_async(request)).await.ok()?.ok()?;
        Some(Self::over(socket, doc))
    }

    fn over(socket: Socket, doc: Doc) -> Self {
        let content = doc.get_or_insert_text("content");
        let state = State {
            doc,
            content,
            events: Vec::new(),
            presence: BTreeMap::new(),
            closed: None,
            synced: false,
            is_last_edit_named: true,
            keep_alives: 0,
            clock: 0,
        };
        let state = Arc::new(Mutex::new(state));
        let (outgoing, queue) = mpsc::unbounded_channel();
        let (change, changed) = watch::channel(0);
        let task = TaskTracker::new().spawn(serve(socket, Arc::clone(&state), queue, change));
        let peer = Self { state, changed, outgoing, task: task.abort_handle() };
        let hello = peer.look(|state| state.doc.transact().state_vector().encode_v1());
        peer.send(protocol::sync_step1(&hello));
        peer
    }

    /// Reads the state so far.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().expect("no panic in a test's own socket"))
    }

    /// Waits until `look` returns a value.
    #[track_caller]
    pub(crate) fn until<T>(
        &self,
        what: &str,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> impl Future<Output = T> {
        let (mut changed, what) = (self.changed.clone(), what.to_owned());
        let caller = std::panic::Location::caller();
        let mut found = None;
        async move {
            // Runs now, and again after each message and at the end of the socket.
            let seen = changed.wait_for(|_| {
                found = self.look(&mut look);
                found.is_some()
            });
            let _ended = timeout(TEST_TIMEOUT, seen).await;
            let found = found.or_else(|| self.look(&mut look));
            found.unwrap_or_else(|| {
                let (events, closed) = self.look(|s| (s.events.clone(), s.closed.clone()));
                panic!("{caller}: never saw {what}; closed {closed:?}; events {events:#?}")
            })
        }
    }

    /// Waits for the first event of that name, and takes it.
    #[track_caller]
    pub(crate) fn event(&self, name: &str) -> impl Future<Output = Value> {
        let wanted = name.to_owned();
        self.until(name, move |state| {
            let index = state.events.iter().position(|event| event["event"] == wanted)?;
            Some(state.events.remove(index))
        })
    }

    #[track_caller]
    pub(crate) fn synced(&self) -> impl Future<Output = ()> {
        self.until("sync step 2", |state| state.synced.then_some(()))
    }

    /// Waits for sync step 2. False: the socket ended before it came.
    pub(crate) async fn becomes_synced(&self) -> bool {
        self.until("sync step 2, or an end", |state| {
            (state.synced || state.closed.is_some()).then_some(state.synced)
        })
        .await
    }

    /// All events that were not taken yet.
    pub(crate) fn take_events(&self) -> Vec<Value> {
        self.look(|state| std::mem::take(&mut state.events))
    }

    /// The clock up to which a `document.saved` names the edits of that client.
    pub(crate) fn saved_in(event: &Value, client: u64) -> Option<u32> {
        let bytes = decode_base64(event["state_vector"].as_str()?);
        let saved = StateVector::decode_v1(&bytes).ok()?;
        Some(saved.get(&yrs::block::ClientID::new(client)))
    }

    /// The clock up to which `document.saved` has named this client's edits.
    pub(crate) fn is_saved_to(&self) -> u32 {
        let client = self.client_id();
        self.look(|state| {
            let named = state.events.iter().filter_map(|event| Self::saved_in(event, client));
            named.max().unwrap_or_default()
        })
    }

    /// Waits for the end of the socket; returns its close code and reason.
    #[track_caller]
    pub(crate) fn closed(&self) -> impl Future<Output = (u16, String)> {
        self.until("a close", |state| state.closed.clone())
    }

    pub(crate) fn is_open(&self) -> bool {
        self.look(|state| state.closed.is_none())
    }

    pub(crate) fn text(&self) -> String {
        self.look(|state| state.text())
    }

    #[track_caller]
    pub(crate) fn reads(&self, text: &str) -> impl Future<Output = ()> {
        let wanted = text.to_owned();
        self.until(text, move |state| (state.text() == wanted).then_some(()))
    }

    /// Types at a UTF-16 offset; returns the sent update.
    pub(crate) fn insert(&self, at: u32, text: &str) -> Vec<u8> {
        self.edit(|content, transaction| content.insert(transaction, at, text))
    }

    /// Types at the end.
    pub(crate) fn append(&self, text: &str) -> Vec<u8> {
        self.edit(|content, transaction| {
            let end = content.len(transaction);
            content.insert(transaction, end, text);
        })
    }

    /// The Yjs relative position before the unit at an offset.
    pub(crate) fn position(&self, at: u32) -> Vec<u8> {
        self.look(|state| {
            let transaction = state.doc.transact();
            let index = state.content.sticky_index(&transaction, at, Assoc::After);
            index.expect("an offset of the text").encode_v1()
        })
    }

    /// Deletes a UTF-16 range.
    pub(crate) fn remove(&self, at: u32, length: u32) -> Vec<u8> {
        self.edit(|content, transaction| content.remove_range(transaction, at, length))
    }

    fn edit(&self, edit: impl FnOnce(&TextRef, &mut yrs::TransactionMut<'_>)) -> Vec<u8> {
        let update = self.edit_offline(edit);
        self.send(protocol::update(&update));
        update
    }

    /// Edits without sending.
    pub(crate) fn edit_offline(
        &self,
        edit: impl FnOnce(&TextRef, &mut yrs::TransactionMut<'_>),
    ) -> Vec<u8> {
        self.look(|state| {
            let mut transaction = state.doc.transact_mut();
            let before = transaction.state_vector();
            edit(&state.content, &mut transaction);
            state.is_last_edit_named = before != transaction.state_vector();
            transaction.encode_update_v1()
        })
    }

    /// Waits until `document.saved` names every edit of this client.
    ///
    /// # Panics
    ///
    /// When the last edit only deletes: a state vector names no deletion, so the event of an earlier edit
    /// would end the wait. Wait until the other user reads the text instead.
    #[track_caller]
    pub(crate) fn saved(&self) -> impl Future<Output = ()> {
        let is_named = self.look(|state| state.is_last_edit_named);
        assert!(is_named, "`document.saved` names no deletion");
        self.until("document.saved of everything", |state| {
            let mine = state.doc.transact().state_vector();
            let covers = |event: &Value| {
                let bytes = decode_base64(event["state_vector"].as_str()?);
                let saved = StateVector::decode_v1(&bytes).ok()?;
                mine.iter().all(|(client, clock)| *clock <= saved.get(client)).then_some(())
            };
            state.events.iter().filter(|e| e["event"] == "document.saved").find_map(covers)
        })
    }

    /// Sends its presence.
    pub(crate) fn announce(&self, presence: &Value) {
        let (client, clock) = self.look(|state| {
            state.clock += 1;
            (state.doc.client_id().get(), state.clock)
        });
        let entry = AwarenessEntry { client, clock, state: Some(presence.to_string()) };
        self.send(protocol::awareness(&encode_awareness(&[entry])));
    }

    pub(crate) fn client_id(&self) -> u64 {
        self.look(|state| state.doc.client_id().get())
    }

    /// Sends a binary message unchanged.
    pub(crate) fn send(&self, message: impl Into<bytes::Bytes>) {
        self.send_message(Message::Binary(message.into()));
    }

    pub(crate) fn send_message(&self, message: Message) {
        // The socket may have ended; the test finds that in the missing reply.
        let _ended = self.outgoing.send(message);
    }

    /// Closes the socket as a page does on unload.
    pub(crate) async fn leave(self) {
        self.send_message(Message::Close(None));
        self.closed().await;
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    pub(crate) fn text(&self) -> String {
        self.content.get_string(&self.doc.transact())
    }

    fn take(&mut self, message: &[u8]) -> Option<bytes::Bytes> {
        if message.first() == Some(&100) {
            let json = message.get(1..).and_then(var_string).expect("an event is a string");
            let event = serde_json::from_str(json).expect("an event is JSON");
            contract::hold_event(&event);
            self.events.push(event);
            return None;
        }
        self.keep_alives += usize::from(message == protocol::keep_alive());
        match protocol::parse(message).expect("the server speaks the protocol") {
            ClientFrame::SyncStep1(theirs) => {
                let theirs = StateVector::decode_v1(theirs).expect("a state vector");
                let diff = self.doc.transact().encode_diff_v1(&theirs);
                return Some(protocol::sync_step2(&diff));
            }
            ClientFrame::SyncStep2(update) => {
                self.apply(update);
                self.synced = true;
            }
            ClientFrame::Update(update) => self.apply(update),
            ClientFrame::Awareness(update) => {
                for entry in decode_awareness(update).expect("presence") {
                    let state = entry.state.map(|s| serde_json::from_str(&s).expect("JSON"));
                    self.presence.insert(entry.client, (entry.clock, state));
                }
            }
            ClientFrame::QueryAwareness | ClientFrame::Auth => {}
        }
        None
    }

    fn apply(&mut self, update: &[u8]) {
        let update = Update::decode_v1(update).expect("an update");
        self.doc.transact_mut().apply_update(update).expect("it applies");
    }
}

/// An empty document, under a client id of its own.
pub(crate) fn empty() -> Doc {
    // Yjs ids have 32 bits; larger ones belong to the servers.
    let client_id = yrs::block::ClientID::new(random_u32().into());
    let offset_kind = OffsetKind::Utf16;
    Doc::with_options(Options { client_id, offset_kind, ..Options::default() })
}

fn request(url: &str, link: &str, role: &str, token: &str, query: &str) -> Request {
    let address = url.replacen("http", "ws", 1);
    let address = format!("{address}/ws/share-links/{link}/{role}?{query}");
    let mut request = address.into_client_request().expect("a request");
    let bearer = format!("Bearer {token}").parse().expect("a header");
    request.headers_mut().insert("authorization", bearer);
    request
}

async fn serve(
    socket: Socket,
    state: Arc<Mutex<State>>,
    mut queue: mpsc::UnboundedReceiver<Message>,
    change: watch::Sender<u64>,
) {
    let (mut sink, mut stream) = socket.split();
    let mut end = (1006, "cut".to_owned());
    loop {
        let message = tokio::select! {
            outgoing = queue.recv() => {
                let Some(message) = outgoing else { break };
                // The server closed the socket: the code is still to be read.
                let _closed = sink.send(message).await;
                continue;
            }
            incoming = stream.next() => incoming,
        };
        match message {
            Some(Ok(Message::Binary(message))) => {
                let answer = state.lock().expect("not poisoned").take(&message);
                change.send_modify(|count| *count += 1);
                if let Some(answer) = answer {
                    let _closed = sink.send(Message::Binary(answer)).await;
                }
            }
            Some(Ok(Message::Close(Some(close)))) => {
                end = (close.code.into(), close.reason.to_string());
            }
            Some(Ok(Message::Close(None))) => end = (1005, String::new()),
            Some(Ok(_)) => {}
            Some(Err(_)) | None => break,
        }
    }
    state.lock().expect("not poisoned").closed = Some(end);
    change.send_modify(|count| *count += 1);
}

fn var_string(bytes: &[u8]) -> Option<&str> {
    let (mut length, mut at) = (0_usize, 0_usize);
    loop {
        let byte = *bytes.get(at)?;
        length |= usize::from(byte & 0x7f) << (7 * at);
        at += 1;
        if byte < 0x80 {
            break;
        }
    }
    std::str::from_utf8(bytes.get(at..at + length)?).ok()
}

fn decode_base64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).expect("base64")
}

fn random_u32() -> u32 {
    getrandom::u32().expect("random bits")
}
