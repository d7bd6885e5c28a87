//! Crash points (G15): the client disconnects, or the server dies, between a commit and its message.
//!
//! The operations are the mutating routes whose effect sockets receive (`acts.rs`). Where a client
//! disconnects, the test switches ticks off, because a tick would deliver the effect; a killed server
//! has no other way. A directed kill is deterministic: the proxy holds one message on its way to Redis,
//! and the server dies before the message arrives. Other kills come at a random moment of a request.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use galley::domain::seat::{Role, Seat};
use galley::storage::Storage;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use crate::server::acts::{Act, tried};
use crate::server::delivery::QUICK;
use crate::server::kill_campaign::say;
use crate::server::operation_fixtures::Users;
use crate::server::operations::Case;
use crate::support::fixtures::{NO_TICK, synced};
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::proxy::{Fate, Proxy};
use crate::support::redis_server::{self, TEST_TIMEOUT};
use crate::support::rest_client::Desk;
use crate::support::rng::Random;
use crate::support::ws_client::Peer;

/// Kills at random moments, unless `GALLEY_CRASHES` sets the number.
const CRASHES: usize = 14;

impl Case {
    /// Sends the request. Dropping the returned stream ends the connection.
    async fn send(&self, server: &Server) -> TcpStream {
        let (method, path, body) = self.request();
        let body = body.map_or_else(String::new, |body| body.to_string());
        let address = server.url.trim_start_matches("http://");
        let mut socket = TcpStream::connect(address).await.expect("a connection");
        socket.set_nodelay(true).expect("an open socket");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.actor().token,
            body.len()
        );
        socket.write_all(head.as_bytes()).await.expect("sent");
        socket
    }

    /// The peer that does not act, or the one whose session an administrator evicts.
    fn other(&self) -> &Peer {
        let other = if self.act.is_shown_to_the_writer() { &self.writer } else { &self.reviewer };
        other.as_ref().expect("a seat")
    }
}

fn shown() -> impl Iterator<Item = Act> {
    tried().filter(|act| act.concerns_sockets())
}

/// Goal: whenever the client of a request disconnects, the effect and its notification agree.
#[tokio::test]
async fn g15_a_request_whose_client_disconnects_at_any_step_delivers_what_it_commits() {
    let server = Server::with(&NO_TICK).await;
    let users = Users::of(&server).await;
    let mut cases = Vec::new();
    for act in shown() {
        for step in 0..7_u32 {
            let case = Case::new(act, &server, &server, &users).await;
            let socket = case.send(&server).await;
            // The step at which the client disconnects, not a wait for an event. A commit begins some
            // milliseconds after the request, in a slow build later.
            sleep(Duration::from_micros(500) * step.pow(2)).await;
            drop(socket);
            cases.push(case);
        }
    }
    // The server dropped the first request long before the last. A commit still in flight notifies
    // later.
    let mut committed = 0;
    for case in &cases {
        if case.is_committed(&server).await {
            committed += 1;
            case.reaches(case.other()).await;
        }
    }
    assert!(0 < committed, "no request came as far as its commit");
}

/// Two servers with one database and one Redis. A proxy carries the messages of the first server, which
/// dies, to Redis.
struct World {
    one: Server,
    two: Server,
    proxy: Proxy,
    users: Users,
    database: String,
    _redis: redis_server::Server,
    _postgres: postgres_server::Database,
}

impl World {
    async fn start() -> Self {
        let postgres = postgres_server::shared().database().await;
        let redis = redis_server::Server::start().await;
        let proxy = Proxy::to(&redis).await;
        let (database, direct, held) = (postgres.url(), redis.url(), proxy.url());
        let folder = Arc::new(TempDir::new().expect("a folder"));
        let settings =
            |url| [QUICK[0], QUICK[1], ("DATABASE__URL", &database), ("LOCKS__URL", url)];
        let one = Server::in_folder(Arc::clone(&folder), &settings(&held)).await;
        let two = Server::in_folder(folder, &settings(&direct)).await;
        let users = Users::of(&two).await;
        Self { one, two, proxy, users, database, _redis: redis, _postgres: postgres }
    }

    /// Seats the user whose socket must receive the effect on the server that survives.
    async fn case(&self, act: Act) -> Case {
        let at = if act.is_shown_to_the_writer() {
            [&self.two, &self.one]
        } else {
            [&self.one, &self.two]
        };
        Case::new(act, at[0], at[1], &self.users).await
    }

    /// Ends the first server, and waits until the effect of a commit reaches the other one's socket.
    async fn survives(&mut self, case: &Case) -> bool {
        self.one.kill().await;
        let is_committed = case.is_committed(&self.two).await;
        if is_committed {
            case.reaches(case.other()).await;
        } else if case.other().look(|state| case.shows(state)) {
            // The database may have finished a commit in between. The session's server releases its
            // key.
            self.has_committed(case).await;
        }
        is_committed
    }

    async fn has_committed(&self, case: &Case) {
        let began = Instant::now();
        while !case.is_committed(&self.two).await {
            assert!(began.elapsed() < TEST_TIMEOUT, "{:?} is not committed", case.act);
        }
    }

    /// Starts the first server again, with a connection to Redis.
    async fn mend(&mut self) {
        self.proxy.heal();
        self.one.start_again().await;
    }

    /// A document with free seats.
    async fn desk(&self) -> Desk {
        self.two.desk("text").await
    }

    /// Holds that the writer acquires its seat on the second server within a lease, and that edits
    /// reach the reviewer there.
    async fn seats_again(&self, desk: &Desk, reviewer: &Peer) {
        let writer = synced(&self.two, desk, "writer", "events=1").await;
        let before = reviewer.text();
        writer.append("!");
        writer.saved().await;
        reviewer.reads(&format!("{before}!")).await;
        writer.leave().await;
        reviewer.event("peer.left").await;
    }

    /// The ratified fence of a seat.
    async fn ratified(&self, desk: &Desk, role: Role) -> u64 {
        let storage = Storage::open(&self.database).await.expect("the database");
        let seat = Seat::new(desk.link.parse().expect("an id"), role);
        let lookup = storage.seat_lookup(seat).await.expect("readable");
        storage.close().await;
        lookup.map_or(0, |it| it.floor.0)
    }
}

/// The next message to the document's room, as Redis receives it.
fn message_to_room(desk: &Desk) -> String {
    let channel = format!("share-link:room:{}", desk.document);
    format!("PUBLISH\r\n${}\r\n{channel}", channel.len())
}

/// Goal: the first server is killed between a commit and its message. The sockets of the other server
/// receive the effect within a tick.
#[tokio::test]
async fn g15_the_effect_of_a_commit_reaches_the_other_server_after_a_kill() {
    let mut world = World::start().await;
    for act in shown() {
        let case = world.case(act).await;
        world.proxy.on_request("PUBLISH", Fate::Hold);
        let _socket = case.send(&world.one).await;
        world.has_committed(&case).await;
        world.proxy.has_struck().await;
        let is_shown = case.other().look(|state| case.shows(state));
        let began = Instant::now();
        assert!(world.survives(&case).await, "{act:?} was committed");
        let took = began.elapsed().as_millis();
        say(&format!("crash points: {act:?} after {took} ms, by a tick: {}", !is_shown));
        world.mend().await;
    }
}

/// Goal: the same at any moment of a request.
#[tokio::test]
async fn g15_after_a_kill_at_a_random_moment_of_a_request_no_socket_misses_its_effect() {
    let given = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seed = given("GALLEY_SEED").unwrap_or_else(|| getrandom::u64().expect("random bits"));
    let rounds = given("GALLEY_CRASHES").map_or(CRASHES, |rounds| rounds.try_into().unwrap());
    say(&format!("crash points: {rounds} kills from GALLEY_SEED={seed} on"));
    let mut random = Random::new(seed);
    let mut world = World::start().await;
    let acts: Vec<_> = shown().collect();
    let first = random.below(acts.len());
    let mut latencies = HashMap::new();
    let mut committed = 0;
    for round in 0..rounds {
        let act = acts[(first + round) % acts.len()];
        let latency = match latencies.get(&act) {
            Some(latency) => *latency,
            None => latency(&world.case(act).await, &world.one).await,
        };
        latencies.insert(act, latency);
        let case = world.case(act).await;
        let _socket = case.send(&world.one).await;
        // The moment of the kill, not a wait for an event.
        let moment = random.below(usize::try_from(latency.as_micros()).unwrap() * 5 / 4);
        sleep(Duration::from_micros(moment.try_into().unwrap())).await;
        let is_committed = world.survives(&case).await;
        committed += usize::from(is_committed);
        say(&format!("crash points: {act:?} after {moment} of {latency:?}: {is_committed}"));
        world.mend().await;
    }
    say(&format!("crash points: {committed} of {rounds} were committed"));
}

/// The time from the request to its response.
async fn latency(case: &Case, server: &Server) -> Duration {
    let began = Instant::now();
    let mut socket = case.send(server).await;
    let mut status = [0; 12];
    let answer = timeout(TEST_TIMEOUT, socket.read_exact(&mut status)).await;
    answer.expect("an answer in time").expect("an answer");
    assert_eq!(&status[..10], b"HTTP/1.1 2", "{:?}", case.act);
    began.elapsed()
}

/// Goal: the server is killed between the ratification of a grant and the join of its room. The former
/// session of the same user has ended, and the seat is free within the lease.
#[tokio::test]
async fn g15_a_ratified_grant_of_a_killed_server_holds_no_seat_beyond_its_lease() {
    let mut world = World::start().await;
    for is_taken_over in [false, true] {
        let desk = world.desk().await;
        let reviewer = world.two.reviewer(&desk).await;
        let former = if is_taken_over { Some(world.two.writer(&desk).await) } else { None };
        let before = world.ratified(&desk, Role::Writer).await;
        world.proxy.on_request(&message_to_room(&desk), Fate::Hold);
        let _late = world.one.claim_seat(&desk, "writer", "events=1&takeover=1").await;
        world.proxy.has_struck().await;
        assert!(before < world.ratified(&desk, Role::Writer).await, "the grant is ratified");
        world.one.kill().await;
        if let Some(former) = former {
            assert_eq!(former.closed().await.0, 4410);
        }
        world.seats_again(&desk, &reviewer).await;
        world.mend().await;
    }
}

/// Goal: the server is killed after the database revoked an evicted session's fence, before the
/// notification and before the release of the key. The session ends within a tick.
#[tokio::test]
async fn g15_an_eviction_committed_by_a_killed_server_ends_the_session_within_a_tick() {
    let mut world = World::start().await;
    let case = world.case(Act::EndSession).await;
    let before = world.ratified(&case.desk, Role::Reviewer).await;
    world.proxy.on_request("PUBLISH", Fate::Hold);
    world.proxy.on_request("release", Fate::Hold);
    let _socket = case.send(&world.one).await;
    let began = Instant::now();
    while world.ratified(&case.desk, Role::Reviewer).await == before {
        assert!(began.elapsed() < TEST_TIMEOUT, "the session's end is not committed");
    }
    world.one.kill().await;
    let closed = case.other().closed().await;
    assert_eq!(closed, (4410, "evicted".to_owned()));
    world.has_committed(&case).await;
}

/// Goal: the server is killed between its message about a seat and the release of its key.
#[tokio::test]
async fn g15_a_server_killed_between_a_message_and_its_release_holds_no_seat() {
    let mut world = World::start().await;
    for act in [Act::RevokeShareLink, Act::DeleteDocument, Act::EndSession] {
        let case = world.case(act).await;
        world.proxy.on_request("release", Fate::Hold);
        let _socket = case.send(&world.one).await;
        // The message passes, because pub/sub has a connection of its own.
        case.reaches(case.other()).await;
        world.proxy.has_struck().await;
        assert!(world.survives(&case).await, "{act:?} was told");
        world.mend().await;
    }
}

/// Goal: a writer leaves, and the server is killed before the release of the key, or after the release
/// and before the message.
#[tokio::test]
async fn g15_a_server_killed_while_its_writer_leaves_holds_no_seat_and_leaves_no_stale_peer() {
    let mut world = World::start().await;
    for is_released in [false, true] {
        let desk = world.desk().await;
        let reviewer = world.two.reviewer(&desk).await;
        let writer = world.one.writer(&desk).await;
        reviewer.event("peer.joined").await;
        let held = if is_released { message_to_room(&desk) } else { "release".to_owned() };
        world.proxy.on_request(&held, Fate::Hold);
        writer.send_message(Message::Close(None));
        world.proxy.has_struck().await;
        world.one.kill().await;
        reviewer.event("peer.left").await;
        world.seats_again(&desk, &reviewer).await;
        world.mend().await;
    }
}
