//! The seal of messages between servers.
//!
//! Other clients may publish on the same Redis. Users would see an update that was altered on the
//! way, and no database would contain it. So each frame ends with an HMAC tag for its channel,
//! which only a server with the common secret can compute. A frame with another tag counts as a
//! lost message.
//!
//! Redis pub/sub ignores databases: two installations that use one Redis under different databases
//! receive each other's messages. Before the tag stands the mark of the installation, derived from
//! its secret. A frame with another mark belongs to another installation, and no message of this
//! one was lost.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key, Tag, sign};
use bytes::Bytes;

/// Separates this use of the secret from all others.
const PURPOSE: &[u8] = b"galley relay\0";
/// Separates the derivation of the mark.
const MARK_PURPOSE: &[u8] = b"galley installation\0";
/// Half of an HMAC-SHA256 is beyond guessing.
const TAG_BYTES: usize = 16;
/// Enough to distinguish installations; the mark protects nothing.
pub(crate) const MARK_BYTES: usize = 8;
/// The mark and the tag at the end of a frame.
pub(crate) const SEAL_BYTES: usize = MARK_BYTES + TAG_BYTES;

/// The mark of the installation as a number, which a backup carries.
#[must_use]
pub fn installation(secret: &[u8]) -> i32 {
    let [first, second, third, fourth, ..] = Seal::new(secret).mark;
    i32::from_be_bytes([first, second, third, fourth])
}

#[derive(Clone)]
pub(crate) struct Seal {
    key: Key,
    mark: [u8; MARK_BYTES],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    Frame(Bytes),
    /// A frame of another installation, or of an older version without a mark.
    Foreign,
    /// A frame that was altered, cut, or published on another channel.
    Broken,
}

impl Seal {
    pub(crate) fn new(secret: &[u8]) -> Self {
        let key = Key::new(HMAC_SHA256, secret);
        let mut mark = [0; MARK_BYTES];
        let marked = sign(&key, MARK_PURPOSE);
        mark.iter_mut().zip(marked.as_ref()).for_each(|(mark, byte)| *mark = *byte);
        Self { key, mark }
    }

    pub(crate) fn close(&self, channel: &str, frame: &mut Vec<u8>) {
        frame.extend_from_slice(&self.mark);
        let tag = self.over(channel.as_bytes(), frame);
        frame.extend(tag.as_ref().iter().take(TAG_BYTES));
    }

    /// The frame without its seal, if the seal is valid.
    pub(crate) fn open(&self, channel: &[u8], sealed: &Bytes) -> Opened {
        let Some(length) = sealed.len().checked_sub(SEAL_BYTES) else { return Opened::Broken };
        let (marked, tag) = sealed.split_at(length + MARK_BYTES);
        if marked.get(length..) != Some(&self.mark[..]) {
            return Opened::Foreign;
        }
        let own = self.over(channel, marked);
        let own = own.as_ref().get(..TAG_BYTES).unwrap_or_default();
        match verify_slices_are_equal(own, tag) {
            Ok(()) => Opened::Frame(sealed.slice(..length)),
            Err(_) => Opened::Broken,
        }
    }

    fn over(&self, channel: &[u8], frame: &[u8]) -> Tag {
        let mut seal = Context::with_key(&self.key);
        seal.update(PURPOSE);
        seal.update(channel);
        // No channel name contains NUL.
        seal.update(b"\0");
        seal.update(frame);
        seal.sign()
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

    fn opened(frame: &'static [u8]) -> Opened {
        Opened::Frame(Bytes::from_static(frame))
    }

    #[test]
    fn a_frame_is_accepted_only_with_the_secret_and_on_its_own_channel() {
        let (ours, theirs) = (Seal::new(b"our secret"), Seal::new(b"their secret"));
        let frame = sealed(&ours, "share-link:room:a", b"words");
        assert_eq!(ours.open(b"share-link:room:a", &frame), opened(b"words"));
        assert_eq!(theirs.open(b"share-link:room:a", &frame), Opened::Foreign);
        assert_eq!(ours.open(b"share-link:room:b", &frame), Opened::Broken);
        let empty = sealed(&ours, "a", b"");
        assert_eq!(ours.open(b"a", &empty), opened(b""));
    }

    #[test]
    fn g12_a_cut_or_altered_frame_is_rejected() {
        let seal = Seal::new(b"our secret");
        let whole = sealed(&seal, "a", b"some words");
        assert_eq!(seal.open(b"a", &whole), opened(b"some words"));
        let is_none = |sealed: Bytes| !matches!(seal.open(b"a", &sealed), Opened::Frame(_));
        for at in 0..whole.len() {
            assert!(is_none(whole.slice(..at)), "{at}");
        }
        for (at, bit) in (0..whole.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut altered = whole.to_vec();
            altered[at] ^= 1 << bit;
            assert!(is_none(altered.into()), "{at} {bit}");
        }
    }
}
