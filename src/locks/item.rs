//! One claim or release as it is sent: several of them share a call (`several.lua`).

use std::fmt::{Display, Write as _};

/// A claim or a release, ready to be sent. May be sent twice.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// Of its lock, in the order in which the scripts want them.
    pub(super) keys: [String; 5],
    what: &'static str,
    /// The arguments, each packed, and how many.
    args: Vec<u8>,
    count: u8,
}

impl Item {
    /// `what` is to be done with the lock that has these keys. Arguments are to follow.
    pub(super) fn new(what: &'static str, keys: [String; 5]) -> Self {
        Self { keys, what, args: Vec::with_capacity(256), count: 0 }
    }

    /// One more argument: a text, or a number as text.
    pub(super) fn arg(&mut self, arg: impl Display) -> &mut Self {
        let head = self.args.len();
        // A length of four bytes, whatever it is: it is known only afterwards.
        self.args.extend_from_slice(&[STR_32, 0, 0, 0, 0]);
        let mut text = Text(&mut self.args);
        // Writing to memory does not fail.
        let _ = write!(text, "{arg}");
        let length = u32::try_from(self.args.len() - head - 5).unwrap_or(u32::MAX);
        if let Some(place) = self.args.get_mut(head + 1..head + 5) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        self.count += 1;
        self
    }

    /// As `several.lua` unpacks it: `MessagePack`, which Redis's Lua reads by itself.
    pub(super) fn packed(&self) -> Vec<u8> {
        let what = self.what.as_bytes();
        let mut packed = Vec::with_capacity(what.len() + self.args.len() + 4);
        packed.push(FIX_STR | u8::try_from(what.len()).unwrap_or(0));
        packed.extend_from_slice(what);
        packed.extend_from_slice(&[ARRAY_16, 0, self.count]);
        packed.extend_from_slice(&self.args);
        packed
    }
}

/// A text of up to 31 bytes, in whose first byte the length is.
const FIX_STR: u8 = 0xa0;
/// A text with a length of four bytes.
const STR_32: u8 = 0xdb;
/// An array with a length of two bytes.
const ARRAY_16: u8 = 0xdc;

/// Where arguments are written.
struct Text<'a>(&'a mut Vec<u8>);

impl std::fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_a_word_and_an_array_of_texts() {
        let mut item = Item::new("claim", Default::default());
        item.arg("김").arg(12_u64);
        let packed = item.packed();
        assert_eq!(packed[..6], *b"\xa5claim");
        assert_eq!(packed[6..9], [0xdc, 0, 2]);
        assert_eq!(packed[9..14], [0xdb, 0, 0, 0, 3]);
        assert_eq!(packed[14..17], *"김".as_bytes());
        assert_eq!(packed[17..], *b"\xdb\x00\x00\x00\x0212");
    }
}
