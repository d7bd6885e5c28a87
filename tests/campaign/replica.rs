//! The Yjs document of one tab. It outlives sockets, as the document of a page does.

use serde_json::Value;
use yrs::updates::decoder::Decode;
use yrs::{Doc, GetString, ReadTxn, StateVector, Text, Transact};

use crate::history::{marks_in, written};
use crate::support::ws_client::{Peer, empty};

/// A Yjs document with the marks that were typed into it.
#[derive(Clone)]
pub(crate) struct Replica {
    pub(crate) document: String,
    pub(crate) doc: Doc,
    /// The marks typed here, each with the clock of its end.
    typed: Vec<(u32, String)>,
    /// How many of those `document.saved` named.
    saved: usize,
    /// The last `document.saved`.
    named: StateVector,
}

impl Replica {
    pub(crate) fn of(document: &str) -> Self {
        let (doc, named) = (empty(), StateVector::default());
        // Creates the root text of the server's documents; without it the replica has no text to
        // read.
        let _content = doc.get_or_insert_text("content");
        Self { document: document.to_owned(), doc, typed: Vec::new(), saved: 0, named }
    }

    /// Types a mark and sends it.
    pub(crate) fn type_mark(&mut self, peer: &Peer, mark: String) {
        let text = written(&mark);
        let before = self.typed.last().map_or(0, |(end, _)| *end);
        let length = u32::try_from(text.encode_utf16().count()).expect("short");
        self.typed.push((before + length, mark));
        peer.append(&text);
    }

    /// The marks that this `document.saved` names first.
    pub(crate) fn take_saved(&mut self, event: &Value) -> Vec<String> {
        let Some(named) = state_vector(event) else { return Vec::new() };
        let clock = named.get(&self.doc.client_id());
        self.named = named;
        let safe = self.typed.partition_point(|(end, _)| *end <= clock).max(self.saved);
        let news = self.typed[self.saved..safe].iter().map(|(_, mark)| mark.clone()).collect();
        self.saved = safe;
        news
    }

    /// Whether `document.saved` named all marks typed here.
    pub(crate) fn is_mine_saved(&self) -> bool {
        self.saved == self.typed.len()
    }

    /// Whether the last `document.saved` names all its content. Called without an open socket.
    pub(crate) fn is_all_saved(&self) -> bool {
        let mine = self.doc.transact().state_vector();
        mine.iter().all(|(client, clock)| *clock <= self.named.get(client))
    }

    /// The marks in it. Called without an open socket.
    pub(crate) fn marks(&self) -> Vec<String> {
        let content = self.doc.get_or_insert_text("content");
        marks_in(&content.get_string(&self.doc.transact()))
    }
}

/// The update of a client that types into an empty document.
pub(crate) fn typed_aside(text: &str) -> Vec<u8> {
    let doc = empty();
    let content = doc.get_or_insert_text("content");
    let mut transaction = doc.transact_mut();
    content.insert(&mut transaction, 0, text);
    transaction.encode_update_v1()
}

fn state_vector(event: &Value) -> Option<StateVector> {
    use base64::Engine as _;
    let bytes = event["state_vector"].as_str()?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(bytes).expect("base64");
    StateVector::decode_v1(&bytes).ok()
}
