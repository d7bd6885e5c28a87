//! The part of an update that lies below a state vector.

use std::collections::HashMap;

use bytes::Bytes;

use crate::error::Rejected;
use crate::lib0::{Reader, put_length, put_number};
use crate::structs::Struct;

/// A client and a clock take at least a byte each.
const STATE_BYTES_MIN: usize = 2;

/// The structs of `update` below the clocks of `state_vector`, without deletions. `None`: one of the
/// two is malformed.
#[must_use]
pub fn up_to(update: &[u8], state_vector: &[u8]) -> Option<Bytes> {
    let ends = ends_of(state_vector).ok()?;
    let mut sections = Vec::new();
    read_sections(update, &ends, &mut sections).ok()?;
    let mut out = Vec::new();
    put_length(&mut out, sections.len());
    for Section { client, clock, count, bytes } in sections {
        put_length(&mut out, count);
        put_number(&mut out, client);
        put_number(&mut out, clock);
        out.extend_from_slice(&bytes);
    }
    // No deletions.
    put_length(&mut out, 0);
    Some(Bytes::from(out))
}

struct Section {
    client: u64,
    clock: u32,
    count: usize,
    bytes: Vec<u8>,
}

fn ends_of(state_vector: &[u8]) -> Result<HashMap<u64, u32>, Rejected> {
    let mut reader = Reader::new(state_vector);
    let mut ends = HashMap::new();
    for _ in 0..reader.count(STATE_BYTES_MIN)? {
        let client = reader.number()?;
        ends.insert(client, reader.clock()?);
    }
    Ok(ends)
}

fn read_sections(
    update: &[u8],
    ends: &HashMap<u64, u32>,
    sections: &mut Vec<Section>,
) -> Result<(), Rejected> {
    let mut reader = Reader::new(update);
    for _ in 0..reader.number()? {
        let count = reader.number()?;
        let client = reader.number()?;
        let clock = reader.clock()?;
        let end = ends.get(&client).copied().unwrap_or(0);
        let mut section = Section { client, clock, count: 0, bytes: Vec::new() };
        let mut next = clock;
        for _ in 0..count {
            let found = Struct::read(&mut reader, next)?;
            let after = next.saturating_add(found.length);
            if next < end {
                found.ending(after.min(end)).write(&mut section.bytes);
                section.count = section.count.saturating_add(1);
            }
            next = after;
        }
        if section.count > 0 {
            sections.push(section);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Origin, UpdateLog};
    use crate::tests::{append_all, apply, document, edit, text_of};

    #[test]
    fn an_update_is_cut_at_the_clock_of_each_client() {
        let writer = document(7);
        let mut log = UpdateLog::empty();
        append_all(&mut log, [edit(&writer, 0, 0, "saved 글 ")]);
        let saved = log.state_vector();
        append_all(&mut log, [edit(&writer, 8, 0, "owed"), edit(&writer, 0, 1, "")]);
        let lost = log.diff(&UpdateLog::empty().state_vector()).unwrap();
        let cut = up_to(&lost, &saved).unwrap();
        assert!(UpdateLog::empty().check(&cut, Origin::Server).unwrap().is_new);
        let reader = document(1);
        apply(&reader, &cut);
        assert_eq!(text_of(&reader), "saved 글 ");
    }

    #[test]
    fn clients_outside_the_state_vector_are_cut() {
        let mut log = UpdateLog::empty();
        append_all(&mut log, [edit(&document(7), 0, 0, "owed")]);
        let lost = log.merged();
        assert_eq!(up_to(&lost, &UpdateLog::empty().state_vector()).unwrap()[..], [0, 0]);
        assert_eq!(up_to(&[9], &[0]), None);
    }
}
