//! Server events for a page: JSON in frames of type 100 (`src/http/PROTOCOL.md`, *Events*).
//!
//! The field `event` names the event. `type` repeats it for clients that dispatch on `type`; in
//! `problem` it is the problem document's own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::domain::deletion::Deletion;
use crate::domain::fence::Fence;
use crate::domain::ids::{DecisionId, ReviewId, SessionId, ShareLinkId};
use crate::domain::progress::ReviewTurn;
use crate::domain::review::{Review, Verdict};
use crate::domain::seat::Role;
use crate::domain::section::Section;
use crate::domain::user::User;
use crate::outbox::close::LostReason;
use crate::yjs::protocol;

#[derive(Clone, Debug)]
pub enum Event<'a> {
    SeatGranted {
        session: SessionId,
        role: Role,
        fence: Fence,
        lease_ms: u64,
        resume: &'a str,
        user: &'a User,
        /// The longest message that the server reads. Clients divide longer updates.
        message_bytes: usize,
        /// The bound of a client's random first pause after a close.
        reconnect_within_ms: usize,
    },
    /// Another session holds the seat; this one is in its wait queue.
    SeatWaiting {
        position: usize,
        holder: &'a str,
        own: bool,
        since: Option<DateTime<Utc>>,
        /// When the lease expires, unless the holder renews it.
        retry_at: DateTime<Utc>,
    },
    /// The lease was not renewed in time. The server rejects edits until it is.
    SeatUncertain,
    SeatRestored,
    /// The server releases the seat at that time, unless the user becomes active.
    SeatIdle {
        release_at: DateTime<Utc>,
    },
    SeatLost(LostReason),
    DocumentDeleted(&'a Deletion),
    PeerJoined(Role, &'a User),
    PeerLeft(Role, &'a User),
    /// The database has committed all updates up to this state vector.
    DocumentSaved {
        state_vector: &'a [u8],
    },
    /// The document crossed a threshold of its quota, up or down.
    DocumentSize {
        fullness: Fullness,
        /// The size, with the tombstones of deleted text.
        bytes: usize,
        limit: usize,
    },
    ReviewCreated(&'a Review),
    ReviewUpdated(&'a Review),
    ReviewDeleted(&'a Review),
    /// A deleted review of which the database has only the id.
    ReviewGone {
        id: ReviewId,
        link: ShareLinkId,
    },
    TurnChanged(&'a ReviewTurn),
    /// The link refused a user with a valid invite, because it has a reviewer.
    InviteRefused {
        user: &'a User,
        at: DateTime<Utc>,
    },
    /// The writer decided many suggestions at once. A client reads the list of reviews again.
    DecisionMade {
        id: DecisionId,
        verdict: Verdict,
        /// The reviews, with their versions.
        done: &'a [(ReviewId, i64)],
        by: &'a User,
    },
    /// The owner set the sections of the document.
    SectionsChanged(&'a [Section]),
    /// The writer undid a decision about many suggestions. A client reads the list of reviews again.
    DecisionUndone {
        id: DecisionId,
        undone: &'a [ReviewId],
    },
    Denied(&'static str),
    Problem(Problem),
    ServerDraining {
        reconnect_after_ms: u64,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fullness {
    /// Below four fifths of the limit.
    #[default]
    Ample,
    /// At four fifths of the limit or above.
    Near,
    /// The room rejects new text until a deletion frees space.
    Full,
}

/// A problem document (RFC 9457) for a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub title: &'static str,
    pub status: u16,
}

pub const NOT_SAVED: Problem = Problem {
    kind: "/problems/not-saved",
    title: "The server cannot store right now; edits are kept and stored when it can",
    status: 503,
};
pub const NO_SPACE: Problem = Problem {
    kind: "/problems/not-saved",
    title: "The server has no space left to store; edits are kept and stored when it has",
    status: 507,
};
/// The stored document cannot be read to its end. The room rejects all edits.
pub const DOCUMENT_DAMAGED: Problem = Problem {
    kind: "/problems/document-damaged",
    title: "The stored document is damaged; what can be read of it is shown, and cannot be changed",
    status: 500,
};
/// The backlog is full. The room rejects edits until storage answers.
pub const UNSAVED_FULL: Problem = Problem {
    kind: "/problems/unsaved-full",
    title: "The server cannot store right now and takes no further edits",
    status: 507,
};
/// The open rooms have their bytes. The page handles it as [`UNSAVED_FULL`].
pub const MEMORY_FULL: Problem = Problem {
    kind: "/problems/unsaved-full",
    title: "The server has too many documents open and takes no long edits",
    status: 503,
};
/// The guests of the writer's address have spent their store budget. The page handles it as
/// [`UNSAVED_FULL`]: it retains the edits and sends them on request.
pub const STORE_BUDGET_SPENT: Problem = Problem {
    kind: "/problems/unsaved-full",
    title: "The guests of this address have stored as much as they may within an hour; edits wait",
    status: 429,
};
/// The database rejected an edit that the room had broadcast. The page must open the document
/// again.
pub const DOCUMENT_RESET: Problem = Problem {
    kind: "/problems/document-reset",
    title: "An edit that was shown could not be kept; open the document again",
    status: 409,
};
pub const DOCUMENT_FULL: Problem = Problem {
    kind: "/problems/document-too-large",
    title: "The document is as large as it may become",
    status: 413,
};

impl Event<'_> {
    #[must_use]
    pub fn json(&self) -> String {
        // Serialization of these fields cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    #[must_use]
    pub fn frame(&self) -> Bytes {
        protocol::event(&self.json())
    }

    fn decision_fields<M: SerializeMap>(&self, object: &mut M) -> Result<(), M::Error> {
        match self {
            Self::DecisionMade { id, verdict, done, by } => {
                let done: Vec<_> = done.iter().map(VersionOf::of).collect();
                object.serialize_entry("id", id)?;
                object.serialize_entry("decision", verdict)?;
                object.serialize_entry("done", &done)?;
                object.serialize_entry("by", by)?;
            }
            Self::DecisionUndone { id, undone } => {
                object.serialize_entry("id", id)?;
                object.serialize_entry("undone", undone)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn seat_fields<M: SerializeMap>(&self, object: &mut M) -> Result<(), M::Error> {
        match self {
            Self::SeatGranted {
                session,
                role,
                fence,
                lease_ms,
                resume,
                user,
                message_bytes,
                reconnect_within_ms,
            } => {
                object.serialize_entry("session_id", session)?;
                object.serialize_entry("role", role)?;
                object.serialize_entry("fence", fence)?;
                object.serialize_entry("lease_ms", lease_ms)?;
                object.serialize_entry("resume", resume)?;
                object.serialize_entry("user", user)?;
                object.serialize_entry("message_bytes", message_bytes)?;
                object.serialize_entry("reconnect_within_ms", reconnect_within_ms)?;
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
            _ => {}
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        match self {
            Self::SeatGranted { .. } => "seat.granted",
            Self::SeatWaiting { .. } => "seat.waiting",
            Self::SeatUncertain => "seat.uncertain",
            Self::SeatRestored => "seat.restored",
            Self::SeatIdle { .. } => "seat.idle",
            Self::SeatLost(_) | Self::DocumentDeleted(_) => "seat.lost",
            Self::PeerJoined(..) => "peer.joined",
            Self::PeerLeft(..) => "peer.left",
            Self::DocumentSaved { .. } => "document.saved",
            Self::DocumentSize { .. } => "document.size",
            Self::ReviewCreated(_) => "review.created",
            Self::ReviewUpdated(_) => "review.updated",
            Self::ReviewDeleted(_) | Self::ReviewGone { .. } => "review.deleted",
            Self::TurnChanged(_) => "turn.changed",
            Self::InviteRefused { .. } => "invite.refused",
            Self::DecisionMade { .. } => "decision.made",
            Self::DecisionUndone { .. } => "decision.undone",
            Self::SectionsChanged(_) => "sections.changed",
            Self::Denied(_) => "denied",
            Self::Problem(_) => "problem",
            Self::ServerDraining { .. } => "server.draining",
        }
    }
}

#[derive(Serialize)]
struct VersionOf<'a> {
    id: &'a ReviewId,
    version: i64,
}

impl<'a> VersionOf<'a> {
    fn of((id, version): &'a (ReviewId, i64)) -> Self {
        Self { id, version: *version }
    }
}

/// Serialized field by field, for speed: on connect each of thousands of clients receives six
/// events.
impl Serialize for Event<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("event", self.name())?;
        if !matches!(self, Self::Problem(_)) {
            object.serialize_entry("type", self.name())?;
        }
        match self {
            Self::SeatGranted { .. } | Self::SeatWaiting { .. } => self.seat_fields(&mut object)?,
            Self::SeatUncertain | Self::SeatRestored => {}
            Self::SeatIdle { release_at } => object.serialize_entry("release_at", release_at)?,
            Self::SeatLost(reason) => object.serialize_entry("reason", reason.as_str())?,
            Self::DocumentDeleted(Deletion { by, at }) => {
                object.serialize_entry("reason", LostReason::Deleted.as_str())?;
                object.serialize_entry("by", by)?;
                object.serialize_entry("at", at)?;
            }
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
            Self::TurnChanged(turn) => object.serialize_entry("turn", turn)?,
            Self::InviteRefused { user, at } => {
                object.serialize_entry("user", user)?;
                object.serialize_entry("at", at)?;
            }
            Self::DecisionMade { .. } | Self::DecisionUndone { .. } => {
                self.decision_fields(&mut object)?;
            }
            Self::SectionsChanged(sections) => object.serialize_entry("sections", sections)?,
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
    fn a_problem_event_has_the_type_of_its_problem_document() {
        let json: Value = serde_json::from_str(&Event::Problem(NOT_SAVED).json()).expect("JSON");
        assert_eq!(json["event"], "problem");
        assert_eq!(json["type"], "/problems/not-saved");
        assert_eq!(json["status"], 503);
    }
}
