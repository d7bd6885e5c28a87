//! The text of an imported file, read under a permit of its sender.

use bytes::Bytes;

use crate::bounds::permits::Requester;
use crate::exports::build::Exports;
use crate::exports::error::ExportError;
use crate::files::error::ImportError;
use crate::files::import::word_text::Imported;
use crate::files::import::{ImportFormat, read};
use crate::rooms::RoomError;
use crate::seats::SeatError;

impl Exports {
    /// [`ExportError::Session`]: too many requests wait.
    pub async fn text_of(
        &self,
        format: ImportFormat,
        bytes: Bytes,
        requester: &Requester,
    ) -> Result<Imported, ExportError> {
        let text_max = self.texts.bytes_max();
        let reading = self.texts.with_permit(requester, move || read(format, &bytes, text_max));
        match reading.await {
            Ok(read) => Ok(read?),
            Err(RoomError::Unreadable) => {
                Err(ImportError::Unreadable("this server failed at it").into())
            }
            Err(error) => Err(SeatError::from(error).into()),
        }
    }
}
