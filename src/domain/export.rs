//! Exports: the formats of a document as a file.

use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// The format of an export.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub enum ExportFormat {
    /// Word (OOXML), with comments and tracked changes.
    Docx,
    /// A web page in one file.
    Html,
    /// Markdown, with footnotes.
    #[strum(serialize = "md")]
    Markdown,
    /// Plain text, with footnotes.
    #[strum(serialize = "txt")]
    Text,
    /// Typeset pages, with notes beside the text.
    Pdf,
}

impl ExportFormat {
    /// Every format.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The name in the API and in the database; also the extension of the file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
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

/// Why a build produced no file. The database stores it, so that every caller reads the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
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
        self.into()
    }

    /// Parses the failure from its name. A server of a later version may store another name.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        name.parse().unwrap_or(Self::Unavailable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for format in ExportFormat::ALL {
            assert_eq!(format.as_str().parse(), Ok(*format));
        }
        for name in ["", "DOCX", "odt", "docx "] {
            assert!(name.parse::<ExportFormat>().is_err(), "{name}");
        }
        for failure in [ExportFailure::TooLarge, ExportFailure::TooCostly, ExportFailure::Damaged] {
            assert_eq!(ExportFailure::from_name(failure.as_str()), failure);
        }
        assert_eq!(ExportFailure::from_name("later"), ExportFailure::Unavailable);
    }
}
