//! People who work together: how they find each other, their requests, and their partners.
//!
//! Only this module decides who may act on a request. A request belongs to its sender and its receiver;
//! to every other user it does not exist. There is no search: a user is found by an exact handle, a
//! personal link or an id. Review offers, whose accepted claims make partners too, are in [`offers`](crate::offers).
//!
//! # Two lines
//!
//! A new request and an acceptance hold the lock of the pair: of two users who ask each other at the
//! same moment, on any servers, the second reads the request of the first. Behind the lock stand the
//! constraints of the database (G11): one pending request and one partnership for each pair. They alone keep
//! that promise, on both engines; with the lock the calls of a pair wait in Redis and not on connections of
//! the database.

pub(crate) mod http;
pub mod people;
pub mod request;
pub mod requests;
pub mod store;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::domain::handle::{Handle, InvalidHandle};
use crate::domain::ids::{RequestId, UserId};
use crate::domain::limits::PARTNERS_MAX;
use crate::domain::review_request::RequestState;
use crate::locks::{AcquireOptions, Guard, Lease, LockError, LockName, Locks};
use crate::sharing::invite::Invites;
use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::storage::pagination::Page;
use crate::storage::partners::Partner;

/// Longest message of a request, in characters: a paragraph.
const REQUEST_MESSAGE_CHARS_MAX: usize = 1_000;
/// Lease of the lock of a pair: longer than a transaction, whose bound is fifteen seconds. A pair waits
/// that long for a server that died.
const REQUEST_LEASE: Duration = Duration::from_secs(20);

const CLASS: &str = "request";

#[derive(Clone)]
pub struct Partners {
    storage: Storage,
    locks: Locks,
    invites: Invites,
    /// The most pending requests of guests to one user.
    guests_pending: i64,
    /// Handles that no user may have.
    reserved: Arc<[Handle]>,
}

#[derive(Debug, thiserror::Error)]
pub enum PartnersError {
    #[error("no user has this handle, personal link or id")]
    UnknownUser,
    #[error("this is your own address")]
    OwnSelf,
    #[error("there is no such {0}")]
    NotFound(&'static str),
    #[error(transparent)]
    Handle(#[from] InvalidHandle),
    #[error("another user has this handle")]
    HandleTaken,
    #[error("a message has at most {REQUEST_MESSAGE_CHARS_MAX} characters")]
    Message,
    #[error("only the writer of a document asks for its review: send document_id with as = writer")]
    DocumentOfReviewer,
    #[error("your request to this user is pending")]
    AlreadySent(RequestId),
    #[error("this user's request to you is pending; accept it")]
    AlreadyReceived(RequestId),
    #[error("you are partners already")]
    AlreadyPartners,
    #[error("the request is {}", .0.as_str())]
    NotPending(RequestState),
    #[error("only the receiver of a request accepts or declines it")]
    NotTheReceiver,
    #[error("only the sender of a request withdraws it")]
    NotTheSender,
    #[error("{0} as many pending requests as a user may have")]
    TooManyPending(&'static str),
    #[error("you have sent as many requests as a day allows")]
    TooManyToday { retry_after: Duration },
    #[error("{key}: guests have reached this limit")]
    GuestLimit { key: &'static str, retry_after: Duration },
    #[error("this user takes no requests of guests")]
    NoGuestRequests,
    #[error(
        "one of you has {PARTNERS_MAX} partners, as many as a user may have; remove some first"
    )]
    PartnersFull,
    #[error("another request about this pair takes too long")]
    LockTimeout,
    #[error("the server has no room for new requests")]
    StorageSpent,
    #[error("the lock of the pair is unavailable: {0}")]
    Locks(LockError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Partners {
    /// Guests have `guests_pending` requests to one user (zero: as many as all), and no user has a handle
    /// of `reserved`.
    #[must_use]
    pub fn new(
        storage: Storage,
        locks: Locks,
        invites: Invites,
        guests_pending: u32,
        reserved: &[Handle],
    ) -> Self {
        let guests_pending = NonZeroU32::new(guests_pending).map_or(i64::MAX, |it| it.get().into());
        Self { storage, locks, invites, guests_pending, reserved: reserved.into() }
    }

    /// Newest first.
    pub async fn partners_of(
        &self,
        caller: &UserId,
        page: &Page<UserId>,
    ) -> Result<Vec<Partner>, PartnersError> {
        Ok(self.storage.partners_of(caller, page).await?)
    }

    /// Either user ends a partnership. Claims of each other's offers that were accepted end, and so does
    /// a pending request. The reviewer of a share link stays.
    /// [`PartnersError::NotFound`] if they are no partners.
    pub async fn remove(
        &self,
        caller: &UserId,
        partner: &UserId,
        now: DateTime<Utc>,
    ) -> Result<(), PartnersError> {
        let is_removed = self.storage.remove_partners(caller, partner, now).await?;
        is_removed.then_some(()).ok_or(PartnersError::NotFound("partner"))
    }

    /// The lock of a pair is the same in either order of its users.
    async fn lock_pair(&self, one: &UserId, other: &UserId) -> Result<Guard, PartnersError> {
        let name = LockName::pair(CLASS, one.as_str(), other.as_str());
        let options = AcquireOptions::new(Lease::Fixed(REQUEST_LEASE)).backing_off();
        self.locks.lock(&name, &options).await.map_err(|error| match error {
            LockError::Busy(_) | LockError::WaitTimeout(_) => PartnersError::LockTimeout,
            LockError::Lost(_) | LockError::Unavailable(_) => PartnersError::Locks(error),
        })
    }
}

/// A pending release delays only the next request of the pair.
async fn unlock(guard: Guard) {
    if let Err(error) = guard.release().await {
        tracing::debug!(%error, "the release of a pair is pending");
    }
}

/// The time from `now` until `until`, at least a second: a daily bound knows no shorter wait.
fn wait_until(until: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    (until - now).to_std().unwrap_or_default().max(Duration::from_secs(1))
}
