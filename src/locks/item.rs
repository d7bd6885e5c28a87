//! One claim or release as it is sent: several of them share a call (`several.lua`).

use std::fmt::{Display, Write as _};
use std::time::Duration;

use crate::domain::fence::Fence;
use crate::locks::acquaintance::Acquaintance;
use crate::locks::scripts::millis;

/// A claim or a release, ready to be sent. May be sent twice.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// Of its lock, in the order in which the scripts want them.
    pub(super) keys: [String; 5],
    what: &'static str,
    /// The arguments, each packed, and how many.
    args: Vec<u8>,
    count: u8,
    grace: Option<Grace>,
}

/// What has to be known to say for how long a lock is left to whoever held it.
#[derive(Clone, Copy, Debug)]
struct Grace {
    floor: Fence,
    at_least: Duration,
}

impl Item {
    /// `what` is to be done with the lock that has these keys. Arguments are to follow.
    pub(super) fn new(what: &'static str, keys: [String; 5]) -> Self {
        Self { keys, what, args: Vec::with_capacity(256), count: 0, grace: None }
    }

    /// The last argument: for how long a lock of which Redis knows nothing is left to whoever held
    /// it. That depends on who is at the other end, and is said when it is sent.
    pub(super) fn leaves_it(&mut self, floor: Fence, at_least: Duration) {
        self.grace = Some(Grace { floor, at_least });
    }

    /// One more argument: a text, or a number as text.
    pub(super) fn arg(&mut self, arg: impl Display) -> &mut Self {
        let head = self.args.len();
        // How long it is is known only afterwards; what most are not longer than has room here.
        self.args.extend_from_slice(&[STR_8, 0]);
        // Writing to memory does not fail.
        let _ = write!(Text(&mut self.args), "{arg}");
        let length = self.args.len() - head - 2;
        match (length, u8::try_from(length)) {
            (0, _) => {
                self.args.truncate(head);
                self.args.push(FIX_STR);
            }
            (_, Ok(length)) => {
                if let Some(place) = self.args.get_mut(head + 1) {
                    *place = length;
                }
            }
            (length, Err(_longer)) => {
                let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
                let [a, b, c, d] = length;
                self.args.splice(head..head + 2, [STR_32, a, b, c, d]);
            }
        }
        self.count += 1;
        self
    }

    /// As `several.lua` unpacks it, for a Redis that is known so well: `MessagePack`, which its Lua
    /// reads by itself.
    pub(super) fn packed(&self, acquaintance: &Acquaintance) -> Vec<u8> {
        let Some(Grace { floor, at_least }) = self.grace else { return self.as_it_is() };
        let grace = at_least.max(acquaintance.grace(floor));
        let mut whole = self.clone();
        // Less than a millisecond is not none.
        whole.arg(if grace.is_zero() { 0 } else { millis(grace) });
        whole.as_it_is()
    }

    fn as_it_is(&self) -> Vec<u8> {
        let what = self.what.as_bytes();
        let mut packed = Vec::with_capacity(what.len() + self.args.len() + 4);
        packed.push(FIX_STR | u8::try_from(what.len()).unwrap_or(0));
        packed.extend_from_slice(what);
        if self.count < 16 {
            packed.push(FIX_ARRAY | self.count);
        } else {
            packed.extend_from_slice(&[ARRAY_16, 0, self.count]);
        }
        packed.extend_from_slice(&self.args);
        packed
    }
}

/// A text of up to 31 bytes, in whose first byte the length is.
const FIX_STR: u8 = 0xa0;
/// A text with a length of one byte.
const STR_8: u8 = 0xd9;
/// A text with a length of four bytes.
const STR_32: u8 = 0xdb;
/// An array of up to 15, in whose first byte the number is.
const FIX_ARRAY: u8 = 0x90;
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
        let long = "x".repeat(300);
        item.arg("김").arg(12_u64).arg("").arg(&long);
        let packed = item.as_it_is();
        assert_eq!(packed[..7], *b"\xa5claim\x94");
        assert_eq!(packed[7..12], *b"\xd9\x03\xea\xb9\x80");
        assert_eq!(packed[12..17], *b"\xd9\x0212\xa0");
        assert_eq!(packed[17..22], *b"\xdb\0\0\x01\x2c");
        assert_eq!(packed[22..], *long.as_bytes());
        for _ in 4..16 {
            item.arg("");
        }
        assert_eq!(item.as_it_is()[6..9], *b"\xdc\0\x10");
    }
}
