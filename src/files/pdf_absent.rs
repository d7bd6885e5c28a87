//! In place of [`pdf`](super::pdf) in a server that is built without that feature.

use crate::gauge::Gauge;
use crate::paper::Paper;
use crate::pdf::fonts::Fonts;
use galley_domain::export::ExportFailure;

/// Renders no file: there are no fonts.
///
/// # Errors
///
/// None: no caller has [`Fonts`].
pub fn render(_: &Paper, fonts: &Fonts, _: &Gauge) -> Result<Vec<u8>, ExportFailure> {
    match *fonts {}
}

/// The fonts of PDFs.
pub mod fonts {
    /// There are none.
    #[derive(Debug)]
    pub enum Fonts {}
}

/// The files of fonts.
pub mod font_files {
    use std::path::{Path, PathBuf};

    use crate::pdf::fonts::Fonts;

    /// Reads no font.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn load(_: &[PathBuf]) -> Result<Fonts, String> {
        Err("the server was built without the feature `pdf`".to_owned())
    }

    /// Whether a file can be used as a font: none can.
    pub fn is_font(_: &Path) -> bool {
        false
    }
}
