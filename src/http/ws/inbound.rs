//! Counts the memory that the websocket messages of a connection hold.
//!
//! The websocket library stores the fragments of a message until the last one arrives, and pings between
//! them keep the socket alive. Besides, its read buffer retains the size of the largest fragment. The
//! transport therefore parses the heads of frames and charges their bytes to the
//! [budget](crate::http::byte_budget) on arrival, in steps. The websocket releases them when it has the
//! whole message. A short message costs a few relaxed atomic operations and no lock.
//!
//! The library reserves room for a frame when it has read the frame's head, so the transport charges a
//! long frame whole at its head. If a part of the payload is in the library's buffer by then, the buffer
//! grows beyond the message and is reused for years. So the transport passes on the head of a long frame
//! alone. Then the message fills the buffer exactly, and `ws::Socket::recv` makes the library drop it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::domain::limits::LONG_MESSAGE_BYTES;
use crate::http::byte_budget::Charge;
use crate::http::ws::EARLY_BYTES_MAX;

/// Bytes of an unfinished websocket message that the server does not charge to the budget, for each
/// socket. An edit or a cursor stays below it, so the hot path takes no lock.
const UNCHARGED_BYTES_MAX: u64 = 16 * 1024;

/// Maximum length of a frame's head in bytes: two, a length of eight, and a mask of four.
const HEAD_BYTES_MAX: usize = 14;
const FIN: u8 = 0x80;
/// The opcode bit of frames without data: close, ping, pong.
const CONTROL: u8 = 0x08;
/// The first byte of a frame that contains a whole binary message.
const WHOLE_BINARY: u8 = FIN | 2;
/// The bit that announces a mask.
const MASKED: u8 = 0x80;

/// The byte counts of a connection's messages, shared by its transport and its websocket.
#[derive(Default)]
pub(crate) struct Inbound {
    /// Payload bytes that arrived and that the websocket has not released.
    pending: AtomicU64,
    /// The largest fragment: the read buffer retains its size.
    retained: AtomicU64,
    is_charged: AtomicBool,
    /// Whether the last bytes were the end of a request's head.
    is_at_end: AtomicBool,
    /// The longest message that the transport skips; zero unless the session waits for its seat.
    skips_to: AtomicU64,
    has_skipped: AtomicBool,
    /// The longest frame for which the library reserves room. It rejects a longer one at its head.
    frame_max: AtomicU64,
    /// Set when the connection becomes a websocket.
    charge: OnceLock<Mutex<Charge>>,
}

impl Inbound {
    /// Starts counting: the connection becomes a websocket with frames of up to `frame_max` bytes.
    pub(crate) fn begin(&self, charge: Charge, frame_max: u64) {
        self.frame_max.store(frame_max, Ordering::Relaxed);
        // A connection is upgraded only once.
        let _first = self.charge.set(Mutex::new(charge));
    }

    /// Starts the wait for a seat: the transport skips long messages of up to `bytes` and reads the
    /// connection at the rate of a waiter. The library rejects longer messages.
    pub(crate) fn begin_wait(&self, bytes: u64) {
        self.skips_to.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn end_wait(&self) {
        self.skips_to.store(0, Ordering::Relaxed);
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.skips_to.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn has_skipped(&self) -> bool {
        self.has_skipped.load(Ordering::Relaxed)
    }

    /// Whether the transport skips a frame that begins with the byte `first`.
    fn skips(&self, first: u8, length: u64) -> bool {
        let longest = self.skips_to.load(Ordering::Relaxed);
        first == WHOLE_BINARY && (EARLY_BYTES_MAX as u64) < length && length <= longest
    }

    /// Whether the library reserves room for a frame at its head, beyond what every socket may hold.
    fn is_reserved(&self, first: u8, length: u64) -> bool {
        let reserved = LONG_MESSAGE_BYTES + 1..=self.frame_max.load(Ordering::Relaxed);
        first & CONTROL == 0 && reserved.contains(&length)
    }

    /// Whether the client waits for the response. Websocket frames begin behind that response: with
    /// other bytes before them the transport could not find the first frame.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_at_end.load(Ordering::Relaxed)
    }

    /// Releases the bytes of a whole message with a payload of `bytes`. Bytes that the transport has
    /// read behind that message stay counted.
    pub(crate) fn release(&self, bytes: u64) {
        // One task reads and releases.
        let pending = self.pending.load(Ordering::Relaxed).saturating_sub(bytes);
        self.pending.store(pending, Ordering::Relaxed);
        if !self.is_charged.load(Ordering::Relaxed) {
            return;
        }
        let Some(charge) = self.charge.get() else { return };
        let mut charge = charge.lock().unwrap_or_else(PoisonError::into_inner);
        // `arrived` has charged both of them.
        let held = pending.max(self.retained.load(Ordering::Relaxed));
        let left = if held > UNCHARGED_BYTES_MAX { held } else { 0 };
        let released = charge.bytes().saturating_sub(left);
        charge.shrink(released);
        self.is_charged.store(left != 0, Ordering::Relaxed);
    }

    /// Counts bytes of a data frame, or all of them at the head of a long one.
    fn arrived(&self, bytes: u64) -> io::Result<()> {
        let pending = self.pending.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if pending <= UNCHARGED_BYTES_MAX {
            return Ok(());
        }
        let Some(charge) = self.charge.get() else { return Ok(()) };
        let mut charge = charge.lock().unwrap_or_else(PoisonError::into_inner);
        if pending <= charge.bytes() {
            return Ok(());
        }
        let more = pending.next_multiple_of(UNCHARGED_BYTES_MAX) - charge.bytes();
        self.is_charged.store(true, Ordering::Relaxed);
        let grown = charge.grow(more);
        grown.map_err(|over| io::Error::new(io::ErrorKind::QuotaExceeded, over))
    }
}

/// The end of the head of a request.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// Parses the heads of the frames that a transport carries.
pub(crate) struct FrameHeads {
    inbound: Arc<Inbound>,
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: usize,
    /// Length of the frame's payload, and the bytes still missing.
    length: u64,
    left: u64,
    /// Bytes that the transport is to skip.
    skip: u64,
    /// The last bytes before a websocket's frames.
    tail: Vec<u8>,
}

impl FrameHeads {
    pub(crate) fn new(inbound: Arc<Inbound>) -> Self {
        Self {
            inbound,
            head: [0; HEAD_BYTES_MAX],
            head_bytes: 0,
            length: 0,
            left: 0,
            skip: 0,
            tail: Vec::new(),
        }
    }

    pub(crate) fn inbound(&self) -> &Arc<Inbound> {
        &self.inbound
    }

    /// Bytes that the transport is to skip before it passes on others.
    pub(crate) fn to_skip(&self) -> u64 {
        self.skip
    }

    pub(crate) fn skipped(&mut self, bytes: usize) {
        self.skip = self.skip.saturating_sub(bytes as u64);
    }

    /// Returns how many bytes to pass on; the transport presents the others again, behind those
    /// [to skip](Self::to_skip). [`io::ErrorKind::QuotaExceeded`]: the budget rejects them.
    pub(crate) fn read(&mut self, whole: &[u8]) -> io::Result<usize> {
        if self.inbound.charge.get().is_none() {
            self.look_for_end(whole);
            return Ok(whole.len());
        }
        let mut bytes = whole;
        // The start of the frame; `None` if the library already has a part of its head.
        let mut begin = None;
        while !bytes.is_empty() {
            if self.left != 0 {
                bytes = self.read_payload(bytes)?;
                continue;
            }
            let at = whole.len() - bytes.len();
            if self.head_bytes == 0 {
                begin = Some(at);
            }
            bytes = self.read_head(bytes);
            if let Some(begin) = begin.filter(|_| self.is_to_be_skipped()) {
                let head_bytes = (at + 1 - begin) as u64;
                self.skip = head_bytes.saturating_add(std::mem::take(&mut self.left));
                self.inbound.has_skipped.store(true, Ordering::Relaxed);
                return Ok(begin);
            }
            if self.left != 0 && self.is_reserved() {
                self.inbound.arrived(self.length)?;
            }
            if self.left > LONG_MESSAGE_BYTES && !bytes.is_empty() {
                return Ok(whole.len() - bytes.len());
            }
        }
        Ok(whole.len())
    }

    /// Whether the head of a frame is complete and the frame is to be skipped.
    fn is_to_be_skipped(&self) -> bool {
        self.left != 0 && self.inbound.skips(self.first(), self.length)
    }

    fn is_reserved(&self) -> bool {
        self.inbound.is_reserved(self.first(), self.length)
    }

    fn first(&self) -> u8 {
        self.head.first().copied().unwrap_or_default()
    }

    /// Counts the bytes of the frame's payload, and returns those behind it.
    fn read_payload<'a>(&mut self, bytes: &'a [u8]) -> io::Result<&'a [u8]> {
        let here = u64::try_from(bytes.len()).unwrap_or(u64::MAX).min(self.left);
        self.left -= here;
        let (_, rest) = bytes.split_at(usize::try_from(here).unwrap_or(bytes.len()));
        let first = self.first();
        if first & CONTROL != 0 {
            return Ok(rest);
        }
        if !self.is_reserved() {
            self.inbound.arrived(here)?;
        }
        if self.left == 0 && first & FIN == 0 {
            self.inbound.retained.fetch_max(self.length, Ordering::Relaxed);
        }
        Ok(rest)
    }

    /// Records whether the head of a request ends with exactly these bytes.
    fn look_for_end(&mut self, bytes: &[u8]) {
        let mut recent = std::mem::take(&mut self.tail);
        let before = recent.len();
        let end = bytes.len().saturating_sub(HEAD_END.len());
        recent.extend_from_slice(bytes.get(end..).unwrap_or_default());
        // Hardly any part of a body ends so: the search runs for heads alone.
        let is_at_end = recent.ends_with(HEAD_END) && {
            let mut whole = recent.get(..before).unwrap_or_default().to_vec();
            whole.extend_from_slice(bytes);
            let first = whole.windows(HEAD_END.len()).position(|window| window == HEAD_END);
            first.is_some_and(|at| at + HEAD_END.len() == whole.len())
        };
        if !is_at_end {
            recent.drain(..recent.len().saturating_sub(HEAD_END.len() - 1));
            self.tail = recent;
        }
        self.inbound.is_at_end.store(is_at_end, Ordering::Relaxed);
    }

    /// Reads a byte of a head, and stores the frame's length with the last one.
    fn read_head<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let Some((byte, rest)) = bytes.split_first() else { return bytes };
        if let Some(slot) = self.head.get_mut(self.head_bytes) {
            *slot = *byte;
        }
        self.head_bytes += 1;
        let [_, second, long @ ..] = &self.head;
        let (length_bytes, short) = match second & !MASKED {
            126 => (2, 0),
            127 => (8, 0),
            short => (0, u64::from(short)),
        };
        let mask_bytes = if second & MASKED == 0 { 0 } else { 4 };
        if self.head_bytes >= 2 && self.head_bytes == 2 + length_bytes + mask_bytes {
            let long = long.iter().take(length_bytes);
            self.length = long.fold(short, |length, byte| length << 8 | u64::from(*byte));
            self.left = self.length;
            self.head_bytes = 0;
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::byte_budget::{BudgetLimits, ByteBudget, Payer};
    use crate::http::peer::Peer;

    const BINARY: u8 = 2;
    const PING: u8 = 9;

    fn frame(first: u8, length: usize) -> Vec<u8> {
        let mut frame = vec![first];
        match u16::try_from(length) {
            Ok(short @ 0..126) => frame.push(MASKED | u8::try_from(short).expect("below 126")),
            Ok(length) => {
                frame.push(MASKED | 126);
                frame.extend(length.to_be_bytes());
            }
            Err(_) => {
                frame.push(MASKED | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.resize(frame.len() + length, 0xff);
        frame
    }

    fn heads(bytes: u64) -> (FrameHeads, ByteBudget) {
        let budget = ByteBudget::new(BudgetLimits { all: bytes * 8, address: bytes, user: bytes });
        let heads = FrameHeads::new(Arc::default());
        heads.inbound.begin(budget.open(Payer::new(None, Peer::default())), 2_000_000);
        (heads, budget)
    }

    /// Passes bytes on as a transport reads them.
    fn feed(heads: &mut FrameHeads, bytes: &[u8]) -> io::Result<()> {
        for mut chunk in bytes.chunks(700) {
            while !chunk.is_empty() {
                let taken = heads.read(chunk)?;
                assert_ne!(taken, 0, "it would be the end of the connection");
                chunk = &chunk[taken..];
            }
        }
        Ok(())
    }

    fn charged(heads: &FrameHeads) -> u64 {
        heads.inbound.charge.get().expect("a websocket").lock().expect("no panic").bytes()
    }

    #[test]
    fn g17_an_unfinished_message_is_charged_until_it_is_whole() {
        let (mut heads, _budget) = heads(1_000_000);
        for _ in 0..10 {
            feed(&mut heads, &frame(FIN | BINARY, 900_000)).expect("room");
            assert!((900_000..920_000).contains(&charged(&heads)));
            heads.inbound.release(900_000);
            assert_eq!(charged(&heads), 0);
        }
        let read = (0..11).try_for_each(|_| feed(&mut heads, &frame(BINARY, 100_000)));
        assert_eq!(read.map_err(|error| error.kind()), Err(io::ErrorKind::QuotaExceeded));
    }

    /// 14 bytes announced a frame of 2 MiB, and the library reserved it while nothing was charged.
    #[test]
    fn g17_an_announced_frame_is_charged_at_its_head() {
        let (mut heads, _budget) = heads(1_000_000);
        let long = frame(FIN | BINARY, 900_000);
        feed(&mut heads, &long[..13]).expect("room");
        assert_eq!(charged(&heads), 0);
        feed(&mut heads, &long[13..14]).expect("room");
        assert!((900_000..920_000).contains(&charged(&heads)));
        feed(&mut heads, &long[14..]).expect("room");
        assert!((900_000..920_000).contains(&charged(&heads)));
        heads.inbound.release(900_000);
        assert_eq!(charged(&heads), 0);
        feed(&mut heads, &frame(BINARY, 900_000)).expect("room");
        let over = feed(&mut heads, &frame(FIN, 200_000)[..14]);
        assert_eq!(over.map_err(|error| error.kind()), Err(io::ErrorKind::QuotaExceeded));
    }

    #[test]
    fn a_frame_that_the_library_rejects_is_not_charged_at_its_head() {
        let (mut heads, _budget) = heads(1_000_000);
        feed(&mut heads, &frame(FIN | BINARY, 2_000_001)[..14]).expect("the library closes it");
        assert_eq!(charged(&heads), 0);
    }

    #[test]
    fn g17_pings_and_short_messages_are_never_charged() {
        let (mut heads, _budget) = heads(100_000);
        let bytes = [frame(FIN | PING, 125), frame(FIN | BINARY, 300), frame(FIN | PING, 0)];
        for _ in 0..1_000 {
            for byte in bytes.concat() {
                feed(&mut heads, &[byte]).expect("room");
            }
            heads.inbound.release(300);
        }
        for _ in 0..10_000 {
            feed(&mut heads, &frame(FIN | PING, 125)).expect("room");
        }
        assert_eq!(charged(&heads), 0);
    }

    #[test]
    fn g17_the_largest_fragment_stays_charged_as_its_buffer_stays() {
        let (mut heads, _budget) = heads(1_000_000);
        for length in [300_000, 100_000] {
            feed(&mut heads, &frame(BINARY, length)).expect("room");
            feed(&mut heads, &frame(FIN, 1)).expect("room");
            heads.inbound.release(length as u64 + 1);
        }
        assert_eq!(charged(&heads), 300_000);
    }

    /// The release of a long message also released the bytes behind it.
    #[test]
    fn g17_bytes_of_the_next_message_stay_charged_when_a_message_is_released() {
        let (mut heads, _budget) = heads(1_000_000);
        let next = frame(FIN | BINARY, 300_000);
        let (start, rest) = next.split_at(256_000);
        for length in [300, 5_000, 100_000] {
            feed(&mut heads, &frame(FIN | BINARY, length)).expect("room");
            feed(&mut heads, start).expect("room");
            heads.inbound.release(length as u64);
            assert_eq!(charged(&heads), 300_000);
            // In the middle of the frame's payload.
            feed(&mut heads, rest).expect("room");
            assert_eq!(charged(&heads), 300_000);
            heads.inbound.release(300_000);
            assert_eq!(charged(&heads), 0);
        }
    }

    #[test]
    fn g17_the_head_of_a_long_frame_is_passed_on_alone() {
        let (mut heads, _budget) = heads(1_000_000);
        let long = frame(FIN | BINARY, 100_000);
        let bytes = [frame(FIN | BINARY, 20), long.clone()].concat();
        assert_eq!(heads.read(&bytes[..2_000]).expect("room"), 26 + 14);
        assert_eq!(heads.read(&bytes[40..2_000]).expect("room"), 1_960);
        assert_eq!(heads.read(&bytes[2_000..]).expect("room"), bytes.len() - 2_000);
    }

    /// The server reserved room for each long message of a waiter, and then dropped the message.
    #[test]
    fn g17_a_long_message_of_a_waiter_is_skipped_from_its_head() {
        let (mut heads, _budget) = heads(1_000_000);
        heads.inbound.begin_wait(200_000);
        let (short, long) = (frame(FIN | BINARY, 20), frame(FIN | BINARY, 100_000));
        let bytes = [short.clone(), long.clone()].concat();
        assert_eq!(heads.read(&bytes[..2_000]).expect("room"), short.len());
        assert_eq!((heads.to_skip(), charged(&heads)), (long.len() as u64, 0));
        assert!(heads.inbound.has_skipped());
        heads.skipped(long.len() - 1);
        heads.skipped(1);
        assert_eq!(heads.to_skip(), 0);
        assert_eq!(heads.read(&short).expect("room"), short.len());
        // The library has the first byte of this message already.
        let parts = long.split_at(1);
        assert_eq!(heads.read(parts.0).expect("room"), 1);
        assert_eq!(heads.read(parts.1).expect("room"), 13);
        assert_eq!(heads.read(&parts.1[13..]).expect("room"), 100_000);
        heads.inbound.release(100_000);
        for other in [frame(FIN | BINARY, 200_001), frame(FIN | 1, 100_000), frame(BINARY, 100_000)]
        {
            assert_eq!(heads.read(&other).expect("room"), 14);
            assert_eq!(heads.read(&other[14..]).expect("room"), other.len() - 14);
            heads.inbound.release(other.len() as u64);
        }
        heads.inbound.end_wait();
        assert_eq!(heads.read(&long).expect("room"), 14);
        assert_eq!(heads.to_skip(), 0);
    }

    #[test]
    fn g17_bytes_behind_the_head_of_a_request_are_noticed() {
        let ends = |chunks: &[&str]| {
            let mut heads = FrameHeads::new(Arc::default());
            for chunk in chunks {
                heads.read(chunk.as_bytes()).expect("no websocket");
            }
            heads.inbound.is_at_end()
        };
        assert!(ends(&["GET / HTTP/1.1\r\nA: b\r\n\r\n"]));
        assert!(ends(&["GET / HTTP/1.1\r\nA: b\r", "\n", "\r\n"]));
        assert!(ends(&["POST / HTTP/1.1\r\n\r\n", "body", "GET / HTTP/1.1\r\n\r\n"]));
        assert!(!ends(&["GET / HTTP/1.1\r\n\r\nframe"]));
        assert!(!ends(&["GET / HTTP/1.1\r\n\r\nframe\r\n\r\n"]));
        assert!(!ends(&["GET / HTTP/1.1\r\n\r", "\nframe\r\n\r\n"]));
        assert!(!ends(&["GET / HTTP/1.1\r\n\r\n", "frame"]));
    }
}
