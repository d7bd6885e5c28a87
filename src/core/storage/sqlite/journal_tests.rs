//! The journal: edits between their commit and their move to `updates`, and the write cache.

use bytes::Bytes;
use chrono::DateTime;
use tempfile::TempDir;

use super::*;
use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, SessionId, ShareLinkId};
use crate::domain::seat::{Role, Seat};
use crate::domain::user::User;
use crate::storage::documents::NewDocument;
use crate::storage::guard::FenceGuard;
use crate::storage::links::NewShareLink;
use crate::storage::log::{Append, Appended};
use crate::storage::pagination::Page;
use crate::storage::{Engine, Storage};

fn storage(engine: &Sqlite) -> Storage {
    Storage::of(Engine::Sqlite(engine.clone()))
}

/// A document with a seated writer, and the engines of two processes on its file.
struct Desk {
    _folder: TempDir,
    one: Sqlite,
    other: Sqlite,
    document: DocumentId,
    seat: Seat,
}

impl Desk {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("galley.db").display());
        let one = Sqlite::open(&url).await.unwrap();
        let other = Sqlite::open(&url).await.unwrap();
        let document = empty_document(&one).await;
        let link = NewShareLink {
            id: ShareLinkId::generate(),
            document_id: document,
            invite_hash: [0; 32],
            now: DateTime::UNIX_EPOCH,
        };
        storage(&one).find_or_create_link(&link).await.unwrap();
        let desk =
            Self { _folder: folder, one, other, document, seat: Seat::new(link.id, Role::Writer) };
        desk.ratify(&desk.one, 1).await;
        desk
    }

    async fn ratify(&self, hand: &Sqlite, fence: u64) {
        let (fence, now) = (Fence(fence), DateTime::UNIX_EPOCH);
        let (session, kim) = (SessionId::generate(), kim().id);
        storage(hand).ratify(self.seat, fence, session, &kim, now).await.unwrap();
    }

    fn edits(&self, count: usize, fence: u64) -> Vec<Append> {
        let edit = Append {
            document: self.document,
            guard: Some(FenceGuard { seat: self.seat, fence: Fence(fence) }),
            update: Bytes::from_static(b"u"),
            clients: vec![7],
            user: Some(kim().id),
            expected_seq: None,
            after: 0,
            now: DateTime::from_timestamp_millis(5).unwrap(),
        };
        vec![edit; count]
    }

    /// Stores `count` edits, and returns the number of the last.
    async fn append(&self, hand: &Sqlite, count: usize) -> i64 {
        match hand.append(&self.edits(count, 1)).await.unwrap().pop() {
            Some(Appended::Stored { seq }) => seq,
            other => panic!("{other:?}"),
        }
    }

    async fn rows_of(&self, table: &'static str) -> i64 {
        let query = sqlx::query_scalar(table).bind(self.document.to_string());
        query.fetch_one(&self.one.readers).await.unwrap()
    }

    async fn journaled(&self) -> i64 {
        self.rows_of("SELECT count(*) FROM journal WHERE document_id = $1").await
    }

    async fn moved(&self) -> i64 {
        self.rows_of("SELECT count(*) FROM updates WHERE document_id = $1").await
    }
}

async fn empty_document(hand: &Sqlite) -> DocumentId {
    let (id, now) = (DocumentId::generate(), DateTime::UNIX_EPOCH);
    let (title, update) = (String::new(), Bytes::new());
    let new = NewDocument {
        external_id: None,
        id,
        title,
        owner: kim(),
        update,
        characters: 0,
        sections: Vec::new(),
        now,
    };
    storage(hand).create_document(&new).await.unwrap();
    id
}

fn kim() -> User {
    User { id: "kim".parse().unwrap(), name: "Kim".to_owned() }
}

#[tokio::test]
async fn d3_an_edit_is_read_by_its_number_in_the_journal_and_after_its_move() {
    let desk = Desk::new().await;
    let many = usize::try_from(journal::ROWS_MAX).unwrap();
    for (count, last, journaled) in [(3, 3, 3), (many, many + 3, many + 3), (2, many + 5, 2)] {
        let seq = desk.append(&desk.one, count).await;
        assert_eq!(seq, i64::try_from(last).unwrap());
        assert_eq!(desk.journaled().await, i64::try_from(journaled).unwrap());
        assert_eq!(desk.journaled().await + desk.moved().await, seq);
        for hand in [&desk.one, &desk.other] {
            let log = hand.log(desk.document).await.unwrap().unwrap();
            assert_eq!((log.seq, log.parts.len()), (seq, last));
            let tail = hand.log_from(desk.document, seq - 1).await.unwrap().unwrap();
            let numbers = tail.updates.iter().map(|(number, _)| *number);
            assert_eq!(numbers.collect::<Vec<_>>(), [seq - 1, seq]);
        }
    }
}

#[tokio::test]
async fn d1_a_change_of_another_process_invalidates_the_write_cache() {
    let desk = Desk::new().await;
    for (hand, last) in [(&desk.one, 2), (&desk.one, 4), (&desk.other, 6), (&desk.one, 8)] {
        assert_eq!(desk.append(hand, 2).await, last);
    }
    desk.ratify(&desk.other, 2).await;
    let late = desk.one.append(&desk.edits(1, 1)).await.unwrap();
    assert_eq!(late, [Appended::Fenced]);
    let next = desk.one.append(&desk.edits(1, 2)).await.unwrap();
    assert_eq!(next, [Appended::Stored { seq: 9 }]);
}

#[tokio::test]
async fn d2_a_change_of_this_process_invalidates_the_write_cache() {
    let desk = Desk::new().await;
    desk.append(&desk.one, 1).await;
    desk.ratify(&desk.one, 2).await;
    let late = desk.one.append(&desk.edits(1, 1)).await.unwrap();
    assert_eq!(late, [Appended::Fenced]);
    assert_eq!(desk.one.append(&desk.edits(1, 2)).await.unwrap(), [Appended::Stored { seq: 2 }]);
    storage(&desk.one).revoke_link(desk.seat.link, DateTime::UNIX_EPOCH).await.unwrap();
    let revoked = desk.one.append(&desk.edits(1, 2)).await.unwrap();
    assert_eq!(revoked, [Appended::Fenced]);
}

/// Moves each cached row by a statement that names no row of the cache.
#[tokio::test]
async fn d2_any_statement_on_a_cached_row_invalidates_it() {
    for statement in [
        "UPDATE seats SET fence = fence + 1",
        "DELETE FROM seats",
        "UPDATE share_links SET revoked_at = 1",
        "UPDATE share_links SET document_id = (SELECT max(id) FROM documents WHERE title = 'other')",
        "UPDATE clients SET user_id = 'lee'",
        "DELETE FROM documents",
    ] {
        let desk = Desk::new().await;
        let other = empty_document(&desk.one).await;
        sqlx::query("UPDATE documents SET title = 'other' WHERE id = $1")
            .bind(other.to_string())
            .execute(&desk.one.writer)
            .await
            .unwrap();
        desk.append(&desk.one, 1).await;

        let mut tx = desk.one.write().await.unwrap();
        sqlx::query(statement).execute(&mut *tx).await.unwrap();
        tx.rollback().await.unwrap();
        assert_eq!(desk.append(&desk.one, 1).await, 2, "{statement}, rolled back");

        let mut tx = desk.one.write().await.unwrap();
        sqlx::query(statement).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        let late = desk.one.append(&desk.edits(1, 1)).await.unwrap();
        assert!(!matches!(late.as_slice(), [Appended::Stored { .. }]), "{statement}: {late:?}");
    }
}

#[tokio::test]
async fn d1_a_refused_edit_leaves_the_cached_rows_of_other_edits() {
    let desk = Desk::new().await;
    let other = empty_document(&desk.one).await;
    let edit = |document, expected_seq| {
        let edit = desk.edits(1, 1).remove(0);
        Append { document, guard: None, clients: Vec::new(), expected_seq, ..edit }
    };
    desk.append(&desk.one, 3).await;
    let stored = |seq| Appended::Stored { seq };
    assert_eq!(desk.one.append(&[edit(other, None)]).await.unwrap(), [stored(1)]);
    let group = [edit(other, None), edit(desk.document, Some(9)), edit(other, Some(2))];
    let outcomes = desk.one.append(&group).await.unwrap();
    assert_eq!(outcomes, [stored(2), Appended::Stale, stored(3)]);
    // A dropped cache would have moved the journal.
    assert_eq!(desk.journaled().await, 3);
    let cache = desk.one.memory.take();
    assert_eq!(cache.journaled, 6);
    assert!(cache.state.seats.contains_key(&desk.seat));
    assert_eq!(cache.state.clients.len(), 1);
    let last = |document: &DocumentId| cache.state.last_seq.get(document).copied();
    assert_eq!((last(&other), last(&desk.document)), (Some(3), Some(3)));
    desk.one.memory.put_back(cache);
    assert_eq!(desk.append(&desk.one, 1).await, 4);
    assert_eq!(desk.one.append(&[edit(other, Some(3))]).await.unwrap(), [stored(4)]);
}

#[tokio::test]
async fn updated_at_is_the_time_of_the_last_edit_also_in_the_journal() {
    let desk = Desk::new().await;
    let at = DateTime::from_timestamp_millis(5).unwrap();
    desk.append(&desk.one, 1).await;
    for _ in ["in the journal", "moved"] {
        let document = storage(&desk.one).document(desk.document).await.unwrap().unwrap();
        assert_eq!(document.updated_at, at);
        let page = Page { limit: 2, before: None };
        let documents = storage(&desk.other).documents_of(&kim().id, &page).await.unwrap();
        assert_eq!(documents, [document]);
        let mut tx = desk.one.write().await.unwrap();
        journal::clear(&mut tx, None).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert_eq!((desk.journaled().await, desk.moved().await), (0, 1));
}

#[tokio::test]
async fn d5_a_snapshot_replaces_updates_in_the_journal_too() {
    let desk = Desk::new().await;
    desk.append(&desk.one, 5).await;
    let merged = Bytes::from_static(b"m");
    storage(&desk.one).compact(desk.document, 4, &merged, &|_| true).await.unwrap();
    let log = desk.one.log(desk.document).await.unwrap().unwrap();
    assert_eq!((log.seq, log.parts), (5, vec![merged, Bytes::from_static(b"u")]));
    assert_eq!(desk.append(&desk.one, 1).await, 6);
}

#[tokio::test]
async fn a_deleted_document_leaves_no_rows() {
    let desk = Desk::new().await;
    desk.append(&desk.one, 2).await;
    storage(&desk.one).delete_document(desk.document).await.unwrap();
    assert_eq!((desk.journaled().await, desk.moved().await), (0, 0));
    let gone = desk.one.append(&desk.edits(1, 1)).await.unwrap();
    assert_eq!(gone, [Appended::Gone]);
}
