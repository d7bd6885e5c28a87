//! Exports: the fence of a build, and the bounds of stored files.

use crate::storage::database::{Desk, append_one, at, edit, new_reply, new_review, user, within};
use chrono::{DateTime, Utc};
use galley::domain::export::{ExportFailure, ExportFormat};
use galley::domain::fence::Fence;
use galley::domain::ids::ShareLinkId;
use galley::domain::reminder::TimeZone;
use galley::domain::user::User;
use galley::exports::store;
use galley::exports::store::{
    ExportBounds, ExportBuild, ExportKey, ExportMark, NewExport, StoredExport,
};
use galley::storage::guard::Guarded;
use tokio::task::JoinSet;

crate::storage::on_both_engines! {
    exports:
    a_stored_file_is_read_back_with_the_state_of_its_document
    a_file_with_a_former_name_is_no_longer_as_its_document
    g11_of_overlapping_builds_the_one_with_the_last_fence_stores
    g11_of_many_builds_that_store_at_once_one_stores
    g16_a_large_file_is_stored_in_pieces_that_leave_with_it
    g11_a_build_that_was_overtaken_stores_no_piece
    g11_a_trim_spares_the_pieces_of_a_build_that_runs
    a_failure_is_read_by_every_caller_until_the_next_build
    g14_a_revoked_link_has_no_export
    g13_files_beyond_the_bounds_are_deleted_oldest_first
    a_purged_document_leaves_no_export
}

const FORMAT: ExportFormat = ExportFormat::Docx;

fn key(link: ShareLinkId) -> ExportKey {
    ExportKey { link, format: FORMAT, has_reviews: true, zone: TimeZone::UTC }
}

fn file(key: ExportKey, bytes: &'static [u8], built_at: DateTime<Utc>) -> NewExport {
    let (title, names) = ("글\0".to_owned(), "KIM".to_owned());
    let mark = ExportMark { seq: 1, change: 0, title, names, zone: key.zone.name().to_owned() };
    let length = i64::try_from(bytes.len()).unwrap();
    let export = StoredExport { mark, hash: [7; 32], length, took_ms: 3, built_at };
    NewExport { key, export, bytes: bytes.into() }
}

async fn linked(desk: &Desk) -> ShareLinkId {
    desk.link(desk.document().await).await.id
}

/// Builds and stores a file.
async fn store(desk: &Desk, key: ExportKey, bytes: &'static [u8], built_at: DateTime<Utc>) {
    let floor = store::export_state(&desk.storage, key).await.unwrap().unwrap().build;
    let fence = Fence(floor.map_or(1, |build| build.fence.0 + 1));
    assert!(store::begin_export(&desk.storage, key, fence, built_at).await.unwrap());
    assert!(store::store_export(&desk.storage, fence, &file(key, bytes, built_at)).await.unwrap());
}

pub(crate) async fn a_stored_file_is_read_back_with_the_state_of_its_document(desk: Desk) {
    let (storage, document) = (&desk.storage, desk.document().await);
    let key = key(desk.link(document).await.id);
    append_one(storage, edit(document, "an update")).await;
    let before = store::export_state(storage, key).await.unwrap().unwrap();
    assert_eq!((before.document, before.now.seq, before.now.change), (document, 1, 0));
    assert_eq!((before.stored, before.build), (None, None));

    let new = file(key, b"bytes", at(5));
    assert!(store::begin_export(storage, key, Fence(9), at(4)).await.unwrap());
    let begun = ExportBuild { fence: Fence(9), progress: 0, failure: None, changed_at: at(4) };
    let state = store::export_state(storage, key).await.unwrap().unwrap();
    assert_eq!((state.stored, state.build.as_ref()), (None, Some(&begun)));
    let half = ExportBuild { progress: 50, ..begun.clone() };
    assert!(store::note_export(storage, key, &half).await.unwrap());
    assert!(store::store_export(storage, Fence(9), &new).await.unwrap());
    let state = store::export_state(storage, key).await.unwrap().unwrap();
    assert_eq!(state.stored.as_ref(), Some(&new.export));
    assert_eq!(state.build.map(|build| (build.fence, build.progress)), Some((Fence(9), 100)));
    let bytes = store::export_bytes(storage, key, [7; 32]).await.unwrap();
    assert_eq!(bytes.as_deref(), Some(&b"bytes"[..]));
    assert_eq!(store::export_bytes(storage, key, [8; 32]).await.unwrap(), None);
    let there = ExportKey { zone: "Asia/Seoul".parse().unwrap(), ..key };
    let state = store::export_state(storage, there).await.unwrap().unwrap();
    let zones = (state.now.zone, state.stored.map(|file| file.mark.zone));
    assert_eq!(zones, ("Asia/Seoul".to_owned(), Some("UTC".to_owned())));
    for other in [
        ExportKey { has_reviews: false, ..key },
        ExportKey { format: ExportFormat::Text, ..key },
        self::key(ShareLinkId::generate()),
    ] {
        assert_eq!(store::export_bytes(storage, other, [7; 32]).await.unwrap(), None);
    }
}

pub(crate) async fn a_file_with_a_former_name_is_no_longer_as_its_document(desk: Desk) {
    let (storage, seated) = (&desk.storage, desk.seated().await);
    let review = new_review(seated.link);
    storage.create_review(&review, seated.reviewer).await.unwrap();
    let reply = new_reply("!");
    let adding = storage.add_reply(seated.link, review.id, &reply, seated.writer, at(5));
    assert!(matches!(adding.await.unwrap(), Guarded::Done(_)));
    let (full, plain) = (key(seated.link), ExportKey { has_reviews: false, ..key(seated.link) });
    let names = async |key| store::export_state(storage, key).await.unwrap().unwrap().now.names;
    assert_eq!((names(full).await, names(plain).await), ("KIM, LEE".to_owned(), "KIM".to_owned()));
    let rename = async |id: &str, name: &str| {
        let renamed = User { name: name.to_owned(), ..user(id) };
        storage.rename_user(&renamed, at(9)).await.unwrap();
    };
    rename("lee", "Lee").await;
    assert_eq!((names(full).await, names(plain).await), ("KIM, Lee".to_owned(), "KIM".to_owned()));
    rename("kim", "Kim").await;
    assert_eq!((names(full).await, names(plain).await), ("Kim, Lee".to_owned(), "Kim".to_owned()));
}

pub(crate) async fn g11_of_overlapping_builds_the_one_with_the_last_fence_stores(desk: Desk) {
    let (storage, key) = (&desk.storage, key(linked(&desk).await));
    assert!(store::begin_export(storage, key, Fence(5), at(0)).await.unwrap());
    assert!(store::begin_export(storage, key, Fence(8), at(1)).await.unwrap());
    // The first builder froze beyond its lease.
    assert!(!store::store_export(storage, Fence(5), &file(key, b"old", at(2))).await.unwrap());
    let late = ExportBuild { fence: Fence(5), progress: 9, failure: None, changed_at: at(2) };
    assert!(!store::note_export(storage, key, &late).await.unwrap());
    for fence in [5, 7, 8] {
        assert!(!store::begin_export(storage, key, Fence(fence), at(2)).await.unwrap(), "{fence}");
    }
    assert!(store::store_export(storage, Fence(8), &file(key, b"new", at(3))).await.unwrap());
    assert!(!store::store_export(storage, Fence(5), &file(key, b"old", at(4))).await.unwrap());
    let bytes = store::export_bytes(storage, key, [7; 32]).await.unwrap();
    assert_eq!(bytes.as_deref(), Some(&b"new"[..]));
}

pub(crate) async fn g11_of_many_builds_that_store_at_once_one_stores(desk: Desk) {
    let key = key(linked(&desk).await);
    let handles = [desk.storage.clone(), desk.another().await];
    for number in 1..=20 {
        assert!(store::begin_export(&desk.storage, key, Fence(number), at(0)).await.unwrap());
    }
    let mut tasks = JoinSet::new();
    for number in 1..=20_u64 {
        let storage = handles[usize::from(number % 2 == 0)].clone();
        tasks.spawn(async move {
            let new = file(key, b"bytes", at(1));
            store::store_export(&storage, Fence(number), &new).await.unwrap().then_some(number)
        });
    }
    let stored: Vec<_> = within(tasks.join_all()).await.into_iter().flatten().collect();
    assert_eq!(stored, [20]);
}

/// Goal: a file of 1.2 MB stands in three rows, so that no transaction has more than half a megabyte. A
/// replaced file, and a build that a later one overtook in the middle, leave no row.
pub(crate) async fn g16_a_large_file_is_stored_in_pieces_that_leave_with_it(desk: Desk) {
    let (storage, key) = (&desk.storage, key(linked(&desk).await));
    let bounds = ExportBounds { rows: 9, bytes: 1 << 30, link_bytes: 1 << 30, built_after: at(0) };
    let pieces = async || pieces(&desk).await;
    let large = bytes_of(1_200_000, 0);
    store(&desk, key, large, at(1)).await;
    assert_eq!(store::export_bytes(storage, key, [7; 32]).await.unwrap().as_deref(), Some(large));
    assert_eq!(pieces().await, 3);
    store(&desk, key, &large[..600_000], at(2)).await;
    let stored = store::export_bytes(storage, key, [7; 32]).await.unwrap();
    assert_eq!(stored.as_deref(), Some(&large[..600_000]));
    assert_eq!(pieces().await, 5);
    assert_eq!(store::trim_exports(storage, bounds, Some(key)).await.unwrap(), 0);
    assert_eq!(pieces().await, 2);
    store(&desk, key, b"", at(3)).await;
    let empty = store::export_bytes(storage, key, [7; 32]).await.unwrap();
    assert_eq!(empty.as_deref(), Some(&b""[..]));
    assert_eq!(
        store::trim_exports(storage, ExportBounds { rows: 0, ..bounds }, None).await.unwrap(),
        1
    );
    assert_eq!(pieces().await, 0);
}

/// `length` bytes that differ from one piece to the next.
fn bytes_of(length: u32, seed: u32) -> &'static [u8] {
    (0..length).map(|at| (at ^ seed).to_le_bytes()[1]).collect::<Vec<_>>().leak()
}

async fn pieces(desk: &Desk) -> u64 {
    desk.location.stranger().await.run("UPDATE export_pieces SET number = number").await
}

pub(crate) async fn g11_a_build_that_was_overtaken_stores_no_piece(desk: Desk) {
    let (storage, key) = (&desk.storage, key(linked(&desk).await));
    let (old, new) = (bytes_of(1_200_000, 1), bytes_of(1_100_000, 2));
    assert!(store::begin_export(storage, key, Fence(1), at(0)).await.unwrap());
    assert!(store::begin_export(storage, key, Fence(2), at(1)).await.unwrap());
    assert!(!store::store_export(storage, Fence(1), &file(key, old, at(2))).await.unwrap());
    assert_eq!(pieces(&desk).await, 0);
    assert!(store::store_export(storage, Fence(2), &file(key, new, at(3))).await.unwrap());
    assert_eq!(pieces(&desk).await, 3);
    assert!(!store::store_export(storage, Fence(1), &file(key, old, at(4))).await.unwrap());
    assert_eq!(pieces(&desk).await, 3);
    assert_eq!(store::export_bytes(storage, key, [7; 32]).await.unwrap().as_deref(), Some(new));
}

pub(crate) async fn g11_a_trim_spares_the_pieces_of_a_build_that_runs(desk: Desk) {
    let (storage, key) = (&desk.storage, key(linked(&desk).await));
    let bounds = ExportBounds { rows: 9, bytes: 1 << 30, link_bytes: 1 << 30, built_after: at(0) };
    store(&desk, key, bytes_of(1_200_000, 1), at(1)).await;
    // A second build has stored as many pieces, and not its file.
    assert!(store::begin_export(storage, key, Fence(2), at(2)).await.unwrap());
    let mut stranger = desk.location.stranger().await;
    stranger.run("UPDATE export_pieces SET fence = 2").await;
    store::trim_exports(storage, bounds, None).await.unwrap();
    assert_eq!(pieces(&desk).await, 3);
    // Its server died: the pieces leave when the build is as old as a file that leaves.
    let later = ExportBounds { built_after: at(2), ..bounds };
    store::trim_exports(storage, later, None).await.unwrap();
    assert_eq!(pieces(&desk).await, 0);
}

pub(crate) async fn a_failure_is_read_by_every_caller_until_the_next_build(desk: Desk) {
    let (storage, key) = (&desk.storage, key(linked(&desk).await));
    assert!(store::begin_export(storage, key, Fence(1), at(0)).await.unwrap());
    let failure = Some(ExportFailure::TooLarge);
    let failed = ExportBuild { fence: Fence(1), progress: 100, failure, changed_at: at(1) };
    assert!(store::note_export(storage, key, &failed).await.unwrap());
    let state = store::export_state(storage, key).await.unwrap().unwrap();
    assert_eq!(state.build, Some(failed));
    assert!(store::begin_export(storage, key, Fence(2), at(2)).await.unwrap());
    let build = store::export_state(storage, key).await.unwrap().unwrap().build;
    assert_eq!(build.and_then(|build| build.failure), None);
}

pub(crate) async fn g14_a_revoked_link_has_no_export(desk: Desk) {
    let (storage, document) = (&desk.storage, desk.document().await);
    let link = desk.link(document).await.id;
    store(&desk, key(link), b"with the reviews of this link", at(1)).await;
    storage.revoke_link(link, at(2)).await.unwrap();
    assert_eq!(store::export_state(storage, key(link)).await.unwrap(), None);
    assert!(!store::begin_export(storage, key(link), Fence(99), at(3)).await.unwrap());
    // The next link of the document has other members and other reviews.
    let next = desk.link(document).await.id;
    assert_ne!(next, link);
    let state = store::export_state(storage, key(next)).await.unwrap().unwrap();
    assert_eq!((state.stored, state.build), (None, None));
}

pub(crate) async fn g13_files_beyond_the_bounds_are_deleted_oldest_first(desk: Desk) {
    let one = linked(&desk).await;
    let two = linked(&desk).await;
    let keys = [
        key(one),
        ExportKey { format: ExportFormat::Html, ..key(one) },
        ExportKey { has_reviews: false, ..key(one) },
        key(two),
    ];
    for (key, second) in keys.into_iter().zip(1..) {
        store(&desk, key, b"ten bytes.", at(second)).await;
    }
    let bounds = ExportBounds { rows: 10, bytes: 1_000, link_bytes: 1_000, built_after: at(0) };
    let left = async |bounds, newest| {
        let trimmed = store::trim_exports(&desk.storage, bounds, newest).await.unwrap();
        let mut left = Vec::new();
        for (key, number) in keys.into_iter().zip(1..) {
            if store::export_state(&desk.storage, key).await.unwrap().unwrap().stored.is_some() {
                left.push(number);
            }
        }
        (trimmed, left)
    };
    assert_eq!(left(bounds, None).await, (0, vec![1, 2, 3, 4]));
    assert_eq!(left(ExportBounds { built_after: at(2), ..bounds }, None).await.1, [2, 3, 4]);
    assert_eq!(left(ExportBounds { link_bytes: 19, ..bounds }, None).await.1, [3, 4]);
    // A clock that stepped back makes the newest file the oldest; it is kept all the same.
    let newest = Some(keys[2]);
    assert_eq!(left(ExportBounds { rows: 1, ..bounds }, newest).await.1, [3, 4]);
    assert_eq!(left(ExportBounds { bytes: 19, ..bounds }, None).await, (1, vec![4]));
    assert_eq!(left(ExportBounds { bytes: 9, ..bounds }, None).await, (1, vec![]));
}

pub(crate) async fn a_purged_document_leaves_no_export(desk: Desk) {
    let (storage, document) = (&desk.storage, desk.document().await);
    let key = key(desk.link(document).await.id);
    store(&desk, key, b"bytes", at(1)).await;
    assert!(storage.bin_document(document, at(2)).await.unwrap());
    assert_eq!(store::export_state(storage, key).await.unwrap(), None);
    assert!(storage.purge_document(document, None).await.unwrap());
    assert_eq!(store::export_bytes(storage, key, [7; 32]).await.unwrap(), None);
    assert!(!store::store_export(storage, Fence(9), &file(key, b"late", at(3))).await.unwrap());
}
