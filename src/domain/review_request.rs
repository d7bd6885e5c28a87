//! Requests of one user to another: for a review, or with the offer of one.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The state of a request. Only a pending one changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestState {
    /// The receiver has not decided yet.
    Pending,
    /// The receiver accepted it: both users are partners.
    Accepted,
    /// The receiver declined it.
    Declined,
    /// The sender withdrew it.
    Withdrawn,
    /// The receiver did not decide in time.
    Expired,
}

/// The text names no state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a state is `pending`, `accepted`, `declined`, `withdrawn` or `expired`")]
pub struct InvalidState;

impl RequestState {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Pending, Self::Accepted, Self::Declined, Self::Withdrawn, Self::Expired];

    /// The state in JSON and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Accepted => "accepted",
            Self::Declined => "declined",
            Self::Withdrawn => "withdrawn",
            Self::Expired => "expired",
        }
    }
}

impl FromStr for RequestState {
    type Err = InvalidState;

    fn from_str(text: &str) -> Result<Self, InvalidState> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or(InvalidState)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_round_trips_through_text() {
        for state in RequestState::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        for text in ["", "Pending", "open"] {
            assert_eq!(text.parse::<RequestState>(), Err(InvalidState), "{text}");
        }
    }
}
