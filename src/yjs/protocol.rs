//! The frames of y-websocket: one message in one binary frame.
//!
//! Stock clients read the first message of a frame and ignore the rest, and `yrs::sync` accepts a
//! truncated frame as an empty one. This reader rejects both.

use bytes::Bytes;

use crate::error::FrameError;
use crate::lib0::{Reader, put_block, put_number};

const SYNC: u8 = 0;
const AWARENESS: u8 = 1;
const AUTH: u8 = 2;
const QUERY_AWARENESS: u8 = 3;
/// Galley's own type: Yjs does not use it, and `yrs` reads back types up to 127. A stock client logs
/// one line about it and continues.
const EVENT: u8 = 100;
/// The client's next access token. Galley's own type, too.
const TOKEN: u8 = 101;

const STEP_1: u8 = 0;
const STEP_2: u8 = 1;
const UPDATE: u8 = 2;

/// A message from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFrame<'a> {
    /// A request for the updates that the client lacks: its state vector.
    SyncStep1(&'a [u8]),
    /// The updates that the server lacks: the client's reply to the server's step 1.
    SyncStep2(&'a [u8]),
    /// An edit.
    Update(&'a [u8]),
    /// Presence.
    Awareness(&'a [u8]),
    /// A request for the presence of all clients.
    QueryAwareness,
    /// A permission message, which a client may not send.
    Auth,
}

/// Reads a client's frame. Fails with [`FrameError`] when the frame is not exactly one message that a
/// client may send.
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

/// The token of a client that renews its session: a var-string, or the letters of a JWT alone, which begin with
/// `ey` (`{"` in base64). `None`: the frame is another message.
#[must_use]
pub fn renewal(frame: &[u8]) -> Option<Result<&str, FrameError>> {
    let rest = frame.strip_prefix(&[TOKEN])?;
    if let Ok(token) = std::str::from_utf8(rest)
        && token.starts_with("ey")
    {
        return Some(Ok(token));
    }
    let mut reader = Reader::new(rest);
    let token = reader.text().map_err(FrameError::from);
    Some(token.and_then(|token| reader.finish().map(|()| token).map_err(FrameError::from)))
}

/// Every known type is below 128 and takes one byte; a longer number is an unknown type.
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

/// A request for the updates that the server lacks.
#[must_use]
pub fn sync_step1(state_vector: &[u8]) -> Bytes {
    message(&[SYNC, STEP_1], state_vector)
}

/// The updates that the client lacks. A stock client counts as synced only after this frame.
#[must_use]
pub fn sync_step2(update: &[u8]) -> Bytes {
    message(&[SYNC, STEP_2], update)
}

/// An edit.
#[must_use]
pub fn update(update: &[u8]) -> Bytes {
    message(&[SYNC, UPDATE], update)
}

/// The frame to relay an update in: the received frame itself, if it is an update frame. Its bytes
/// equal the output of [`update`], because the reader accepts only the shortest encoding of a
/// number.
#[must_use]
pub fn passed_on(came: &Bytes, update: &[u8]) -> Bytes {
    if came.starts_with(&[SYNC, UPDATE]) { came.clone() } else { self::update(update) }
}

/// Presence, as [`encode_awareness`](crate::awareness::encode_awareness) writes it.
#[must_use]
pub fn awareness(update: &[u8]) -> Bytes {
    message(&[AWARENESS], update)
}

/// A request for the client's presence.
#[must_use]
pub fn query_awareness() -> Bytes {
    Bytes::from_static(&[QUERY_AWARENESS])
}

/// One of Galley's own events, a JSON object.
#[must_use]
pub fn event(json: &str) -> Bytes {
    message(&[EVENT], json.as_bytes())
}

/// The client's next access token.
#[must_use]
pub fn token(token: &str) -> Bytes {
    message(&[TOKEN], token.as_bytes())
}

/// A presence frame without entries. Stock clients close after 30 s without a message, and websocket
/// pings do not count.
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
    fn an_update_frame_is_relayed_unchanged() {
        for body in [vec![], vec![7; 127], vec![7; 128], vec![7; 20_000]] {
            let came = update(&body);
            let passed_on = passed_on(&came, &body);
            assert_eq!(passed_on, came);
            assert_eq!(passed_on.as_ptr(), came.as_ptr(), "the very same bytes");
        }
        let answer = sync_step2(&[1, 2]);
        assert_eq!(passed_on(&answer, &[1, 2]), update(&[1, 2]));
        // Two bytes for a length that fits in one: the reader rejects the longer encoding.
        assert!(parse(&[SYNC, UPDATE, 0x82, 0, 1, 2]).is_err());
    }

    #[test]
    fn frames_round_trip_through_the_parser() {
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
    fn frames_have_the_bytes_of_the_stock_client() {
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
