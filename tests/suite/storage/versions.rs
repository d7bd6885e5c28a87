//! Versions: which ones are stored, which duplicates are skipped, and restores under a fence.

use crate::storage::database::{ALL, Desk, at, edit, ratify, user, within};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use galley::domain::fence::Fence;
use galley::domain::ids::{DocumentId, VersionId};
use galley::domain::limits::VERSIONS_MAX;
use galley::domain::version_policy::VersionKind;
use galley::storage::Storage;
use galley::storage::guard::{FenceGuard, Guarded};
use galley::storage::log::Append;
use galley::storage::packed::Packed;
use galley::storage::version_plan::NewVersion;
use galley::storage::versions::{StoreOutcome, Version};
use tokio::task::JoinSet;

crate::storage::on_both_engines! {
    versions:
    a_version_reads_back_unchanged_after_a_merge_of_the_log
    versions_are_listed_newest_first_in_pages
    d8_equal_text_an_older_point_or_an_unstored_number_makes_no_version
    d8_of_concurrent_stores_of_one_point_one_succeeds
    g13_versions_are_bounded_and_named_ones_stay
    old_versions_thin_out_and_shared_texts_stay
    a_deleted_document_deletes_its_versions
    g2_a_restore_stores_its_edit_and_both_versions_or_nothing
}

fn new(document: DocumentId, kind: VersionKind, seq: i64, text: &str) -> NewVersion {
    NewVersion {
        id: VersionId::generate(),
        document,
        kind,
        label: (kind == VersionKind::Named).then(|| "제출본".to_owned()),
        authors: vec![user("kim"), user("lee")],
        restored_from: None,
        seq,
        text: Packed::of(text),
        now: at(10),
    }
}

fn pause(document: DocumentId, seq: i64, text: &str) -> NewVersion {
    new(document, VersionKind::Pause, seq, text)
}

async fn keep(storage: &Storage, new: NewVersion) -> StoreOutcome {
    storage.store_versions(&[new]).await.unwrap().pop().unwrap()
}

async fn stored(storage: &Storage, new: NewVersion) -> Version {
    match keep(storage, new).await {
        StoreOutcome::Stored(version) => version,
        other => panic!("{other:?}"),
    }
}

/// A document with `updates` updates.
async fn written(desk: &Desk, updates: usize) -> DocumentId {
    let document = desk.document().await;
    for _ in 0..updates {
        desk.append(edit(document, "x")).await;
    }
    document
}

async fn text_of(storage: &Storage, version: &Version) -> String {
    let (_, text) = storage.version(version.document, version.id).await.unwrap().unwrap();
    text.unpack().unwrap()
}

pub(crate) async fn a_version_reads_back_unchanged_after_a_merge_of_the_log(desk: Desk) {
    let document = written(&desk, 3).await;
    desk.storage.save_user(&user("lee"), at(0)).await.unwrap();
    let text = "저는 👩‍👩‍👧 성실합니다.\n".repeat(200);
    let version = stored(&desk.storage, pause(document, 2, &text)).await;
    assert_eq!((version.number, version.kind, version.seq), (1, VersionKind::Pause, 2));
    assert_eq!(version.authors, [user("kim"), user("lee")]);
    assert_eq!((version.characters, version.created_at), (2_400, at(10)));
    desk.storage.compact(document, 3, &Bytes::from_static(b"xxx"), ALL).await.unwrap();
    let another = desk.another().await;
    assert_eq!(text_of(&another, &version).await, text);
    let (found, _) = another.version(document, version.id).await.unwrap().unwrap();
    assert_eq!(found, version);
    let elsewhere = desk.document().await;
    assert_eq!(another.version(elsewhere, version.id).await.unwrap(), None);
    assert_eq!(another.version(document, VersionId::generate()).await.unwrap(), None);
}

pub(crate) async fn versions_are_listed_newest_first_in_pages(desk: Desk) {
    let document = written(&desk, 5).await;
    for seq in 1..=5 {
        stored(&desk.storage, pause(document, seq, &format!("text {seq}"))).await;
    }
    let numbers = async |limit, before| -> Vec<i64> {
        let page = desk.storage.versions(document, limit, before).await.unwrap();
        page.into_iter().map(|version| version.number).collect()
    };
    assert_eq!(numbers(3, None).await, [5, 4, 3]);
    assert_eq!(numbers(3, Some(3)).await, [2, 1]);
    assert_eq!(numbers(3, Some(1)).await, Vec::<i64>::new());
}

pub(crate) async fn d8_equal_text_an_older_point_or_an_unstored_number_makes_no_version(
    desk: Desk,
) {
    let document = written(&desk, 4).await;
    stored(&desk.storage, pause(document, 2, "two")).await;
    let storage = &desk.storage;
    assert_eq!(keep(storage, pause(document, 3, "two")).await, StoreOutcome::NotNew);
    assert_eq!(keep(storage, pause(document, 2, "other")).await, StoreOutcome::NotNew);
    assert_eq!(keep(storage, pause(document, 1, "one")).await, StoreOutcome::NotNew);
    assert_eq!(keep(storage, pause(document, 5, "five")).await, StoreOutcome::NotNew);
    assert_eq!(keep(storage, pause(DocumentId::generate(), 1, "?")).await, StoreOutcome::Gone);
    let named = stored(storage, new(document, VersionKind::Named, 2, "two")).await;
    assert_eq!((named.number, named.label.as_deref()), (2, Some("제출본")));
    assert_eq!(stored(storage, pause(document, 4, "four")).await.number, 3);
}

pub(crate) async fn d8_of_concurrent_stores_of_one_point_one_succeeds(desk: Desk) {
    let document = written(&desk, 1).await;
    let mut tasks = JoinSet::new();
    let handles = [desk.storage.clone(), desk.another().await];
    for number in 0..20 {
        let storage = handles[number % 2].clone();
        tasks.spawn(async move { keep(&storage, pause(document, 1, "one")).await });
    }
    let outcomes = within(tasks.join_all()).await;
    let version =
        outcomes.iter().filter(|outcome| matches!(outcome, StoreOutcome::Stored(_))).count();
    assert_eq!(version, 1);
    assert_eq!(desk.storage.versions(document, 10, None).await.unwrap().len(), 1);
}

pub(crate) async fn g13_versions_are_bounded_and_named_ones_stay(desk: Desk) {
    let document = desk.document().await;
    let many = i64::try_from(VERSIONS_MAX).unwrap() + 20;
    let appends: Vec<_> = (0..many).map(|_| edit(document, "x")).collect();
    desk.storage.append(&appends).await.unwrap();
    let named = stored(&desk.storage, new(document, VersionKind::Named, 1, "first")).await;
    let batch: Vec<_> =
        (2..=many).map(|seq| pause(document, seq, &format!("text {seq}"))).collect();
    for some in batch.chunks(100) {
        desk.storage.store_versions(some).await.unwrap();
    }
    let mut found = Vec::new();
    loop {
        let before = found.last().map(|version: &Version| version.number);
        let page = desk.storage.versions(document, 100, before).await.unwrap();
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    assert_eq!(found.len(), VERSIONS_MAX);
    assert_eq!(found.last().unwrap().id, named.id);
    assert_eq!(found[0].number, many);
    assert_eq!(text_of(&desk.storage, &found[0]).await, format!("text {many}"));
    assert_eq!(text_of(&desk.storage, &named).await, "first");
}

pub(crate) async fn old_versions_thin_out_and_shared_texts_stay(desk: Desk) {
    let document = written(&desk, 5).await;
    let then = |new: NewVersion, now: DateTime<Utc>| NewVersion { now, ..new };
    let hour = at(0);
    for (seq, text) in [(1, "a"), (2, "b"), (3, "a")] {
        stored(&desk.storage, then(pause(document, seq, text), hour)).await;
    }
    let later = hour + chrono::TimeDelta::days(2);
    stored(&desk.storage, then(pause(document, 4, "c"), later)).await;
    let left = desk.storage.versions(document, 10, None).await.unwrap();
    assert_eq!(left.iter().map(|version| version.number).collect::<Vec<_>>(), [4, 3]);
    assert_eq!(text_of(&desk.storage, &left[1]).await, "a");
}

pub(crate) async fn a_deleted_document_deletes_its_versions(desk: Desk) {
    let document = written(&desk, 1).await;
    let version = stored(&desk.storage, pause(document, 1, "text")).await;
    assert!(desk.storage.delete_document(document).await.unwrap());
    assert_eq!(desk.storage.versions(document, 10, None).await.unwrap(), []);
    assert_eq!(desk.storage.version(document, version.id).await.unwrap(), None);
}

/// The edit of a restore, made on the text at `seq`.
fn back(document: DocumentId, guard: FenceGuard, seq: i64) -> Append {
    Append {
        guard: Some(guard),
        clients: vec![77],
        user: None,
        expected_seq: Some(seq),
        after: 0,
        ..edit(document, "back")
    }
}

pub(crate) async fn g2_a_restore_stores_its_edit_and_both_versions_or_nothing(desk: Desk) {
    let seated = desk.seated().await;
    let document = seated.document;
    for _ in 0..2 {
        desk.append(edit(document, "x")).await;
    }
    let first = stored(&desk.storage, pause(document, 1, "one")).await;
    let restore = async |edit: &Append, seq| {
        let before = pause(document, seq, "two");
        let after = NewVersion {
            restored_from: Some(first.number),
            ..new(document, VersionKind::Restore, seq + 1, "one")
        };
        desk.storage.restore_version(edit, &before, &after).await.unwrap()
    };
    // Under an older fence, under the reviewer's fence, and on a text that has changed.
    let stale = FenceGuard { fence: Fence(9), ..seated.writer };
    assert_eq!(restore(&back(document, stale, 2), 2).await, Guarded::Fenced);
    assert_eq!(restore(&back(document, seated.reviewer, 2), 2).await, Guarded::Fenced);
    assert_eq!(restore(&back(document, seated.writer, 1), 1).await, Guarded::Stale);
    assert_eq!(
        desk.storage.versions(document, 10, None).await.unwrap(),
        std::slice::from_ref(&first)
    );
    assert_eq!(desk.text(document).await, b"xx");

    let Guarded::Done((version, seq)) = restore(&back(document, seated.writer, 2), 2).await else {
        panic!("not restored");
    };
    assert_eq!((seq, version.seq, version.number), (3, 3, 3));
    assert_eq!((version.kind, version.restored_from), (VersionKind::Restore, Some(1)));
    assert_eq!(desk.text(document).await, b"xxback");
    let all = desk.storage.versions(document, 10, None).await.unwrap();
    assert_eq!(
        all.iter().map(|one| one.kind).collect::<Vec<_>>(),
        [VersionKind::Restore, VersionKind::Pause, VersionKind::Pause]
    );
    assert_eq!(text_of(&desk.storage, &all[1]).await, "two");

    ratify(&desk.storage, seated.writer.seat, 11).await;
    assert_eq!(restore(&back(document, seated.writer, 3), 3).await, Guarded::Fenced);
    assert!(desk.storage.revoke_link(seated.link, at(20)).await.unwrap());
    let new_guard = FenceGuard { fence: Fence(11), ..seated.writer };
    assert_eq!(restore(&back(document, new_guard, 3), 3).await, Guarded::Fenced);
}
