//! Hostile bytes: known attacks, and likely ones.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{append, apply, document, edit, typed, whole};
use crate::error::{Rejected, SyncError};
use crate::lib0::{put_block, put_number};
use crate::log::{Origin, SERVER_IDS, UpdateLog, server_client_id};
use crate::text::document_from_text;

/// Numbers in the encoding of lib0.
fn numbers(numbers: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    for number in numbers {
        put_number(&mut out, *number);
    }
    out
}

/// An update with one struct: `client`, its clock, and the rest of its bytes.
fn one_struct(client: u64, clock: u64, rest: &[u8]) -> Vec<u8> {
    [&numbers(&[1, 1, client, clock]), rest, &[0]].concat()
}

/// The first struct of a text: it names its parent.
fn text_struct(text: &str) -> Vec<u8> {
    let mut out = vec![4, 1];
    put_block(&mut out, b"content");
    put_block(&mut out, text.as_bytes());
    out
}

fn refused(update: &[u8]) -> Rejected {
    UpdateLog::empty().check(update, Origin::Client).unwrap_err()
}

const HUGE: u64 = 512 * 1024 * 1024;

// `tests/suite/server/hostile_clients.rs` and `tests/suite/fuzz` measure the memory in a process of their own.
#[test]
fn g12_g13_a_state_vector_of_seven_bytes_allocates_nothing() {
    let log = UpdateLog::open(vec![document_from_text("text", 1)]).unwrap();
    for count in [2, 64 * 1024 * 1024, HUGE, (1 << 53) - 1] {
        let vector = [&numbers(&[count])[..], &[1, 1]].concat();
        let answer = log.diff(&vector);
        assert!(matches!(answer, Err(SyncError::StateVector(_))), "{count}: {answer:?}");
    }
    for vector in [&[][..], &[1], &[1, 1], &[0, 0], &[0x80, 0], &[1, 1, 0xff, 0xff]] {
        assert!(log.diff(vector).is_err(), "{vector:?}");
    }
}

#[test]
fn g12_g13_y3_declared_sizes_are_compared_with_the_remaining_bytes() {
    for update in [
        numbers(&[HUGE, 1, 1, 1]),
        numbers(&[1, HUGE, 1, 0, 0, 1]),
        one_struct(1, 0, &[&[4, 1][..], &numbers(&[HUGE]), b"content"].concat()),
        one_struct(1, 0, &[&[4, 1, 7][..], b"content", &numbers(&[HUGE]), b"x"].concat()),
        numbers(&[0, HUGE, 1, 1, 0, 1]),
        numbers(&[0, 1, 1, HUGE, 0, 1]),
        // Maps, arrays and values with declared sizes, which the parser never reads.
        one_struct(1, 0, &[&[8, 1, 7][..], b"content", &numbers(&[HUGE]), &[118]].concat()),
        one_struct(1, 0, &[&[2, 1, 7][..], b"content", &numbers(&[HUGE]), &[118]].concat()),
    ] {
        let answer = refused(&update);
        assert!(
            matches!(
                answer,
                Rejected::Malformed(_) | Rejected::Forbidden(_) | Rejected::Unsupported(_)
            ),
            "{answer:?}"
        );
    }
}

#[test]
fn g12_deep_nesting_is_rejected_by_its_kind_before_it_is_parsed() {
    for levels in [65_usize, 7_000, 500_000] {
        let nested: Vec<u8> = [117, 1].repeat(levels);
        let values = one_struct(1, 0, &[&[8, 1, 7][..], b"content\x01", &nested, &[126]].concat());
        assert!(matches!(refused(&values), Rejected::Forbidden(_) | Rejected::Unsupported(_)));
        let mut format = [&[6, 1, 7][..], b"content\x01b"].concat();
        put_block(&mut format, "[".repeat(levels).as_bytes());
        assert_eq!(refused(&one_struct(1, 0, &format)), Rejected::TooDeep);
    }
}

#[test]
fn g12_clocks_and_ids_out_of_range_are_rejected() {
    let text = text_struct("x");
    for (client, clock) in [(1 << 53, 0), (u64::MAX, 0), (1, 1 << 31), (1, 1 << 33)] {
        let update = one_struct(client, clock, &text);
        assert!(matches!(refused(&update), Rejected::Malformed(_)), "{client} {clock}");
    }
    // A collected struct with more units than clocks allow, the first of two.
    let long = [&numbers(&[1, 2, 1, 0])[..], &[0], &numbers(&[(1 << 31) - 1]), &[0, 1, 0]].concat();
    assert!(matches!(refused(&long), Rejected::Malformed(_)));
    let deleted = numbers(&[0, 1, 1, 1, (1 << 31) - 1, (1 << 31) - 1]);
    assert_eq!(refused(&deleted), Rejected::Gap);
}

#[test]
fn g12_y2_structs_with_unsatisfiable_dependencies_are_rejected() {
    // Beside itself, beside a later unit of its own client, and two structs that wait for each
    // other.
    for clock in [0, 1, 7] {
        let beside = one_struct(1, 0, &[0x84, 1, clock, 1, b'x']);
        assert!(matches!(refused(&beside), Rejected::Malformed(_)), "{clock}");
    }
    let circle =
        [&[2, 1, 2, 0, 0x84, 1, 0, 1, b'x'][..], &[1, 1, 0, 0x84, 2, 0, 1, b'y', 0]].concat();
    assert!(matches!(refused(&circle), Rejected::Malformed(_)));
    // Beside an unknown client, and beside a unit that the log lacks.
    assert_eq!(refused(&one_struct(1, 0, &[0x84, 2, 0, 1, b'x'])), Rejected::Gap);
    let mut log = UpdateLog::empty();
    append(&mut log, document_from_text("ab", 2));
    let late = one_struct(1, 0, &[0x44, 2, 2, 1, b'x']);
    assert_eq!(log.check(&late, Origin::Client), Err(Rejected::Gap));
    assert!(log.check(&one_struct(1, 0, &[0x44, 2, 1, 1, b'x']), Origin::Client).is_ok());
}

#[test]
fn g12_malformed_updates_are_rejected() {
    let whole = document_from_text("ab한국", 5);
    for end in 0..whole.len() {
        assert!(matches!(refused(&whole[..end]), Rejected::Malformed(_)), "{end}");
    }
    assert!(matches!(refused(&[&whole[..], &[0]].concat()), Rejected::Malformed(_)));
    let empty_text = one_struct(1, 0, &text_struct(""));
    let not_utf8 = one_struct(1, 0, &[4, 1, 7, b'c', b'o', b'n', b't', b'e', b'n', b't', 1, 0xff]);
    let empty_collected = one_struct(1, 0, &[0, 0]);
    let unknown_kind = one_struct(1, 0, &[&[12, 1, 7][..], b"content\x01x"].concat());
    let no_structs = numbers(&[1, 0, 1, 0, 0, 0]);
    let empty_delete = numbers(&[0, 1, 1, 1, 0, 0]);
    for update in [empty_text, not_utf8, empty_collected, unknown_kind, no_structs, empty_delete] {
        assert!(matches!(refused(&update), Rejected::Malformed(_)), "{update:?}");
    }
    let twice =
        [&[2][..], &numbers(&[1, 1, 0]), &[0, 1], &numbers(&[1, 1, 1]), &[0, 1, 0]].concat();
    assert!(matches!(refused(&twice), Rejected::Malformed(_)));
}

#[test]
fn g10_a_client_cannot_write_under_server_ids() {
    let mut log = UpdateLog::empty();
    for id in [*SERVER_IDS.start(), *SERVER_IDS.end()] {
        let update = document_from_text("forged", id);
        assert!(matches!(
            log.check(&update, Origin::Client),
            Err(Rejected::Forbidden(_) | Rejected::Unsupported(_))
        ));
        assert!(log.check(&update, Origin::Server).is_ok());
    }
    let server = server_client_id(&log);
    assert!(SERVER_IDS.contains(&server));
    let update = document_from_text("by the server", server);
    let checked = log.check(&update, Origin::Server).unwrap();
    log.append(update.clone(), checked);
    // The validator accepts a resend of the server's structs and rejects their continuation.
    assert!(!log.check(&update, Origin::Client).unwrap().is_new);
    let document = document(server);
    apply(&document, &update);
    let more = edit(&document, 0, 0, "not ");
    assert!(matches!(
        log.check(&more, Origin::Client),
        Err(Rejected::Forbidden(_) | Rejected::Unsupported(_))
    ));
    assert!(matches!(
        log.check(&whole(&document), Origin::Client),
        Err(Rejected::Forbidden(_) | Rejected::Unsupported(_))
    ));
}

/// Goal: a reply to sync step 1 restores a server's edit that the log lost, and extends none.
#[test]
fn g10_a_sync_reply_restores_a_server_edit_and_extends_none() {
    let mut log = UpdateLog::empty();
    let server = server_client_id(&log);
    let lost = document_from_text("by the server", server);
    let is_forbidden = |log: &UpdateLog, update: &[u8], from| {
        matches!(log.check(update, from), Err(Rejected::Forbidden(_)))
    };
    assert!(is_forbidden(&log, &lost, Origin::Client));
    let checked = log.check(&lost, Origin::Answer).unwrap();
    assert!(checked.is_new);
    log.append(lost.clone(), checked);
    assert!(!log.check(&lost, Origin::Answer).unwrap().is_new);
    let document = document(server);
    apply(&document, &lost);
    let more = edit(&document, 0, 0, "not ");
    assert!(is_forbidden(&log, &more, Origin::Answer));
    assert!(is_forbidden(&log, &whole(&document), Origin::Answer));
}

#[test]
fn a_resend_with_other_content_does_not_change_stored_units() {
    let mut log = UpdateLog::empty();
    append(&mut log, document_from_text("hello", 1));
    // The log has the first five units; their new content changes nothing.
    append(&mut log, Bytes::from(one_struct(1, 0, &text_struct("HELLO world"))));
    let again = document(9);
    apply(&again, &log.merged());
    assert_eq!(super::text_of(&again), "hello world");
}

#[test]
fn a_deletion_alone_is_new_once() {
    let document = document(1);
    let mut log = UpdateLog::empty();
    super::append_all(&mut log, typed(&document, "some text"));
    let deletion = edit(&document, 2, 3, "");
    let checked = log.check(&deletion, Origin::Client).unwrap();
    assert!(checked.is_new && checked.clients.is_empty());
    log.append(deletion.clone(), checked);
    assert!(!log.check(&deletion, Origin::Client).unwrap().is_new);
    assert!(!log.check(&whole(&document), Origin::Client).unwrap().is_new);
    let wider = edit(&document, 1, 2, "");
    assert!(log.check(&wider, Origin::Client).unwrap().is_new);
}

#[test]
fn g13_validating_a_megabyte_of_the_worst_case_is_fast() {
    // Ten thousand clients, each beside the previous one.
    let sections = 10_000_u64;
    let mut many = numbers(&[sections]);
    for client in (0..sections).rev() {
        many.extend(numbers(&[1, client, 0]));
        match client {
            0 => many.extend(text_struct("x")),
            _ => many.extend([&[0x84][..], &numbers(&[client - 1, 0]), &[1, b'x']].concat()),
        }
    }
    many.push(0);
    // A hundred thousand deletions of every other unit.
    let text = "x".repeat(200_000);
    let ranges = 100_000_u64;
    let mut holes = numbers(&[0, 1, 1, ranges]);
    for at in 0..ranges {
        holes.extend(numbers(&[at * 2, 1]));
    }
    let mut log = UpdateLog::empty();
    append(&mut log, document_from_text(&text, 1));
    let began = Instant::now();
    assert!(UpdateLog::empty().check(&many, Origin::Client).unwrap().is_new);
    append(&mut log, Bytes::from(holes));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
