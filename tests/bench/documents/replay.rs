//! A real editing trace, as its writer's client would have sent it, at full speed.
//!
//! 18,335 edits of a person who wrote a program (`tests/data/traces`), each an update and a message of
//! its own, nothing gathered, sent as fast as the other one receives them. What counts is the
//! processor time of the whole server, its kernel's part included, an edit: to read it, check it, append
//! it, pass it on, commit it, and tell both what is saved. The first and the last tenth of the trace
//! are looked at by themselves; what is left to do after a tenth is waited for. Each turn has a room
//! that nobody was ever in, and both take turns.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use crate::client::EVENTS;
use crate::contender::Relay;
use crate::measure::{Bar, Table, median, ratio};
use crate::trace::{svelte_component, write};
use crate::typing::{Typing, stock_document};

const TURNS: usize = 7;
/// What there is to do after the last edit has arrived is over by then.
const SETTLED: Duration = Duration::from_millis(400);
/// Microseconds of processor time that an edit may take.
const BAR: f64 = 10.0;

/// Microseconds an edit, turn by turn.
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
    sleep(SETTLED).await;
    let tenth = edits.len() / 10;
    let (first, rest) = edits.split_at(tenth);
    let (middle, last) = rest.split_at(rest.len() - tenth);
    let mut micros = Vec::new();
    for part in [first, middle, last] {
        let before = relay.processor();
        typing.send(part).await;
        sleep(SETTLED).await;
        micros.push(relay.processor() - before);
    }
    typing.leave().await;
    taken.whole.push(micros.iter().sum::<f64>() / edits.len() as f64);
    taken.first_tenth.push(micros[0] / tenth as f64);
    taken.last_tenth.push(micros[2] / tenth as f64);
}
