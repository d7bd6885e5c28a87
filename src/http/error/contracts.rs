//! The contract of the failures of reviews, versions, sessions and rooms.

use axum::http::StatusCode;

use crate::http::error::Contract;
use crate::reviews::ReviewError;
use crate::rooms::RoomError;
use crate::seats::SeatError;
use crate::versions::VersionError;

pub(super) const PRECONDITION_FAILED: Contract =
    (StatusCode::PRECONDITION_FAILED, "version-mismatch", "It has changed");

pub(super) const STORAGE_FULL: Contract =
    (StatusCode::INSUFFICIENT_STORAGE, "storage-full", "The server has no room for anything new");

pub(super) const DOCUMENT_TOO_LARGE: Contract =
    (StatusCode::CONFLICT, "document-too-large", "The document is as large as it may become");

pub(super) fn review_contract(error: &ReviewError) -> Contract {
    use StatusCode as Is;
    match error {
        ReviewError::NotFound(_) => (Is::NOT_FOUND, "not-found", "Not found"),
        ReviewError::SeatNotHeld(_) => (Is::FORBIDDEN, "seat-not-held", "Seat not held"),
        ReviewError::NotAuthor => (Is::FORBIDDEN, "not-author", "Not the author"),
        ReviewError::AnchorMismatch => {
            (Is::UNPROCESSABLE_ENTITY, "anchor-mismatch", "The text there is not the quote")
        }
        ReviewError::AnchorMoved => (Is::CONFLICT, "anchor-moved", "The quoted text is gone"),
        ReviewError::VersionMismatch { .. } => PRECONDITION_FAILED,
        ReviewError::Refused(_) => (Is::CONFLICT, "not-in-this-state", "Not in this state"),
        ReviewError::Empty(_)
        | ReviewError::NothingToReplace
        | ReviewError::TooLong(_)
        | ReviewError::Control(_)
        | ReviewError::Selection(_) => (Is::UNPROCESSABLE_ENTITY, "invalid", "Invalid"),
        ReviewError::Full(_) => (Is::CONFLICT, "too-many", "Too many"),
        ReviewError::TooFast(_) => {
            (Is::TOO_MANY_REQUESTS, "too-many-requests", "Too many requests")
        }
        ReviewError::TooLarge(_) => DOCUMENT_TOO_LARGE,
        ReviewError::UndoConflict(_) => {
            (Is::CONFLICT, "undo-conflict", "The text there has changed since")
        }
        ReviewError::UndoExpired => (Is::CONFLICT, "undo-expired", "Too late to undo"),
        ReviewError::AlreadyUndone => (Is::CONFLICT, "already-undone", "Undone already"),
        ReviewError::Contended => (Is::CONFLICT, "text-changing", "The text is changing"),
        ReviewError::Session(error) => session_contract(error),
    }
}

pub(super) fn version_contract(error: &VersionError) -> Contract {
    use StatusCode as Is;
    match error {
        VersionError::NotFound(_) => (Is::NOT_FOUND, "not-found", "Not found"),
        VersionError::SeatNotHeld => (Is::FORBIDDEN, "seat-not-held", "Seat not held"),
        VersionError::Label(_) => (Is::UNPROCESSABLE_ENTITY, "invalid", "Invalid"),
        VersionError::Full => (Is::CONFLICT, "too-many", "Too many"),
        VersionError::Contended => (Is::CONFLICT, "text-changing", "The text is changing"),
        VersionError::TooLarge => DOCUMENT_TOO_LARGE,
        VersionError::Session(error) => session_contract(error),
    }
}

pub(super) fn session_contract(error: &SeatError) -> Contract {
    use StatusCode as Is;
    match error {
        SeatError::Room(RoomError::NoSuchDocument) => (Is::NOT_FOUND, "not-found", "Not found"),
        SeatError::Room(RoomError::RoomFull) => (Is::SERVICE_UNAVAILABLE, "room-full", "Try again"),
        SeatError::Room(RoomError::Unreadable) => {
            (Is::INTERNAL_SERVER_ERROR, "document-damaged", "The stored document is damaged")
        }
        SeatError::Room(RoomError::TooCostly) => {
            (Is::SERVICE_UNAVAILABLE, "text-too-costly", "The text takes too long to read")
        }
        SeatError::Room(RoomError::StorageSpent) => STORAGE_FULL,
        SeatError::Room(RoomError::Busy | RoomError::MemorySpent | RoomError::Storage(_))
        | SeatError::Locks(_) => (Is::SERVICE_UNAVAILABLE, "unavailable", "Try again"),
    }
}
