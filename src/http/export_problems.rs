//! Problems of exports and imports.

use axum::http::StatusCode;

use crate::domain::export::ExportFailure;
use crate::exports::error::{ExportError, ImportError};
use crate::rooms::RoomError;
use crate::seats::SeatError;

/// Status, name and title.
type Contract = (StatusCode, &'static str, &'static str);

/// The problem of a failure; `of_session` maps those of rooms, locks and storage.
pub(super) fn contract(
    error: &ExportError,
    of_session: impl Fn(&SeatError) -> Contract,
) -> Contract {
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
            of_session(&SeatError::Room(RoomError::TooCostly))
        }
        ExportError::Failed(ExportFailure::Damaged) => {
            of_session(&SeatError::Room(RoomError::Unreadable))
        }
        ExportError::Failed(ExportFailure::Unavailable) => {
            of_session(&SeatError::Room(RoomError::Busy))
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
        ExportError::Session(error) => of_session(error),
    }
}
