//! The frames of y-websocket: one binary frame, one message.
//!
//! Stock clients read the first message of a frame and ignore the rest, and `yrs::sync` takes a
//! frame that ends early for an empty one. This reader takes neither.

use bytes::Bytes;

use crate::yjs::error::FrameError;
use crate::yjs::lib0::{Reader, put_block, put_number};

const SYNC: u8 = 0;
const AWARENESS: u8 = 1;
const AUTH: u8 = 2;
const QUERY_AWARENESS: u8 = 3;
/// Ours: unused by Yjs, and the highest that `yrs` still reads back is 127. A stock client logs
/// one line about it and goes on.
const EVENT: u8 = 100;

const STEP_1: u8 = 0;
const STEP_2: u8 = 1;
const UPDATE: u8 = 2;

/// What a client says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFrame<'a> {
    /// "Send me what I lack": its state vector.
    SyncStep1(&'a [u8]),
    /// What the server lacks, in answer to the server's step 1.
    SyncStep2(&'a [u8]),
    /// An edit.
    Update(&'a [u8]),
    /// Presence.
    Awareness(&'a [u8]),
    /// "Send me everybody's presence."
    QueryAwareness,
    /// Talk of permissions, which a client has no business with.
    Auth,
}

/// Reads a client's frame.
///
/// # Errors
///
/// [`FrameError`] when it is not exactly one message that a client may send.
pub fn parse(frame: &[u8]) -> Result<ClientFrame<'_>, FrameError> {
    let mut reader = Reader::new(frame);
    let parsed = match kind(&mut reader)? {
        SYNC => sync(&mut reader)?,
        AWARENESS => ClientFrame::Awareness(reader.block()?),
        AUTH => auth(&mut reader)?,
        QUERY_AWARENESS => ClientFrame::QueryAwareness,
        _ => return Err(FrameError::UnknownType),
    };
    reader.finish()?;
    Ok(parsed)
}

/// Every type that is known here is below 128, so one byte; a longer number is some other type.
fn kind(reader: &mut Reader<'_>) -> Result<u8, FrameError> {
    u8::try_from(reader.number()?).map_err(|_| FrameError::UnknownType)
}

fn sync<'a>(reader: &mut Reader<'a>) -> Result<ClientFrame<'a>, FrameError> {
    match kind(reader)? {
        STEP_1 => Ok(ClientFrame::SyncStep1(reader.block()?)),
        STEP_2 => Ok(ClientFrame::SyncStep2(reader.block()?)),
        UPDATE => Ok(ClientFrame::Update(reader.block()?)),
        _ => Err(FrameError::UnknownType),
    }
}

fn auth<'a>(reader: &mut Reader<'a>) -> Result<ClientFrame<'a>, FrameError> {
    match kind(reader)? {
        0 => {
            reader.text()?;
        }
        1 => {}
        _ => return Err(FrameError::UnknownType),
    }
    Ok(ClientFrame::Auth)
}

/// "Send me what I lack."
#[must_use]
pub fn sync_step1(state_vector: &[u8]) -> Bytes {
    message(&[SYNC, STEP_1], state_vector)
}

/// What the client lacks. Only this makes a stock client call itself synced.
#[must_use]
pub fn sync_step2(update: &[u8]) -> Bytes {
    message(&[SYNC, STEP_2], update)
}

/// An edit.
#[must_use]
pub fn update(update: &[u8]) -> Bytes {
    message(&[SYNC, UPDATE], update)
}

/// The frame of an update that came in one: that very frame, if it is an update's. It is written as
/// [`update`] would write it, since no number is taken that is longer than it needs to be.
#[must_use]
pub fn passed_on(came: &Bytes, update: &[u8]) -> Bytes {
    if came.starts_with(&[SYNC, UPDATE]) { came.clone() } else { self::update(update) }
}

/// Presence, as [`encode_awareness`](crate::yjs::awareness::encode_awareness) writes it.
#[must_use]
pub fn awareness(update: &[u8]) -> Bytes {
    message(&[AWARENESS], update)
}

/// "Send me your presence."
#[must_use]
pub fn query_awareness() -> Bytes {
    Bytes::from_static(&[QUERY_AWARENESS])
}

/// One of Galley's own events, a JSON object.
#[must_use]
pub fn event(json: &str) -> Bytes {
    message(&[EVENT], json.as_bytes())
}

/// Presence of nobody. Stock clients give up after 30 s without a message, and websocket pings
/// are none.
#[must_use]
pub fn keep_alive() -> Bytes {
    Bytes::from_static(&[AWARENESS, 1, 0])
}

/// A longest length prefix, and two bytes of type.
const HEADER_MAX: usize = 12;

fn message(kinds: &[u8], body: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(HEADER_MAX + body.len());
    for kind in kinds {
        put_number(&mut out, *kind);
    }
    put_block(&mut out, body);
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_of_an_update_is_passed_on_as_it_came() {
        for body in [vec![], vec![7; 127], vec![7; 128], vec![7; 20_000]] {
            let came = update(&body);
            let passed_on = passed_on(&came, &body);
            assert_eq!(passed_on, came);
            assert_eq!(passed_on.as_ptr(), came.as_ptr(), "the very same bytes");
        }
        let answer = sync_step2(&[1, 2]);
        assert_eq!(passed_on(&answer, &[1, 2]), update(&[1, 2]));
        // Two bytes for a length that would do with one: there is no other way to write it.
        assert!(parse(&[SYNC, UPDATE, 0x82, 0, 1, 2]).is_err());
    }

    #[test]
    fn what_is_written_is_read_as_what_it_was() {
        let long = vec![7; 300];
        for body in [&[][..], &[1, 2, 3], &long] {
            assert_eq!(parse(&sync_step1(body)), Ok(ClientFrame::SyncStep1(body)));
            assert_eq!(parse(&sync_step2(body)), Ok(ClientFrame::SyncStep2(body)));
            assert_eq!(parse(&update(body)), Ok(ClientFrame::Update(body)));
            assert_eq!(parse(&awareness(body)), Ok(ClientFrame::Awareness(body)));
        }
        assert_eq!(parse(&query_awareness()), Ok(ClientFrame::QueryAwareness));
        assert_eq!(parse(&keep_alive()), Ok(ClientFrame::Awareness(&[0])));
    }

    #[test]
    fn the_bytes_are_those_of_the_stock_client() {
        assert_eq!(sync_step1(&[0])[..], [0, 0, 1, 0]);
        assert_eq!(sync_step2(&[0, 0])[..], [0, 1, 2, 0, 0]);
        assert_eq!(keep_alive()[..], [1, 1, 0]);
        assert_eq!(event("{}")[..], [100, 2, b'{', b'}']);
        assert_eq!(parse(&[2, 0, 2, b'n', b'o']), Ok(ClientFrame::Auth));
        assert_eq!(parse(&[2, 1]), Ok(ClientFrame::Auth));
    }

    #[test]
    fn g12_a_frame_of_the_wrong_length_or_type_is_an_error() {
        for whole in [sync_step1(&[1, 5, 9]), update(&[1; 200]), awareness(&[0]), event("{}")] {
            for end in 0..whole.len() {
                assert!(parse(&whole[..end]).is_err());
            }
            let longer = [&whole[..], &[0]].concat();
            assert!(parse(&longer).is_err());
        }
        for frame in [&[0, 3, 0][..], &[4], &[100, 2, b'{', b'}'], &[0xE4, 0x02], &[2, 2], &[3, 0]]
        {
            assert!(parse(frame).is_err(), "{frame:?}");
        }
        // Two messages in one frame.
        assert!(parse(&[0, 0, 1, 0, 1, 1, 0]).is_err());
        // A length of 2^63.
        assert!(parse(&[0, 2, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]).is_err());
    }
}
