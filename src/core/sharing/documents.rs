//! Documents: create, list and rename, for their owners.

use std::net::IpAddr;

use bytes::Bytes;
use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, UserId};
use crate::domain::line::Line;
use crate::domain::section::{NewSection, SectionFault, StoredSection};
use crate::domain::text::{count_characters, normalize_line_breaks};
use crate::domain::user::User;
use crate::sharing::{Sharing, SharingError};
use crate::storage::documents::{Document, NewDocument};
use crate::storage::pagination::Page;
use crate::yjs::log::{UpdateLog, server_client_id};
use crate::yjs::sections::anchor_first_sections;
use crate::yjs::text::document_from_text;

impl Sharing {
    /// Line breaks of `text` become line feeds. The creations of one `address` follow one another.
    pub async fn create_document(
        &self,
        owner: &User,
        address: IpAddr,
        title: &str,
        text: String,
        sections: Vec<NewSection>,
        now: DateTime<Utc>,
    ) -> Result<Document, SharingError> {
        let title = Line::Title.parse(title)?;
        if self.document_bytes < text.len() {
            return Err(SharingError::TooLong);
        }
        let permit = self.permits.acquire(&owner.id, address).await?;
        // Megabytes of text would block this worker thread. The blocking work owns the permit, so
        // the permit outlasts a cancelled request: otherwise sixteen clients would use all processors.
        let work = tokio::task::spawn_blocking(move || (first_update(&text, sections), permit));
        let (first, _permit) = work.await?;
        let (update, characters, sections) = first?;
        if self.document_bytes < update.len() {
            return Err(SharingError::TooLong);
        }
        if !self.storage.has_room() {
            return Err(SharingError::StorageSpent);
        }
        self.quota.admit(self.storage.usage_of(&owner.id).await?, update.len())?;
        let id = DocumentId::generate();
        let owner = owner.clone();
        let new = NewDocument { id, title, owner, update, characters, sections, now };
        Ok(self.storage.create_document(&new).await?)
    }

    /// The last updated first.
    pub async fn documents_of(
        &self,
        owner: &UserId,
        page: &Page<DocumentId>,
    ) -> Result<Vec<Document>, SharingError> {
        Ok(self.storage.documents_of(owner, page).await?)
    }

    /// [`SharingError::NotFound`] also for another owner, [`SharingError::Deleted`] in the caller's bin.
    pub async fn document(
        &self,
        caller: &UserId,
        id: DocumentId,
    ) -> Result<Document, SharingError> {
        match self.storage.document(id).await? {
            Some(document) if document.owner.id == *caller => Ok(document),
            Some(_) => Err(NO_DOCUMENT),
            None => Err(self.missing_document(caller, id).await?),
        }
    }

    /// The owner may, and the reviewer of the share link.
    pub async fn may_read(&self, caller: &UserId, id: DocumentId) -> Result<(), SharingError> {
        let Some(document) = self.storage.document(id).await? else {
            return Err(self.missing_document(caller, id).await?);
        };
        if document.owner.id == *caller {
            return Ok(());
        }
        let link = self.storage.link_of(id).await?;
        let reviewer = link.and_then(|link| link.reviewer);
        let is_reviewer = reviewer.is_some_and(|reviewer| reviewer.id == *caller);
        if is_reviewer { Ok(()) } else { Err(NO_DOCUMENT) }
    }

    pub async fn rename_document(
        &self,
        caller: &UserId,
        id: DocumentId,
        title: &str,
        now: DateTime<Utc>,
    ) -> Result<Document, SharingError> {
        let title = Line::Title.parse(title)?;
        self.document(caller, id).await?;
        self.storage.rename_document(id, &title, now).await?.ok_or(NO_DOCUMENT)
    }
}

pub(super) const NO_DOCUMENT: SharingError = SharingError::NotFound("document");

/// The update that writes `text`, its length in characters, and the sections in it. An empty text gives an
/// empty update.
fn first_update(
    text: &str,
    sections: Vec<NewSection>,
) -> Result<(Bytes, i64, Vec<StoredSection>), SectionFault> {
    let text = normalize_line_breaks(text);
    let update = if text.is_empty() {
        Bytes::new()
    } else {
        document_from_text(&text, server_client_id(&UpdateLog::empty()))
    };
    let sections = anchor_first_sections(&update, sections)?;
    Ok((update, count_characters(&text), sections))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yjs::text::Text;

    #[test]
    fn a_created_document_stores_its_text_with_line_feeds() {
        let first = |text| first_update(text, Vec::new());
        let (update, characters, _) = first("지원동기\r\n👩‍👩‍👧 e\u{301}").expect("an update");
        let text = Text::build(&update).expect("a document");
        assert_eq!(text.content(), "지원동기\n👩‍👩‍👧 e\u{301}");
        assert_eq!(characters, 8);
        assert_eq!(first(""), Ok((Bytes::new(), 0, Vec::new())));
    }
}
