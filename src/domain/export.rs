//! Exports: the formats of a document as a file.

use std::fmt;

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExportFormat {
    /// Word (OOXML), with comments and tracked changes.
    Docx,
    /// A web page in one file.
    Html,
    /// Markdown, with footnotes.
    Markdown,
    /// Plain text, with footnotes.
    Text,
    /// Typeset pages, with notes beside the text.
    Pdf,
}

impl ExportFormat {
    /// Every format.
    pub const ALL: [Self; 5] = [Self::Docx, Self::Html, Self::Markdown, Self::Text, Self::Pdf];

    /// The name in the API and in the database; also the extension of the file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Docx => "docx",
            Self::Html => "html",
            Self::Markdown => "md",
            Self::Text => "txt",
            Self::Pdf => "pdf",
        }
    }

    /// Parses the format from its name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }

    /// The media type of the file.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            Self::Html => "text/html; charset=utf-8",
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Text => "text/plain; charset=utf-8",
            Self::Pdf => "application/pdf",
        }
    }
}

impl fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a build produced no file. The database stores it, so that every caller reads the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportFailure {
    /// The file would exceed its bound.
    #[error("the file would be larger than this server builds")]
    TooLarge,
    /// The text takes too long to build.
    #[error("the document's text takes too long to build")]
    TooCostly,
    /// The stored document is damaged.
    #[error("the stored document cannot be read")]
    Damaged,
    /// A dependency of the server failed, or too many builds wait.
    #[error("the file could not be built now")]
    Unavailable,
}

impl ExportFailure {
    /// The name in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too-large",
            Self::TooCostly => "too-costly",
            Self::Damaged => "damaged",
            Self::Unavailable => "unavailable",
        }
    }

    /// Parses the failure from its name. A server of a later version may store another name.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let stored = [Self::TooLarge, Self::TooCostly, Self::Damaged];
        stored.into_iter().find(|it| it.as_str() == name).unwrap_or(Self::Unavailable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for format in ExportFormat::ALL {
            assert_eq!(ExportFormat::from_name(format.as_str()), Some(format));
        }
        for name in ["", "DOCX", "odt", "docx "] {
            assert_eq!(ExportFormat::from_name(name), None, "{name}");
        }
        for failure in [ExportFailure::TooLarge, ExportFailure::TooCostly, ExportFailure::Damaged] {
            assert_eq!(ExportFailure::from_name(failure.as_str()), failure);
        }
        assert_eq!(ExportFailure::from_name("later"), ExportFailure::Unavailable);
    }
}
