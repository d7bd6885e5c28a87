//! The reasons for which a socket is closed, and their close codes (`src/http/PROTOCOL.md`, *Close codes*).
//!
//! The stock client (y-websocket ≥ 3.1.0) stops on 4400–4499 and reconnects on any other code. So a
//! code also tells the client whether to reconnect.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::json;
use strum::IntoStaticStr;

use crate::domain::user::User;

/// Longest reason of a close frame, in bytes (RFC 6455 §5.5: 125 less two for the code).
const REASON_BYTES_MAX: usize = 123;

/// The close reason of a user who has no such role on the link.
pub const NOT_YOUR_ROLE: &str = "not-your-role";

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LostReason {
    TakenOver,
    /// The server could not renew the lease in time.
    Expired,
    /// The client sent nothing for `seats.client_timeout`.
    #[strum(serialize = "expired")]
    Silent,
    Evicted,
    /// Idle timeout: the user did not type, move the cursor or review.
    Idle,
    Revoked,
    Deleted,
    /// The owner removed or replaced this reviewer. The link stays.
    #[strum(serialize = "revoked")]
    Removed,
}

impl LostReason {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Close {
    /// A frame or parameter that a correct client never sends.
    Malformed(&'static str),
    Unauthenticated(&'static str),
    /// The user's role does not permit it.
    Forbidden(&'static str),
    /// The share link does not exist, or was revoked before the session held a seat.
    NoSuchLink,
    SeatTaken {
        holder: User,
        /// When the holder acquired the seat; none if unknown.
        since: Option<DateTime<Utc>>,
        /// Whether the holder is the same user, in another tab or on another machine.
        own: bool,
    },
    WaitedInVain,
    Lost(LostReason),
    /// The database rejected an edit that the room had broadcast. The replica contains it, so the
    /// client must not reconnect with it.
    Rejected,
    /// A message or the document exceeds its limit.
    TooLarge(&'static str),
    /// Locks or storage do not answer.
    Unavailable(&'static str),
    /// Too many messages or connections, or a slow reader.
    TooMuch(&'static str),
    /// This server is stopping, or the client must open the room again.
    Restart(&'static str),
    /// The client closed the socket; the server echoes the code.
    Left,
}

impl Close {
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            Self::Malformed(_) => 4400,
            Self::Unauthenticated(_) => 4401,
            Self::Forbidden(_) | Self::Lost(LostReason::Removed) => 4403,
            Self::NoSuchLink | Self::Lost(LostReason::Revoked | LostReason::Deleted) => 4404,
            Self::WaitedInVain => 4408,
            Self::SeatTaken { .. } => 4409,
            Self::Lost(LostReason::Idle) => 4411,
            Self::Lost(
                LostReason::TakenOver
                | LostReason::Expired
                | LostReason::Silent
                | LostReason::Evicted,
            )
            | Self::Rejected => 4410,
            Self::TooLarge(_) => 4413,
            Self::Unavailable(_) => 4503,
            Self::TooMuch(_) => 4529,
            Self::Restart(_) => 1012,
            Self::Left => 1000,
        }
    }

    /// The cause for the log and as the label of a metric: one of a fixed list, which tells apart more than the
    /// client's reason.
    #[must_use]
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Malformed(why)
            | Self::Unauthenticated(why)
            | Self::Forbidden(why)
            | Self::TooLarge(why)
            | Self::Unavailable(why)
            | Self::TooMuch(why)
            | Self::Restart(why) => why,
            Self::NoSuchLink => "no-such-link",
            Self::WaitedInVain => "seat-not-free",
            Self::Lost(LostReason::Removed) => "removed",
            Self::Lost(LostReason::Silent) => "client-silent",
            Self::Lost(reason) => reason.as_str(),
            Self::Rejected => "document-reset",
            Self::Left => "left",
            Self::SeatTaken { own: true, .. } => "seat-taken-by-the-same-user",
            Self::SeatTaken { .. } => "seat-taken",
        }
    }

    /// The reason, at most 123 bytes: a word, or JSON with the holder of a taken seat.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            // The reason of every later claim of this user.
            Self::Lost(LostReason::Removed) => NOT_YOUR_ROLE.to_owned(),
            Self::Lost(reason) => reason.as_str().to_owned(),
            Self::Left => String::new(),
            Self::SeatTaken { holder, since, own } => taken_reason(&holder.name, *since, *own),
            other => other.cause().to_owned(),
        }
    }
}

impl fmt::Display for Close {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code(), self.reason())
    }
}

/// `{"holder":{"name":…,"since":…}}`, with the name truncated at a character so that it fits.
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
    fn the_close_reason_of_a_taken_seat_names_the_holder_and_fits_the_frame() {
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
