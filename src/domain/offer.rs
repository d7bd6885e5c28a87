//! Review offers: a user offers a number of reviews, and other users claim them.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// The state of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OfferState {
    /// It has a free place.
    Open,
    /// All places are claimed. A withdrawn claim frees its place.
    SoldOut,
    /// Its owner closed it. Its claims stay.
    Closed,
}

/// The state of a claim that holds a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimState {
    /// The owner of the offer has not decided yet.
    Claimed,
    /// The owner accepted it, and both users became partners.
    Accepted,
}

/// The text is no state of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a state of a claim")]
pub struct InvalidClaimState;

impl ClaimState {
    /// The state in JSON and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Accepted => "accepted",
        }
    }
}

impl fmt::Display for ClaimState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ClaimState {
    type Err = InvalidClaimState;

    fn from_str(name: &str) -> Result<Self, InvalidClaimState> {
        let all = [Self::Claimed, Self::Accepted];
        all.into_iter().find(|state| state.as_str() == name).ok_or(InvalidClaimState)
    }
}
