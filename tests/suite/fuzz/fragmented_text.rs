//! A text of one million single letters that no encoder can join into runs.

use std::time::{Duration, Instant};

use bytes::Bytes;
use galley::yjs::log::{Origin, UpdateLog};
use galley::yjs::text::Text;

use crate::fuzz::mutate::number;

const CLIENT: u64 = 7;
const UPDATES: u64 = 1_000;
const PIECES: u64 = 1_000;
/// The kind, the right neighbour (client and clock), and one letter with its length.
const PIECE_BYTES_MAX: usize = 9;

/// An update of [`PIECES`] letters. Each letter stands before the previous one.
fn pieces(from: u64) -> Bytes {
    let mut out = [number(1), number(PIECES), number(CLIENT), number(from)].concat();
    for clock in from..from + PIECES {
        match clock {
            0 => out.extend(b"\x04\x01\x07content\x01x"),
            _ => {
                out.extend([&[0x44][..], &number(CLIENT), &number(clock - 1), b"\x01x"].concat());
            }
        }
    }
    out.push(0);
    Bytes::from(out)
}

/// The median, which a pause of the machine does not shift.
pub(crate) fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
fn g12_g13_the_cost_of_an_edit_stays_constant_over_a_million_structs() {
    let mut log = UpdateLog::empty();
    let mut times = Vec::new();
    for at in 0..UPDATES {
        let update = pieces(at * PIECES);
        let began = Instant::now();
        let checked = log.check(&update, Origin::Client).expect("it is an edit like any other");
        log.append(update, checked);
        times.push(began.elapsed());
        if at == 19 {
            let text = Text::build(&log.clone().merged()).expect("a document").content();
            assert_eq!(text.len(), 20_000);
        }
    }
    let quarter = times.len() / 4;
    let (first, last) = (median(&times[..quarter]), median(&times[times.len() - quarter..]));
    assert!(last < first * 4, "{first:?} at first, {last:?} at last");
    assert_eq!(log.clock_of(CLIENT), UPDATES * PIECES);
    let merged = log.merged();
    let most = PIECE_BYTES_MAX * usize::try_from(UPDATES * PIECES).expect("a million");
    assert!(merged.len() <= most, "{} bytes", merged.len());
    let mut reopened = UpdateLog::open(vec![merged.clone()]).expect("what was merged");
    assert_eq!(reopened.merged(), merged);
}
