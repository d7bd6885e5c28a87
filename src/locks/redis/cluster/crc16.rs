//! The slot of a key in a Redis Cluster, as its specification defines it ("Key distribution model",
//! "Hash tags"): CRC16 modulo 16,384. The CRC is XMODEM: polynomial 1021, initial value 0, no
//! reflection. If the text between the first `{` and the next `}` is not empty, only that text is
//! hashed.

pub(crate) const SLOTS: u16 = 16_384;

const TABLE: [u16; 256] = table();

pub(crate) fn slot_of(key: &str) -> u16 {
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
}
