//! In place of [`pdf`](super::pdf) in a server that is built without that feature.

use crate::build_progress::BuildProgress;
use crate::pdf::fonts::Fonts;
use crate::render_model::RenderModel;
use galley_domain::export::ExportFailure;

/// No caller exists: [`Fonts`] has no value.
pub fn render(_: &RenderModel, fonts: &Fonts, _: &BuildProgress) -> Result<Vec<u8>, ExportFailure> {
    match *fonts {}
}

pub mod fonts {
    #[derive(Debug)]
    pub enum Fonts {}
}

pub mod font_files {
    use std::path::{Path, PathBuf};

    use crate::pdf::fonts::Fonts;

    pub fn load(_: &[PathBuf]) -> Result<Fonts, String> {
        Err("the server was built without the feature `pdf`".to_owned())
    }

    pub fn is_font(_: &Path) -> bool {
        false
    }
}
