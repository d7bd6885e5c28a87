//! Review offers: a user offers a number of reviews, and other users claim them.

use serde::Serialize;
use strum::{Display, EnumString, IntoStaticStr};

use crate::invalid;

/// The state of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(inline))]
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
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
#[derive(Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case", parse_err_ty = InvalidClaimState, parse_err_fn = invalid)]
pub enum ClaimState {
    /// The owner of the offer has not decided yet.
    Claimed,
    /// The owner accepted it, and both users became partners.
    Accepted,
}

/// The text is no state of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("not a state of a claim")]
pub struct InvalidClaimState;

impl ClaimState {
    /// The state in JSON and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
