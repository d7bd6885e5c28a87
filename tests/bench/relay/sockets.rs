//! As many idle pairs as one server may hold, with Redis and PostgreSQL, while a few type.
//!
//! The process has room for half as many pairs as it may open files, at most 50,000 ([`pairs`]): the server
//! is another process under the same limit. The clients come from five addresses, because one has 28,232
//! ports to a server. Each announces its presence every 15 s, as a page does, and 2 % of the pairs type five
//! keys a second for ten minutes (`GALLEY_SECONDS`).

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use galley::domain::seat::Role;
use galley::yjs::awareness::{AwarenessEntry, encode_awareness};
use galley::yjs::protocol;
use tokio::select;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, sleep};
use tokio_tungstenite::tungstenite::Message;
use tokio_util::task::TaskTracker;

use crate::client::{Address, EVENTS, Socket, enter_from};
use crate::contender::Relay;
use crate::crowd::Crowd;
use crate::support::{postgres_server, redis_server};

const PAIRS_MAX: usize = 50_000;
/// Files of the server and of this process beside the sockets.
const OTHER_FILES: usize = 600;
/// One pair of so many types.
const TYPES_ONE_OF: u32 = 50;
const KEYS_A_SECOND: u32 = 5;
/// Of 127.0.0.0/8, by their last number.
const ADDRESSES: [u8; 5] = [2, 3, 4, 5, 6];
/// Pairs that connect at the same time.
const COMING: usize = 16;
const PRESENCE_EVERY: Duration = Duration::from_secs(15);
/// Three ticks of the server and one heartbeat.
const QUIET_FOR: Duration = Duration::from_secs(13);
const MIB: f64 = 1_024.0 * 1_024.0;
pub(crate) async fn measure() {
    let (files, pairs) = pairs();
    let seconds = std::env::var("GALLEY_SECONDS").ok().and_then(|it| it.parse().ok());
    let lasting = Duration::from_secs(seconds.unwrap_or(600));
    let redis = redis_server::Server::start().await;
    let postgres = postgres_server::Server::start();
    let (locks, database) = (redis.url(), postgres.url(&postgres.empty().await));
    let connections = (files - OTHER_FILES / 2).to_string();
    let settings = [
        ("LOCKS__URL", locks.as_str()),
        ("DATABASE__URL", database.as_str()),
        ("LIMITS__CONNECTIONS", connections.as_str()),
        // The limits of one address do not count.
        ("SERVER__TRUSTED_PROXIES", "127.0.0.0/8"),
    ];
    let server = Relay::galley_with(&settings).await;
    let relay = Arc::new(Relay::Galley(Arc::clone(&server)));
    println!("{files} files: {} sockets", 2 * pairs);
    let typing = pairs / TYPES_ONE_OF;
    let rooms = relay.rooms(pairs - typing, EVENTS).await;
    let before = relay.private_bytes();
    let idle = TaskTracker::new();
    let began = Instant::now();
    connect(&rooms, &idle).await;
    let sockets = 2 * rooms.len();
    println!("connected at {:.0} a second", sockets as f64 / began.elapsed().as_secs_f64());
    sleep(QUIET_FOR).await;
    let memory = relay.private_bytes();
    let each = (memory - before) / (sockets as f64 * 1_024.0);
    println!("memory {:.0} MiB, {each:.1} KiB a socket", memory / MIB);
    idle_processor(&relay).await;
    // A session that is silent meanwhile would lose its seat.
    let mut crowd = Crowd::connect(&relay, typing, EVENTS).await;
    let (processor, started) = (relay.processor(), Instant::now());
    let taken = crowd.types(typing * KEYS_A_SECOND, lasting).await;
    let cores = (relay.processor() - processor) / started.elapsed().as_micros() as f64;
    let (p50, p99) = (taken.p50 / 1e3, taken.p99_since_due / 1e3);
    println!(
        "{} edits a second for {lasting:?}: p50 {p50:.2}, p99 since due {p99:.2} ms",
        typing * KEYS_A_SECOND
    );
    println!(
        "{} edits lost; {cores:.2} cores; memory {:.0} MiB",
        taken.lost,
        relay.private_bytes() / MIB
    );
    println!("{} idle sockets closed", sockets - idle.len());
    report_renewals(&server.metrics().await);
    crowd.leaves().await;
}

fn report_renewals(metrics: &str) {
    let lost = metrics.lines().filter(|line| line.starts_with("galley_seats_lost_total"));
    let lost: f64 = lost.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
    println!("{lost} seats lost");
    for name in ["galley_renewal_round_seconds", "galley_renewal_lag_seconds"] {
        let buckets = metrics.lines().filter_map(|line| {
            let (bound, count) =
                line.strip_prefix(name)?.strip_prefix("_bucket{le=\"")?.split_once("\"} ")?;
            Some((bound, count.parse::<f64>().ok()?))
        });
        let buckets: Vec<_> = buckets.collect();
        let all = buckets.last().map_or(0.0, |(_, count)| *count);
        let within =
            |share: f64| buckets.iter().find(|(_, count)| share * all <= *count).map(|it| it.0);
        println!("{name}: {all}, half within {:?} s, all within {:?} s", within(0.5), within(1.0));
    }
}

/// The limit on open files of a process, and the pairs that both processes have room for.
fn pairs() -> (usize, u32) {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("Linux");
    let files = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    let files: usize = files.split_whitespace().nth(3).and_then(|it| it.parse().ok()).expect("one");
    let wanted = std::env::var("GALLEY_PAIRS").ok().and_then(|it| it.parse().ok());
    let pairs = (files.saturating_sub(OTHER_FILES) / 2).min(wanted.unwrap_or(PAIRS_MAX));
    (files, u32::try_from(pairs).expect("at most 50,000"))
}

/// Processor of idle sockets, the presence of their clients included.
async fn idle_processor(relay: &Relay) {
    const LASTING: Duration = Duration::from_secs(60);
    let before = relay.processor();
    sleep(LASTING).await;
    let cores = (relay.processor() - before) / LASTING.as_micros() as f64;
    println!("while no client types: {:.1} % of a core", 100.0 * cores);
}

async fn connect(rooms: &[Address], idle: &TaskTracker) {
    for (some, source) in rooms.chunks(COMING).zip(ADDRESSES.into_iter().cycle()) {
        let come =
            |room: &Address| seat_two(Ipv4Addr::new(127, 0, 0, source), room.clone(), idle.clone());
        some.iter().map(come).collect::<JoinSet<_>>().join_all().await;
    }
}

async fn seat_two(source: Ipv4Addr, room: Address, idle: TaskTracker) {
    for role in [Role::Writer, Role::Reviewer] {
        let (socket, _) = enter_from(source, &room, role).await;
        #[expect(clippy::disallowed_methods, reason = "one for each client")]
        idle.spawn(stay(socket));
    }
}

/// Announces the presence of an idle client, and reads what arrives, until the socket ends.
async fn stay(mut socket: Socket) {
    let client = u64::from(getrandom::u32().expect("random bits"));
    let mut tick = interval_at(Instant::now(), PRESENCE_EVERY);
    let mut clock = 0;
    loop {
        select! {
            _ = tick.tick() => {
                clock += 1;
                let entry = AwarenessEntry { client, clock, state: Some(r#"{"user":{"name":"Kim"}}"#.to_owned()) };
                let message = Message::Binary(protocol::awareness(&encode_awareness(&[entry])));
                if socket.send(message).await.is_err() {
                    return;
                }
            }
            message = socket.next() => {
                let Some(Ok(_)) = message else { return };
            }
        }
    }
}
