//! The numbers and strings of lib0, the encoding of Yjs.
//!
//! A number has seven bits a byte, least significant first; the high bit announces another byte. The
//! reader is strict. It rejects a second encoding of a number, a number beyond JavaScript's exact
//! integers, and a count that the remaining bytes cannot hold (Y3).

use crate::error::{FrameError, Rejected};

/// The first number beyond JavaScript's exact integers.
const NUMBER_END: u64 = 1 << 53;
/// Clocks stay below the limit at which `yrs` can compute their difference in an `i32`.
pub(crate) const CLOCK_MAX: u32 = i32::MAX as u32;

/// Why the reader rejects the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl From<Malformed> for Rejected {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed.0)
    }
}

impl From<Malformed> for FrameError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed.0)
    }
}

const ENDS_EARLY: Malformed = Malformed("the bytes end early");

#[derive(Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        let (&first, rest) = self.rest.split_first().ok_or(ENDS_EARLY)?;
        self.rest = rest;
        Ok(first)
    }

    /// Reads a variable-length unsigned number below 2^53.
    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = self.byte()?;
            if byte == 0 && shift != 0 {
                return Err(Malformed("a number is not in its shortest encoding"));
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
            shift += 7;
            // Eight bytes hold 56 bits, more than any valid number has.
            if shift > 49 {
                return Err(Malformed("a number is out of range"));
            }
        }
        if value < NUMBER_END { Ok(value) } else { Err(Malformed("a number is out of range")) }
    }

    /// Reads a count of items of at least `size` bytes each. The remaining bytes must have room for
    /// them.
    pub(crate) fn count(&mut self, size: usize) -> Result<usize, Malformed> {
        let count =
            usize::try_from(self.number()?).map_err(|_| Malformed("a count is too large"))?;
        match count.checked_mul(size) {
            Some(bytes) if bytes <= self.left() => Ok(count),
            Some(_) | None => Err(Malformed("a count exceeds the remaining bytes")),
        }
    }

    pub(crate) fn clock(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?)
            .ok()
            .filter(|clock| *clock <= CLOCK_MAX)
            .ok_or(Malformed("a clock is out of range"))
    }

    pub(crate) fn block(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.count(1)?;
        let (block, rest) = self.rest.split_at_checked(length).ok_or(ENDS_EARLY)?;
        self.rest = rest;
        Ok(block)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.block()?).map_err(|_| Malformed("a string is not UTF-8"))
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn finish(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed("bytes remain after the end")) }
    }
}

pub(crate) fn put_number(out: &mut Vec<u8>, number: impl Into<u64>) {
    let mut rest: u64 = number.into();
    loop {
        let [low, ..] = rest.to_le_bytes();
        rest >>= 7;
        if rest == 0 {
            out.push(low & 0x7f);
            return;
        }
        out.push(low | 0x80);
    }
}

pub(crate) fn put_length(out: &mut Vec<u8>, length: usize) {
    // `usize` has at most 64 bits on every platform that Rust supports.
    put_number(out, u64::try_from(length).unwrap_or(u64::MAX));
}

pub(crate) fn put_block(out: &mut Vec<u8>, block: &[u8]) {
    put_length(out, block.len());
    out.extend_from_slice(block);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_round_trips_through_bytes() {
        for number in [0, 1, 127, 128, 300, 16_383, 16_384, 1 << 31, (1 << 53) - 1_u64] {
            let mut bytes = Vec::new();
            put_number(&mut bytes, number);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.number(), Ok(number));
            assert_eq!(reader.finish(), Ok(()));
        }
    }

    #[test]
    fn a_number_has_one_encoding_and_an_upper_bound() {
        assert!(Reader::new(&[0x80, 0x00]).number().is_err());
        assert!(Reader::new(&[0x80]).number().is_err());
        assert!(Reader::new(&[0xff; 12]).number().is_err());
        let mut beyond = Vec::new();
        put_number(&mut beyond, 1_u64 << 53);
        assert!(Reader::new(&beyond).number().is_err());
    }

    #[test]
    fn g13_a_count_is_bounded_by_the_bytes_that_follow() {
        let mut bytes = Vec::new();
        put_number(&mut bytes, 512_000_000_u64);
        bytes.extend([0; 3]);
        assert!(Reader::new(&bytes).count(1).is_err());
        assert!(Reader::new(&bytes).block().is_err());
        assert_eq!(Reader::new(&[2, 0, 0, 0, 0]).count(2), Ok(2));
        assert!(Reader::new(&[3, 0, 0, 0, 0]).count(2).is_err());
    }
}
