//! Failures of imports.

/// Nothing is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    #[error("send a .docx, .md or .txt file, with its Content-Type or its name")]
    Format,
    #[error("the file cannot be read: {0}")]
    Unreadable(&'static str),
    #[error("the file is larger than this server takes: {0}")]
    TooLarge(&'static str),
    #[error("its text is longer than a document may be")]
    TextTooLong,
}
