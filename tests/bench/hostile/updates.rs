//! Yjs updates (format v1) that no editor makes, written by hand.

use bytes::Bytes;
use galley::yjs::protocol;

/// A struct that holds text and names its left neighbour.
const TEXT_RIGHT_OF: u8 = 0x84;
/// A struct that holds text and names its parent.
const TEXT_IN_ROOT: u8 = 0x04;

/// The message with which `client` begins the document: one struct of `letters` times the letter a.
pub(crate) fn first(client: u64, letters: usize) -> Bytes {
    first_of(client, &"a".repeat(letters))
}

/// The message with which `client` begins the document: one struct of this text.
pub(crate) fn first_of(client: u64, text: &str) -> Bytes {
    let mut update = Vec::new();
    varint(&mut update, 1);
    first_struct(&mut update, client, text);
    varint(&mut update, 0);
    protocol::update(&update)
}

/// `letters` of one client in one struct, then `inserts` letters of another, each right of a letter of
/// that struct, from its end to its beginning: each splits the struct (H2).
pub(crate) fn splits(letters: usize, inserts: usize) -> Bytes {
    const OWNER: u64 = 100;
    const SPLITTER: u64 = 77;
    let mut update = Vec::new();
    varint(&mut update, 2);
    first_struct(&mut update, OWNER, &"a".repeat(letters));
    varint(&mut update, inserts as u64);
    varint(&mut update, SPLITTER);
    varint(&mut update, 0);
    for neighbour in (0..letters as u64 - 1).rev().take(inserts) {
        right_of(&mut update, OWNER, neighbour);
    }
    varint(&mut update, 0);
    protocol::update(&update)
}

/// One letter of client 9, and a letter of each of so many other clients, right of it (H6).
pub(crate) fn clients(count: u64) -> Bytes {
    const OWNER: u64 = 9;
    let mut update = Vec::new();
    varint(&mut update, count + 1);
    first_struct(&mut update, OWNER, "a");
    for client in 0..count {
        varint(&mut update, 1);
        varint(&mut update, 1_000 + client);
        varint(&mut update, 0);
        right_of(&mut update, OWNER, 0);
    }
    varint(&mut update, 0);
    protocol::update(&update)
}

/// One letter far behind the end of what the server has of `client`: a gap (H6).
pub(crate) fn gap(client: u64) -> Bytes {
    let mut update = Vec::new();
    varint(&mut update, 1);
    varint(&mut update, 1);
    varint(&mut update, client);
    varint(&mut update, 1 << 20);
    right_of(&mut update, client, (1 << 20) - 1);
    varint(&mut update, 0);
    protocol::update(&update)
}

/// A sync step 1 that has all but the last letter of each client's struct (H1).
pub(crate) fn all_but_the_last(clients: &[u64], letters: usize) -> Bytes {
    let mut vector = Vec::new();
    varint(&mut vector, clients.len() as u64);
    for client in clients {
        varint(&mut vector, *client);
        varint(&mut vector, letters as u64 - 1);
    }
    protocol::sync_step1(&vector)
}

/// A deletion of the first `letters` of `client`.
pub(crate) fn deletion(client: u64, letters: u64) -> Bytes {
    let mut update = Vec::new();
    for number in [0, 1, client, 1, 0, letters] {
        varint(&mut update, number);
    }
    protocol::update(&update)
}

fn first_struct(update: &mut Vec<u8>, client: u64, text: &str) {
    varint(update, 1);
    varint(update, client);
    varint(update, 0);
    update.push(TEXT_IN_ROOT);
    // The parent is a root type, named.
    varint(update, 1);
    string(update, "content");
    string(update, text);
}

fn right_of(update: &mut Vec<u8>, client: u64, clock: u64) {
    update.push(TEXT_RIGHT_OF);
    varint(update, client);
    varint(update, clock);
    string(update, "x");
}

fn string(update: &mut Vec<u8>, text: &str) {
    varint(update, text.len() as u64);
    update.extend_from_slice(text.as_bytes());
}

/// A number in base 128, lowest digit first.
fn varint(update: &mut Vec<u8>, mut number: u64) {
    loop {
        let digit = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            return update.push(digit);
        }
        update.push(digit | 0x80);
    }
}
