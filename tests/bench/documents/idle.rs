//! The memory of an idle connection, two to a room.
//!
//! Some rooms are filled first: memory that a server allocates once is then allocated. Then two
//! clients join each of a thousand more rooms, a few at a time, because the benchmark measures idle
//! connections and not a storm. After three of the server's ticks and one heartbeat it reads
//! private memory again, and divides the growth by the connections.

use std::time::Duration;

use futures_util::StreamExt as _;
use galley::domain::seat::Role;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use crate::client::{Address, EVENTS, Socket, enter};
use crate::contender::Relay;
use crate::measure::{Bar, Table};

const ROOMS_BEFORE: u32 = 100;
const ROOMS: u32 = 1_000;
const QUIET_FOR: Duration = Duration::from_secs(13);
const KIB: f64 = 1_024.0;

pub(crate) async fn measure(table: &mut Table) {
    let galley = weigh(Relay::galley().await).await;
    let copy = weigh(Relay::copy().await).await;
    let shown = |bytes: f64| format!("{:.1} KiB", bytes / KIB);
    let what = "memory of an idle connection, two to a room";
    let against = format!("{}: the relay that copies", shown(copy));
    table.row(what, (shown(galley), against), galley / copy, Bar::AtMost(1.15));
}

/// Bytes a connection.
async fn weigh(relay: Relay) -> f64 {
    let rooms = relay.rooms(ROOMS_BEFORE + ROOMS, EVENTS).await;
    let (first, rest) = rooms.split_at(ROOMS_BEFORE as usize);
    let ears = TaskTracker::new();
    fill(first, &ears).await;
    sleep(QUIET_FOR).await;
    let before = relay.private_bytes();
    fill(rest, &ears).await;
    sleep(QUIET_FOR).await;
    let after = relay.private_bytes();
    assert_eq!(ears.len(), 2 * rooms.len(), "all of them are still connected");
    (after - before) / (2 * rest.len()) as f64
}

/// Two clients in each room, which only receive.
async fn fill(rooms: &[Address], ears: &TaskTracker) {
    for room in rooms {
        for role in [Role::Writer, Role::Reviewer] {
            let (socket, _) = enter(room, role).await;
            #[expect(clippy::disallowed_methods, reason = "one for each client")]
            ears.spawn(listen(socket));
        }
    }
}

async fn listen(mut socket: Socket) {
    while let Some(Ok(_)) = socket.next().await {}
}
