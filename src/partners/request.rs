//! Requests of one user to another: for a review, or with the offer of one.
//!
//! A pair has one pending request, in either direction, also when both users send one on two servers at
//! the same moment (G11): a partial unique index enforces it. A decision is one conditional update, so
//! of an acceptance and a withdrawal one happens.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::domain::ids::{DocumentId, RequestId, ShareLinkId, UserId};
use crate::domain::review_request::RequestState;
use crate::domain::seat::Role;
use crate::domain::user::User;
use crate::storage::pagination::Cursor;

#[derive(Clone, Debug)]
pub struct NewRequest {
    pub id: RequestId,
    pub from: User,
    /// The receiver, who has a row.
    pub to: UserId,
    pub sender_role: Role,
    pub message: Option<String>,
    pub document: Option<DocumentId>,
    /// The sender is a guest: the most pending requests of guests to the receiver.
    pub guests: Option<i64>,
    pub now: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReviewRequest {
    pub id: RequestId,
    pub from: User,
    pub to: User,
    /// The role that the sender would have.
    #[serde(rename = "as")]
    pub sender_role: Role,
    pub message: Option<String>,
    /// The sender's document to review; `null` also after its purge.
    #[serde(rename = "document_id")]
    pub document: Option<DocumentId>,
    /// The title of the document; `null` while it is in the bin.
    pub title: Option<String>,
    pub state: RequestState,
    pub created_at: DateTime<Utc>,
    /// The time of the decision, or the end of an expired request.
    pub decided_at: Option<DateTime<Utc>>,
    /// From this time on the receiver can no longer accept it.
    pub expires_at: DateTime<Utc>,
}

impl ReviewRequest {
    /// The cursor of the next page, if this request is the last of a page.
    #[must_use]
    pub fn cursor(&self) -> Cursor<RequestId> {
        Cursor { at: self.created_at, id: self.id }
    }
}

/// The outcome of a request. Only `Created` stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requested {
    Created(Box<ReviewRequest>),
    AlreadySent(RequestId),
    AlreadyReceived(RequestId),
    AlreadyPartners,
    NoDocument,
    SenderFull,
    ReceiverFull,
    GuestsFull,
    NoGuests,
    /// The sender has sent as many requests as a day allows, to this user or in all.
    DayFull {
        until: DateTime<Utc>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Sent,
    Received,
    Either,
}

#[derive(Clone, Debug)]
pub struct RequestFilter {
    pub user: UserId,
    pub direction: Direction,
    /// The state of the requests. `None`: any.
    pub state: Option<RequestState>,
    /// The time of the read, which decides on expiry.
    pub now: DateTime<Utc>,
}

/// A decision that makes no partners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// By the receiver.
    Decline,
    /// By the sender.
    Withdraw,
}

impl Refusal {
    #[must_use]
    pub fn state(self) -> RequestState {
        match self {
            Self::Decline => RequestState::Declined,
            Self::Withdraw => RequestState::Withdrawn,
        }
    }
}

#[derive(Clone, Debug)]
pub struct LinkToOffer {
    pub id: ShareLinkId,
    pub invite_hash: [u8; 32],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkOutcome {
    NoDocument,
    Joined(ShareLinkId),
    /// Another user is the reviewer. The link stores the attempt, as after a join with an invite.
    ReviewerExists {
        document: DocumentId,
        /// Whether the attempt was stored: it is the user's first within a minute.
        is_noted: bool,
    },
    DocumentGone,
}

/// The outcome of a decision. Only `Done` changes rows, and only the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided<T> {
    /// The request has the wanted state, as of this call or before it.
    Done(T),
    NotPending(RequestState),
    /// The decision is that of the other user of the request.
    OtherSide,
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedRequest {
    pub request: ReviewRequest,
    pub link: LinkOutcome,
    /// Whether this call accepted it. False: an earlier one did.
    pub is_first: bool,
}
