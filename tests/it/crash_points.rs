//! A commit whose client disconnects, or whose server dies, before its message (G15).
//!
//! The operations are the mutating routes whose effect sockets receive (`acts.rs`). Ticks are switched
//! off where a client disconnects, since they would deliver the effect; a killed server has nothing
//! else. A directed kill is deterministic: the proxy holds one message on its way to Redis, and the
//! server dies before that arrives. Other kills come at a random moment of a request.

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

use crate::acts::{ALL, Act, Case, Users};
use crate::delivery::QUICK;
use crate::desk::Desk;
use crate::kills::say;
use crate::peer::Peer;
use crate::postgres_server;
use crate::process::Server;
use crate::proxy::{Fate, Proxy};
use crate::random::Random;
use crate::redis_server::{self, PATIENCE};

/// No tick comes within a test.
const NO_TICK: [(&str, &str); 3] =
    [("SEATS__LEASE", "600s"), ("SEATS__RENEW_EVERY", "200s"), ("SEATS__CLIENT_TIMEOUT", "500s")];
/// Kills at random moments, where `GALLEY_CRASHES` does not say.
const CRASHES: usize = 14;

impl Case {
    /// Sends the request. The connection ends with what is returned.
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

    /// The user who does not act, or whose session an administrator ends.
    fn other(&self) -> &Peer {
        let other = if self.act.is_the_reviewers() { &self.writer } else { &self.reviewer };
        other.as_ref().expect("a seat")
    }
}

fn shown() -> impl Iterator<Item = Act> {
    ALL.into_iter().filter(|act| act.concerns_sockets())
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
            // The step at which the client disconnects, not a wait for anything. A commit is under
            // way some milliseconds after the request, in a slow build later.
            sleep(Duration::from_micros(500) * step.pow(2)).await;
            drop(socket);
            cases.push(case);
        }
    }
    // The first request was dropped long before the last; a commit still under way notifies later.
    let mut committed = 0;
    for case in &cases {
        if case.is_committed(&server).await {
            committed += 1;
            case.reaches(case.other()).await;
        }
    }
    assert!(0 < committed, "no request came as far as its commit");
}

/// Two servers on one database and one Redis. A proxy carries what the first one, which dies, tells
/// Redis.
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

    /// The user who acts is seated on the server that dies.
    async fn case(&self, act: Act) -> Case {
        let at =
            if act.is_the_reviewers() { [&self.two, &self.one] } else { [&self.one, &self.two] };
        Case::new(act, at[0], at[1], &self.users).await
    }

    /// Ends the first server, and waits until the effect of a commit reaches the other one's socket.
    async fn survives(&mut self, case: &Case) -> bool {
        self.one.kill().await;
        let is_committed = case.is_committed(&self.two).await;
        if is_committed {
            case.reaches(case.other()).await;
        } else if case.other().look(|state| case.shows(state)) {
            // The database may have ended a commit since; a session's server releases its key.
            self.has_committed(case).await;
        }
        is_committed
    }

    async fn has_committed(&self, case: &Case) {
        let began = Instant::now();
        while !case.is_committed(&self.two).await {
            assert!(began.elapsed() < PATIENCE, "{:?} is not committed", case.act);
        }
    }

    /// The first server again, with a way to Redis.
    async fn mend(&mut self) {
        self.proxy.heal();
        self.one.start_again().await;
    }

    /// A desk whose seats nobody holds.
    async fn desk(&self) -> Desk {
        self.two.desk("text").await
    }

    /// Holds that the writer's seat is free for its user on the second server within a lease, and that
    /// the reviewer there works with them.
    async fn seats_again(&self, desk: &Desk, reviewer: &Peer) {
        let began = Instant::now();
        let writer = loop {
            let writer = self.two.knock(desk, "writer", "events=1").await;
            if writer.becomes_synced().await {
                break writer;
            }
            assert!(began.elapsed() < PATIENCE, "the seat is not free");
            sleep(Duration::from_millis(50)).await;
        };
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
        let fences = storage.fences(&[seat]).await.expect("readable");
        storage.close().await;
        fences.first().map_or(0, |(_, fence)| fence.0)
    }
}

/// The next message about the document's room, as Redis receives it.
fn message_to_room(desk: &Desk) -> String {
    let channel = format!("share-link:room:{}", desk.document);
    format!("PUBLISH\r\n${}\r\n{channel}", channel.len())
}

/// Goal: a server is killed between a commit and its message; the sockets of the other server have
/// the effect within a tick.
#[tokio::test]
async fn g15_the_effect_of_a_commit_whose_server_is_killed_reaches_the_other_server() {
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
async fn g15_a_server_killed_at_a_random_moment_of_a_request_leaves_no_socket_behind() {
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
        // The moment of the kill, not a wait for anything.
        let moment = random.below(usize::try_from(latency.as_micros()).unwrap() * 5 / 4);
        sleep(Duration::from_micros(moment.try_into().unwrap())).await;
        let is_committed = world.survives(&case).await;
        committed += usize::from(is_committed);
        say(&format!("crash points: {act:?} after {moment} of {latency:?}: {is_committed}"));
        world.mend().await;
    }
    say(&format!("crash points: {committed} of {rounds} were committed"));
}

/// How long the answer to the request takes.
async fn latency(case: &Case, server: &Server) -> Duration {
    let began = Instant::now();
    let mut socket = case.send(server).await;
    let mut status = [0; 12];
    let answer = timeout(PATIENCE, socket.read_exact(&mut status)).await;
    answer.expect("an answer in time").expect("an answer");
    assert_eq!(&status[..10], b"HTTP/1.1 2", "{:?}", case.act);
    began.elapsed()
}

/// Goal: a server is killed after it has ratified a grant and before a room hears of it. The former
/// session of the same user has ended, and the seat is free within the lease.
#[tokio::test]
async fn g15_a_grant_that_is_ratified_by_a_server_that_is_killed_holds_no_seat_beyond_its_lease() {
    let mut world = World::start().await;
    for is_taken_over in [false, true] {
        let desk = world.desk().await;
        let reviewer = world.two.reviewer(&desk).await;
        let former = if is_taken_over { Some(world.two.writer(&desk).await) } else { None };
        let before = world.ratified(&desk, Role::Writer).await;
        world.proxy.on_request(&message_to_room(&desk), Fate::Hold);
        let _late = world.one.knock(&desk, "writer", "events=1&takeover=1").await;
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

/// Goal: a server is killed after it has taken an ended session's seat from it in the database, before
/// it tells a server and before it releases the key. The session ends within a tick.
#[tokio::test]
async fn g15_a_session_whose_end_is_committed_by_a_server_that_is_killed_ends_within_a_tick() {
    let mut world = World::start().await;
    let case = world.case(Act::EndSession).await;
    let before = world.ratified(&case.desk, Role::Reviewer).await;
    world.proxy.on_request("PUBLISH", Fate::Hold);
    world.proxy.on_request("release", Fate::Hold);
    let _socket = case.send(&world.one).await;
    let began = Instant::now();
    while world.ratified(&case.desk, Role::Reviewer).await == before {
        assert!(began.elapsed() < PATIENCE, "the session's end is not committed");
    }
    world.one.kill().await;
    let closed = case.other().closed().await;
    assert_eq!(closed, (4410, "evicted".to_owned()));
    world.has_committed(&case).await;
}

/// Goal: a server is killed between its message about a seat and the release of its key.
#[tokio::test]
async fn g15_a_server_killed_between_a_message_and_the_release_of_a_seat_keeps_no_seat() {
    let mut world = World::start().await;
    for act in [Act::RevokeShareLink, Act::DeleteDocument, Act::EndSession] {
        let case = world.case(act).await;
        world.proxy.on_request("release", Fate::Hold);
        let _socket = case.send(&world.one).await;
        // The message passes, as the relay has a connection of its own.
        case.reaches(case.other()).await;
        world.proxy.has_struck().await;
        assert!(world.survives(&case).await, "{act:?} was told");
        world.mend().await;
    }
}

/// Goal: a writer leaves, and the server is killed before the release of the key, or after it and
/// before the message.
#[tokio::test]
async fn g15_a_server_killed_while_its_writer_leaves_keeps_no_seat_and_no_name_in_the_room() {
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
