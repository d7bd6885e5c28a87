//! One tab: it claims a seat in one of four ways, types, and leaves or disconnects. It records its
//! observations, and no conclusions.

use std::collections::BTreeSet;
use std::sync::Arc;

use galley::yjs::protocol;
use serde_json::Value;
use tokio::time::{Duration, Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use crate::desks::{Desks, Order, user_of};
use crate::history::{How, What, marks_in, written};
use crate::replica::{Replica, typed_aside};
use crate::suggesting::{Typing, decide};
use crate::support::rest_client::Desk;
use crate::support::rng::Random;
use crate::support::ws_client::Peer;

/// A frozen server replies to no handshake.
const HANDSHAKE: Duration = Duration::from_secs(3);
/// A claim that is neither granted nor rejected is abandoned after this, apart from its own wait.
const UNDECIDED: Duration = Duration::from_secs(8);
/// How long a tab of a revoked link waits for the server to close it.
const REVOKED: Duration = Duration::from_secs(40);
/// Between two reads of the received events.
const LOOK: Duration = Duration::from_millis(25);
/// Between two reads of the whole text, in polls.
const READ_EVERY: u32 = 8;
/// Between two marks, in polls.
const TYPE_EVERY: u32 = 12;
const WAIT_SECONDS: u64 = 8;

/// The actor of one role at one desk.
pub(crate) struct Tab {
    pub(crate) desks: Arc<Desks>,
    pub(crate) desk: usize,
    pub(crate) role: &'static str,
    pub(crate) random: Random,
    pub(crate) number: u32,
    pub(crate) unsaved: Option<Replica>,
    pub(crate) secret: Option<String>,
    /// While tabs hold their seats: the server ended this tab's session.
    pub(crate) has_lost: bool,
    pub(crate) typing: Typing,
}

/// A socket and its observations.
pub(crate) struct Open {
    pub(crate) socket: u32,
    pub(crate) peer: Peer,
    pub(crate) replica: Replica,
    pub(crate) is_granted: bool,
    was_reset: bool,
    seen: BTreeSet<String>,
}

/// The result of a poll: it may end the stay.
pub(crate) enum Look {
    GoOn,
    Ended,
}

impl Tab {
    /// Runs until the order to finish. Returns the replica that it would reconnect with.
    pub(crate) async fn work(mut self) -> Option<Replica> {
        while self.order() != Order::Finish {
            let desk = self.desks.desk(self.desk);
            if self.unsaved.as_ref().is_some_and(|unsaved| unsaved.document != desk.document) {
                (self.unsaved, self.secret) = (None, None);
            }
            if self.order() == Order::Hold && !self.has_lost {
                self.pause(60, 120).await;
                continue;
            }
            let how = self.chooses();
            if let Some(open) = self.claim(&desk, how).await {
                self.stay(&desk, open).await;
            }
            self.pause(60, 500).await;
        }
        self.typing.end(&self.desks);
        self.unsaved
    }

    fn order(&self) -> Order {
        *self.desks.order.borrow()
    }

    fn chooses(&mut self) -> How {
        if self.order() == Order::Hold {
            return How::Plain;
        }
        match self.random.below(8) {
            0 | 1 if self.secret.is_some() => How::Resume,
            0..=2 => How::Plain,
            3 | 4 => How::Wait,
            _ => How::TakeOver,
        }
    }

    /// Opens a websocket with the tab's replica. `None`: the server does not reply.
    async fn claim(&mut self, desk: &Desk, how: How) -> Option<Open> {
        let server = self.random.below(3);
        let more = match how {
            How::Plain => String::new(),
            How::Wait => format!("&wait={WAIT_SECONDS}"),
            How::TakeOver => "&takeover=1".to_owned(),
            How::Resume => format!("&resume={}", self.secret.as_deref().unwrap_or_default()),
        };
        let url = self.desks.url(server);
        let replica = self.unsaved.take().unwrap_or_else(|| Replica::of(&desk.document));
        let open = open(&self.desks, desk, self.role, (self.number, how), &url, &more, replica);
        match open.await {
            Ok(open) => Some(open),
            Err(replica) => {
                self.unsaved = Some(replica);
                None
            }
        }
    }

    /// Types for a while, then leaves or disconnects, unless the server ends the socket first.
    async fn stay(&mut self, desk: &Desk, mut open: Open) {
        let time_limit = UNDECIDED + Duration::from_secs(WAIT_SECONDS);
        let undecided_until = Instant::now() + time_limit;
        let mut leaves_at = None;
        let mut looks = 0;
        loop {
            looks += 1;
            if matches!(open.look(&self.desks, looks, &mut self.secret), Look::Ended) {
                self.has_lost = open.is_granted && self.order() == Order::Hold;
                break;
            }
            let now = Instant::now();
            if open.is_granted && leaves_at.is_none() {
                let stay = 400 + self.random.below(4_000);
                leaves_at = Some(now + Duration::from_millis(stay as u64));
            }
            let is_over = leaves_at.unwrap_or(undecided_until) < now;
            if self.order() == Order::Finish
                || (is_over && self.order() == Order::Work && !self.desks.is_ended(desk))
                || (undecided_until + REVOKED < now)
            {
                let vanishes = self.random.below(3) == 0;
                open.leave(&self.desks, !vanishes, &mut self.secret).await;
                break;
            }
            if open.is_granted && looks.is_multiple_of(TYPE_EVERY) {
                self.types(&mut open);
                self.suggests_or_decides(desk, &open).await;
            }
            sleep(LOOK).await;
        }
        let Open { peer, replica, was_reset, .. } = open;
        drop(peer);
        let is_useless = was_reset && !replica.is_all_saved();
        // A reviewer reloads the page; so does a writer sometimes.
        let keeps = self.role == "writer" && self.random.below(4) != 0 && !is_useless;
        if keeps {
            self.unsaved = Some(replica);
        }
        if !keeps || self.random.below(4) == 0 {
            self.secret = None;
        }
    }

    fn types(&mut self, open: &mut Open) {
        if self.role == "writer" {
            open.types(&self.desks, self.desk);
        } else if self.random.below(6) == 0 {
            open.intrudes(&self.desks, self.desk);
        }
    }

    /// No decision while a campaign sets a text back: a decision is not made anew.
    async fn suggests_or_decides(&mut self, desk: &Desk, open: &Open) {
        if self.role == "reviewer" {
            self.typing.types(&self.desks, desk, &open.peer, &mut self.random).await;
        } else if self.order() == Order::Work && self.random.below(12) == 0 {
            decide(&self.desks, desk, &mut self.random).await;
        }
    }

    async fn pause(&mut self, least_ms: usize, most_ms: usize) {
        let pause = least_ms + self.random.below(most_ms - least_ms);
        sleep(Duration::from_millis(pause as u64)).await;
    }
}

/// Opens a websocket and records the claim. Returns the replica if the server does not reply.
pub(crate) async fn open(
    desks: &Desks,
    desk: &Desk,
    role: &str,
    (tab, how): (u32, How),
    url: &str,
    more: &str,
    replica: Replica,
) -> Result<Open, Replica> {
    let socket = desks.next();
    let (document, link) = (desk.document.clone(), desk.link.clone());
    let (role, brings) = (role.to_owned(), desks.unsaved(replica.marks()));
    let token = &user_of(desk, &role).token;
    let query = format!("events=1{more}");
    let coming = Peer::come(url, &link, &role, token, &query, replica.doc.clone());
    desks.recorder.note(What::Claim {
        socket,
        tab,
        document,
        link: link.clone(),
        role: role.clone(),
        how,
        brings,
    });
    let Ok(Some(peer)) = timeout(HANDSHAKE, coming).await else {
        desks.recorder.note(What::Left { socket, clean: false });
        return Err(replica);
    };
    let seen = BTreeSet::new();
    Ok(Open { socket, peer, replica, is_granted: false, was_reset: false, seen })
}

impl Open {
    /// Records the events since the last poll.
    pub(crate) fn look(&mut self, desks: &Desks, looks: u32, secret: &mut Option<String>) -> Look {
        // Reads the state first: an event that arrives later precedes the end.
        let closed = self.peer.look(|state| state.closed.clone());
        self.take_events(desks, secret);
        if closed.is_some() || looks.is_multiple_of(READ_EVERY) {
            self.read(desks);
        }
        let Some((code, reason)) = closed else { return Look::GoOn };
        desks.recorder.note(What::Closed { socket: self.socket, code, reason });
        Look::Ended
    }

    /// Types a mark.
    pub(crate) fn types(&mut self, desks: &Desks, desk: usize) {
        let (socket, mark) = (self.socket, format!("{desk}.w{}", desks.next()));
        desks.recorder.note(What::Typed { socket, mark: mark.clone() });
        self.replica.type_mark(&self.peer, mark);
    }

    /// Sends an edit that a reviewer may not make, from a document of its own: the client's
    /// replica stays what the server sent.
    fn intrudes(&self, desks: &Desks, desk: usize) {
        let (socket, mark) = (self.socket, format!("{desk}.x{}", desks.next()));
        desks.recorder.note(What::Intruded { socket, mark: mark.clone() });
        self.peer.send(protocol::update(&typed_aside(&written(&mark))));
    }

    fn take_events(&mut self, desks: &Desks, secret: &mut Option<String>) {
        let (recorder, socket) = (&desks.recorder, self.socket);
        for event in self.peer.take_events() {
            let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            match event["event"].as_str().unwrap_or_default() {
                "seat.granted" => {
                    let fence = event["fence"].as_u64().expect("a fence");
                    recorder.note(What::Granted { socket, session: text("session_id"), fence });
                    self.is_granted = true;
                    *secret = Some(text("resume"));
                }
                "seat.waiting" => {
                    let position = event["position"].as_u64().unwrap_or_default();
                    recorder.note(What::Waiting { socket, position });
                }
                "document.saved" => self.take_saved(desks, &event),
                "denied" => recorder.note(What::Denied { socket, reason: text("reason") }),
                "problem" => self.was_reset |= is_reset(&event),
                _ => {}
            }
        }
    }

    fn take_saved(&mut self, desks: &Desks, event: &Value) {
        for mark in self.replica.take_saved(event) {
            desks.is_saved(&mark);
            desks.recorder.note(What::Saved { socket: self.socket, mark });
        }
    }

    /// Records intruded and suggested marks that are new in this replica.
    pub(crate) fn read(&mut self, desks: &Desks) {
        let marks = marks_in(&self.peer.text()).into_iter().filter(|mark| !mark.contains(".w"));
        for mark in marks.filter(|mark| self.seen.insert(mark.clone())) {
            desks.recorder.note(What::Seen { socket: self.socket, mark });
        }
    }

    /// Ends the socket from this side: with a close, or by dropping it next.
    pub(crate) async fn leave(&mut self, desks: &Desks, clean: bool, secret: &mut Option<String>) {
        if clean {
            self.peer.send_message(Message::Close(None));
            let began = Instant::now();
            while self.peer.is_open() && began.elapsed() < HANDSHAKE {
                sleep(LOOK).await;
            }
        }
        self.take_events(desks, secret);
        desks.recorder.note(What::Left { socket: self.socket, clean });
    }
}

fn is_reset(event: &Value) -> bool {
    event["type"] == "/problems/document-reset"
}
