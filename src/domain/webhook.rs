//! Webhooks: the events that the server reports to the host product.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "&str")]
pub enum WebhookEvent {
    /// A reviewer made a review.
    ReviewCreated,
    /// The status of one or many reviews changed.
    ReviewDecided,
    /// A review got a reply.
    ReviewReplied,
    /// A user passed the turn to a role.
    TurnChanged,
    /// The database ratified the grant of a seat.
    SeatTaken,
    /// A ratified grant ended.
    SeatLeft,
    /// The file of an export was stored.
    DocumentExported,
    /// The receiver of a request accepted it.
    RequestAccepted,
}

/// The text names no kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be some of {}", WebhookEvent::ALL.map(WebhookEvent::as_str).join(", "))]
pub struct InvalidEvent;

impl WebhookEvent {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::ReviewCreated,
        Self::ReviewDecided,
        Self::ReviewReplied,
        Self::TurnChanged,
        Self::SeatTaken,
        Self::SeatLeft,
        Self::DocumentExported,
        Self::RequestAccepted,
    ];

    /// The name in the settings, in JSON and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReviewCreated => "review.created",
            Self::ReviewDecided => "review.decided",
            Self::ReviewReplied => "review.replied",
            Self::TurnChanged => "turn.changed",
            Self::SeatTaken => "seat.taken",
            Self::SeatLeft => "seat.left",
            Self::DocumentExported => "document.exported",
            Self::RequestAccepted => "request.accepted",
        }
    }
}

impl From<WebhookEvent> for &str {
    fn from(event: WebhookEvent) -> Self {
        event.as_str()
    }
}

impl FromStr for WebhookEvent {
    type Err = InvalidEvent;

    fn from_str(text: &str) -> Result<Self, InvalidEvent> {
        Self::ALL.into_iter().find(|event| event.as_str() == text).ok_or(InvalidEvent)
    }
}

/// The state of a webhook. A delivered one has no row any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WebhookState {
    /// It waits for its first or its next attempt.
    Pending,
    /// The attempts of a day have failed.
    Dead,
}

/// The text names no state of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a state is `pending` or `dead`")]
pub struct InvalidState;

impl WebhookState {
    /// Every state.
    pub const ALL: [Self; 2] = [Self::Pending, Self::Dead];

    /// The state in JSON and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Dead => "dead",
        }
    }
}

impl FromStr for WebhookState {
    type Err = InvalidState;

    fn from_str(text: &str) -> Result<Self, InvalidState> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or(InvalidState)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_states_round_trip_through_text() {
        for event in WebhookEvent::ALL {
            assert_eq!(event.as_str().parse(), Ok(event));
        }
        for state in WebhookState::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        assert_eq!("review".parse::<WebhookEvent>(), Err(InvalidEvent));
        assert_eq!("done".parse::<WebhookState>(), Err(InvalidState));
    }
}
