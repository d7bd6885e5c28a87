//! Two thousand clients that connect at the same moment, two to a room, as after a restart.
//!
//! Each connects, acquires its seat and requests the document. The benchmark measures the time
//! until the last client has it, in new rooms. The two contenders take turns.

use galley::domain::seat::Role;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::client::{Address, EVENTS, Socket, enter};
use crate::contender::Relay;
use crate::measure::{Bar, Table, median, ratio};
use crate::support::{postgres_server, redis_server};

const ROOMS: u32 = 1_000;
const TURNS: usize = 5;

pub(crate) async fn measure(table: &mut Table) {
    let (redis, postgres) = (redis_server::Server::start().await, postgres_server::Server::start());
    let (locks, database) = (redis.url(), postgres.url(&postgres.empty().await));
    let settings = [("LOCKS__URL", locks.as_str()), ("DATABASE__URL", database.as_str())];
    let far = Relay::Galley(Relay::galley_with(&settings).await);
    let contenders = [Relay::galley().await, far, Relay::copy().await];
    let mut taken = [const { Vec::new() }; 3];
    let mut processor = [const { Vec::new() }; 3];
    for _ in 0..TURNS {
        for ((relay, taken), processor) in contenders.iter().zip(&mut taken).zip(&mut processor) {
            let rooms = relay.rooms(ROOMS, EVENTS).await;
            let before = relay.processor();
            let (seconds, sockets) = storm(rooms).await;
            taken.push(seconds);
            processor.push((relay.processor() - before) / f64::from(2 * ROOMS));
            leave(sockets).await;
        }
    }
    let what = format!("{} connect at once", 2 * ROOMS);
    for (galley, on, bar) in [
        (0, "until all are in sync", Bar::AtMost(1.5)),
        (1, "the same with Redis and PostgreSQL", Bar::None),
    ] {
        let [ours, theirs] = [galley, 2].map(|at| &taken[at]);
        let shown = |seconds: &[f64]| format!("{:.0} ms", median(seconds) * 1_000.0);
        let against = format!("{}: the relay that copies", shown(theirs));
        table.row(format!("{what}: {on}"), (shown(ours), against), ratio(ours, theirs), bar);
        let [ours, theirs] = [galley, 2].map(|at| &processor[at]);
        let shown = |micros: &[f64]| format!("{:.0} µs", median(micros));
        let against = format!("{}: the relay that copies", shown(theirs));
        let what = "the same: processor time of the server for each";
        table.row(what, (shown(ours), against), ratio(ours, theirs), Bar::None);
    }
}

/// Seconds until the last client is in sync, and all clients.
async fn storm(rooms: Vec<Address>) -> (f64, Vec<Socket>) {
    let mut arriving = JoinSet::new();
    let began = Instant::now();
    for room in rooms {
        for role in [Role::Writer, Role::Reviewer] {
            let room = room.clone();
            arriving.spawn(async move { enter(&room, role).await.0 });
        }
    }
    let sockets = arriving.join_all().await;
    (began.elapsed().as_secs_f64(), sockets)
}

async fn leave(sockets: Vec<Socket>) {
    let mut leaving: JoinSet<()> = JoinSet::new();
    for mut socket in sockets {
        leaving.spawn(async move {
            // The server may have closed it already.
            let _gone = socket.close(None).await;
        });
    }
    leaving.join_all().await;
}
