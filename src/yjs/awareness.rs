//! Presence: the clients in a document and their cursors.
//!
//! `varUint n`, then n × (`varUint client`, `varUint clock`, `varString json`). The JSON `null`
//! reports that the client has left. Peers parse the JSON inside their message handler, so the
//! decoder rejects JSON that would throw there.

use crate::error::FrameError;
use crate::json::{self, JsonFault};
use crate::lib0::{Reader, put_block, put_length, put_number};
use galley_domain::limits::AWARENESS_BYTES_MAX;

/// The presence of one Yjs client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwarenessEntry {
    /// Its Yjs client id.
    pub client: u64,
    /// Rises with each change; the entry with the highest clock is valid.
    pub clock: u64,
    /// JSON; `None` when the client has left.
    pub state: Option<String>,
}

/// An entry has at least a byte each for client, clock, the length of its JSON, and the JSON.
const ENTRY_BYTES_MIN: usize = 4;
const GONE: &str = "null";

/// Reads an awareness update. Fails with [`FrameError`] when the bytes are not exactly an awareness
/// update, a state is no JSON, or a state is longer than [`AWARENESS_BYTES_MAX`].
pub fn decode_awareness(bytes: &[u8]) -> Result<Vec<AwarenessEntry>, FrameError> {
    let mut reader = Reader::new(bytes);
    let count = reader.count(ENTRY_BYTES_MIN)?;
    // No allocation by the declared count: an entry takes ten times the memory of its shortest
    // encoding.
    let mut entries = Vec::new();
    for _ in 0..count {
        let (client, clock) = (reader.number()?, reader.number()?);
        entries.push(AwarenessEntry { client, clock, state: state(reader.text()?)? });
    }
    reader.finish()?;
    Ok(entries)
}

fn state(text: &str) -> Result<Option<String>, FrameError> {
    if text.len() > AWARENESS_BYTES_MAX {
        return Err(FrameError::TooLarge("a state has too many bytes"));
    }
    match json::check(text) {
        Ok(()) if text.trim() == GONE => Ok(None),
        Ok(()) => Ok(Some(text.to_owned())),
        Err(JsonFault::TooDeep) => Err(FrameError::TooLarge("a state is nested too deeply")),
        Err(JsonFault::Invalid) => Err(FrameError::Malformed("a state is not JSON")),
    }
}

/// Writes an awareness update.
#[must_use]
pub fn encode_awareness(entries: &[AwarenessEntry]) -> Vec<u8> {
    let mut out = Vec::new();
    put_length(&mut out, entries.len());
    for entry in entries {
        put_number(&mut out, entry.client);
        put_number(&mut out, entry.clock);
        put_block(&mut out, entry.state.as_deref().unwrap_or(GONE).as_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(client: u64, clock: u64, state: Option<&str>) -> AwarenessEntry {
        AwarenessEntry { client, clock, state: state.map(str::to_owned) }
    }

    #[test]
    fn presence_round_trips_through_bytes() {
        let entries = [
            entry(1, 0, Some("{}")),
            entry((1 << 53) - 1, 7, Some(r#"{"user":{"name":"김민수 👩‍👩‍👧"},"cursor":null}"#)),
            entry(300, 1_000, None),
        ];
        assert_eq!(decode_awareness(&encode_awareness(&entries)), Ok(entries.to_vec()));
        assert_eq!(decode_awareness(&[0]), Ok(Vec::new()));
        // The presence frame of a stock client when it connects.
        assert_eq!(
            decode_awareness(&[1, 10, 0, 2, 0x7b, 0x7d]),
            Ok(vec![entry(10, 0, Some("{}"))])
        );
    }

    #[test]
    fn g12_presence_that_would_break_a_peer_is_rejected() {
        let whole = encode_awareness(&[entry(1, 2, Some(r#"{"a":[1]}"#))]);
        for end in 0..whole.len() {
            assert!(decode_awareness(&whole[..end]).is_err());
        }
        assert!(decode_awareness(&[&whole[..], &[0]].concat()).is_err());
        for state in ["", "{", "undefined", "{\"a\":}"] {
            assert!(decode_awareness(&encode_awareness(&[entry(1, 2, Some(state))])).is_err());
        }
        assert!(decode_awareness(&[1, 1, 1, 2, 0xC3, 0x28]).is_err(), "not UTF-8");
    }

    #[test]
    fn g13_presence_has_a_bound() {
        // 64 million entries in seven bytes.
        assert!(decode_awareness(&[0x80, 0x80, 0x80, 0x20, 1, 1, 1]).is_err());
        let fits = format!("\"{}\"", "x".repeat(AWARENESS_BYTES_MAX - 2));
        assert!(decode_awareness(&encode_awareness(&[entry(1, 1, Some(&fits))])).is_ok());
        let exceeds = format!("\"{}\"", "x".repeat(AWARENESS_BYTES_MAX - 1));
        assert!(decode_awareness(&encode_awareness(&[entry(1, 1, Some(&exceeds))])).is_err());
        let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
        assert!(decode_awareness(&encode_awareness(&[entry(1, 1, Some(&deep))])).is_err());
    }
}
