//! The seal on what servers tell each other.
//!
//! What is said goes through a Redis in which others may publish, too, and an update that was altered
//! on the way would be shown to people and stand in no database. So each frame ends with a tag that
//! only who has the servers' common secret can make, for the channel that it was meant for. A frame
//! without the right one is a message that was lost.

use std::fmt;

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Says what the secret is used for here, so that no other use of it gives the same bytes.
const PURPOSE: &[u8] = b"galley relay\0";
/// Half of what HMAC-SHA256 gives is more than anybody can guess.
const TAG_BYTES: usize = 16;

/// Makes and checks seals.
#[derive(Clone)]
pub(super) struct Seal(Option<Hmac<Sha256>>);

impl Seal {
    /// The seal of all servers that have `secret`.
    pub(super) fn new(secret: &[u8]) -> Self {
        // An HMAC takes a key of any length, so this is always one.
        let mut seal = Hmac::<Sha256>::new_from_slice(secret).ok();
        if let Some(seal) = &mut seal {
            seal.update(PURPOSE);
        }
        Self(seal)
    }

    /// Puts the seal for `channel` under a frame.
    pub(super) fn close(&self, channel: &str, frame: &mut Vec<u8>) {
        if let Some(seal) = self.over(channel.as_bytes(), frame) {
            frame.extend(seal.finalize().into_bytes().iter().take(TAG_BYTES));
        }
    }

    /// The frame above the seal, if that is the right one.
    pub(super) fn open(&self, channel: &[u8], sealed: &Bytes) -> Option<Bytes> {
        let length = sealed.len().checked_sub(TAG_BYTES)?;
        let (frame, tag) = (sealed.slice(..length), sealed.get(length..)?);
        self.over(channel, &frame)?.verify_truncated_left(tag).ok()?;
        Some(frame)
    }

    fn over(&self, channel: &[u8], frame: &[u8]) -> Option<Hmac<Sha256>> {
        let mut seal = self.0.clone()?;
        seal.update(channel);
        // No channel has it in its name.
        seal.update(b"\0");
        seal.update(frame);
        Some(seal)
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(seal: &Seal, channel: &str, frame: &[u8]) -> Bytes {
        let mut out = frame.to_vec();
        seal.close(channel, &mut out);
        out.into()
    }

    #[test]
    fn only_who_has_the_secret_speaks_and_only_where_it_was_meant() {
        let (ours, theirs) = (Seal::new(b"our secret"), Seal::new(b"their secret"));
        let frame = sealed(&ours, "share-link:room:a", b"words");
        assert_eq!(ours.open(b"share-link:room:a", &frame).as_deref(), Some(&b"words"[..]));
        assert_eq!(theirs.open(b"share-link:room:a", &frame), None);
        assert_eq!(ours.open(b"share-link:room:b", &frame), None);
        let empty = sealed(&ours, "a", b"");
        assert_eq!(ours.open(b"a", &empty).as_deref(), Some(&b""[..]));
    }

    #[test]
    fn g12_a_frame_that_was_cut_or_altered_anywhere_is_none() {
        let seal = Seal::new(b"our secret");
        let whole = sealed(&seal, "a", b"some words");
        for at in 0..whole.len() {
            assert_eq!(seal.open(b"a", &whole.slice(..at)), None, "{at}");
        }
        for (at, bit) in (0..whole.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut altered = whole.to_vec();
            altered[at] ^= 1 << bit;
            assert_eq!(seal.open(b"a", &altered.into()), None, "{at} {bit}");
        }
    }
}
