//! Review offers: created, listed and closed by their owners. `claims` has the claims of their places.

pub mod claims;
pub mod error;
pub(crate) mod http;
pub mod offer;
pub mod store;
mod waiting_claims;

use chrono::{DateTime, Utc};

use crate::domain::ids::{OfferId, UserId};
use crate::domain::line::Line;
use crate::domain::text::incoming;
use crate::domain::user::User;
use crate::locks::Locks;
use crate::offers::error::OfferError;
use crate::offers::offer::{NewOffer, Offer, OfferView};
use crate::offers::waiting_claims::WaitingClaims;
use crate::storage::Storage;
use crate::storage::pagination::Page;

/// Places of one review offer: the reviews of a class. Also a page of its claims.
const OFFER_CAPACITY_MAX: u32 = 100;
/// Longest message of an offer or a claim, in characters.
const OFFER_MESSAGE_CHARS_MAX: usize = 1_000;

#[derive(Clone)]
pub struct Offers {
    pub(super) storage: Storage,
    pub(super) locks: Locks,
    waiting: WaitingClaims,
}

#[derive(Clone, Copy, Debug)]
pub struct OfferTerms<'a> {
    pub title: &'a str,
    pub capacity: u32,
    pub message: Option<&'a str>,
}

impl Offers {
    #[must_use]
    pub fn new(storage: Storage, locks: Locks) -> Self {
        Self { storage, locks, waiting: WaitingClaims::default() }
    }

    pub async fn create(
        &self,
        owner: &User,
        terms: OfferTerms<'_>,
        now: DateTime<Utc>,
    ) -> Result<Offer, OfferError> {
        let OfferTerms { title, capacity, message } = terms;
        if !(1..=OFFER_CAPACITY_MAX).contains(&capacity) {
            return Err(OfferError::Capacity);
        }
        let title = Line::Title.parse(title)?;
        let message = parse_message(message)?;
        self.admit()?;
        let (id, owner) = (OfferId::generate(), owner.clone());
        let new = NewOffer { id, owner, title, message, capacity, now };
        store::create_offer(&self.storage, &new).await?.ok_or(OfferError::TooManyOpen)
    }

    /// One statement reads it.
    pub async fn offer(&self, viewer: &UserId, id: OfferId) -> Result<OfferView, OfferError> {
        store::offer(&self.storage, id, viewer).await?.ok_or(OfferError::NoOffer)
    }

    /// Newest first.
    pub async fn offers_of(
        &self,
        owner: &UserId,
        page: &Page<OfferId>,
    ) -> Result<Vec<Offer>, OfferError> {
        Ok(store::offers_of(&self.storage, owner, page).await?)
    }

    /// Claims of a closed offer stay. Idempotent. [`OfferError::NotTheOwner`] for another user.
    pub async fn close(
        &self,
        caller: &UserId,
        id: OfferId,
        now: DateTime<Utc>,
    ) -> Result<Offer, OfferError> {
        let is_closed = store::close_offer(&self.storage, id, caller, now).await?;
        self.waiting.notify(id);
        let offer = self.offer(caller, id).await?.offer;
        if is_closed { Ok(offer) } else { Err(OfferError::NotTheOwner) }
    }

    /// Rejects new rows above the bound of the database.
    pub(super) fn admit(&self) -> Result<(), OfferError> {
        if self.storage.has_room() { Ok(()) } else { Err(OfferError::StorageSpent) }
    }
}

/// A message of an offer or a claim, clean and trimmed. An empty one is none.
pub(super) fn parse_message(message: Option<&str>) -> Result<Option<String>, OfferError> {
    let message = message.map(incoming).unwrap_or_default().trim().to_owned();
    if message.chars().count() > OFFER_MESSAGE_CHARS_MAX {
        return Err(OfferError::Message);
    }
    Ok((!message.is_empty()).then_some(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_trimmed_and_bounded() {
        assert_eq!(parse_message(None).expect("valid"), None);
        assert_eq!(parse_message(Some(" \n ")).expect("valid"), None);
        let two_lines = parse_message(Some(" 한 줄\r\n두 줄 ")).expect("valid");
        assert_eq!(two_lines.as_deref(), Some("한 줄\n두 줄"));
        assert!(parse_message(Some(&"가".repeat(OFFER_MESSAGE_CHARS_MAX))).is_ok());
        let clean = parse_message(Some("\u{FEFF} a\u{0}\u{B}b\u{2028}")).expect("valid");
        assert_eq!(clean.as_deref(), Some("a\nb"));
        let long = "가".repeat(OFFER_MESSAGE_CHARS_MAX + 1);
        assert!(matches!(parse_message(Some(&long)), Err(OfferError::Message)));
    }
}
