//! Webhooks: the events that the server reports to the host product.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::invalid;

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "&'static str")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(parse_err_ty = InvalidEvent, parse_err_fn = invalid)]
pub enum WebhookEvent {
    /// The reviewer made a review, or the writer a comment.
    #[strum(serialize = "review.created")]
    ReviewCreated,
    /// The status of one or many reviews changed.
    #[strum(serialize = "review.decided")]
    ReviewDecided,
    /// A review got a reply.
    #[strum(serialize = "review.replied")]
    ReviewReplied,
    /// A user passed the review turn to a role.
    #[strum(serialize = "turn.changed")]
    TurnChanged,
    /// The database ratified the grant of a seat.
    #[strum(serialize = "seat.taken")]
    SeatTaken,
    /// A ratified grant ended.
    #[strum(serialize = "seat.left")]
    SeatLeft,
    /// The file of an export was stored.
    #[strum(serialize = "document.exported")]
    DocumentExported,
    /// The receiver of a request accepted it.
    #[strum(serialize = "request.accepted")]
    RequestAccepted,
    /// A user made a document.
    #[strum(serialize = "document.created")]
    DocumentCreated,
    /// A document went to the bin, or is gone for ever.
    #[strum(serialize = "document.deleted")]
    DocumentDeleted,
    /// A user became the reviewer of a share link.
    #[strum(serialize = "link.joined")]
    LinkJoined,
    /// A share link has its reviewer no longer.
    #[strum(serialize = "link.left")]
    LinkLeft,
    /// The history of a document got a version.
    #[strum(serialize = "version.created")]
    VersionCreated,
    /// The deletion of a person is complete.
    #[strum(serialize = "user.deleted")]
    UserDeleted,
}

/// The text names no kind of event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("must be some of {}", WebhookEvent::VARIANTS.iter().map(<&str>::from).collect::<Vec<_>>().join(", "))]
pub struct InvalidEvent;

impl WebhookEvent {
    /// Every kind.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Whether an event of this kind may have no document, and so no order among others.
    #[must_use]
    pub const fn may_lack_document(self) -> bool {
        matches!(self, Self::RequestAccepted | Self::UserDeleted)
    }

    /// The name in the settings, in JSON and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// `dead`: its attempts have failed for 24 hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = InvalidWebhookState, parse_err_fn = invalid)]
pub enum WebhookState {
    /// It waits for its first or its next attempt.
    Pending,
    /// The attempts of a day have failed.
    Dead,
}

/// The text names no state of a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("a state is `pending` or `dead`")]
pub struct InvalidWebhookState;

impl WebhookState {
    /// Every state.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The state in JSON and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_states_round_trip_through_text() {
        for event in WebhookEvent::ALL {
            assert_eq!(event.as_str().parse(), Ok(*event));
        }
        for state in WebhookState::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
        }
        assert_eq!("review".parse::<WebhookEvent>(), Err(InvalidEvent));
        assert_eq!("done".parse::<WebhookState>(), Err(InvalidWebhookState));
    }
}
