//! A real editing trace at full speed, with the messages of its writer's client.
//!
//! 18,335 edits of a person who wrote a program (`tests/data/traces`). Each is one update and one
//! message without batching, sent as fast as the reviewer receives them. The result is the
//! processor time of the whole server for an edit, with its kernel's part: to decode, validate,
//! append, relay and commit it, and to broadcast `document.saved`. The first and the last tenth of
//! the trace have results of their own; the benchmark waits until the server has finished a tenth.
//! Each turn has a new room, and the two contenders take turns.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use crate::client::EVENTS;
use crate::contender::Relay;
use crate::measure::{Bar, Table, median, ratio};
use crate::support::editing_trace::{svelte_component, write};
use crate::typing::{Typing, stock_document};

const TURNS: usize = 7;
/// The server finishes its work after the last edit within this.
const QUIET_FOR: Duration = Duration::from_millis(400);
/// The bar: microseconds of processor time for an edit.
const BAR: f64 = 10.0;

/// Microseconds for an edit, turn by turn.
#[derive(Default)]
struct Taken {
    whole: Vec<f64>,
    first_tenth: Vec<f64>,
    last_tenth: Vec<f64>,
}

pub(crate) async fn measure(table: &mut Table) {
    let writer = stock_document();
    let edits: Vec<Bytes> =
        svelte_component().txns.iter().map(|transaction| write(&writer, transaction)).collect();
    let both = [Relay::galley().await, Relay::copy().await];
    let mut taken = [Taken::default(), Taken::default()];
    for _ in 0..TURNS {
        for (relay, taken) in both.iter().zip(&mut taken) {
            replay(relay, &edits, taken).await;
        }
    }
    let [galley, copy] = &taken;
    let shown = |micros: &[f64]| format!("{:.1} µs", median(micros));
    let what = "processor time an edit, a real trace replayed";
    let whole = median(&galley.whole);
    table.row(what, (shown(&galley.whole), format!("{BAR} µs")), whole / BAR, Bar::AtMost(1.0));
    let against = format!("{}: the relay that copies", shown(&copy.whole));
    table.row("", (shown(&galley.whole), against), ratio(&galley.whole, &copy.whole), Bar::None);
    let against = format!("{} in the first tenth", shown(&galley.first_tenth));
    let flat = ratio(&galley.last_tenth, &galley.first_tenth);
    table.row(
        "in the last tenth of it",
        (shown(&galley.last_tenth), against),
        flat,
        Bar::AtMost(1.2),
    );
}

async fn replay(relay: &Relay, edits: &[Bytes], taken: &mut Taken) {
    let rooms = relay.rooms(1, EVENTS).await;
    let mut typing = Typing::seated(&rooms[0]).await;
    sleep(QUIET_FOR).await;
    let tenth = edits.len() / 10;
    let (first, rest) = edits.split_at(tenth);
    let (middle, last) = rest.split_at(rest.len() - tenth);
    let mut micros = Vec::new();
    for part in [first, middle, last] {
        let before = relay.processor();
        typing.send(part).await;
        sleep(QUIET_FOR).await;
        micros.push(relay.processor() - before);
    }
    typing.leave().await;
    taken.whole.push(micros.iter().sum::<f64>() / edits.len() as f64);
    taken.first_tenth.push(micros[0] / tenth as f64);
    taken.last_tenth.push(micros[2] / tenth as f64);
}
