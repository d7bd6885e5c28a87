//! All that the server has of a user, as lines of JSON.
//!
//! The stream reads a page, a text or a version at a time, when its reader has taken the one before: it holds no
//! transaction, and ends with its reader. So it is no snapshot: a line has the state of its moment. The last line
//! says that it is whole.

use bytes::Bytes;
use futures_util::stream::{Stream, TryStreamExt as _, try_unfold};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use crate::bounds::permits::Requester;
use crate::domain::ids::{DocumentId, UserId};
use crate::persons::store::{OwnDocument, next_document};
use crate::persons::things::{self, After};
use crate::persons::{Persons, PersonsError};
use crate::rooms::RoomError;
use crate::storage::error::StorageError;
use crate::storage::versions::Version;
use crate::yjs::text::Text;

/// Where an export continues.
enum At {
    Kind(usize, After),
    /// After this document.
    Documents(Option<DocumentId>),
    /// The versions of a document below a number.
    Versions(DocumentId, Option<i64>),
    End,
}

struct Export {
    persons: Persons,
    user: UserId,
    requester: Requester,
    at: At,
    lines: u64,
    _permit: OwnedSemaphorePermit,
}

impl Persons {
    /// Begins an export. Its texts queue under `requester`.
    pub(crate) fn export(
        &self,
        user: UserId,
        requester: Requester,
    ) -> Result<impl Stream<Item = Result<Bytes, StorageError>> + Send + 'static, PersonsError>
    {
        let permit = self.exports.clone().try_acquire_owned().map_err(|_all| PersonsError::Busy)?;
        let at = At::Kind(0, After::default());
        let persons = self.clone();
        let export = Export { persons, user, requester, at, lines: 0, _permit: permit };
        let chunks = try_unfold(export, |mut export| async move {
            let lines = export.next().await?;
            Ok(lines.map(|lines| (lines, export)))
        });
        let text = |lines: Vec<Value>| lines.iter().map(|line| format!("{line}\n")).collect();
        let chunks = chunks.map_ok(text).map_ok(|text: String| Bytes::from(text));
        Ok(chunks.try_filter(|chunk| std::future::ready(!chunk.is_empty())))
    }
}

impl Export {
    /// The next lines, which may be none. `None`: the end is written.
    async fn next(&mut self) -> Result<Option<Vec<Value>>, StorageError> {
        let storage = &self.persons.storage;
        let (lines, at) = match &self.at {
            At::Kind(kind, after) => match things::page(storage, *kind, &self.user, after).await? {
                Some((lines, Some(next))) => (lines, At::Kind(*kind, next)),
                Some((lines, None)) => (lines, At::Kind(kind + 1, After::default())),
                None => (Vec::new(), At::Documents(None)),
            },
            At::Documents(after) => match next_document(storage, &self.user, *after).await? {
                Some(document) => {
                    let line = self.document(&document).await?;
                    (vec![line], At::Versions(document.id, None))
                }
                None => {
                    let end = json!({ "type": "end", "lines": self.lines });
                    (vec![end], At::End)
                }
            },
            At::Versions(document, before) => {
                let versions = storage.versions(*document, 1, *before).await?;
                match versions.into_iter().next() {
                    Some(version) => {
                        let number = version.number;
                        let line = self.version(*document, version).await?;
                        (line.into_iter().collect(), At::Versions(*document, Some(number)))
                    }
                    None => (Vec::new(), At::Documents(Some(*document))),
                }
            }
            At::End => return Ok(None),
        };
        self.at = at;
        self.lines += u64::try_from(lines.len()).unwrap_or_default();
        Ok(Some(lines))
    }

    async fn document(&self, document: &OwnDocument) -> Result<Value, StorageError> {
        let texts = &self.persons.texts;
        let text = match texts.read(document.id, &self.requester, Text::content).await {
            Ok(text) => Some(text),
            Err(RoomError::Storage(error)) => return Err(error),
            Err(RoomError::Busy) => return Err(busy()),
            // Damaged, too costly to build, or deleted meanwhile: the versions follow.
            Err(_unreadable) => None,
        };
        let OwnDocument { id, title, created_at, deleted_at } = document;
        Ok(json!({ "type": "document", "id": id, "title": title, "created_at": created_at,
            "deleted_at": deleted_at, "text": text }))
    }

    /// `None`: it is deleted meanwhile.
    async fn version(
        &self,
        document: DocumentId,
        version: Version,
    ) -> Result<Option<Value>, StorageError> {
        let stored = self.persons.storage.version(document, version.id).await?;
        let Some((Version { id, number, label, created_at, .. }, packed)) = stored else {
            return Ok(None);
        };
        let texts = &self.persons.texts;
        let text = match texts.with_permit(&self.requester, move || packed.unpack()).await {
            Ok(unpacked) => unpacked.ok(),
            Err(RoomError::Busy) => return Err(busy()),
            Err(_panicked) => None,
        };
        Ok(Some(json!({ "type": "version", "id": id, "document_id": document, "number": number,
            "label": label, "created_at": created_at, "text": text })))
    }
}

/// The reader gets no end line.
fn busy() -> StorageError {
    StorageError::Unavailable("too many requests wait for a text".to_owned())
}
