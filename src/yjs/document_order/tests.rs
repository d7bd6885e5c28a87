//! The order equals that of `yrs`, and its cost is bounded.

use bytes::Bytes;
use yrs::{ReadTxn as _, StateVector, Transact as _};

use super::*;
use crate::ROOT;
use crate::lib0::{put_block, put_length, put_number};
use crate::log::{Origin, UpdateLog};
use crate::tests::{append, apply, document, edit, text_by_yrs, text_of};
use crate::text::Text;

/// Builds the text in at most `steps` steps, and returns the number of steps taken.
fn text_within(merged: &[u8], steps: usize) -> Result<(String, usize), SyncError> {
    DocumentOrder::build_within(merged, steps).map(|(order, text)| (text, order.steps))
}

/// A text, and as many more letters. Each letter claims to be the first of the text and the left
/// neighbour of another letter. One client wrote both, or two clients.
fn forged(letters: u32, other: u64) -> Bytes {
    let mut out = Vec::new();
    let first = |out: &mut Vec<u8>, structs: u32, client: u64| {
        put_number(out, structs);
        put_number(out, client);
        put_number(out, 0_u32);
    };
    put_number(&mut out, if other == 7 { 1_u32 } else { 2 });
    first(&mut out, if other == 7 { letters + 1 } else { 1 }, 7);
    out.extend([4, 1]);
    put_block(&mut out, ROOT.as_bytes());
    let count = usize::try_from(letters).unwrap();
    put_length(&mut out, count);
    out.extend(vec![b'a'; count]);
    if other != 7 {
        first(&mut out, letters, other);
    }
    for clock in 0..letters {
        out.push(0x44);
        put_number(&mut out, 7_u32);
        put_number(&mut out, clock);
        put_block(&mut out, b"x");
    }
    out.push(0);
    out.into()
}

#[test]
fn g13_a_document_with_forged_conflicts_is_rejected_quickly() {
    for other in [7, 8, 3] {
        let update = forged(20_000, other);
        // Each of its structs is valid.
        let mut log = UpdateLog::empty();
        append(&mut log, update);
        let built = Text::build(&log.merged());
        assert!(matches!(built, Err(SyncError::TooCostly)), "{other}");
    }
}

#[test]
fn a_small_forged_document_is_ordered_as_yrs_orders_it() {
    for other in [7, 8, 3] {
        let update = forged(300, other);
        assert_eq!(Text::build(&update).unwrap().content(), text_by_yrs(&update), "{other}");
    }
}

#[test]
fn edits_of_one_client_take_no_steps_and_concurrent_edits_take_few() {
    let (one, two) = (document(5), document(9));
    let mut log = UpdateLog::empty();
    for number in 0..2_000_u32 {
        let at = number.wrapping_mul(2_654_435_761) % (number + 1);
        append(&mut log, edit(&one, at, 0, "a"));
    }
    assert_eq!(text_within(&log.merged(), 0).unwrap(), (text_of(&one), 0));
    apply(&two, &log.merged());
    let shared = one.transact().state_vector();
    for number in 0..2_000_u32 {
        let at = number.wrapping_mul(2_654_435_761) % 2_000;
        edit(&one, at, 0, "b");
        edit(&two, at, 0, "c");
    }
    for person in [&one, &two] {
        append(&mut log, person.transact().encode_state_as_update_v1(&shared).into());
    }
    let merged = log.merged();
    let (text, steps) = text_within(&merged, STEPS_MAX).unwrap();
    assert!((1..40_000).contains(&steps), "{steps}");
    apply(&one, &merged);
    assert_eq!(text, text_of(&one));
    let all = one.transact().encode_state_as_update_v1(&StateVector::default());
    assert!(log.check(&all, Origin::Client).is_ok_and(|checked| !checked.is_new));
}

#[test]
fn a_missing_dependency_and_a_malformed_document_are_rejected() {
    let mut update = forged(3, 8).to_vec();
    // The first letter of another client names the tenth as its neighbour.
    let at = update.windows(3).position(|three| three == [0x44, 7, 2]).unwrap();
    update[at + 2] = 9;
    for bytes in [&update[..], &[1, 1], &[1, 1, 7, 0, 31]] {
        assert!(matches!(Text::build(bytes), Err(SyncError::Refused(_))), "{bytes:?}");
    }
}

#[test]
fn a_long_chain_of_waiting_clients_is_ordered() {
    // Each client's letter lies right of the next client's letter.
    let people = 300_u32;
    let mut update = Vec::new();
    put_number(&mut update, people);
    for client in 1..=people {
        update.push(1);
        put_number(&mut update, client);
        update.push(0);
        if client == people {
            update.extend([4, 1]);
            put_block(&mut update, ROOT.as_bytes());
        } else {
            update.push(0x84);
            put_number(&mut update, client + 1);
            update.push(0);
        }
        put_block(&mut update, &[b'a' + u8::try_from(client % 26).unwrap()]);
    }
    update.push(0);
    let written = Text::build(&update).unwrap().content();
    assert_eq!((text_by_yrs(&update), written.len()), (written, 300));
}

/// One text, and letters that each name another unit of it as their left neighbour, from the last to
/// the first. Their client has a smaller id; `yrs` and Yjs split the text for each letter.
fn splits(text: u32, letters: u32) -> Bytes {
    let mut out = vec![2, 1];
    put_number(&mut out, 100_u32);
    out.extend([0, 4, 1]);
    put_block(&mut out, ROOT.as_bytes());
    put_block(&mut out, "a".repeat(usize::try_from(text).unwrap()).as_bytes());
    put_number(&mut out, letters);
    out.extend([77, 0]);
    for letter in 0..letters {
        out.extend([0x84, 100]);
        put_number(&mut out, text - 2 - letter);
        put_block(&mut out, b"x");
    }
    out.push(0);
    out.into()
}

/// Goal: each split costs one more part, and one step. `yrs` copied the text and moved all
/// later structs for each: 15 s for these 30,000.
#[test]
fn g17_a_split_costs_one_part_and_one_step_however_long_the_text_is() {
    let mut log = UpdateLog::empty();
    append(&mut log, splits(100_000, 30_000));
    let (order, text) = DocumentOrder::build(&log.merged()).unwrap();
    assert_eq!(text, "a".repeat(69_999) + &"ax".repeat(30_000) + "a");
    assert!(order.steps <= 30_000, "{} steps", order.steps);
    assert!(order.parts.len() < 2 * 30_000 + 100, "{} parts", order.parts.len());
    let few = splits(1_000, 300);
    assert_eq!(Text::build(&few).unwrap().content(), text_by_yrs(&few));
}
