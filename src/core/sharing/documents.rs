//! Documents: create, list and rename, for their owners.

use std::net::IpAddr;

use bytes::Bytes;
use chrono::{DateTime, Utc};

use crate::domain::anchor::Position;
use crate::domain::ids::{DocumentId, ExternalId, UserId};
use crate::domain::line::Line;
use crate::domain::section::{NewSection, SectionFault, StoredSection};
use crate::domain::text::{count_characters, incoming};
use crate::domain::user::User;
use crate::sharing::{Sharing, SharingError};
use crate::storage::documents::{Document, NewDocument};
use crate::storage::error::StorageError;
use crate::storage::pagination::Page;
use crate::yjs::log::{UpdateLog, server_client_id};
use crate::yjs::sections::anchor_first_sections;
use crate::yjs::text::document_from_text;

/// A new document, as its owner describes it.
#[derive(Debug, Default)]
pub struct DocumentDraft {
    pub title: String,
    pub text: String,
    pub sections: Vec<NewSection>,
    pub external_id: Option<ExternalId>,
}

impl Sharing {
    /// The document has the clean `text`. The creations of one `address` follow one another.
    pub async fn create_document(
        &self,
        owner: &User,
        address: IpAddr,
        draft: DocumentDraft,
        now: DateTime<Utc>,
    ) -> Result<Document, SharingError> {
        let DocumentDraft { title, text, sections, external_id } = draft;
        let title = Line::Title.parse(&title)?;
        if self.document_bytes < text.len() {
            return Err(SharingError::TooLong);
        }
        let permit = self.permits.acquire(&owner.id, address).await?;
        // Megabytes of text would block this worker thread. The blocking work owns the permit, so
        // the permit outlasts a cancelled request: otherwise sixteen clients would use all processors.
        #[expect(clippy::disallowed_methods, reason = "under the permit")]
        let work = self.tasks.spawn_blocking(move || (first_update(&text, sections), permit));
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
        let new = NewDocument { id, title, external_id, owner, update, characters, sections, now };
        match (self.storage.create_document(&new).await, &new.external_id) {
            (Err(StorageError::Refused(_)), Some(_)) => Err(SharingError::ExternalIdTaken),
            (created, _) => Ok(created?),
        }
    }

    /// The owner's document with the external id of `draft`, or a new one; true: it is new. A second call
    /// changes nothing.
    pub async fn find_or_create_document(
        &self,
        owner: &User,
        address: IpAddr,
        external_id: ExternalId,
        draft: DocumentDraft,
        now: DateTime<Utc>,
    ) -> Result<(Document, bool), SharingError> {
        if let Some(found) = self.external_document(owner, &external_id).await? {
            return Ok((found, false));
        }
        let draft = DocumentDraft { external_id: Some(external_id.clone()), ..draft };
        match self.create_document(owner, address, draft, now).await {
            // Another call was faster.
            Err(SharingError::ExternalIdTaken) => {
                let found = self.external_document(owner, &external_id).await?;
                found.map(|found| (found, false)).ok_or(SharingError::ExternalIdTaken)
            }
            created => Ok((created?, true)),
        }
    }

    async fn external_document(
        &self,
        owner: &User,
        id: &ExternalId,
    ) -> Result<Option<Document>, SharingError> {
        match self.storage.external_document(&owner.id, id).await? {
            Some((_, true)) => Err(SharingError::InBin),
            found => Ok(found.map(|(document, _)| document)),
        }
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
    let clean = incoming(text);
    let is_clean = clean == text;
    let placed = sections.into_iter().map(|section| match section.at {
        Some(Position::Offset(offset)) if !is_clean => {
            NewSection { at: Some(Position::Offset(clean_offset(text, offset))), ..section }
        }
        _ => section,
    });
    let (text, sections) = (clean, placed.collect());
    let update = if text.is_empty() {
        Bytes::new()
    } else {
        document_from_text(&text, server_client_id(&UpdateLog::empty()))
    };
    let sections = anchor_first_sections(&update, sections)?;
    Ok((update, count_characters(&text), sections))
}

/// The UTF-16 offset in the clean text of an offset in the text as it came.
fn clean_offset(text: &str, offset: u32) -> u32 {
    let units = |text: &str| u32::try_from(text.encode_utf16().count()).unwrap_or(u32::MAX);
    let mut left = offset;
    let is_before = |c: &char| {
        let is_before = 0 < left;
        left = left.saturating_sub(if *c < '\u{10000}' { 1 } else { 2 });
        is_before
    };
    let before: String = text.chars().take_while(is_before).collect();
    // Beyond the text there is no line.
    if units(&before) < offset { u32::MAX } else { units(&incoming(&before)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::section::SectionSettings;
    use crate::yjs::text::Text;

    #[test]
    fn a_created_document_stores_its_clean_text() {
        let first = |text| first_update(text, Vec::new());
        let (update, characters, _) =
            first("\u{FEFF}지원동기\r\n👩‍👩‍👧\u{B}e\u{301}").expect("an update");
        let text = Text::build(&update).expect("a document");
        assert_eq!(text.content(), "지원동기\n👩‍👩‍👧\né");
        assert_eq!(characters, 8);
        assert_eq!(first(""), Ok((Bytes::new(), 0, Vec::new())));
        // The offset names a line of the text as it came.
        let came = "\u{1100}\u{1161}\r\n\r\n1. 지원동기\r\n2. 성격";
        let section = |at| NewSection {
            title: "x".to_owned(),
            at: Some(Position::Offset(at)),
            settings: SectionSettings::default(),
        };
        let start_of = |at| {
            let (_, _, stored) = first_update(came, vec![section(at)])?;
            Ok(stored.first().map(|section| section.origin.range.start))
        };
        assert_eq!((start_of(7), start_of(16)), (Ok(Some(3)), Ok(Some(11))));
        assert_eq!(start_of(99), Err(SectionFault::NotFound("x".to_owned())));
    }
}
