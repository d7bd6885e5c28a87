//! Random updates, with `yrs` as the judge. An update that the validator accepts must decode, apply
//! and encode again without a panic, and leave no struct waiting. The log and a document must read
//! the same text from it.

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;

use super::{Fixture, append, apply, document, edit, runner, text_of, whole};
use crate::lib0::{put_block, put_length, put_number};
use crate::log::{Origin, UpdateLog};
use crate::text::Text;
use galley_domain::anchor::{AnchorRequest, RelativeRange};

/// Documents in progress: the log so far, and the next update.
fn moments() -> Vec<(UpdateLog, Bytes)> {
    let read = Fixture::read;
    let mut moments = Vec::new();
    for fixture in [
        read(include_str!("../../../tests/data/yjs/together.json")),
        read(include_str!("../../../tests/data/yjs/typing.json")),
    ] {
        let mut log = UpdateLog::empty();
        moments.push((log.clone(), fixture.bytes("whole")));
        for update in fixture.all("updates") {
            moments.push((log.clone(), update.clone()));
            append(&mut log, update);
        }
        moments.push((log, fixture.bytes("whole")));
    }
    // A document with collected text, and a later edit.
    let writer = document(6);
    let mut log = UpdateLog::empty();
    append(&mut log, edit(&writer, 0, 0, &"한글 text ".repeat(30)));
    append(&mut log, edit(&writer, 10, 120, ""));
    let log = UpdateLog::open(vec![log.merged()]).unwrap();
    moments.push((log.clone(), whole(&writer)));
    moments.push((log, edit(&writer, 5, 20, "x")));
    let offline = read(include_str!("../../../tests/data/yjs/offline.json"));
    let log = UpdateLog::open(offline.all("server")).unwrap();
    moments.push((log.clone(), offline.bytes("step2")));
    moments.push((log, offline.bytes("whole_step2")));
    moments
}

/// The characters of a text, sorted. A struct may claim a position between two units in the wrong
/// order; Yjs then places it by the order of arrival, in every replica. No client does that by
/// itself, and a writer who forges it corrupts only the own text.
fn letters(text: &str) -> Vec<char> {
    let mut letters: Vec<char> = text.chars().collect();
    letters.sort_unstable();
    letters
}

/// Asserts every property of an update. Returns whether the validator accepts it.
fn judge(log: &UpdateLog, update: &Bytes) -> bool {
    let Ok(checked) = log.check(update, Origin::Client) else { return false };
    let mut log = log.clone();
    let (before, stored) = (log.merged(), log.state_vector());
    let is_new = checked.is_new;
    let clients = checked.clients.clone();
    log.append(update.clone(), checked);
    let after = log.merged();
    assert_eq!(is_new, before != after, "new is what changes the log");
    assert_eq!(clients.is_empty(), stored == log.state_vector());
    // Applied to the document of a client with the same log.
    let peer = document(1);
    apply(&peer, &before);
    apply(&peer, update);
    let text = letters(&text_of(&peer));
    let built = Text::build(&after).expect("the log is a whole document");
    assert_eq!(letters(&built.content()), text, "the log means what the update means");
    // After another encoding the text is the same.
    let again = document(2);
    apply(&again, &whole(&peer));
    assert_eq!(letters(&text_of(&again)), text);
    // The log's reply to a client that lacks it.
    let late = document(3);
    apply(&late, &before);
    apply(&late, &log.diff(&stored).unwrap());
    assert_eq!(letters(&text_of(&late)), text);
    // The log parses its own output, and the update is not new any more.
    assert_eq!(UpdateLog::open(vec![after.clone()]).unwrap().merged(), after);
    assert!(!log.check(update, Origin::Client).unwrap().is_new);
    true
}

/// Changes bytes: replace, add a little, insert, remove, copy a piece, cut the end off.
fn mutate(bytes: &[u8], changes: &[(u8, Index, Index, u8)]) -> Bytes {
    let mut out = bytes.to_vec();
    for (kind, at, other, value) in changes {
        if out.is_empty() {
            break;
        }
        let (at, other) = (at.index(out.len()), other.index(out.len()));
        match kind % 6 {
            0 => out[at] = *value,
            1 => out[at] = out[at].wrapping_add((value % 5).wrapping_sub(2)),
            2 => out.insert(at, *value),
            3 => drop(out.remove(at)),
            4 => {
                let piece = out[at.min(other)..at.max(other)].to_vec();
                let at = usize::from(*value) % out.len();
                out.splice(at..at, piece);
            }
            _ => out.truncate(at.max(out.len() / 2)),
        }
    }
    Bytes::from(out)
}

#[test]
fn g12_an_accepted_mutated_update_harms_no_replica() {
    let moments = moments();
    let change = (any::<u8>(), any::<Index>(), any::<Index>(), any::<u8>());
    let input = (any::<Index>(), prop::collection::vec(change, 1..4));
    let (mut tried, mut taken) = (0_u32, 0_u32);
    let counts = std::cell::RefCell::new((&mut tried, &mut taken));
    runner(6_000)
        .run(&input, |(at, changes)| {
            let (log, update) = at.get(&moments);
            let through = judge(log, &mutate(update, &changes));
            let mut counts = counts.borrow_mut();
            *counts.0 += 1;
            *counts.1 += u32::from(through);
            Ok(())
        })
        .unwrap();
    assert!(tried / 50 < taken, "only {taken} of {tried} were let through: too few to judge by");
}

/// An imagined struct: its client, its neighbours, and its kind.
type Imagined = (u8, Option<(u8, u8)>, Option<(u8, u8)>, u8);

/// Writes structs of a few clients with clocks that may fit.
fn imagine(log: &UpdateLog, clients: &[Vec<Imagined>], deletes: &[(u8, u8, u8)]) -> Bytes {
    let name = |client: u8| [11, 4_000_000_000, 305, 6, 7][usize::from(client) % 5];
    let mut out = Vec::new();
    put_length(&mut out, clients.len());
    for (at, structs) in clients.iter().enumerate() {
        let client = name(u8::try_from(at).unwrap());
        put_length(&mut out, structs.len());
        put_number(&mut out, client);
        put_number(&mut out, log.clock_of(client));
        for (kind, left, right, value) in structs {
            put_struct(
                &mut out,
                *kind,
                [*left, *right].map(|id| id.map(|(of, clock)| (name(of), clock))),
                *value,
            );
        }
    }
    put_length(&mut out, deletes.len());
    for (client, from, length) in deletes {
        put_number(&mut out, name(*client));
        put_number(&mut out, 1_u8);
        put_number(&mut out, *from);
        put_number(&mut out, length % 9 + 1);
    }
    Bytes::from(out)
}

fn put_struct(out: &mut Vec<u8>, kind: u8, beside: [Option<(u64, u8)>; 2], value: u8) {
    let kind = [0, 1, 4, 4, 4, 4, 6, 6][usize::from(kind) % 8];
    if kind == 0 {
        return out.extend([0, value % 3 + 1]);
    }
    let [left, right] = beside;
    let flag = |id: Option<(u64, u8)>, bit: u8| if id.is_some() { bit } else { 0 };
    out.push(kind | flag(left, 0x80) | flag(right, 0x40));
    for (client, clock) in beside.into_iter().flatten() {
        put_number(out, client);
        put_number(out, clock);
    }
    if left.is_none() && right.is_none() {
        out.push(1);
        put_block(out, b"content");
    }
    match kind {
        1 => out.push(value % 3 + 1),
        4 => {
            put_block(
                out,
                ["x", "한글", "👩‍👧", "e\u{301}", "yz"][usize::from(value) % 5].as_bytes(),
            );
        }
        _ => {
            put_block(out, ["b", "i"][usize::from(value) % 2].as_bytes());
            put_block(out, ["true", "null", "{\"a\":[1]}"][usize::from(value) % 3].as_bytes());
        }
    }
}

#[test]
fn g12_accepted_random_structs_harm_no_replica() {
    let moments = moments();
    let id = || prop::option::of((0..5_u8, 0..40_u8));
    let one = (any::<u8>(), id(), id(), any::<u8>());
    let clients = prop::collection::vec(prop::collection::vec(one, 1..5), 0..4);
    let deletes = prop::collection::vec((0..5_u8, 0..40_u8, any::<u8>()), 0..3);
    let (mut tried, mut taken) = (0_u32, 0_u32);
    let counts = std::cell::RefCell::new((&mut tried, &mut taken));
    runner(4_000)
        .run(&(any::<Index>(), clients, deletes), |(at, clients, deletes)| {
            let (log, _) = at.get(&moments);
            let through = judge(log, &imagine(log, &clients, &deletes));
            let mut counts = counts.borrow_mut();
            *counts.0 += 1;
            *counts.1 += u32::from(through);
            Ok(())
        })
        .unwrap();
    assert!(tried / 10 < taken, "only {taken} of {tried} were let through: too few to judge by");
}

#[test]
fn g12_no_input_panics_the_readers() {
    let log = UpdateLog::open(vec![moments().last().unwrap().1.clone()]).unwrap();
    let text = Text::build(&log.clone().merged()).unwrap();
    let length = crate::utf16::length(&text.content());
    let request = AnchorRequest { start: 0, end: 2, quote: text.content()[..2].to_owned() };
    let (origin, current) = text.anchor(&request).unwrap();
    let change = (any::<u8>(), any::<Index>(), any::<Index>(), any::<u8>());
    let near = prop::collection::vec(change, 1..3)
        .prop_map(move |changes| mutate(&current.start, &changes).to_vec());
    let bytes = prop_oneof![3 => prop::collection::vec(any::<u8>(), 0..64), 1 => near];
    runner(2_000)
        .run(&bytes, |bytes| {
            let _ = crate::protocol::parse(&bytes);
            let _ = crate::awareness::decode_awareness(&bytes);
            let _ = log.diff(&bytes);
            let nowhere = RelativeRange { start: bytes.clone(), end: bytes.clone() };
            let anchor = text.resolve(&origin, &nowhere).anchor;
            assert!(anchor.start <= anchor.end && anchor.end <= length);
            judge(&log, &Bytes::from(bytes));
            Ok(())
        })
        .unwrap();
}
