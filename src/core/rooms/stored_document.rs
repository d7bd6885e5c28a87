//! Tests only: a database with one document and its share link.

use bytes::Bytes;
use chrono::Utc;
use tempfile::TempDir;

use crate::domain::ids::{DocumentId, ShareLinkId};
use crate::domain::user::User;
use crate::storage::Storage;
use crate::storage::documents::NewDocument;
use crate::storage::links::NewShareLink;

/// An empty document of one user with its share link, in a database of its own.
pub(crate) struct StoredDocument {
    _folder: TempDir,
    pub(crate) storage: Storage,
    pub(crate) owner: User,
    pub(crate) document: DocumentId,
    pub(crate) link: ShareLinkId,
}

impl StoredDocument {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite://{}", folder.path().join("galley.db").display());
        let storage = Storage::open(&url).await.expect("a database");
        let owner = User { id: "kim".parse().expect("an id"), name: "Kim".to_owned() };
        let (document, link) = (DocumentId::generate(), ShareLinkId::generate());
        let new = NewDocument {
            external_id: None,
            id: document,
            title: String::new(),
            owner: owner.clone(),
            update: Bytes::new(),
            characters: 0,
            sections: Vec::new(),
            now: Utc::now(),
        };
        storage.create_document(&new).await.expect("a document");
        let new =
            NewShareLink { id: link, document_id: document, invite_hash: [0; 32], now: Utc::now() };
        storage.find_or_create_link(&new).await.expect("a link");
        Self { _folder: folder, storage, owner, document, link }
    }
}
