//! State that tabs and acts share: the documents under test, the servers' addresses, and orders.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, RwLock};

use tokio::sync::watch;

use crate::history::Recorder;
use crate::support::rest_client::{Desk, Person};

/// The order to all tabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Claim, type, leave, reconnect.
    Work,
    /// Hold the seat; claim only after a loss.
    Hold,
    /// End.
    Finish,
}

/// Shared by every task of a round.
pub(crate) struct Desks {
    pub(crate) recorder: Recorder,
    pub(crate) order: watch::Sender<Order>,
    desks: RwLock<Vec<Desk>>,
    urls: RwLock<Vec<String>>,
    /// Ended links and documents: their tabs wait until the server closes them.
    ended: RwLock<Vec<String>>,
    /// Marks that `document.saved` named in any session.
    saved: RwLock<HashSet<String>>,
    numbers: AtomicU32,
}

impl Desks {
    pub(crate) fn new(recorder: Recorder, urls: Vec<String>, desks: Vec<Desk>) -> Arc<Self> {
        Arc::new(Self {
            recorder,
            order: watch::Sender::new(Order::Work),
            desks: RwLock::new(desks),
            urls: RwLock::new(urls),
            ended: RwLock::default(),
            saved: RwLock::default(),
            numbers: AtomicU32::new(1),
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.desks.read().expect("sane").len()
    }

    pub(crate) fn desk(&self, number: usize) -> Desk {
        self.desks.read().expect("sane")[number].clone()
    }

    pub(crate) fn replace(&self, number: usize, desk: Desk) {
        self.desks.write().expect("sane")[number] = desk;
    }

    pub(crate) fn url(&self, server: usize) -> String {
        self.urls.read().expect("sane")[server].clone()
    }

    pub(crate) fn moved(&self, server: usize, url: &str) {
        self.urls.write().expect("sane")[server] = url.to_owned();
    }

    /// From here on no tab closes a socket of this link or document.
    pub(crate) fn end(&self, subject: &str) {
        self.ended.write().expect("sane").push(subject.to_owned());
    }

    pub(crate) fn is_ended(&self, desk: &Desk) -> bool {
        let ended = self.ended.read().expect("sane");
        ended.iter().any(|subject| *subject == desk.link || *subject == desk.document)
    }

    pub(crate) fn is_saved(&self, mark: &str) {
        self.saved.write().expect("sane").insert(mark.to_owned());
    }

    /// The marks of these that `document.saved` named in no session.
    pub(crate) fn unsaved(&self, mut marks: Vec<String>) -> Vec<String> {
        let saved = self.saved.read().expect("sane");
        marks.retain(|mark| !saved.contains(mark));
        marks
    }

    /// A number that is unique in this round among tabs, sockets and marks.
    pub(crate) fn next(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

/// The user of a role.
pub(crate) fn user_of<'a>(desk: &'a Desk, role: &str) -> &'a Person {
    if role == "writer" { &desk.writer } else { &desk.reviewer }
}
