//! Requests of one user to another: for a review, or with the offer of one.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::invalid;

/// The state of a request. Only a pending one changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = InvalidRequestState, parse_err_fn = invalid)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("a state is `pending`, `accepted`, `declined`, `withdrawn` or `expired`")]
pub struct InvalidRequestState;

impl RequestState {
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
    fn a_state_round_trips_through_text() {
        for state in RequestState::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
        }
        for text in ["", "Pending", "open"] {
            assert_eq!(text.parse::<RequestState>(), Err(InvalidRequestState), "{text}");
        }
    }
}
