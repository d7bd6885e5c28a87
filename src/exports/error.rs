//! Failures of exports and imports.

use std::time::Duration;

use crate::domain::export::ExportFailure;
use crate::files::error::ImportError;
use crate::seats::SeatError;
use crate::storage::error::StorageError;

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("there is no such share link")]
    NotFound,
    #[error("format is docx, html, md, txt or pdf, and reviews is 1 or 0")]
    UnknownFormat,
    /// The format needs a part of the program or a font that this server does not have.
    #[error(
        "this server makes no PDF: it needs the feature `pdf` and a font (exports.fonts), and its log \
         says what is missing; open the document's page and print it to a file"
    )]
    NotAvailable,
    #[error("too many files at once; try again later")]
    TooFast(Duration),
    #[error(transparent)]
    Failed(#[from] ExportFailure),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(transparent)]
    Session(#[from] SeatError),
}

impl From<StorageError> for ExportError {
    fn from(error: StorageError) -> Self {
        Self::Session(error.into())
    }
}
