//! Failures of imports.

/// Nothing is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    #[error("send a .docx, .md or .txt file, with its Content-Type or its name")]
    Format,
    #[error("the file cannot be read: {0}")]
    Unreadable(&'static str),
    /// The name of the encoding that the bytes look like.
    #[error(
        "the file cannot be read: it is neither UTF-8, UTF-16 with a byte order mark nor Korean (code page \
         949), and looks like {0}; save it as UTF-8"
    )]
    Encoding(&'static str),
    #[error("the file is larger than this server takes: {0}")]
    TooLarge(&'static str),
    #[error("its text is longer than a document may be")]
    TextTooLong,
}
