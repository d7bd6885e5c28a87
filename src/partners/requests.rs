//! Requests: create, list, accept, decline, withdraw.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, RequestId, ShareLinkId, UserId};
use crate::domain::review_request::RequestState;
use crate::domain::seat::Role;
use crate::domain::text::incoming;
use crate::domain::user::User;
use crate::partners::request::{
    AcceptedRequest, Decided, LinkToOffer, NewRequest, Refusal, RequestFilter, Requested,
    ReviewRequest,
};
use crate::partners::store;
use crate::partners::{Partners, PartnersError, REQUEST_MESSAGE_CHARS_MAX, unlock, wait_until};
use crate::storage::guard::Guarded;
use crate::storage::pagination::Page;

const NO_REQUEST: PartnersError = PartnersError::NotFound("review request");

#[derive(Clone, Debug)]
pub struct NewReviewRequest {
    /// The receiver: `@handle`, the token of a personal link, or a user id.
    pub to: String,
    pub sender_role: Role,
    pub message: Option<String>,
    pub document: Option<DocumentId>,
    pub is_guest: bool,
}

impl Partners {
    /// Of two users who ask each other at the same moment, on any servers, one succeeds; the other
    /// receives the id of that request (G11), by the unique index of the database. On an error nothing is
    /// stored.
    pub async fn request(
        &self,
        caller: &User,
        new: NewReviewRequest,
        now: DateTime<Utc>,
    ) -> Result<ReviewRequest, PartnersError> {
        let message = new.message.as_deref().map(checked_message).transpose()?.flatten();
        if new.document.is_some() && new.sender_role == Role::Reviewer {
            return Err(PartnersError::DocumentOfReviewer);
        }
        let to = self.resolve(&new.to).await?.id;
        if to == caller.id {
            return Err(PartnersError::OwnSelf);
        }
        if !self.storage.has_room() {
            return Err(PartnersError::StorageSpent);
        }
        let guard = self.lock_pair(&caller.id, &to).await?;
        let guests = new.is_guest.then_some(self.guests_pending);
        let NewReviewRequest { sender_role, document, .. } = new;
        let (id, from) = (RequestId::generate(), caller.clone());
        let new = NewRequest { id, from, to, sender_role, message, document, guests, now };
        // Not dropped if the lock is lost meanwhile: the database decides all the same.
        let requested = store::requests::create_request(&self.storage, &new).await;
        unlock(guard).await;
        match requested? {
            Requested::Created(request) => Ok(*request),
            Requested::AlreadySent(id) => Err(PartnersError::AlreadySent(id)),
            Requested::AlreadyReceived(id) => Err(PartnersError::AlreadyReceived(id)),
            Requested::AlreadyPartners => Err(PartnersError::AlreadyPartners),
            Requested::NoDocument => Err(PartnersError::NotFound("document")),
            Requested::SenderFull => Err(PartnersError::TooManyPending("you have")),
            Requested::ReceiverFull => Err(PartnersError::TooManyPending("this user has")),
            // The receiver may decide at any time.
            Requested::GuestsFull => Err(PartnersError::GuestLimit {
                key: "limits.guest_requests_pending",
                retry_after: Duration::from_hours(1),
            }),
            Requested::NoGuests => Err(PartnersError::NoGuestRequests),
            Requested::DayFull { until } => {
                Err(PartnersError::TooManyToday { retry_after: wait_until(until, now) })
            }
        }
    }

    /// A request exists only for its sender and its receiver.
    pub async fn request_of(
        &self,
        caller: &UserId,
        id: RequestId,
        now: DateTime<Utc>,
    ) -> Result<ReviewRequest, PartnersError> {
        let request = store::requests::request(&self.storage, id, now).await?;
        let is_party =
            |request: &ReviewRequest| request.from.id == *caller || request.to.id == *caller;
        request.filter(is_party).ok_or(NO_REQUEST)
    }

    /// Newest first.
    pub async fn requests_of(
        &self,
        filter: &RequestFilter,
        page: &Page<RequestId>,
    ) -> Result<Vec<ReviewRequest>, PartnersError> {
        Ok(store::requests::requests_of(&self.storage, filter, page).await?)
    }

    /// Accepts a request, for its receiver. Both become partners, and the receiver becomes the reviewer
    /// of the document of the request, unless its share link has another. Idempotent.
    pub async fn accept(
        &self,
        caller: &UserId,
        id: RequestId,
        now: DateTime<Utc>,
    ) -> Result<AcceptedRequest, PartnersError> {
        let request = self.request_of(caller, id, now).await?;
        match request.state {
            // A repeated acceptance reads its result in the transaction.
            RequestState::Pending | RequestState::Accepted => {}
            RequestState::Declined | RequestState::Withdrawn | RequestState::Expired => {
                return Err(PartnersError::NotPending(request.state));
            }
        }
        if request.to.id != *caller {
            return Err(PartnersError::NotTheReceiver);
        }
        let link_id = ShareLinkId::generate();
        let link = LinkToOffer { id: link_id, invite_hash: self.invites.of(link_id).hash() };
        let guard = self.lock_pair(&request.from.id, &request.to.id).await?;
        let accepted = store::requests::accept_request(&self.storage, id, caller, &link, now).await;
        unlock(guard).await;
        match accepted? {
            Guarded::Done(decided) => done(decided, PartnersError::NotTheReceiver),
            Guarded::Full => Err(PartnersError::PartnersFull),
            // Guards of a review, which this transaction does not have.
            Guarded::Fenced
            | Guarded::NotFound
            | Guarded::VersionMismatch { .. }
            | Guarded::Stale => Err(NO_REQUEST),
        }
    }

    /// Returns their number.
    pub async fn decline_all(&self, to: &UserId, now: DateTime<Utc>) -> Result<u64, PartnersError> {
        Ok(store::requests::decline_requests(&self.storage, to, now).await?)
    }

    /// Declines a request, for its receiver, or withdraws it, for its sender. One conditional update
    /// decides, so it needs no lock. Idempotent.
    /// [`PartnersError`]; nothing changes.
    pub async fn refuse(
        &self,
        caller: &UserId,
        id: RequestId,
        refusal: Refusal,
        now: DateTime<Utc>,
    ) -> Result<ReviewRequest, PartnersError> {
        let other_side = match refusal {
            Refusal::Decline => PartnersError::NotTheReceiver,
            Refusal::Withdraw => PartnersError::NotTheSender,
        };
        done(
            store::requests::refuse_request(&self.storage, id, caller, refusal, now).await?,
            other_side,
        )
    }
}

fn done<T>(decided: Decided<T>, other_side: PartnersError) -> Result<T, PartnersError> {
    match decided {
        Decided::Done(done) => Ok(done),
        Decided::NotPending(state) => Err(PartnersError::NotPending(state)),
        Decided::OtherSide => Err(other_side),
        Decided::Gone => Err(NO_REQUEST),
    }
}

/// The clean message without white space around it; `None` if nothing is left.
fn checked_message(message: &str) -> Result<Option<String>, PartnersError> {
    let message = incoming(message).trim().to_owned();
    if message.chars().count() > REQUEST_MESSAGE_CHARS_MAX {
        return Err(PartnersError::Message);
    }
    Ok((!message.is_empty()).then_some(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_trimmed_and_bounded() {
        let message = |text: &str| checked_message(text).ok();
        assert_eq!(message("  첫 줄\r\n둘째 줄 "), Some(Some("첫 줄\n둘째 줄".to_owned())));
        assert_eq!(message(" \n"), Some(None));
        assert_eq!(message(&"글".repeat(1_000)).flatten().map(|text| text.len()), Some(3_000));
        assert_eq!(message("a\0b\u{1b}c"), Some(Some("abc".to_owned())));
        assert_eq!(message(&"글".repeat(1_001)), None);
    }
}
