//! The text of an imported file, read under a permit of its sender.

use bytes::Bytes;

use crate::exports::build::Exports;
use crate::exports::error::ExportError;
use crate::files::error::ImportError;
use crate::files::import::{ImportFormat, read};
use crate::files::word_text::Imported;
use crate::rooms::permits::Requester;
use crate::seats::SeatError;

impl Exports {
    /// [`ExportError::Session`]: too many requests wait.
    pub async fn text_of(
        &self,
        format: ImportFormat,
        bytes: Bytes,
        requester: &Requester,
    ) -> Result<Imported, ExportError> {
        let shared = &self.reviews.seats.shared;
        let permit = shared.rooms.permit(requester).await.map_err(SeatError::from)?;
        let text_max = shared.limits.document_bytes;
        let reading = shared.tasks.spawn_blocking(move || {
            let _permit = permit;
            read(format, &bytes, text_max)
        });
        let read = reading.await.map_err(|panicked| {
            tracing::error!(%panicked, "a file cannot be imported");
            ImportError::Unreadable("this server failed at it")
        });
        Ok(read??)
    }
}
