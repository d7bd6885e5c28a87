//! Documents and users.

use crate::storage::database::{self, ALL, Desk, append_one, at, edit, new_review, user};
use bytes::Bytes;
use galley::domain::ids::DocumentId;
use galley::domain::user::User;
use galley::storage::capacity::Usage;
use galley::storage::documents::NewDocument;
use galley::storage::error::StorageError;
use galley::storage::guard::Guarded;
use galley::storage::pagination::Page;
use galley::storage::reviews::NewReview;

crate::storage::on_both_engines! {
    documents:
    a_created_document_reads_back_unchanged
    an_unknown_document_is_none
    a_list_pages_through_the_owners_documents_last_updated_first
    an_edit_sets_updated_at_and_a_character_count_does_not
    a_renamed_user_is_renamed_in_every_document
    a_name_comes_from_the_newest_token
    a_deleted_document_deletes_its_own_rows_only
    g17_the_usage_of_a_user_and_the_size_of_the_database_are_measured
}

pub(crate) async fn a_created_document_reads_back_unchanged(desk: Desk) {
    let new = NewDocument {
        external_id: None,
        id: DocumentId::generate(),
        title: "자기소개서 👩‍👩‍👧 \0 '; DROP TABLE users;".to_owned(),
        owner: user("kim"),
        update: Bytes::from_static(b"first"),
        characters: 5,
        sections: Vec::new(),
        now: at(0),
    };

    let made = desk.storage.create_document(&new).await.unwrap();

    assert_eq!((made.id, &made.title, &made.owner), (new.id, &new.title, &new.owner));
    assert_eq!((made.created_at, made.updated_at, made.characters), (at(0), at(0), 5));
    assert_eq!(desk.storage.document(new.id).await.unwrap(), Some(made));
    let log = desk.storage.log(new.id).await.unwrap().unwrap();
    assert_eq!((log.seq, log.parts), (1, vec![new.update.clone()]));
    let again = desk.storage.create_document(&new).await;
    assert!(matches!(again, Err(StorageError::Refused(_))), "{again:?}");
}

pub(crate) async fn an_unknown_document_is_none(desk: Desk) {
    let storage = &desk.storage;
    let id = DocumentId::generate();
    assert_eq!(storage.document(id).await.unwrap(), None);
    assert_eq!(storage.rename_document(id, "x", at(1)).await.unwrap(), None);
    assert!(!storage.delete_document(id).await.unwrap());
    assert_eq!(storage.log(id).await.unwrap(), None);
    assert_eq!(storage.log_from(id, 0).await.unwrap(), None);
    storage.set_characters(id, 3).await.unwrap();
}

pub(crate) async fn a_list_pages_through_the_owners_documents_last_updated_first(desk: Desk) {
    let mut ids = Vec::new();
    for second in 0..5 {
        // Pairs with equal times: the id orders them, so the pages neither repeat nor omit a
        // document.
        ids.push(desk.document_of(&user("kim"), at(second / 2)).await.id);
    }
    desk.document_of(&user("lee"), at(9)).await;
    desk.storage.rename_document(ids[0], "renamed", at(8)).await.unwrap();

    let kim = user("kim").id;
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = Page { limit: 2, before };
        let rows = desk.storage.documents_of(&kim, &page).await.unwrap();
        let Some(last) = rows.last() else { break };
        before = Some(last.cursor().to_string().parse().unwrap());
        seen.extend(rows);
    }

    assert_eq!(seen[0].title, "renamed");
    assert!(seen.windows(2).all(|pair| pair[1].updated_at <= pair[0].updated_at));
    let mut listed: Vec<_> = seen.iter().map(|document| document.id).collect();
    listed.sort();
    ids.sort();
    assert_eq!(listed, ids);
}

pub(crate) async fn an_edit_sets_updated_at_and_a_character_count_does_not(desk: Desk) {
    let document = desk.document().await;
    desk.append(edit(document, "x")).await;
    let edited = desk.storage.document(document).await.unwrap().unwrap();
    assert_eq!(edited.updated_at, at(3));
    desk.storage.set_characters(document, 17).await.unwrap();
    let counted = desk.storage.document(document).await.unwrap().unwrap();
    assert_eq!((counted.characters, counted.updated_at), (17, at(3)));
}

pub(crate) async fn a_renamed_user_is_renamed_in_every_document(desk: Desk) {
    let document = desk.document().await;
    let renamed = User { name: "김민수".to_owned(), ..user("kim") };
    for _ in 0..2 {
        desk.storage.save_user(&renamed, at(5)).await.unwrap();
        assert_eq!(desk.storage.document(document).await.unwrap().unwrap().owner, renamed);
    }
}

/// Goal: after a rename an older token that is still valid does not bring the old name back.
pub(crate) async fn a_name_comes_from_the_newest_token(desk: Desk) {
    let document = desk.document().await;
    let called = |name: &str| User { name: name.to_owned(), ..user("kim") };
    let (before, after) = (called("Kim Before"), called("Kim After"));
    for (name, issued_at, stored) in [
        (&before, at(10), &before),
        (&after, at(20), &after),
        (&before, at(10), &after),
        (&before, at(19), &after),
        (&before, at(20), &before),
        (&after, at(30), &after),
        // A newer token with the same name also counts as the newest.
        (&after, at(200), &after),
        (&before, at(100), &after),
        (&before, at(201), &before),
        (&after, at(300), &after),
    ] {
        desk.storage.save_user(name, issued_at).await.unwrap();
        assert_eq!(&desk.storage.document(document).await.unwrap().unwrap().owner, stored);
    }
    // A write that refers to a user does not rename it.
    let seated = desk.seated().await;
    let review = NewReview { author: called("Kim Much Older"), ..new_review(seated.link) };
    let made = desk.storage.create_review(&review, seated.reviewer).await;
    assert!(matches!(made, Ok(Guarded::Done(_))));
    assert_eq!(desk.storage.document(document).await.unwrap().unwrap().owner, after);
}

pub(crate) async fn a_deleted_document_deletes_its_own_rows_only(desk: Desk) {
    let (gone, stored) = (desk.seated().await, desk.seated().await);
    for seated in [gone, stored] {
        let mut first = edit(seated.document, "one");
        first.clients = vec![1];
        desk.append(first).await;
        desk.storage.compact(seated.document, 1, &Bytes::from_static(b"one"), ALL).await.unwrap();
        desk.append(edit(seated.document, "two")).await;
        let made = desk.storage.create_review(&new_review(seated.link), seated.reviewer).await;
        assert!(matches!(made, Ok(Guarded::Done(_))));
    }

    assert!(desk.storage.delete_document(gone.document).await.unwrap());

    assert_eq!(desk.storage.document(gone.document).await.unwrap(), None);
    assert_eq!(desk.storage.log(gone.document).await.unwrap(), None);
    assert_eq!(desk.storage.link(gone.link).await.unwrap(), None);
    assert_eq!(desk.storage.reviews_unchecked(gone.link, None, 100).await.unwrap().reviews, []);
    assert_eq!(desk.storage.seat_lookup(gone.writer.seat).await.unwrap(), None);
    let after = desk.storage.create_review(&new_review(gone.link), gone.reviewer).await.unwrap();
    assert_eq!(after, Guarded::Fenced);
    assert_eq!(desk.text(stored.document).await, b"onetwo");
    assert_eq!(
        desk.storage.reviews_unchecked(stored.link, None, 100).await.unwrap().reviews.len(),
        1
    );
}

pub(crate) async fn g17_the_usage_of_a_user_and_the_size_of_the_database_are_measured(desk: Desk) {
    let (storage, kim, lee) = (&desk.storage, user("kim"), user("lee"));
    let none = Usage { documents: 0, bytes: 0 };
    assert_eq!(storage.usage_of(&kim.id).await.unwrap(), none);
    let before = storage.stored_bytes().await.unwrap();
    // Random bytes, which no engine compresses.
    let update: Vec<u8> =
        (0..300_000_u32).map(|n| (n.wrapping_mul(n) >> 7).to_le_bytes()[0]).collect();
    let new = NewDocument { update: update.clone().into(), ..database::new_document(&kim, at(0)) };
    storage.create_document(&new).await.unwrap();
    let empty = desk.document_of(&kim, at(1)).await.id;
    desk.document_of(&lee, at(1)).await;
    assert_eq!(storage.usage_of(&kim.id).await.unwrap(), Usage { documents: 2, bytes: 300_000 });
    // The usage includes every committed edit, in the journal or in the updates.
    append_one(storage, edit(empty, vec![b'x'; 50_000])).await;
    assert_eq!(storage.usage_of(&kim.id).await.unwrap(), Usage { documents: 2, bytes: 350_000 });
    // The merge replaces the rows.
    storage.compact(new.id, 1, &Bytes::from(update[..200_000].to_vec()), ALL).await.unwrap();
    assert_eq!(storage.usage_of(&kim.id).await.unwrap(), Usage { documents: 2, bytes: 250_000 });
    let after = storage.stored_bytes().await.unwrap();
    assert!(before + 150_000 < after, "{before} before, {after} after");
    assert!(storage.has_room());
    storage.delete_document(empty).await.unwrap();
    storage.delete_document(new.id).await.unwrap();
    assert_eq!(storage.usage_of(&kim.id).await.unwrap(), none);
    assert_eq!(storage.usage_of(&lee.id).await.unwrap().documents, 1);
}
