//! Every order of what rooms on several servers do and receive (G8, M5).
//!
//! The rooms are real. Redis is a queue for each server, the database a list of updates and a number of
//! changes, the locks a list of seats. A world chooses each step among the possible ones: by a seed, or in
//! every order. At rest it compares all rooms. Only a lost message or a killed server needs a tick.

mod choices;
mod server;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use futures_util::FutureExt as _;
use tokio::time::{Instant, advance, pause};

use self::choices::{Choices, STEPS, WorldStep};
use self::server::{Server, ServerVersion, Subscribed, is_of_old};
use crate::domain::fence::Fence;
use crate::domain::ids::{NodeId, SessionId, ShareLinkId};
use crate::domain::seat::{Role, Seat};
use crate::outbox::outbox;
use crate::pubsub::Message;
use crate::rooms::memory::RoomMemory;
use crate::rooms::room::persist_queue::{Persister, persister};
use crate::rooms::room::replication::Applied;
use crate::rooms::room::{Opening, Room};
use crate::rooms::stored_document::StoredDocument;
use crate::sessions::options::RoomLimits;
use crate::sessions::session::{Session, SessionIdentity};
use crate::yjs::log::{SERVER_IDS, UpdateLog};

const TICK: Duration = Duration::from_secs(4);
/// A lease in ticks, and the two ticks after it.
const TICKS: u32 = 6;
/// A world that takes more steps has a message that answers itself.
const STEPS_MAX: usize = 2_000;

struct World<'a> {
    stored: &'a StoredDocument,
    persister: &'a Persister,
    log: Vec<Bytes>,
    changes: i64,
    fence: u64,
    servers: Vec<Server>,
    /// The server of each held seat.
    locks: HashMap<Seat, (NodeId, Fence)>,
    losses: usize,
    /// Redis takes each message at once.
    is_direct: bool,
    choices: Choices,
}

impl<'a> World<'a> {
    fn new(
        (stored, persister): (&'a StoredDocument, &'a Persister),
        versions: &[ServerVersion],
        choices: Choices,
    ) -> Self {
        // The third server has a seat of a link that was revoked.
        let seats = [(stored.link, Role::Writer), (stored.link, Role::Reviewer)];
        let seats = seats.into_iter().chain([(ShareLinkId::generate(), Role::Writer)]);
        let servers = versions.iter().zip(seats).zip(1..);
        let servers = servers.map(|((version, (link, role)), client)| {
            Server::new(*version, Seat::new(link, role), client)
        });
        let servers = servers.collect();
        let (log, locks) = (Vec::new(), HashMap::new());
        Self {
            stored,
            persister,
            log,
            changes: 0,
            fence: 0,
            servers,
            locks,
            losses: 0,
            is_direct: false,
            choices,
        }
    }

    fn may(&mut self, what: &'static str, times: usize) {
        for server in &mut self.servers {
            server.left.insert(what, times);
        }
    }

    fn is_possible(&self, at: usize, step: WorldStep) -> bool {
        let server = &self.servers[at];
        let is_open = server.room.is_some();
        let is_reading = server.is_read_due || server.read.is_some();
        let may = |what| server.left.get(what).is_some_and(|left| 0 < *left);
        let is_saved = server.unsaved.is_empty() && server.committed.is_empty();
        match step {
            WorldStep::Open => !is_open && may("open"),
            WorldStep::Subscribe => is_open && server.subscribed == Subscribed::No,
            WorldStep::Confirm => server.subscribed == Subscribed::Sent,
            WorldStep::Read => server.is_read_due && server.read.is_none(),
            WorldStep::Apply => server.read.is_some(),
            WorldStep::Edit => is_open && may("edit"),
            WorldStep::Commit => !server.unsaved.is_empty() && server.committed.is_empty(),
            WorldStep::Stored => !server.committed.is_empty(),
            WorldStep::Change => may("change"),
            WorldStep::Changed => !server.changed.is_empty(),
            WorldStep::Announce => is_open && may("announce"),
            WorldStep::Send => !server.sending.is_empty(),
            WorldStep::Receive => {
                server.subscribed == Subscribed::Confirmed
                    && !server.arrived.is_empty()
                    && !is_reading
            }
            WorldStep::Leave => is_open && is_saved && may("leave"),
            WorldStep::Die => is_open && may("die") && self.losses == 0,
            WorldStep::Lose => !server.arrived.is_empty() && may("lose") && self.losses == 0,
        }
    }

    /// Runs until no step is possible.
    fn run(&mut self) {
        for _ in 0..STEPS_MAX {
            let all = (0..self.servers.len()).flat_map(|at| STEPS.map(|step| (at, step)));
            let possible: Vec<_> = all.filter(|(at, step)| self.is_possible(*at, *step)).collect();
            if possible.is_empty() {
                return;
            }
            let (at, step) = possible[self.choices.choose(possible.len())];
            self.take(at, step);
            self.complete(at);
        }
        panic!("a message answers itself");
    }

    fn take(&mut self, at: usize, step: WorldStep) {
        let name = match step {
            WorldStep::Open => "open",
            WorldStep::Edit => "edit",
            WorldStep::Change => "change",
            WorldStep::Announce => "announce",
            WorldStep::Leave => "leave",
            WorldStep::Die => "die",
            WorldStep::Lose => "lose",
            _ => "",
        };
        if let Some(left) = self.servers[at].left.get_mut(name) {
            *left -= 1;
        }
        match step {
            WorldStep::Open => self.open(at),
            WorldStep::Subscribe => self.servers[at].subscribed = Subscribed::Sent,
            WorldStep::Confirm => self.servers[at].confirm(),
            WorldStep::Read => {
                let after = self.servers[at].room().seq();
                let rows = self.log.iter().zip(1..).filter(|(_, number)| after < *number);
                self.servers[at].read =
                    Some(rows.map(|(row, number)| (number, row.clone())).collect());
                self.servers[at].is_read_due = false;
            }
            WorldStep::Apply => {
                for (seq, update) in self.servers[at].read.take().expect("rows") {
                    self.servers[at].room().try_take(seq, &update);
                }
            }
            WorldStep::Edit => self.servers[at].edit(SERVER_IDS.start() + self.fence),
            WorldStep::Commit => {
                for update in std::mem::take(&mut self.servers[at].unsaved) {
                    self.log.push(update.clone());
                    let last = self.last();
                    self.servers[at].committed.push((last, update));
                }
            }
            WorldStep::Stored => self.servers[at].stored(),
            WorldStep::Change => {
                self.changes += 1;
                self.servers[at].changed.push_back(self.changes);
            }
            WorldStep::Changed => self.servers[at].changed(),
            WorldStep::Announce => self.servers[at].announce(),
            WorldStep::Send => self.send(at),
            WorldStep::Receive => self.servers[at].receive(),
            WorldStep::Leave => self.leave(at),
            WorldStep::Die => self.die(at),
            WorldStep::Lose => {
                self.servers[at].arrived.pop_front();
                self.losses += 1;
            }
        }
        self.fence += 1;
    }

    /// The tasks of a server act at once: reads of missed changes, and the queue of the room.
    fn complete(&mut self, at: usize) {
        let server = &mut self.servers[at];
        while server.missed.try_recv().is_ok() {
            if let Some((room, _)) = &server.room {
                room.take_missed_reviews(self.changes, &[]);
            }
        }
        if let Some((room, _)) = &server.room {
            server.is_read_due |= room.behind.notified().now_or_never().is_some();
            while let Some(message) = room.outgoing.try_pop() {
                server.sending.push_back(message);
            }
        }
        while self.is_direct && !self.servers[at].sending.is_empty() {
            self.send(at);
        }
    }

    fn last(&self) -> i64 {
        i64::try_from(self.log.len()).expect("few")
    }

    fn open(&mut self, at: usize) {
        let server = &mut self.servers[at];
        let opening = Opening {
            document: self.stored.document,
            log: UpdateLog::open(self.log.clone()).expect("a log"),
            memory: RoomMemory::new(usize::MAX).charge(0),
            seq: i64::try_from(self.log.len()).expect("few"),
            rows: self.log.len(),
            owners: HashMap::new(),
            review_changes: self.changes,
            is_damaged: false,
        };
        let missed = server.missed_sender.clone();
        let room = Room::open(opening, RoomLimits::default(), self.persister.clone(), missed);
        let identity = SessionIdentity {
            session: SessionId::generate(),
            seat: server.seat,
            document: self.stored.document,
            user: self.stored.owner.clone(),
            resume: String::new(),
            wants_events: true,
            store_budget: None,
        };
        let session = Arc::new(Session::claiming(identity, outbox(10_000_000).0));
        let fence = Fence(self.fence + 1);
        session.granted(fence, Utc::now(), Instant::now() + TICK * 100);
        self.locks.insert(server.seat, (server.node, fence));
        let room = Arc::new(room);
        room.join(&session).expect("it is open");
        server.room = Some((room, session));
        if server.version == ServerVersion::Old {
            let hello = server.room().greet(NodeId::generate());
            server.sending.extend(hello.into_iter().filter(is_of_old));
        }
    }

    fn send(&mut self, at: usize) {
        let server = &mut self.servers[at];
        let (from, message) = (server.node, server.sending.pop_front().expect("a message"));
        for other in &mut self.servers {
            if other.node != from && other.subscribed != Subscribed::No {
                other.arrived.push_back((from, message.clone()));
            }
        }
    }

    fn leave(&mut self, at: usize) {
        let server = &mut self.servers[at];
        let (room, session) = server.room.take().expect("open");
        self.locks.remove(&server.seat);
        room.disconnect(&session);
        session.end();
        room.leave(&session);
        assert!(room.retire_if_unused());
        while let Some(message) = room.outgoing.try_pop() {
            server.sending.push_back(message);
        }
        if server.version == ServerVersion::New && room.lock().subscribers.were_any() {
            server.sending.push_back(Message::Goodbye);
        }
        server.close();
    }

    fn die(&mut self, at: usize) {
        let server = &mut self.servers[at];
        server.room = None;
        server.close();
        server.sending.clear();
        server.unsaved.clear();
        server.committed.clear();
        server.changed.clear();
        server.left.clear();
        self.losses += 1;
    }

    /// One tick of each server, as `seats::reconcile` runs it.
    async fn tick(&mut self) {
        advance(TICK).await;
        for at in 0..self.servers.len() {
            let Some((room, _)) = self.servers[at].room.clone() else { continue };
            room.compare_stored(self.last(), room.last_number());
            room.reviews_are_changed_up_to(self.changes);
            for seat in room.seats_elsewhere() {
                let holder = self.locks.get(&seat).copied();
                let own = self.servers[at].node;
                let elsewhere = holder.map(|(node, _)| node).filter(|node| *node != own);
                elsewhere.into_iter().for_each(|node| room.seat_is_held_at(node));
                room.observe_holder(seat, holder.map(|(_, fence)| fence), TICK * 2);
            }
            room.forget_silent_subscribers(TICK * 2);
            self.complete(at);
        }
        self.run();
    }

    /// A change of a review may wait for the tick: a room reads no changes when it subscribes.
    fn assert_equal(&self, when: &str) {
        let vector = UpdateLog::open(self.log.clone()).expect("a log").state_vector();
        for (at, server) in self.servers.iter().enumerate() {
            let Some((room, _)) = &server.room else { continue };
            assert_eq!(room.seq(), self.last(), "the number of server {at} {when}");
            assert_eq!(room.lock().log.state_vector(), vector, "the log of server {at} {when}");
            if when != "without a tick" {
                assert_eq!(
                    room.review_changes(),
                    self.changes,
                    "the changes of server {at} {when}"
                );
            }
        }
    }

    /// Each room shows the cursor of every session, and of no other.
    fn assert_presence(&self) {
        let announced = self.servers.iter().filter(|it| it.has_announced);
        let wanted: HashSet<u64> = announced.map(|it| it.client).collect();
        for server in self.servers.iter().filter_map(|it| it.room.as_ref()) {
            let living = server.0.lock().presence.living();
            let found: HashSet<u64> = living.iter().map(|entry| entry.client).collect();
            assert_eq!(found, wanted);
        }
    }

    /// The whole check at rest: first without a tick, if no message was lost.
    async fn check(&mut self) {
        self.run();
        self.may("lose", 0);
        self.may("die", 0);
        if self.losses == 0 {
            self.assert_equal("without a tick");
            if self.servers.iter().all(|it| it.version == ServerVersion::New) {
                self.assert_presence();
            }
        }
        for tick in 0..TICKS {
            if tick == 3 {
                let alive: HashSet<_> =
                    self.servers.iter().filter(|it| it.room.is_some()).map(|it| it.node).collect();
                self.locks.retain(|_, (node, _)| alive.contains(node));
            }
            self.tick().await;
            if tick == 0 {
                self.assert_equal("after a tick");
            }
        }
        let open: Vec<_> = self.servers.iter().filter_map(|it| it.room.as_ref()).collect();
        if let [(alone, _)] = open[..] {
            assert!(alone.lock().subscribers.is_empty(), "no message has a receiver");
        }
        // The rooms know each other again, because the locks show the seats of one link: no tick is needed.
        if self.servers.len() == 2 {
            self.may("edit", 2);
            self.may("change", 1);
            self.run();
            self.assert_equal("after the repair");
        }
    }
}

async fn fixtures() -> (StoredDocument, Persister) {
    let stored = StoredDocument::new().await;
    let persister = persister(stored.storage.clone()).0;
    (stored, persister)
}

/// Goal: a commit, a subscription and the messages of both, in every order: the room that subscribes has the
/// commit without a tick.
#[tokio::test]
async fn g8_a_commit_during_a_subscription_arrives_without_a_tick_in_every_order() {
    let (stored, persister) = fixtures().await;
    let mut choices = Choices::Path(Vec::new(), 0);
    let mut orders = 0;
    loop {
        let mut world = World::new((&stored, &persister), &[ServerVersion::New; 2], choices);
        world.is_direct = true;
        for step in [
            WorldStep::Open,
            WorldStep::Subscribe,
            WorldStep::Confirm,
            WorldStep::Send,
            WorldStep::Read,
            WorldStep::Apply,
            WorldStep::Edit,
        ] {
            world.take(0, step);
        }
        world.servers[1].left.insert("open", 1);
        world.run();
        world.assert_equal("without a tick");
        orders += 1;
        choices = world.choices;
        if !choices.advance() {
            break;
        }
    }
    assert!(200 < orders, "{orders} orders");
}

/// Goal: a server that names numbers of the future costs a read of the database, and no edit.
#[tokio::test]
async fn numbers_of_the_future_cost_a_read_of_the_database() {
    let (stored, persister) = fixtures().await;
    let mut world = World::new((&stored, &persister), &[ServerVersion::New], Choices::Seed(0));
    world.take(0, WorldStep::Open);
    let room = world.servers[0].room();
    let future = Message::Numbers { seq: i64::MAX, change: i64::MAX };
    assert_eq!(room.react(NodeId::generate(), future).is_behind, Applied::Behind);
    room.catch_up(&stored.storage).await;
    let last = stored.storage.last_numbers(&[stored.document]).await.expect("numbers");
    assert_eq!(room.seq(), last[&stored.document].update);
    assert!(!room.takes_no_more());
}

#[expect(clippy::print_stdout, reason = "a failure names its seed")]
async fn random_worlds(versions: &[ServerVersion], worlds: u64) {
    let (stored, persister) = fixtures().await;
    pause();
    let seed = std::env::var("GALLEY_SEED").ok().map(|it| it.parse().expect("a number"));
    let first = seed.unwrap_or_else(|| u64::from(Utc::now().timestamp_subsec_nanos()));
    for seed in first..first + worlds {
        println!("GALLEY_SEED={seed}");
        let mut world = World::new((&stored, &persister), versions, Choices::Seed(seed));
        for (what, times) in
            [("open", 2), ("edit", 3), ("change", 1), ("announce", 2), ("leave", 1)]
        {
            world.may(what, times);
        }
        // One message is lost, or one server dies, in two of three worlds.
        match seed % 3 {
            0 => world.may("die", 1),
            1 => world.may("lose", 1),
            _ => {}
        }
        world.check().await;
    }
}

#[tokio::test]
async fn g8_two_servers_have_one_text_at_rest_in_any_order() {
    random_worlds(&[ServerVersion::New; 2], 2_000).await;
}

#[tokio::test]
async fn g8_three_servers_have_one_text_at_rest_in_any_order() {
    random_worlds(&[ServerVersion::New; 3], 1_000).await;
}

#[tokio::test]
async fn g8_an_older_server_beside_new_ones_has_their_text_at_rest_in_any_order() {
    random_worlds(&[ServerVersion::Old, ServerVersion::New], 1_000).await;
}

#[tokio::test]
async fn g8_an_older_server_beside_two_new_ones_has_their_text_at_rest_in_any_order() {
    random_worlds(&[ServerVersion::New, ServerVersion::Old, ServerVersion::New], 1_000).await;
}
