//! Why a socket ends, and the code that says so (`src/http/PROTOCOL.md`, *Close codes*).
//!
//! The stock client (y-websocket ≥ 3.1.0) stops on 4400–4499 and comes back on everything else,
//! so a code is also an instruction.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::json;

use crate::domain::user::User;

/// Longest reason a close frame can carry, in bytes (RFC 6455 §5.5: 125 less two for the code).
const REASON_BYTES_MAX: usize = 123;

/// Why a held seat was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostReason {
    /// The same person sat down elsewhere.
    TakenOver,
    /// The lease ran out, or the client fell silent.
    Expired,
    /// An administrator ended the session.
    Evicted,
    /// Nothing was typed, moved or reviewed for long.
    Idle,
    /// The share link was revoked.
    Revoked,
}

impl LostReason {
    /// The reason as it stands in events, close frames and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TakenOver => "taken_over",
            Self::Expired => "expired",
            Self::Evicted => "evicted",
            Self::Idle => "idle",
            Self::Revoked => "revoked",
        }
    }
}

/// The end of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Close {
    /// A frame or parameter that no honest client sends.
    Malformed(&'static str),
    /// No token, or one that is no longer valid.
    Unauthenticated(&'static str),
    /// Not what this user's role may do.
    Forbidden(&'static str),
    /// No such link, or it was revoked before a seat was held.
    NoSuchLink,
    /// Somebody else sits there.
    SeatTaken {
        /// Who.
        holder: User,
        /// Since when; none if that cannot be told.
        since: Option<DateTime<Utc>>,
        /// Whether the holder is the very user who asks, in another tab or on another machine.
        own: bool,
    },
    /// Waited in line, and the seat did not come free in time.
    WaitedInVain,
    /// The seat was held and is no longer.
    Lost(LostReason),
    /// An edit that the client was shown was rejected. Its replica holds it, and is not to come back.
    Rejected,
    /// A message or the document is over its limit.
    TooLarge(&'static str),
    /// Locks or storage cannot be reached.
    Unavailable(&'static str),
    /// Too many messages or connections, or too slow a reader.
    TooMuch(&'static str),
    /// This server is stopping, or the room must be opened afresh.
    Restart(&'static str),
    /// The client left; the code is echoed.
    Left,
}

impl Close {
    /// The close code.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            Self::Malformed(_) => 4400,
            Self::Unauthenticated(_) => 4401,
            Self::Forbidden(_) => 4403,
            Self::NoSuchLink | Self::Lost(LostReason::Revoked) => 4404,
            Self::WaitedInVain => 4408,
            Self::SeatTaken { .. } => 4409,
            Self::Lost(LostReason::Idle) => 4411,
            Self::Lost(LostReason::TakenOver | LostReason::Expired | LostReason::Evicted)
            | Self::Rejected => 4410,
            Self::TooLarge(_) => 4413,
            Self::Unavailable(_) => 4503,
            Self::TooMuch(_) => 4529,
            Self::Restart(_) => 1012,
            Self::Left => 1000,
        }
    }

    /// The reason, at most 123 bytes: a word, or JSON with the holder of a taken seat.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Malformed(why)
            | Self::Unauthenticated(why)
            | Self::Forbidden(why)
            | Self::TooLarge(why)
            | Self::Unavailable(why)
            | Self::TooMuch(why)
            | Self::Restart(why) => (*why).to_owned(),
            Self::NoSuchLink => "no-such-link".to_owned(),
            Self::WaitedInVain => "seat-not-free".to_owned(),
            Self::Lost(reason) => reason.as_str().to_owned(),
            Self::Rejected => "document-reset".to_owned(),
            Self::Left => String::new(),
            Self::SeatTaken { holder, since, own } => taken_reason(&holder.name, *since, *own),
        }
    }
}

impl fmt::Display for Close {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code(), self.reason())
    }
}

/// `{"holder":{"name":…,"since":…}}`, the name cut at a character so that the whole fits.
fn taken_reason(name: &str, since: Option<DateTime<Utc>>, own: bool) -> String {
    let since = since.map(|since| since.to_rfc3339_opts(SecondsFormat::Secs, true));
    let mut name = name.to_owned();
    loop {
        let mut holder = json!({ "name": name, "since": since });
        if own && let Some(fields) = holder.as_object_mut() {
            fields.insert("you".to_owned(), true.into());
        }
        let reason = json!({ "holder": holder }).to_string();
        if reason.len() <= REASON_BYTES_MAX || name.pop().is_none() {
            return reason;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_seat_says_who_and_since_when_within_a_close_frame() {
        for name in ["Kim", &"김".repeat(80), &"\"\\".repeat(40)] {
            let holder = User { id: "u1".parse().expect("an id"), name: name.to_owned() };
            let close = Close::SeatTaken { holder, since: Some(Utc::now()), own: true };
            assert_eq!(close.code(), 4409);
            assert!(close.reason().len() <= REASON_BYTES_MAX, "{}", close.reason());
            let json: serde_json::Value = serde_json::from_str(&close.reason()).expect("JSON");
            assert!(json["holder"]["since"].is_string());
            assert_eq!(json["holder"]["you"], true);
        }
    }
}
