//! The mutating operations of the REST API by their routes, and what each needs and ends.

/// A mutating operation, by its name in `openapi.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Act {
    EnterAsGuest,
    EnterByCode,
    CreateCode,
    RenameGuest,
    Leave,
    CreateDocument,
    FindOrCreateDocument,
    ImportDocument,
    RenameDocument,
    SetSections,
    ShareDocument,
    JoinShareLink,
    NameVersion,
    RestoreVersion,
    ReplaceText,
    CheckInvite,
    RenewInvite,
    RemoveReviewer,
    ReplaceReviewer,
    LeaveLink,
    RevokeShareLink,
    DeleteDocument,
    PurgeDocument,
    RestoreDocument,
    CreateReview,
    Suggest,
    EditReview,
    ReplyToReview,
    DeleteReview,
    EditReply,
    DeleteReply,
    MarkSeen,
    PassTurn,
    RejectReview,
    ResolveReview,
    ReopenReview,
    AcceptReview,
    DecideReviews,
    UndoDecision,
    Subscribe,
    Unsubscribe,
    EndSession,
    RevokeForAdmin,
    SetHandle,
    SetReminders,
    RenewAddress,
    FindPerson,
    SendRequest,
    AcceptRequest,
    DeclineRequest,
    DeclineAllRequests,
    WithdrawRequest,
    RemovePartner,
    CreateOffer,
    CloseOffer,
    ClaimOffer,
    EndClaim,
    AcceptClaim,
}

/// The acts of a test that tries each of them many times: all, or each eighth in a run of `tests/run` without
/// `--all`.
pub(crate) fn tried() -> impl Iterator<Item = Act> {
    let step = if std::env::var_os("GALLEY_SHORT").is_some() { 8 } else { 1 };
    ALL.into_iter().step_by(step)
}

/// Every operation.
pub(crate) const ALL: [Act; 58] = [
    Act::EnterAsGuest,
    Act::EnterByCode,
    Act::CreateCode,
    Act::RenameGuest,
    Act::Leave,
    Act::CreateDocument,
    Act::FindOrCreateDocument,
    Act::ImportDocument,
    Act::RenameDocument,
    Act::SetSections,
    Act::ShareDocument,
    Act::JoinShareLink,
    Act::NameVersion,
    Act::RestoreVersion,
    Act::ReplaceText,
    Act::CheckInvite,
    Act::RenewInvite,
    Act::RemoveReviewer,
    Act::ReplaceReviewer,
    Act::LeaveLink,
    Act::RevokeShareLink,
    Act::DeleteDocument,
    Act::PurgeDocument,
    Act::RestoreDocument,
    Act::CreateReview,
    Act::Suggest,
    Act::EditReview,
    Act::ReplyToReview,
    Act::DeleteReview,
    Act::EditReply,
    Act::DeleteReply,
    Act::MarkSeen,
    Act::PassTurn,
    Act::RejectReview,
    Act::ResolveReview,
    Act::ReopenReview,
    Act::AcceptReview,
    Act::DecideReviews,
    Act::UndoDecision,
    Act::Subscribe,
    Act::Unsubscribe,
    Act::EndSession,
    Act::RevokeForAdmin,
    Act::SetHandle,
    Act::SetReminders,
    Act::RenewAddress,
    Act::FindPerson,
    Act::SendRequest,
    Act::AcceptRequest,
    Act::DeclineRequest,
    Act::DeclineAllRequests,
    Act::WithdrawRequest,
    Act::RemovePartner,
    Act::CreateOffer,
    Act::CloseOffer,
    Act::ClaimOffer,
    Act::EndClaim,
    Act::AcceptClaim,
];

const LINK: &str = "/api/share-links/{id}";
const REVIEWER: &str = "/api/share-links/{id}/reviewer";
const REVIEWS: &str = "/api/share-links/{id}/reviews";
const REVIEW: &str = "/api/share-links/{id}/reviews/{rid}";
const REPLY: &str = "/api/share-links/{id}/reviews/{rid}/replies/{reply}";
const CLAIM: &str = "/api/review-offers/{id}/claims/{cid}";
const DOCUMENT: &str = "/api/documents/{id}";

impl Act {
    /// Method and path in `openapi.json`.
    pub(crate) fn route(self) -> (&'static str, &'static str) {
        match self {
            Self::EnterAsGuest => ("POST", "/api/auth/guest"),
            Self::EnterByCode => ("POST", "/api/auth/transfer"),
            Self::CreateCode => ("POST", "/api/me/transfer"),
            Self::RenameGuest => ("PATCH", "/api/me"),
            Self::Leave => ("POST", "/api/auth/leave"),
            Self::CreateDocument => ("POST", "/api/documents"),
            Self::FindOrCreateDocument => ("PUT", "/api/documents/by-external-id/{external_id}"),
            Self::ImportDocument => ("POST", "/api/documents/import"),
            Self::RenameDocument => ("PATCH", DOCUMENT),
            Self::SetSections => ("PUT", "/api/documents/{id}/sections"),
            Self::DeleteDocument | Self::PurgeDocument => ("DELETE", DOCUMENT),
            Self::RestoreDocument => ("POST", "/api/documents/{id}/restore"),
            Self::ShareDocument => ("POST", "/api/documents/{id}/share-link"),
            Self::NameVersion => ("POST", "/api/documents/{id}/versions"),
            Self::RestoreVersion => ("POST", "/api/documents/{id}/versions/{vid}/restore"),
            Self::ReplaceText => ("PUT", "/api/documents/{id}/text"),
            Self::RevokeShareLink => ("DELETE", LINK),
            Self::JoinShareLink => ("POST", "/api/share-links/{id}/join"),
            Self::CheckInvite => ("POST", "/api/share-links/{id}/invite/check"),
            Self::RenewInvite => ("POST", "/api/share-links/{id}/invite"),
            Self::RemoveReviewer => ("DELETE", REVIEWER),
            Self::ReplaceReviewer => ("PUT", REVIEWER),
            Self::LeaveLink => ("DELETE", "/api/share-links/{id}/membership"),
            Self::CreateReview => ("POST", REVIEWS),
            Self::Suggest => ("POST", "/api/share-links/{id}/suggestions"),
            Self::EditReview => ("PATCH", REVIEW),
            Self::DeleteReview => ("DELETE", REVIEW),
            Self::ReplyToReview => ("POST", "/api/share-links/{id}/reviews/{rid}/replies"),
            Self::EditReply => ("PATCH", REPLY),
            Self::DeleteReply => ("DELETE", REPLY),
            Self::MarkSeen => ("PUT", "/api/share-links/{id}/seen"),
            Self::PassTurn => ("POST", "/api/share-links/{id}/turn"),
            Self::AcceptReview => ("POST", "/api/share-links/{id}/reviews/{rid}/accept"),
            Self::RejectReview => ("POST", "/api/share-links/{id}/reviews/{rid}/reject"),
            Self::ResolveReview => ("POST", "/api/share-links/{id}/reviews/{rid}/resolve"),
            Self::ReopenReview => ("POST", "/api/share-links/{id}/reviews/{rid}/reopen"),
            Self::DecideReviews => ("POST", "/api/share-links/{id}/decisions"),
            Self::UndoDecision => ("POST", "/api/share-links/{id}/decisions/{did}/undo"),
            Self::Subscribe => ("POST", "/api/push-subscriptions"),
            Self::Unsubscribe => ("DELETE", "/api/push-subscriptions/{id}"),
            Self::EndSession => ("DELETE", "/api/admin/sessions/{session_id}"),
            Self::RevokeForAdmin => ("DELETE", "/api/admin/share-links/{id}"),
            Self::SetHandle => ("PUT", "/api/me/address"),
            Self::SetReminders => ("PUT", "/api/me/reminders"),
            Self::RenewAddress => ("POST", "/api/me/address/renew"),
            Self::FindPerson => ("POST", "/api/people/find"),
            Self::SendRequest => ("POST", "/api/review-requests"),
            Self::AcceptRequest => ("POST", "/api/review-requests/{id}/accept"),
            Self::DeclineRequest => ("POST", "/api/review-requests/{id}/decline"),
            Self::DeclineAllRequests => ("POST", "/api/review-requests/decline-all"),
            Self::WithdrawRequest => ("POST", "/api/review-requests/{id}/withdraw"),
            Self::RemovePartner => ("DELETE", "/api/partners/{user_id}"),
            Self::CreateOffer => ("POST", "/api/review-offers"),
            Self::CloseOffer => ("POST", "/api/review-offers/{id}/close"),
            Self::ClaimOffer => ("POST", "/api/review-offers/{id}/claims"),
            Self::EndClaim => ("DELETE", CLAIM),
            Self::AcceptClaim => ("POST", "/api/review-offers/{id}/claims/{cid}/accept"),
        }
    }

    /// Whether no other request shows what the operation stores: nothing, or the row of a code.
    pub(crate) fn is_stateless(self) -> bool {
        matches!(
            self,
            Self::EnterAsGuest
                | Self::EnterByCode
                | Self::CreateCode
                | Self::CheckInvite
                | Self::FindPerson
                | Self::Leave
        )
    }

    /// Whether the operation concerns two users and no share link.
    pub(crate) fn is_about_people(self) -> bool {
        matches!(
            self,
            Self::SetHandle
                | Self::SetReminders
                | Self::RenewAddress
                | Self::FindPerson
                | Self::SendRequest
                | Self::AcceptRequest
                | Self::DeclineRequest
                | Self::DeclineAllRequests
                | Self::WithdrawRequest
                | Self::RemovePartner
        )
    }

    /// Whether the operation sends an event to sockets.
    pub(crate) fn concerns_sockets(self) -> bool {
        let is_unannounced = matches!(self, Self::NameVersion | Self::MarkSeen);
        !self.is_stateless() && !self.needs_no_seat() && !is_unannounced
    }

    /// Whether the operation closes sockets.
    pub(crate) fn ends_sockets(self) -> bool {
        matches!(self, Self::RevokeShareLink | Self::RevokeForAdmin | Self::DeleteDocument)
            || self.ends_the_reviewers_socket()
    }

    /// Whether the operation closes the reviewer's socket alone.
    pub(crate) fn ends_the_reviewers_socket(self) -> bool {
        matches!(
            self,
            Self::RemoveReviewer | Self::ReplaceReviewer | Self::LeaveLink | Self::EndSession
        )
    }

    /// Whether the operation changes a reply of the writer.
    pub(crate) fn is_about_a_reply(self) -> bool {
        matches!(self, Self::EditReply | Self::DeleteReply)
    }

    /// Whether the operation concerns who is a member of a share link, or a member's name.
    pub(crate) fn is_about_members(self) -> bool {
        matches!(
            self,
            Self::RenameGuest
                | Self::RenewInvite
                | Self::RemoveReviewer
                | Self::ReplaceReviewer
                | Self::LeaveLink
        )
    }

    /// Whether the operation is about an offer or its claim.
    pub(crate) fn is_about_an_offer(self) -> bool {
        matches!(
            self,
            Self::CreateOffer
                | Self::CloseOffer
                | Self::ClaimOffer
                | Self::EndClaim
                | Self::AcceptClaim
        )
    }

    pub(crate) fn needs_no_seat(self) -> bool {
        let needs_none = matches!(
            self,
            Self::EnterAsGuest
                | Self::EnterByCode
                | Self::CreateCode
                | Self::RenameGuest
                | Self::CheckInvite
                | Self::RenewInvite
                | Self::Leave
                | Self::CreateDocument
                | Self::FindOrCreateDocument
                | Self::ImportDocument
                | Self::RenameDocument
                | Self::ShareDocument
                | Self::JoinShareLink
                | Self::PurgeDocument
                | Self::RestoreDocument
                | Self::Subscribe
                | Self::Unsubscribe
        );
        needs_none || self.is_about_people() || self.is_about_an_offer()
    }

    /// Whether the writer has decided the review before.
    pub(crate) fn is_about_a_decided_one(self) -> bool {
        matches!(self, Self::ReopenReview | Self::UndoDecision)
    }

    /// Whether the writer's socket has the effect while the reviewer sends the request.
    pub(crate) fn is_shown_to_the_writer(self) -> bool {
        self.is_the_reviewers() && !self.ends_the_reviewers_socket()
    }

    /// Whether the reviewer sends the request.
    pub(crate) fn is_the_reviewers(self) -> bool {
        matches!(
            self,
            Self::CreateReview
                | Self::Suggest
                | Self::EditReview
                | Self::ReplyToReview
                | Self::DeleteReview
                | Self::JoinShareLink
                | Self::LeaveLink
                | Self::ClaimOffer
        )
    }
}
