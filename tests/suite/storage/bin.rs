//! The bin.

use crate::storage::database::{
    Desk, Seated, append_one, at, edit, floor, new_link, new_review, ratify, user, within,
};
use galley::domain::fence::Fence;
use galley::domain::ids::ShareLinkId;
use galley::storage::bin::LinkEnd;
use galley::storage::capacity::Usage;
use galley::storage::guard::Guarded;
use galley::storage::links::Joined;
use galley::storage::log::{Append, Appended};
use galley::storage::pagination::Page;
use galley::storage::seats::{Ratified, SeatRight};

crate::storage::on_both_engines! {
    bin:
    a_document_in_the_bin_is_absent_elsewhere
    d2_a_document_in_the_bin_takes_no_write_of_its_seats
    a_restored_document_has_its_link_reviews_and_text
    d2_a_write_under_a_fence_from_before_the_deletion_is_fenced_after_the_restoration
    g11_a_restoration_revokes_a_link_that_an_older_server_created_meanwhile
    a_bin_lists_and_bounds_the_documents_of_its_owner
    a_purge_deletes_only_documents_of_the_bin_that_were_deleted_in_time
    d1_of_a_concurrent_restoration_and_purge_one_succeeds
    d1_an_edit_that_races_a_deletion_is_stored_before_it_or_fenced
    d1_a_deletion_leaves_no_active_link_of_a_concurrent_call
}

fn of_writer(seated: Seated, text: &'static str) -> Append {
    Append { guard: Some(seated.writer), ..edit(seated.document, text) }
}

pub(crate) async fn a_document_in_the_bin_is_absent_elsewhere(desk: Desk) {
    let (storage, kim, lee) = (&desk.storage, user("kim"), user("lee"));
    let seated = desk.seated().await;
    assert!(matches!(
        storage.join_link(seated.link, &lee, at(3)).await.unwrap(),
        Joined::Reviewer(_)
    ));
    let page = Page { limit: 10, before: None };

    assert!(storage.bin_document(seated.document, at(5)).await.unwrap());

    let links = Page { limit: 10, before: None };
    assert_eq!(storage.document(seated.document).await.unwrap(), None);
    assert_eq!(storage.documents_of(&kim.id, &page).await.unwrap(), []);
    assert_eq!(storage.rename_document(seated.document, "x", at(6)).await.unwrap(), None);
    assert_eq!(storage.link_of(seated.document).await.unwrap(), None);
    assert_eq!(storage.find_or_create_link(&new_link(seated.document)).await.unwrap(), None);
    assert_eq!(storage.links_of(&kim.id, &links).await.unwrap(), []);
    assert_eq!(storage.links_of(&lee.id, &links).await.unwrap(), []);
    assert_eq!(storage.join_link(seated.link, &lee, at(6)).await.unwrap(), Joined::Gone);
    let link = storage.link(seated.link).await.unwrap().unwrap();
    assert_eq!(link.revoked_at, Some(at(5)));
    let right = storage.seat_rights(&[(seated.writer.seat, kim.id.clone())]).await.unwrap();
    assert_eq!(right, [Some(SeatRight::Revoked)]);
    assert!(!storage.revoke_link(seated.link, at(6)).await.unwrap());
    assert_eq!(storage.usage_of(&kim.id).await.unwrap(), Usage { documents: 0, bytes: 0 });
    assert!(!storage.bin_document(seated.document, at(9)).await.unwrap(), "it is there already");

    for deletion in [
        storage.deletion_of(seated.document).await.unwrap().unwrap(),
        storage.deletion_of_link(seated.link).await.unwrap().unwrap(),
    ] {
        assert_eq!((&deletion.owner, deletion.at), (&kim, at(5)));
        assert!(deletion.concerns(&kim.id) && deletion.concerns(&lee.id));
        assert!(!deletion.concerns(&user("mallory").id));
        assert_eq!(
            storage.end_of_link(seated.link).await.unwrap(),
            LinkEnd::Deleted(Some(deletion.deletion()))
        );
    }
    let unknown = ShareLinkId::generate();
    assert_eq!(storage.end_of_link(unknown).await.unwrap(), LinkEnd::Deleted(None));
}

pub(crate) async fn d2_a_document_in_the_bin_takes_no_write_of_its_seats(desk: Desk) {
    let storage = &desk.storage;
    let seated = desk.seated().await;
    // The write cache has the guard.
    let first = append_one(storage, of_writer(seated, "one")).await;
    assert_eq!(first, Appended::Stored { seq: 1 });

    storage.bin_document(seated.document, at(5)).await.unwrap();

    assert_eq!(append_one(storage, of_writer(seated, "two")).await, Appended::Fenced);
    let review = storage.create_review(&new_review(seated.link), seated.reviewer).await.unwrap();
    assert_eq!(review, Guarded::Fenced);
    assert_eq!(ratify(storage, seated.writer.seat, 30).await, Ratified::Gone);
}

pub(crate) async fn a_restored_document_has_its_link_reviews_and_text(desk: Desk) {
    let storage = &desk.storage;
    let (seated, kim) = (desk.seated().await, user("kim"));
    storage.join_link(seated.link, &user("lee"), at(3)).await.unwrap();
    append_one(storage, of_writer(seated, "text")).await;
    let made = storage.create_review(&new_review(seated.link), seated.reviewer).await.unwrap();
    assert!(matches!(made, Guarded::Done(_)));
    let (before, link) = (
        storage.document(seated.document).await.unwrap(),
        storage.link(seated.link).await.unwrap(),
    );
    storage.bin_document(seated.document, at(5)).await.unwrap();
    let with = storage.usage_with(&kim.id, seated.document).await.unwrap();
    assert_eq!(with, Usage { documents: 1, bytes: 4 });

    let restored = storage.restore_document(seated.document, at(7)).await.unwrap();

    assert_eq!(restored, before);
    assert_eq!(storage.link(seated.link).await.unwrap(), link);
    assert_eq!(storage.link_of(seated.document).await.unwrap(), link);
    assert_eq!(storage.reviews_unchecked(seated.link, None, 10).await.unwrap().reviews.len(), 1);
    assert_eq!(desk.text(seated.document).await, b"text");
    assert_eq!(storage.deletion_of(seated.document).await.unwrap(), None);
    assert_eq!(storage.deletion_of_link(seated.link).await.unwrap(), None);
    let again = storage.restore_document(seated.document, at(8)).await.unwrap();
    assert_eq!(again, None, "it is not in the bin");
    // A link that was revoked before stays revoked.
    storage.revoke_link(seated.link, at(8)).await.unwrap();
    storage.bin_document(seated.document, at(9)).await.unwrap();
    storage.restore_document(seated.document, at(10)).await.unwrap();
    assert_eq!(storage.end_of_link(seated.link).await.unwrap(), LinkEnd::Revoked);
    assert_eq!(storage.link_of(seated.document).await.unwrap(), None);
}

pub(crate) async fn d2_a_write_under_a_fence_from_before_the_deletion_is_fenced_after_the_restoration(
    desk: Desk,
) {
    let storage = &desk.storage;
    let seated = desk.seated().await;
    storage.bin_document(seated.document, at(5)).await.unwrap();
    storage.restore_document(seated.document, at(6)).await.unwrap();

    assert_eq!(append_one(storage, of_writer(seated, "late")).await, Appended::Fenced);

    assert!(Fence(10) < floor(storage, seated.writer.seat).await);
    let writer = desk.seat(seated.link, seated.writer.seat.role, 40).await;
    let next = append_one(storage, of_writer(Seated { writer, ..seated }, "next")).await;
    assert_eq!(next, Appended::Stored { seq: 1 });
}

pub(crate) async fn g11_a_restoration_revokes_a_link_that_an_older_server_created_meanwhile(
    desk: Desk,
) {
    let storage = &desk.storage;
    let seated = desk.seated().await;
    storage.bin_document(seated.document, at(5)).await.unwrap();
    let mut older = desk.location.stranger().await;
    older
        .run(
            "INSERT INTO share_links (id, document_id, invite_hash, created_at) \
             SELECT 'shr_00000000000000000000000000000000', document_id, invite_hash, created_at \
             FROM share_links",
        )
        .await;

    storage.restore_document(seated.document, at(7)).await.unwrap().unwrap();

    let active = storage.link_of(seated.document).await.unwrap().unwrap();
    assert_eq!(active.id, seated.link);
    let other = "shr_00000000000000000000000000000000".parse().unwrap();
    assert_eq!(storage.end_of_link(other).await.unwrap(), LinkEnd::Revoked);
}

pub(crate) async fn a_bin_lists_and_bounds_the_documents_of_its_owner(desk: Desk) {
    let (storage, kim) = (&desk.storage, user("kim"));
    let mut ids = Vec::new();
    for second in 0..5 {
        let id = desk.document_of(&kim, at(0)).await.id;
        // Pairs with equal times: the id orders them.
        storage.bin_document(id, at(10 + second / 2)).await.unwrap();
        ids.push(id);
    }
    let other = desk.document_of(&user("lee"), at(0)).await.id;
    storage.bin_document(other, at(1)).await.unwrap();
    desk.document_of(&kim, at(0)).await;

    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let rows = storage.bin_of(&kim.id, &Page { limit: 2, before }).await.unwrap();
        let Some(last) = rows.last() else { break };
        before = Some(last.cursor().to_string().parse().unwrap());
        seen.extend(rows);
    }
    assert!(seen.windows(2).all(|pair| pair[1].deleted_at <= pair[0].deleted_at));
    let listed: Vec<_> = seen.iter().map(|row| row.document.id).collect();
    assert_eq!(storage.bin_beyond(&kim.id, 2).await.unwrap(), listed[2..]);
    assert_eq!(storage.bin_beyond(&kim.id, 5).await.unwrap(), []);
    assert_eq!(storage.binned_by(at(9), 10).await.unwrap(), [other]);
    assert_eq!(storage.binned_by(at(12), 3).await.unwrap().len(), 3);
    assert_eq!(storage.binned_by(at(12), 10).await.unwrap().len(), 6);
    ids.sort();
    let mut listed = listed;
    listed.sort();
    assert_eq!(listed, ids);
}

pub(crate) async fn a_purge_deletes_only_documents_of_the_bin_that_were_deleted_in_time(
    desk: Desk,
) {
    let storage = &desk.storage;
    let (seated, live) = (desk.seated().await, desk.seated().await);
    for seated in [seated, live] {
        append_one(storage, of_writer(seated, "text")).await;
        storage.create_review(&new_review(seated.link), seated.reviewer).await.unwrap();
    }
    storage.bin_document(seated.document, at(5)).await.unwrap();
    assert!(!storage.purge_document(live.document, None).await.unwrap());
    assert!(!storage.purge_document(live.document, Some(at(9))).await.unwrap());
    assert!(!storage.purge_document(seated.document, Some(at(4))).await.unwrap());
    assert!(storage.deletion_of(seated.document).await.unwrap().is_some());

    assert!(storage.purge_document(seated.document, Some(at(5))).await.unwrap());

    assert_eq!(storage.deletion_of(seated.document).await.unwrap(), None);
    assert_eq!(storage.log(seated.document).await.unwrap(), None);
    assert_eq!(storage.link(seated.link).await.unwrap(), None);
    assert_eq!(storage.reviews_unchecked(seated.link, None, 10).await.unwrap().reviews, []);
    assert_eq!(storage.restore_document(seated.document, at(6)).await.unwrap(), None);
    assert_eq!(storage.end_of_link(seated.link).await.unwrap(), LinkEnd::Deleted(None));
    assert_eq!(desk.text(live.document).await, b"text");
    assert_eq!(storage.reviews_unchecked(live.link, None, 10).await.unwrap().reviews.len(), 1);
}

pub(crate) async fn d1_of_a_concurrent_restoration_and_purge_one_succeeds(desk: Desk) {
    let other = desk.another().await;
    for _ in 0..20 {
        let seated = desk.seated().await;
        desk.storage.bin_document(seated.document, at(5)).await.unwrap();
        let (restored, purged) = within(async {
            tokio::join!(
                desk.storage.restore_document(seated.document, at(6)),
                other.purge_document(seated.document, None)
            )
        })
        .await;
        let is_live = desk.storage.document(seated.document).await.unwrap().is_some();
        assert_eq!((restored.unwrap().is_some(), purged.unwrap()), (is_live, !is_live));
    }
}

pub(crate) async fn d1_an_edit_that_races_a_deletion_is_stored_before_it_or_fenced(desk: Desk) {
    let other = desk.another().await;
    for _ in 0..20 {
        let seated = desk.seated().await;
        let (appended, binned) = within(async {
            tokio::join!(
                append_one(&desk.storage, of_writer(seated, "racing")),
                other.bin_document(seated.document, at(5))
            )
        })
        .await;
        assert!(binned.unwrap());
        let text = desk.text(seated.document).await;
        match appended {
            Appended::Stored { seq: 1 } => assert_eq!(text, b"racing"),
            Appended::Fenced => assert_eq!(text, b""),
            outcome => panic!("{outcome:?}"),
        }
    }
}

pub(crate) async fn d1_a_deletion_leaves_no_active_link_of_a_concurrent_call(desk: Desk) {
    let other = desk.another().await;
    for _ in 0..20 {
        let document = desk.document().await;
        let (link, binned) = within(async {
            let link = new_link(document);
            tokio::join!(
                desk.storage.find_or_create_link(&link),
                other.bin_document(document, at(5))
            )
        })
        .await;
        assert!(binned.unwrap());
        assert_eq!(desk.storage.link_of(document).await.unwrap(), None);
        if let Some((link, _)) = link.unwrap() {
            assert!(desk.storage.deletion_of_link(link.id).await.unwrap().is_some());
        }
    }
}
