//! The contract of the failures of exports and imports.

use axum::http::StatusCode;

use crate::domain::export::ExportFailure;
use crate::exports::error::{ExportError, ImportError};
use crate::http::error::Contract;
use crate::http::error::contracts::session_contract;
use crate::rooms::RoomError;
use crate::seats::SeatError;

/// Status, name and title.
pub(super) fn contract(error: &ExportError) -> Contract {
    use StatusCode as Is;
    match error {
        ExportError::NotFound => (Is::NOT_FOUND, "not-found", "Not found"),
        ExportError::UnknownFormat => {
            (Is::UNPROCESSABLE_ENTITY, "unknown-format", "Unknown format")
        }
        ExportError::NotAvailable => {
            (Is::NOT_IMPLEMENTED, "format-not-available", "This server does not make this format")
        }
        ExportError::TooFast(_) => {
            (Is::TOO_MANY_REQUESTS, "too-many-requests", "Too many requests")
        }
        ExportError::Failed(ExportFailure::TooLarge) => {
            (Is::CONFLICT, "export-too-large", "The file would be too large")
        }
        ExportError::Failed(ExportFailure::TooCostly) => {
            session_contract(&SeatError::Room(RoomError::TooCostly))
        }
        ExportError::Failed(ExportFailure::Damaged) => {
            session_contract(&SeatError::Room(RoomError::Unreadable))
        }
        ExportError::Failed(ExportFailure::Unavailable) => {
            session_contract(&SeatError::Room(RoomError::Busy))
        }
        ExportError::Import(ImportError::Format) => {
            (Is::UNSUPPORTED_MEDIA_TYPE, "import-format", "Unknown kind of file")
        }
        ExportError::Import(ImportError::Unreadable(_)) => {
            (Is::UNPROCESSABLE_ENTITY, "import-unreadable", "The file cannot be read")
        }
        ExportError::Import(ImportError::TooLarge(_)) => {
            (Is::PAYLOAD_TOO_LARGE, "import-too-large", "The file is too large")
        }
        ExportError::Import(ImportError::TextTooLong) => {
            (Is::PAYLOAD_TOO_LARGE, "too-large", "Too large")
        }
        ExportError::Session(error) => session_contract(error),
    }
}
