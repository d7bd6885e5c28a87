//! One claim or release in the form in which it is sent.

use std::fmt::{Display, Write as _};

use crate::name::LockName;

/// One operation on a lock. A caller may send it twice.
#[derive(Clone, Debug)]
pub(crate) struct LockCall {
    pub(crate) name: LockName,
    pub(crate) args: Packed,
}

/// A sequence of texts in `MessagePack`, the format that Redis's Lua decodes itself.
#[derive(Clone, Debug)]
pub(crate) struct Packed(Vec<u8>);

impl Packed {
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(256))
    }

    pub(crate) fn text(&mut self, text: impl Display) -> &mut Self {
        let start = self.0.len();
        // Writing to memory does not fail.
        let _ = write!(Text(&mut self.0), "{text}");
        self.head(start)
    }

    pub(crate) fn packed(&mut self, packed: &Self) -> &mut Self {
        let start = self.0.len();
        self.0.extend_from_slice(&packed.0);
        self.head(start)
    }

    /// Inserts the length of the text that begins at `start`, in its shortest form. A short text
    /// then contains no NUL, so `redis-benchmark` can take it as a command-line argument.
    fn head(&mut self, start: usize) -> &mut Self {
        let length = self.0.len() - start;
        match u8::try_from(length) {
            Ok(length @ ..32) => self.0.insert(start, STR_FIX | length),
            Ok(length) => drop(self.0.splice(start..start, [STR_8, length])),
            Err(_longer) => {
                let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
                let [a, b, c, d] = length;
                self.0.splice(start..start, [STR_32, a, b, c, d]);
            }
        }
        self
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A text of less than 32 bytes; the same byte holds its length.
const STR_FIX: u8 = 0xa0;
/// A text with a length of one byte.
const STR_8: u8 = 0xd9;
/// A text with a length of four bytes.
const STR_32: u8 = 0xdb;

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
    fn a_packed_item_is_a_sequence_of_length_prefixed_texts() {
        let (mut inner, mut packed) = (Packed::new(), Packed::new());
        let long = "x".repeat(300);
        inner.text("김").text("");
        packed.text("claim").packed(&inner).text(12_u64).text(&long);
        assert_eq!(packed.as_bytes()[..6], *b"\xa5claim");
        assert_eq!(packed.as_bytes()[6..12], *b"\xa5\xa3\xea\xb9\x80\xa0");
        assert_eq!(packed.as_bytes()[12..20], *b"\xa212\xdb\0\0\x01\x2c");
        assert_eq!(packed.as_bytes()[20..], *long.as_bytes());
        let mut longer = Packed::new();
        longer.text("y".repeat(40));
        assert_eq!(longer.as_bytes()[..3], *b"\xd9\x28y");
    }
}
