//! Failures of imports.

/// Failures of an import. Nothing is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The file has no known format.
    #[error("send a .docx, .md or .txt file, with its Content-Type or its name")]
    Format,
    /// The file is damaged or hostile.
    #[error("the file cannot be read: {0}")]
    Unreadable(&'static str),
    /// The file or its content exceeds a bound.
    #[error("the file is larger than this server takes: {0}")]
    TooLarge(&'static str),
    /// The text exceeds the limit of a document.
    #[error("its text is longer than a document may be")]
    TextTooLong,
}
