//! Mutations of bytes, reproducible from a seed.

use crate::support::rng::Random;

/// Numbers at the boundaries of decoders: one byte and two, half a gigabyte, the last clock, the
/// largest integer of JavaScript, and all bits.
const NUMBERS: [u64; 14] = [
    0,
    1,
    127,
    128,
    1 << 14,
    512 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    (1 << 53) - (1 << 32),
    (1 << 53) - 1,
    1 << 53,
    1 << 63,
    u64::MAX,
];
/// The time limit of milliseconds applies to small inputs.
const BYTES_MAX: usize = 4_096;
const CHANGES_MAX: usize = 4;

/// A number in the encoding of lib0.
pub(crate) fn number(mut rest: u64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let low = rest.to_le_bytes()[0] & 0x7f;
        rest >>= 7;
        if rest == 0 {
            out.push(low);
            return out;
        }
        out.push(low | 0x80);
    }
}

/// Applies one to four changes to `bytes`; `other` is another input that provides pieces.
pub(crate) fn mutate(random: &mut Random, bytes: &[u8], other: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    // Mostly one change: decoders reject inputs with many changes early.
    for _ in 0..=random.below(CHANGES_MAX).min(random.below(CHANGES_MAX)) {
        change(random, &mut out, other);
    }
    out.truncate(BYTES_MAX);
    out
}

fn change(random: &mut Random, out: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(out.len());
    let value = random.byte();
    match random.below(11) {
        _ if out.is_empty() => out.push(value),
        0 => out[at] ^= 1 << (value % 8),
        1 => out[at] = value,
        2 => out[at] = out[at].wrapping_add((value % 5).wrapping_sub(2)),
        3 => out.insert(at, value),
        4 => drop(out.drain(at..(at + 1 + random.below(8)).min(out.len()))),
        5 => splice(random, out, other),
        6 => {
            let own = out.clone();
            splice(random, out, &own);
        }
        7 => out.truncate(at.max(out.len() / 2)),
        // Replaces a number: a length, a clock, a client.
        8 | 9 => {
            let ends = out[at..].iter().position(|byte| *byte < 0x80);
            let end = ends.map_or(out.len(), |length| at + length + 1);
            let number = number(NUMBERS[random.below(NUMBERS.len())]);
            drop(out.splice(at..end, number));
        }
        // A count stands first.
        _ => drop(out.splice(..1, number(NUMBERS[random.below(NUMBERS.len())]))),
    }
}

/// Copies a piece of `from` to a random place, by overwrite or insertion.
fn splice(random: &mut Random, out: &mut Vec<u8>, from: &[u8]) {
    let start = random.below(from.len());
    let piece = &from[start..(start + random.below(64)).min(from.len())];
    let at = random.below(out.len());
    let end = if random.below(2) == 0 { at } else { (at + piece.len()).min(out.len()) };
    drop(out.splice(at..end, piece.iter().copied()));
}
