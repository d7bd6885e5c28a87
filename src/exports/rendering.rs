//! The rendering of a file on its thread: the format, its fonts, its progress, and its stop flag.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;

use crate::domain::export::{ExportFailure, ExportFormat};
use crate::exports::error::ExportError;
use crate::files::build_progress::BuildProgress;
use crate::files::pdf::font_files::{is_font, load};
use crate::files::pdf::fonts::Fonts;
use crate::files::render_model::RenderModel;
use crate::files::{docx, html, markdown, pdf, text};

/// The fonts of PDFs, read when the first PDF is built. Clones share them.
#[derive(Clone, Debug)]
pub struct PdfFonts(Arc<Files>);

#[derive(Debug)]
struct Files {
    paths: Vec<PathBuf>,
    tasks: TaskTracker,
    /// None: the files cannot be used.
    loaded: OnceCell<Option<Arc<Fonts>>>,
}

impl PdfFonts {
    /// In order of preference.
    #[must_use]
    pub fn new(paths: Vec<PathBuf>, tasks: TaskTracker) -> Self {
        Self(Arc::new(Files { paths, tasks, loaded: OnceCell::new() }))
    }

    /// Whether this server can make a PDF, as far as it knows without reading a font.
    #[must_use]
    pub fn are_there(&self) -> bool {
        match self.0.loaded.get() {
            Some(loaded) => loaded.is_some(),
            None => self.0.paths.iter().any(|path| is_font(path)),
        }
    }

    /// The first caller reads the fonts. [`ExportError::NotAvailable`]: no file can be used, until the
    /// next start.
    pub(crate) async fn load(&self) -> Result<Arc<Fonts>, ExportError> {
        let loaded = self.0.loaded.get_or_init(|| async {
            let files = Arc::clone(&self.0);
            #[expect(clippy::disallowed_methods, reason = "once in a process")]
            let loading = self.0.tasks.spawn_blocking(move || load(&files.paths));
            let loaded = loading.await.unwrap_or_else(|error| Err(error.to_string()));
            let fault = |fault: &String| tracing::warn!("this server makes no PDF: {fault}");
            loaded.inspect_err(fault).ok().map(Arc::new)
        });
        loaded.await.clone().ok_or(ExportError::NotAvailable)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Rendering {
    format: ExportFormat,
    fonts: Option<Arc<Fonts>>,
    progress: Arc<BuildProgress>,
}

impl Rendering {
    pub(crate) async fn new(format: ExportFormat, fonts: &PdfFonts) -> Result<Self, ExportError> {
        let fonts = match format {
            ExportFormat::Pdf => Some(fonts.load().await?),
            _ => None,
        };
        Ok(Self { format, fonts, progress: Arc::default() })
    }

    pub(crate) fn render(&self, model: &RenderModel) -> Result<Vec<u8>, ExportFailure> {
        match (self.format, &self.fonts) {
            (ExportFormat::Docx, _) => docx::render(model),
            (ExportFormat::Html, _) => html::render(model),
            (ExportFormat::Markdown, _) => markdown::render(model),
            (ExportFormat::Text, _) => text::render(model),
            (ExportFormat::Pdf, Some(fonts)) => pdf::render(model, fonts, &self.progress),
            (ExportFormat::Pdf, None) => Err(ExportFailure::Unavailable),
        }
    }

    pub(crate) fn percent(&self) -> u8 {
        self.progress.percent()
    }

    /// Stops the thread when the caller drops the guard: it stopped waiting, or its lock is lost.
    pub(crate) fn stop_on_drop(&self) -> StopOnDrop {
        StopOnDrop(Arc::clone(&self.progress))
    }
}

#[derive(Debug)]
pub(crate) struct StopOnDrop(Arc<BuildProgress>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::labels::Labels;

    fn model(text: &str) -> RenderModel {
        RenderModel {
            title: "자기소개서".to_owned(),
            writer: "Kim".to_owned(),
            text: text.to_owned(),
            notes: Vec::new(),
            labels: Labels::of([text]),
            built_at: chrono::DateTime::UNIX_EPOCH,
        }
    }

    #[tokio::test]
    async fn a_server_without_fonts_makes_every_format_but_pdf() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let broken = folder.path().join("broken.ttf");
        std::fs::write(&broken, [b"\0\x01\0\0".as_slice(), &[7; 5_000]].concat()).expect("a file");
        let paths = vec![folder.path().join("none.ttf"), folder.path().to_owned(), broken];
        let fonts = PdfFonts::new(paths, TaskTracker::new());
        assert_eq!(fonts.are_there(), cfg!(feature = "pdf"), "a font by its first bytes");
        for format in ExportFormat::ALL.iter().copied() {
            let rendering = Rendering::new(format, &fonts).await;
            assert_eq!(rendering.is_err(), format == ExportFormat::Pdf, "{format}");
            let file = rendering.map(|rendering| rendering.render(&model("a")));
            assert!(matches!(file, Ok(Ok(_)) | Err(ExportError::NotAvailable)), "{format}");
        }
        assert!(!fonts.are_there(), "a damaged font is none");
    }

    #[tokio::test]
    async fn a_build_whose_caller_is_gone_stops() {
        let fonts = PdfFonts::new(Vec::new(), TaskTracker::new());
        let rendering = Rendering::new(ExportFormat::Html, &fonts).await.expect("no font needed");
        let guard = rendering.clone().stop_on_drop();
        assert_eq!(rendering.progress.check(), Ok(()));
        drop(guard);
        assert_eq!(rendering.progress.check(), Err(ExportFailure::Unavailable));
    }
}
