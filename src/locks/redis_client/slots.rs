//! The slots of a Redis Cluster: that of a key, and the node of each.
//!
//! The slot of a key is CRC16 modulo 16,384, as the specification defines it ("Key distribution model",
//! "Hash tags"). The CRC is XMODEM: polynomial 1021, initial value 0, no reflection. If the text between
//! the first `{` and the next `}` is not empty, only that text is hashed.

use redis::Value;

use crate::redis_client::Address;

pub(crate) const SLOTS: u16 = 16_384;

const TABLE: [u16; 256] = table();

/// The slot of a key, or of a channel of sharded pub/sub.
#[must_use]
pub fn slot_of(key: &str) -> u16 {
    let tag = key
        .split_once('{')
        .and_then(|(_before, rest)| rest.split_once('}'))
        .map(|(tag, _after)| tag)
        .filter(|tag| !tag.is_empty());
    slot_of_tag(tag.unwrap_or(key))
}

pub(crate) fn slot_of_tag(tag: &str) -> u16 {
    crc16(tag.as_bytes()) % SLOTS
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        let [high, _low] = crc.to_be_bytes();
        (crc << 8) ^ TABLE.get(usize::from(high ^ byte)).copied().unwrap_or_default()
    })
}

#[allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "evaluated by the compiler"
)]
const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = ((byte as u16) << 8, 0);
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// One row of `CLUSTER SLOTS`: the primary owns the slots from `first` to `last`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first slot.
    pub first: u16,
    /// The last slot.
    pub last: u16,
    /// The node that owns them.
    pub primary: Address,
}

/// Parses the reply to `CLUSTER SLOTS` of the node at `source`: first slot, last slot, then the
/// primary and its replicas, each with host and port first. `None` if the reply has another form.
#[must_use]
pub fn ranges(reply: &Value, source: &Address) -> Option<Vec<Range>> {
    let Value::Array(rows) = reply else { return None };
    rows.iter().map(|row| range(row, source)).collect()
}

fn range(row: &Value, source: &Address) -> Option<Range> {
    let Value::Array(fields) = row else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = fields.as_slice() else {
        return None;
    };
    let [host, Value::Int(port), ..] = primary.as_slice() else { return None };
    let host = match host {
        // The node does not know its own address, or its configuration hides it.
        Value::Nil => "",
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?,
        Value::SimpleString(text) => text,
        _ => return None,
    };
    let slot = |number: i64| u16::try_from(number).ok().filter(|slot| *slot < SLOTS);
    let primary = Address::read(&format!("{host}:{port}"), source)?;
    Some(Range { first: slot(*first)?, last: slot(*last)?, primary })
}

/// Whether the reply to `CLUSTER INFO` says that the Cluster serves.
#[must_use]
pub fn is_well(reply: &Value) -> bool {
    let text = match reply {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes),
        Value::VerbatimString { text, .. } => text.as_str().into(),
        _ => return false,
    };
    text.lines().any(|line| line.trim_end() == "cluster_state:ok")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot_of("123456789"), 0x31C3 % SLOTS);
        let same = [
            ("{user1000}.following", "user1000"),
            ("foo{}{bar}", "foo{}{bar}"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
        ];
        for (key, hashed) in same {
            assert_eq!(slot_of(key), crc16(hashed.as_bytes()) % SLOTS, "{key}");
        }
    }

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), text("id"), Value::Map(vec![])])
    }

    #[test]
    fn ranges_are_read_with_their_primaries() {
        let source = Address { host: "here".to_owned(), port: 1 };
        let (one, two) = (node(text("10.0.0.1"), 7), node(Value::Nil, 8));
        let rows = vec![
            Value::Array(vec![Value::Int(0), Value::Int(99), one.clone(), two.clone()]),
            Value::Array(vec![Value::Int(100), Value::Int(16_383), two]),
        ];
        let read = ranges(&Value::Array(rows), &source).expect("ranges");
        let read_ranges: Vec<_> =
            read.iter().map(|it| (it.first, it.last, it.primary.to_string())).collect();
        assert_eq!(
            read_ranges,
            [(0, 99, "10.0.0.1:7".to_owned()), (100, 16_383, "here:8".to_owned())]
        );
        for strange in [
            Value::Nil,
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![Value::Array(vec![Value::Int(0), Value::Int(16_384), one.clone()])]),
            Value::Array(vec![Value::Array(vec![Value::Int(-1), Value::Int(3), one])]),
        ] {
            assert_eq!(ranges(&strange, &source), None);
        }
        assert!(is_well(&text("cluster_state:ok\r\ncluster_slots_assigned:16384\r\n")));
        assert!(!is_well(&text("cluster_state:fail\r\n")) && !is_well(&Value::Nil));
    }
}
