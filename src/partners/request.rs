//! Requests of one user to another: for a review, or with the offer of one.
//!
//! A pair has one pending request, in either direction, also when both users send one on two servers at
//! the same moment (G11): a partial unique index enforces it. A decision is one conditional update, so
//! of an acceptance and a withdrawal one happens.

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, RequestId, ShareLinkId, UserId};
use crate::domain::review_request::RequestState;
use crate::domain::seat::Role;
use crate::domain::user::User;
use crate::storage::pagination::Cursor;

/// A request to store.
#[derive(Clone, Debug)]
pub struct NewRequest {
    /// Its id.
    pub id: RequestId,
    /// The sender.
    pub from: User,
    /// The receiver, who has a row.
    pub to: UserId,
    /// The role that the sender would have.
    pub sender_role: Role,
    /// The message of the sender.
    pub message: Option<String>,
    /// The sender's document to review.
    pub document: Option<DocumentId>,
    /// The sender is a guest: the most pending requests of guests to the receiver.
    pub guests: Option<i64>,
    /// The time of the request.
    pub now: DateTime<Utc>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewRequest {
    /// Its id.
    pub id: RequestId,
    /// The sender.
    pub from: User,
    /// The receiver.
    pub to: User,
    /// The role that the sender would have.
    pub sender_role: Role,
    /// The message of the sender.
    pub message: Option<String>,
    /// The sender's document to review. `None` also after its purge.
    pub document: Option<DocumentId>,
    /// The title of the document, while it exists outside the bin.
    pub title: Option<String>,
    /// Its state at the time of the read.
    pub state: RequestState,
    /// The time of the request.
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
    /// The request is pending.
    Created(Box<ReviewRequest>),
    /// The sender's earlier request to this user is pending.
    AlreadySent(RequestId),
    /// The other user's request to the sender is pending.
    AlreadyReceived(RequestId),
    /// Both users are partners.
    AlreadyPartners,
    /// The sender has no such document.
    NoDocument,
    /// The sender has as many pending requests as a user may have.
    SenderFull,
    /// The receiver has as many pending requests as a user may have.
    ReceiverFull,
    /// Guests have as many pending requests to the receiver as they may have.
    GuestsFull,
    /// The receiver takes no requests of guests.
    NoGuests,
    /// The sender has sent as many requests as a day allows, to this user or in all.
    DayFull {
        /// When the next one is allowed.
        until: DateTime<Utc>,
    },
}

/// Which requests of a user a list contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Those that the user sent.
    Sent,
    /// Those that the user received.
    Received,
    /// Both.
    Either,
}

/// A list of a user's requests.
#[derive(Clone, Debug)]
pub struct RequestFilter {
    /// The user.
    pub user: UserId,
    /// Sent or received ones.
    pub direction: Direction,
    /// Those in this state. `None`: in any.
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
    /// The state of a request after it.
    #[must_use]
    pub fn state(self) -> RequestState {
        match self {
            Self::Decline => RequestState::Declined,
            Self::Withdraw => RequestState::Withdrawn,
        }
    }
}

/// The share link that an acceptance finds or creates for the sender's document.
#[derive(Clone, Debug)]
pub struct LinkToOffer {
    /// Its id if it is created.
    pub id: ShareLinkId,
    /// SHA-256 of its invite.
    pub invite_hash: [u8; 32],
}

/// The effect of an acceptance on the document of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkOutcome {
    /// The request names no document.
    NoDocument,
    /// The receiver is the reviewer of this link.
    Joined(ShareLinkId),
    /// Another user is the reviewer. The link stores the attempt, as after a join with an invite.
    ReviewerExists {
        /// The document of the link.
        document: DocumentId,
        /// Whether the attempt was stored: it is the user's first within a minute.
        is_noted: bool,
    },
    /// The document is in the bin, or purged.
    DocumentGone,
}

/// The outcome of a decision. Only `Done` changes rows, and only the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided<T> {
    /// The request has the wanted state, as of this call or before it.
    Done(T),
    /// The request has another state.
    NotPending(RequestState),
    /// The decision is that of the other user of the request.
    OtherSide,
    /// There is no such request of the caller.
    Gone,
}

/// An accepted request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedRequest {
    /// The request.
    pub request: ReviewRequest,
    /// The effect on its document.
    pub link: LinkOutcome,
    /// Whether this call accepted it. False: an earlier one did.
    pub is_first: bool,
}
