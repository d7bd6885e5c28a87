//! What the server tells a page: JSON in frames of type 100 (`src/http/PROTOCOL.md`, *Events*).
//!
//! The name of an event stands under `event`, and again under `type` for readers that dispatch on
//! that word; only in `problem` is `type` the problem document's own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::domain::fence::Fence;
use crate::domain::ids::{ReviewId, SessionId, ShareLinkId};
use crate::domain::review::Review;
use crate::domain::seat::Role;
use crate::domain::user::User;
use crate::outbox::close::LostReason;
use crate::yjs::protocol;

/// One thing to tell.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// The seat is yours.
    SeatGranted {
        /// The session that holds it.
        session: SessionId,
        /// Which seat.
        role: Role,
        /// The number of the grant.
        fence: Fence,
        /// Length of the lease, in ms.
        lease_ms: u64,
        /// The secret that re-enters after the socket died.
        resume: &'a str,
        /// Who the server takes you for.
        user: &'a User,
    },
    /// Somebody else sits there; you stand in line.
    SeatWaiting {
        /// Place in the line: 1 is next.
        position: usize,
        /// What the holder is called.
        holder: &'a str,
        /// Whether that is the very user who waits, in another tab or on another machine.
        own: bool,
        /// Since when they sit; none if that cannot be told.
        since: Option<DateTime<Utc>>,
        /// When the seat comes free at the latest, unless it is renewed.
        retry_at: DateTime<Utc>,
    },
    /// The lease could not be renewed in time: edits are not taken until it is.
    SeatUncertain,
    /// The lease was renewed after all.
    SeatRestored,
    /// The seat is given back at that time unless there is a sign of work.
    SeatIdle {
        /// When.
        release_at: DateTime<Utc>,
    },
    /// The seat is gone.
    SeatLost(LostReason),
    /// Somebody sat down.
    PeerJoined(Role, &'a User),
    /// Somebody left.
    PeerLeft(Role, &'a User),
    /// Everything up to this state vector survives any crash.
    DocumentSaved {
        /// Encoded Yjs state vector.
        state_vector: &'a [u8],
    },
    /// The document has come nearer to its limit, or is farther from it again.
    DocumentSize {
        /// How near.
        fullness: Fullness,
        /// What it takes, with the marks that deleted text leaves.
        bytes: usize,
        /// What it may take.
        limit: usize,
    },
    /// A review was made.
    ReviewCreated(&'a Review),
    /// A review changed.
    ReviewUpdated(&'a Review),
    /// A review was deleted.
    ReviewDeleted(&'a Review),
    /// A review was deleted, of which only the name is left.
    ReviewGone {
        /// Its name.
        id: ReviewId,
        /// The link on which it was made.
        link: ShareLinkId,
    },
    /// An edit was not taken.
    Denied(&'static str),
    /// Something is wrong that the page should show.
    Problem(Problem),
    /// This server is stopping.
    ServerDraining {
        /// When to come back, in ms.
        reconnect_after_ms: u64,
    },
}

/// How near a document is to its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fullness {
    /// There is room enough.
    #[default]
    Ample,
    /// Four fifths are taken.
    Near,
    /// No more text is taken, until some is deleted.
    Full,
}

/// A problem document (RFC 9457) for a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// `/problems/<name>`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// A sentence for people.
    pub title: &'static str,
    /// The HTTP status it would have been.
    pub status: u16,
}

/// Edits are kept in memory because storage does not answer.
pub const NOT_SAVED: Problem = Problem {
    kind: "/problems/not-saved",
    title: "The server cannot store right now; edits are kept and stored when it can",
    status: 503,
};
/// The same, because the database has no space left.
pub const NO_SPACE: Problem = Problem {
    kind: "/problems/not-saved",
    title: "The server has no space left to store; edits are kept and stored when it has",
    status: 507,
};
/// What is stored cannot be read to its end: nothing is added to it.
pub const DOCUMENT_DAMAGED: Problem = Problem {
    kind: "/problems/document-damaged",
    title: "The stored document is damaged; what can be read of it is shown, and cannot be changed",
    status: 500,
};
/// No further edit is taken until storage answers.
pub const UNSAVED_FULL: Problem = Problem {
    kind: "/problems/unsaved-full",
    title: "The server cannot store right now and takes no further edits",
    status: 507,
};
/// The guests of the writer's address have stored all that they may for now. The page treats it as the
/// problem above: it keeps the edits and sends them when the server asks.
pub const STORE_BUDGET_SPENT: Problem = Problem {
    kind: "/problems/unsaved-full",
    title: "The guests of this address have stored as much as they may within an hour; edits wait",
    status: 429,
};
/// An edit that was shown was refused by the database: the page must open the document afresh.
pub const DOCUMENT_RESET: Problem = Problem {
    kind: "/problems/document-reset",
    title: "An edit that was shown could not be kept; open the document again",
    status: 409,
};
/// The document is as large as it may become.
pub const DOCUMENT_FULL: Problem = Problem {
    kind: "/problems/document-too-large",
    title: "The document is as large as it may become",
    status: 413,
};

impl Event<'_> {
    /// The event as JSON.
    #[must_use]
    pub fn json(&self) -> String {
        // Nothing in it can fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The event as a websocket message.
    #[must_use]
    pub fn frame(&self) -> Bytes {
        protocol::event(&self.json())
    }

    fn name(&self) -> &'static str {
        match self {
            Self::SeatGranted { .. } => "seat.granted",
            Self::SeatWaiting { .. } => "seat.waiting",
            Self::SeatUncertain => "seat.uncertain",
            Self::SeatRestored => "seat.restored",
            Self::SeatIdle { .. } => "seat.idle",
            Self::SeatLost(_) => "seat.lost",
            Self::PeerJoined(..) => "peer.joined",
            Self::PeerLeft(..) => "peer.left",
            Self::DocumentSaved { .. } => "document.saved",
            Self::DocumentSize { .. } => "document.size",
            Self::ReviewCreated(_) => "review.created",
            Self::ReviewUpdated(_) => "review.updated",
            Self::ReviewDeleted(_) | Self::ReviewGone { .. } => "review.deleted",
            Self::Denied(_) => "denied",
            Self::Problem(_) => "problem",
            Self::ServerDraining { .. } => "server.draining",
        }
    }
}

/// Written field by field: thousands who come at once are told half a dozen events each.
impl Serialize for Event<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("event", self.name())?;
        if !matches!(self, Self::Problem(_)) {
            object.serialize_entry("type", self.name())?;
        }
        match self {
            Self::SeatGranted { session, role, fence, lease_ms, resume, user } => {
                object.serialize_entry("session_id", session)?;
                object.serialize_entry("role", role)?;
                object.serialize_entry("fence", fence)?;
                object.serialize_entry("lease_ms", lease_ms)?;
                object.serialize_entry("resume", resume)?;
                object.serialize_entry("user", user)?;
            }
            Self::SeatWaiting { position, holder, own, since, retry_at } => {
                let mut holder = json!({ "name": holder, "since": since });
                if *own && let Some(fields) = holder.as_object_mut() {
                    fields.insert("you".to_owned(), true.into());
                }
                object.serialize_entry("position", position)?;
                object.serialize_entry("holder", &holder)?;
                object.serialize_entry("retry_at", retry_at)?;
            }
            Self::SeatUncertain | Self::SeatRestored => {}
            Self::SeatIdle { release_at } => object.serialize_entry("release_at", release_at)?,
            Self::SeatLost(reason) => object.serialize_entry("reason", reason.as_str())?,
            Self::PeerJoined(role, user) | Self::PeerLeft(role, user) => {
                object.serialize_entry("role", role)?;
                object.serialize_entry("user", user)?;
            }
            Self::DocumentSaved { state_vector } => {
                object.serialize_entry("state_vector", &STANDARD.encode(state_vector))?;
            }
            Self::DocumentSize { fullness, bytes, limit } => {
                object.serialize_entry("state", fullness)?;
                object.serialize_entry("bytes", bytes)?;
                object.serialize_entry("limit", limit)?;
            }
            Self::ReviewCreated(review) | Self::ReviewUpdated(review) => {
                object.serialize_entry("review", review)?;
            }
            Self::ReviewDeleted(review) => object.serialize_entry("review", review)?,
            Self::ReviewGone { id, link } => {
                object.serialize_entry("review", &json!({ "id": id, "share_link_id": link }))?;
            }
            Self::Denied(reason) => object.serialize_entry("reason", reason)?,
            Self::Problem(Problem { kind, title, status }) => {
                object.serialize_entry("type", kind)?;
                object.serialize_entry("title", title)?;
                object.serialize_entry("status", status)?;
            }
            Self::ServerDraining { reconnect_after_ms } => {
                object.serialize_entry("reconnect_after_ms", reconnect_after_ms)?;
            }
        }
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn an_event_names_itself_and_carries_its_fields() {
        let json: Value =
            serde_json::from_str(&Event::SeatLost(LostReason::TakenOver).json()).expect("JSON");
        assert_eq!(
            json,
            json!({ "event": "seat.lost", "type": "seat.lost", "reason": "taken_over" })
        );
    }

    #[test]
    fn a_problem_keeps_its_own_type() {
        let json: Value = serde_json::from_str(&Event::Problem(NOT_SAVED).json()).expect("JSON");
        assert_eq!(json["event"], "problem");
        assert_eq!(json["type"], "/problems/not-saved");
        assert_eq!(json["status"], 503);
    }
}
