//! The contract of the failures of the core's services.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::json;

use crate::domain::section::SectionFault;
use crate::http::error::{
    Contract, Failure, Members, PRECONDITION_FAILED, STORAGE_FULL, UNAVAILABLE, member,
};
use crate::reviews::ReviewError;
use crate::rooms::RoomError;
use crate::seats::SeatError;
use crate::sharing::SharingError;
use crate::storage::error::StorageError;

pub(crate) const DOCUMENT_TOO_LARGE: Contract =
    (StatusCode::CONFLICT, "document-too-large", "The document is as large as it may become");

impl Failure for SeatError {
    fn contract(&self) -> Contract {
        use StatusCode as Is;
        match self {
            Self::Room(RoomError::NoSuchDocument) => (Is::NOT_FOUND, "not-found", "Not found"),
            Self::Room(RoomError::RoomFull) => (Is::SERVICE_UNAVAILABLE, "room-full", "Try again"),
            Self::Room(RoomError::Unreadable) => {
                (Is::INTERNAL_SERVER_ERROR, "document-damaged", "The stored document is damaged")
            }
            Self::Room(RoomError::TooCostly) => {
                (Is::SERVICE_UNAVAILABLE, "text-too-costly", "The text takes too long to read")
            }
            Self::Room(RoomError::StorageSpent) => STORAGE_FULL,
            Self::Room(RoomError::Busy | RoomError::MemorySpent | RoomError::Storage(_))
            | Self::Locks(_) => UNAVAILABLE,
        }
    }
}

impl Failure for StorageError {
    fn contract(&self) -> Contract {
        SeatError::from(self.clone()).contract()
    }
}

impl Failure for ReviewError {
    fn contract(&self) -> Contract {
        use StatusCode as Is;
        match self {
            Self::NotFound(_) => (Is::NOT_FOUND, "not-found", "Not found"),
            Self::SeatNotHeld(_) => (Is::FORBIDDEN, "seat-not-held", "Seat not held"),
            Self::NotAuthor => (Is::FORBIDDEN, "not-author", "Not the author"),
            Self::AnchorMismatch => {
                (Is::UNPROCESSABLE_ENTITY, "anchor-mismatch", "The text there is not the quote")
            }
            Self::AnchorMoved => (Is::CONFLICT, "anchor-moved", "The quoted text is gone"),
            Self::Moved => (Is::CONFLICT, "moved", "The quoted text may have moved"),
            Self::VersionMismatch { .. } => PRECONDITION_FAILED,
            Self::Refused(_) => (Is::CONFLICT, "not-in-this-state", "Not in this state"),
            Self::Empty(_)
            | Self::NothingToReplace
            | Self::TooLong(_)
            | Self::TypedParts
            | Self::Selection(_) => (Is::UNPROCESSABLE_ENTITY, "invalid", "Invalid"),
            Self::Full(_) => (Is::CONFLICT, "too-many", "Too many"),
            Self::TooFast(_) => (Is::TOO_MANY_REQUESTS, "too-many-requests", "Too many requests"),
            Self::TooLarge(_) => DOCUMENT_TOO_LARGE,
            Self::Batch => (Is::PAYLOAD_TOO_LARGE, "too-large", "Too large"),
            Self::UndoConflict(_) => {
                (Is::CONFLICT, "undo-conflict", "The text there has changed since")
            }
            Self::UndoExpired => (Is::CONFLICT, "undo-expired", "Too late to undo"),
            Self::AlreadyUndone => (Is::CONFLICT, "already-undone", "Undone already"),
            Self::Contended => (Is::CONFLICT, "text-changing", "The text is changing"),
            Self::Session(error) => error.contract(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooFast(retry_after) => Some(*retry_after),
            _other => None,
        }
    }

    fn members(&self) -> Members {
        match self {
            // The reviews that prevent an undo.
            Self::UndoConflict(changed) => member("reviews", json!(changed)),
            _other => Members::new(),
        }
    }
}

impl Failure for SharingError {
    fn contract(&self) -> Contract {
        use StatusCode as Is;
        match self {
            Self::NotFound(_) | Self::Deleted(_) => (Is::NOT_FOUND, "not-found", "Not found"),
            Self::NotTheWriter => (Is::FORBIDDEN, "not-the-writer", "Not the writer"),
            Self::WrongInvite => (Is::FORBIDDEN, "wrong-invite", "Wrong invite"),
            Self::AlreadyWriter => (Is::CONFLICT, "already-writer", "Already the writer"),
            Self::NoReviewer => (Is::NOT_FOUND, "no-reviewer", "There is no reviewer"),
            Self::NotAPartner => (Is::NOT_FOUND, "not-a-partner", "Not a partner"),
            Self::ReviewerExists => (Is::CONFLICT, "reviewer-exists", "There is a reviewer"),
            Self::Section(SectionFault::NotFound(_)) => {
                (Is::UNPROCESSABLE_ENTITY, "section-not-found", "There is no such section")
            }
            Self::Title(_) | Self::Section(_) => (Is::UNPROCESSABLE_ENTITY, "invalid", "Invalid"),
            Self::SectionsChanged => PRECONDITION_FAILED,
            Self::TooLong => (Is::PAYLOAD_TOO_LARGE, "too-large", "Too large"),
            Self::ExternalIdTaken => {
                (Is::CONFLICT, "external-id-taken", "The external id is in use")
            }
            Self::InBin => (Is::CONFLICT, "in-bin", "The document is in the bin"),
            Self::QuotaSpent(_) => (Is::CONFLICT, "quota-spent", "The quota is spent"),
            Self::StorageSpent => STORAGE_FULL,
            Self::Busy => UNAVAILABLE,
            Self::Storage(error) => error.contract(),
            Self::Worker(_) => (Is::INTERNAL_SERVER_ERROR, "internal", "Our fault"),
        }
    }

    fn members(&self) -> Members {
        let Self::Deleted(deleted) = self else { return Members::new() };
        let (deletion, purge_at) = (&deleted.deletion, deleted.purge_at);
        let deletion = json!({ "by": deletion.by, "at": deletion.at, "purge_at": purge_at });
        member("deleted", deletion)
    }
}
