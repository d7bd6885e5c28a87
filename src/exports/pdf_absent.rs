//! In place of [`pdf`](super::pdf) in a server that is built without that feature.

use crate::domain::export::ExportFailure;
use crate::exports::gauge::Gauge;
use crate::exports::paper::Paper;
use crate::exports::pdf::fonts::Fonts;

/// Renders no file: there are no fonts.
///
/// # Errors
///
/// None: no caller has [`Fonts`].
pub(crate) fn render(_: &Paper, fonts: &Fonts, _: &Gauge) -> Result<Vec<u8>, ExportFailure> {
    match *fonts {}
}

/// The fonts of PDFs.
pub(crate) mod fonts {
    /// There are none.
    #[derive(Debug)]
    pub(crate) enum Fonts {}
}

/// The files of fonts.
pub(crate) mod font_files {
    use std::path::{Path, PathBuf};

    use crate::exports::pdf::fonts::Fonts;

    /// Reads no font.
    ///
    /// # Errors
    ///
    /// Always.
    pub(crate) fn load(_: &[PathBuf]) -> Result<Fonts, String> {
        Err("the server was built without the feature `pdf`".to_owned())
    }

    /// Whether a file can be used as a font: none can.
    pub(crate) fn is_font(_: &Path) -> bool {
        false
    }
}
