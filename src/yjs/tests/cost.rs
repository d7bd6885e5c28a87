//! G17: the cost of a text is bounded for all updates. The tests count costs in bytes and steps.

use super::{append, append_all, apply, document, edit, text_of};
use crate::client_log::PIECE_BYTES_MAX;
use crate::lib0::put_number;
use crate::log::UpdateLog;
use crate::text::{Effort, Text, document_from_text};
use galley_domain::anchor::{AnchorRequest, AnchorState};
use galley_domain::limits::PLACING_STEPS_MAX;

/// Clients with one long text each, as after four large pastes.
const CLIENTS: u64 = 4;
const LETTERS: u32 = 300_000;

fn long_texts() -> UpdateLog {
    let mut log = UpdateLog::empty();
    let text = "a".repeat(usize::try_from(LETTERS).unwrap());
    append_all(&mut log, (1..=CLIENTS).map(|client| document_from_text(&text, client)));
    log
}

fn state_vector(clock: u32) -> Vec<u8> {
    let mut vector = Vec::new();
    put_number(&mut vector, CLIENTS);
    for client in 1..=CLIENTS {
        put_number(&mut vector, client);
        put_number(&mut vector, clock);
    }
    vector
}

/// Goal: a state vector that ends inside a long text costs a walk through one piece of it. The
/// cost that the server charges contains that walk.
#[test]
fn g17_a_state_vector_that_ends_inside_long_texts_costs_a_piece_of_each() {
    let log = long_texts();
    let per_text = 3 * PIECE_BYTES_MAX;
    for clock in [1, 4_095, 4_096, 4_097, LETTERS / 2 + 1, LETTERS - 1] {
        let (answer, cost) = log.answer(&state_vector(clock)).unwrap();
        let walked = cost - answer.len();
        let most = usize::try_from(CLIENTS).unwrap() * per_text;
        assert!(walked <= most, "{walked} bytes walked from clock {clock}");
        let missing = usize::try_from(CLIENTS * u64::from(LETTERS - clock)).unwrap();
        assert!(missing <= answer.len() && answer.len() < missing + missing / 100 + 200);
    }
    let (answer, cost) = log.answer(&state_vector(LETTERS - 1)).unwrap();
    assert!(answer.len() < 100 && cost > 4_000, "the walk is charged: {cost}");
}

/// Goal: pieces spell the same text on every replica in any order of updates, and no cut splits a
/// pair.
#[test]
fn g17_a_long_text_in_pieces_is_the_same_text_to_every_replica() {
    let page = "ab한국👩‍👧x e\u{301}\n".repeat(2_000);
    let writer = document(7);
    let mut log = UpdateLog::empty();
    append(&mut log, edit(&writer, 0, 0, &page));
    append(&mut log, edit(&writer, 10_001, 4_000, "between"));
    let early = document(1);
    apply(&early, &log.merged());
    for at in [5, 4_100, 9_000] {
        append(&mut log, edit(&writer, at, 3, "🙂"));
    }
    let stored = yrs::updates::encoder::Encode::encode_v1(&yrs::ReadTxn::state_vector(
        &yrs::Transact::transact(&early),
    ));
    apply(&early, &log.diff(&stored).unwrap());
    assert_eq!(text_of(&early), text_of(&writer));
    let merged = log.merged();
    let late = document(2);
    apply(&late, &merged);
    assert_eq!(text_of(&late), text_of(&writer));
    // A log stored with long structs opens, and a client's resend is not new.
    let whole = super::whole(&writer);
    let mut stored = UpdateLog::open(vec![whole.clone()]).unwrap();
    assert_eq!(stored.state_vector(), log.state_vector());
    assert!(!log.check(&whole, crate::log::Origin::Client).unwrap().is_new);
    let reopened = stored.merged();
    assert_eq!(UpdateLog::open(vec![reopened.clone()]).unwrap().merged(), reopened);
}

/// Goal: reviews with frequent quotes and lost positions take a bounded effort, all of them
/// together, in a list of any length.
#[test]
fn g17_resolving_all_reviews_of_a_list_has_one_bound() {
    let writer = document(7);
    let mut log = UpdateLog::empty();
    append(&mut log, edit(&writer, 0, 0, &"ab".repeat(200)));
    let text = Text::build(&log.merged()).unwrap();
    let reviews: Vec<_> = (0..200)
        .map(|at| text.anchor(&AnchorRequest { start: at, end: at + 1, quote: quote(at) }).unwrap())
        .collect();
    append(&mut log, edit(&writer, 0, 400, &"a".repeat(2_000_000)));
    let text = Text::build(&log.merged()).unwrap();
    let mut effort = Effort::default();
    for (origin, current) in &reviews {
        let resolved = text.resolve_within(origin, current, &mut effort);
        assert_eq!(resolved.anchor.state, AnchorState::Orphaned);
        assert_eq!((resolved.anchor.start, resolved.anchor.end), (0, 0));
    }
    assert!(effort.spent() <= PLACING_STEPS_MAX);
    // A review at its old position costs nothing, even without remaining effort.
    let (origin, current) =
        text.anchor(&AnchorRequest { start: 9, end: 10, quote: quote(0) }).unwrap();
    let found = text.resolve_within(&origin, &current, &mut effort);
    assert_eq!((found.anchor.state, found.anchor.start), (AnchorState::Exact, 9));
}

fn quote(at: u32) -> String {
    if at.is_multiple_of(2) { "a" } else { "b" }.to_owned()
}
