//! The update log: numbers, owners of client ids, compaction.

use crate::storage::database::{ALL, Desk, append_one, edit, user, within};
use bytes::Bytes;
use galley::domain::ids::DocumentId;
use galley::storage::Storage;
use galley::storage::error::StorageError;
use galley::storage::log::{Append, Appended, LastNumbers, Log, Tail};
use tokio::task::JoinSet;

crate::storage::on_both_engines! {
    log:
    d7_a_rejected_update_orphans_later_updates_of_its_document_only
    d6_a_client_id_belongs_to_its_first_user_in_the_document
    logs_in_one_coalesced_query_each_match_their_document
    d3_numbers_continue_after_a_full_merge
    a_tail_contains_the_updates_from_a_number_unless_they_are_merged
    d5_an_older_snapshot_never_replaces_a_newer_one
    d5_compaction_racing_appends_from_another_process_loses_nothing
    d5_two_servers_write_and_merge_one_document_without_loss
    last_numbers_are_those_of_existing_documents
    a_gap_in_the_numbers_is_found_at_any_position
    d3_two_processes_number_one_document_without_gap_or_duplicate
    of_appends_with_the_same_expected_number_one_is_stored
    a_group_of_9000_updates_of_150_documents_is_stored_whole
}

fn stored(seq: i64) -> Appended {
    Appended::Stored { seq }
}

pub(crate) async fn d7_a_rejected_update_orphans_later_updates_of_its_document_only(desk: Desk) {
    let (first, second) = (desk.document().await, desk.document().await);
    let lee = Some(user("lee").id);
    let batch = [
        Append { clients: vec![1, 2], ..edit(first, "a") },
        Append { expected_seq: Some(1), ..edit(first, "b") },
        Append { clients: vec![3, 2], user: lee, ..edit(first, "c") },
        edit(DocumentId::generate(), "d"),
        edit(first, "e"),
        edit(second, "f"),
        Append { expected_seq: Some(5), ..edit(second, "g") },
        Append { expected_seq: Some(1), ..edit(second, "h") },
    ];

    let outcomes = desk.storage.append(&batch).await.unwrap();

    let expected = [
        stored(1),
        stored(2),
        Appended::ForeignClient { client: 2 },
        Appended::Gone,
        Appended::Orphaned,
        stored(1),
        Appended::Stale,
        Appended::Orphaned,
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(desk.text(first).await, b"ab");
    assert_eq!(desk.text(second).await, b"f");
    // In a later group the same update is checked on its own and accepted.
    let later = Append { clients: vec![3], user: Some(user("lee").id), ..edit(first, "i") };
    assert_eq!(desk.append(later).await, stored(3));
    assert_eq!(desk.storage.append(&[]).await.unwrap(), []);
}

pub(crate) async fn d6_a_client_id_belongs_to_its_first_user_in_the_document(desk: Desk) {
    let (document, other) = (desk.document().await, desk.document().await);
    let (kim, lee) = (Some(user("kim").id), Some(user("lee").id));
    let under = |document, user: &Option<_>, client| Append {
        user: user.clone(),
        clients: vec![client],
        ..edit(document, "x")
    };
    assert_eq!(desk.append(under(document, &kim, 7)).await, stored(1));
    assert_eq!(desk.append(under(document, &None, 8)).await, stored(2));

    let foreign = |client| Appended::ForeignClient { client };
    assert_eq!(desk.append(under(document, &lee, 7)).await, foreign(7));
    assert_eq!(desk.append(under(document, &None, 7)).await, foreign(7));
    assert_eq!(desk.append(under(document, &kim, 8)).await, foreign(8));
    assert_eq!(desk.append(under(document, &kim, u64::MAX)).await, foreign(u64::MAX));

    assert_eq!(desk.append(under(document, &kim, 7)).await, stored(3));
    assert_eq!(desk.append(under(document, &None, 8)).await, stored(4));
    assert_eq!(desk.append(under(other, &lee, 7)).await, stored(1));
    let owners = desk.owners(document).await;
    assert_eq!(owners, [(7, user("kim").id)]);
}

pub(crate) async fn logs_in_one_coalesced_query_each_match_their_document(desk: Desk) {
    let mut documents = Vec::new();
    for number in 0..100 {
        let document = desk.document().await;
        for seq in 1..=number % 4 {
            let client = 1_000 + number;
            desk.append(Append {
                clients: vec![client],
                ..edit(document, format!("{number}.{seq} "))
            })
            .await;
        }
        if number % 8 == 3 {
            desk.storage
                .compact(document, 2, &Bytes::from(format!("{number}.1-2 ")), ALL)
                .await
                .unwrap();
        }
        documents.push(document);
    }
    let mut reading = JoinSet::new();
    for (number, document) in (0..).zip(documents.clone()).chain((0..).zip(documents.clone())) {
        let storage = desk.storage.clone();
        reading.spawn(async move { (number, storage.log(document).await.unwrap()) });
    }
    let nothing = desk.storage.log(DocumentId::generate()).await.unwrap();
    assert_eq!(nothing, None);
    for (number, log) in reading.join_all().await {
        let log = log.unwrap();
        let text = match (number % 4, number % 8) {
            (3, 3) => format!("{number}.1-2 {number}.3 "),
            (edits, _) => (1..=edits).map(|seq| format!("{number}.{seq} ")).collect(),
        };
        assert_eq!(log.parts.concat(), text.as_bytes());
        assert_eq!((log.seq, log.hole()), (i64::try_from(number % 4).unwrap(), None));
        let owner = (number % 4 != 0).then(|| (1_000 + number, user("kim").id));
        assert_eq!(log.owners, Vec::from_iter(owner));
    }
    let mut reading = JoinSet::new();
    for (number, document) in (0..).zip(documents) {
        for from in 0..3 {
            let storage = desk.storage.clone();
            reading.spawn(async move {
                (number, from, storage.log_from(document, from).await.unwrap())
            });
        }
    }
    for (number, from, tail) in reading.join_all().await {
        let expected = (number % 8 != 3 || 2 <= from).then(|| {
            let text = |seq| (seq, Bytes::from(format!("{number}.{seq} ")));
            let first = if number % 8 == 3 { 3 } else { from.max(1) };
            let updates = (first..=i64::from(number % 4)).map(text).collect();
            Tail { updates }
        });
        assert_eq!(tail, expected, "from {from} of {number}");
    }
}

pub(crate) async fn d3_numbers_continue_after_a_full_merge(desk: Desk) {
    let document = desk.document().await;
    for text in ["a", "b", "c"] {
        desk.append(edit(document, text)).await;
    }
    desk.storage.compact(document, 3, &Bytes::from_static(b"abc"), ALL).await.unwrap();
    let merged = desk.storage.log(document).await.unwrap().unwrap();
    assert_eq!((merged.seq, merged.parts.len()), (3, 1));
    let next = Append { expected_seq: Some(3), ..edit(document, "d") };
    assert_eq!(desk.append(next).await, stored(4));
    assert_eq!(desk.text(document).await, b"abcd");
}

pub(crate) async fn a_tail_contains_the_updates_from_a_number_unless_they_are_merged(desk: Desk) {
    let document = desk.document().await;
    for text in ["a", "b", "c", "d"] {
        desk.append(edit(document, text)).await;
    }
    desk.storage.compact(document, 2, &Bytes::from_static(b"ab"), ALL).await.unwrap();
    let tail = async |seq| desk.storage.log_from(document, seq).await.unwrap();
    assert_eq!(tail(0).await, None);
    assert_eq!(tail(1).await, None);
    let (c, d) = ((3, Bytes::from_static(b"c")), (4, Bytes::from_static(b"d")));
    assert_eq!(tail(2).await.unwrap().updates, [c.clone(), d.clone()]);
    assert_eq!(tail(3).await.unwrap().updates, [c, d.clone()]);
    assert_eq!(tail(4).await.unwrap().updates, [d]);
    assert_eq!(tail(5).await.unwrap().updates, []);
}

pub(crate) async fn d5_an_older_snapshot_never_replaces_a_newer_one(desk: Desk) {
    let document = desk.document().await;
    for text in ["a", "b", "c"] {
        desk.append(edit(document, text)).await;
    }
    let compact = async |upto, merged: &'static str| {
        desk.storage
            .compact(document, upto, &Bytes::from_static(merged.as_bytes()), ALL)
            .await
            .unwrap();
    };
    compact(2, "ab").await;
    compact(1, "a").await;
    compact(2, "xx").await;
    assert_eq!(desk.text(document).await, b"abc");
    // Another update than the snapshot's was stored under its number.
    let covers = |update: &[u8]| "abx".as_bytes().windows(update.len()).any(|it| it == update);
    let merged = Bytes::from_static(b"abx");
    assert!(!desk.storage.compact(document, 3, &merged, &covers).await.unwrap());
    assert_eq!(desk.text(document).await, b"abc");
    // A merge beyond the last stored number changes nothing.
    compact(9, "abc123456").await;
    assert_eq!(desk.text(document).await, b"abc");
    assert_eq!(desk.append(edit(document, "d")).await, stored(4));
}

/// Merges the log in a loop until it ends in `last`.
async fn compact_until(storage: Storage, document: DocumentId, last: Bytes) {
    loop {
        let log = storage.log(document).await.unwrap().unwrap();
        let merged = Bytes::from(log.parts.concat());
        storage.compact(document, log.seq, &merged, ALL).await.unwrap();
        if merged.ends_with(&last) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn d5_compaction_racing_appends_from_another_process_loses_nothing(desk: Desk) {
    let document = desk.document().await;
    let marks: Vec<String> = (1..=200).map(|number| format!("{number:04};")).collect();
    let last = Bytes::from(marks.last().unwrap().clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(compact_until(desk.another().await, document, last.clone()));
    tasks.spawn(compact_until(desk.another().await, document, last));

    for (number, mark) in (1..).zip(&marks) {
        assert_eq!(desk.append(edit(document, mark.clone())).await, stored(number));
    }

    within(tasks.join_all()).await;
    assert_eq!(desk.text(document).await, marks.concat().into_bytes());
}

pub(crate) async fn d3_two_processes_number_one_document_without_gap_or_duplicate(desk: Desk) {
    let document = desk.document().await;
    let mut tasks = JoinSet::new();
    let handles = [desk.storage.clone(), desk.another().await];
    for number in 0..80 {
        let storage = handles[number % 2].clone();
        tasks.spawn(async move { append_one(&storage, edit(document, "x")).await });
    }
    let mut numbers: Vec<i64> = Vec::new();
    for outcome in within(tasks.join_all()).await {
        let Appended::Stored { seq } = outcome else { panic!("{outcome:?}") };
        numbers.push(seq);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(1..=80));
    let tail = desk.storage.log_from(document, 0).await.unwrap().unwrap();
    assert!(tail.updates.iter().map(|(seq, _)| *seq).eq(1..=80));
}

pub(crate) async fn of_appends_with_the_same_expected_number_one_is_stored(desk: Desk) {
    let document = desk.document().await;
    let mut tasks = JoinSet::new();
    let handles = [desk.storage.clone(), desk.another().await];
    for number in 0..20 {
        let storage = handles[number % 2].clone();
        let append = Append { expected_seq: Some(0), ..edit(document, "x") };
        tasks.spawn(async move { append_one(&storage, append).await });
    }
    let outcomes = within(tasks.join_all()).await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == stored(1)).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Appended::Stale).count(), 19);
}

pub(crate) async fn a_group_of_9000_updates_of_150_documents_is_stored_whole(desk: Desk) {
    let mut documents = Vec::new();
    for _ in 0..150 {
        documents.push(desk.document().await);
    }
    let clients = Vec::from_iter(0..200_u64);
    let mut batch = vec![Append { clients: clients.clone(), ..edit(documents[0], "x") }];
    batch.extend((0..9_000).map(|number| edit(documents[number % 150], "x")));

    let outcomes = desk.storage.append(&batch).await.unwrap();

    assert_eq!(outcomes.len(), 9_001);
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Appended::Stored { .. })));
    assert_eq!(desk.storage.log(documents[0]).await.unwrap().unwrap().seq, 61);
    assert_eq!(desk.storage.log(documents[149]).await.unwrap().unwrap().seq, 60);
    let owners = desk.owners(documents[0]).await;
    assert!(owners.into_iter().map(|(client, _)| client).eq(clients));
}

/// Goal: two servers write and merge one document at the same time. The log contains each
/// acknowledged update once, in its server's order, and its numbers have no gap.
/// On a slow disk a write of the other process holds the file of SQLite beyond the wait for it.
async fn append_patiently(storage: &Storage, append: Append) {
    loop {
        match storage.append(std::slice::from_ref(&append)).await.as_deref() {
            Ok([Appended::Stored { .. }]) => return,
            Ok([Appended::Busy]) | Err(StorageError::Unavailable(_)) => {}
            other => panic!("{other:?}"),
        }
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn d5_two_servers_write_and_merge_one_document_without_loss(desk: Desk) {
    let document = desk.document().await;
    let servers = [desk.storage.clone(), desk.another().await];
    let (mut writing, mut merging) = (JoinSet::new(), JoinSet::new());
    for (name, storage) in ["a", "b"].into_iter().zip(servers) {
        let (writer, last) = (storage.clone(), Bytes::from("end;"));
        writing.spawn(async move {
            for number in 0..200 {
                append_patiently(&writer, edit(document, format!("{name}{number};"))).await;
            }
        });
        merging.spawn(compact_until(storage, document, last));
    }
    within(writing.join_all()).await;
    // The last update, which ends the merge loops. No writer writes the same.
    desk.append(edit(document, "end;")).await;
    within(merging.join_all()).await;

    let log = desk.storage.log(document).await.unwrap().unwrap();
    assert_eq!((log.seq, log.hole(), log.parts.len()), (401, None, 1));
    let text = String::from_utf8(log.parts.concat()).unwrap();
    for name in ["a", "b"] {
        let marks = text.split_terminator(';').filter(|mark| mark.starts_with(name));
        let expected = (0..200).map(|number| format!("{name}{number}"));
        assert!(marks.eq(expected), "{text}");
    }
}

pub(crate) async fn last_numbers_are_those_of_existing_documents(desk: Desk) {
    let (one, two, gone) = (desk.document().await, desk.document().await, DocumentId::generate());
    for text in ["a", "b"] {
        desk.append(edit(one, text)).await;
    }
    let numbers = desk.storage.last_numbers(&[one, two, gone]).await.unwrap();
    let of = |update| LastNumbers { update, review_change: 0 };
    assert_eq!(numbers, [(one, of(2)), (two, of(0))].into());
    assert!(desk.storage.last_numbers(&[]).await.unwrap().is_empty());
}

pub(crate) async fn a_gap_in_the_numbers_is_found_at_any_position(desk: Desk) {
    let document = desk.document().await;
    let hole = async || desk.storage.log(document).await.unwrap().unwrap().hole();
    assert_eq!(hole().await, None);
    for text in ["a", "b", "c", "d", "e"] {
        desk.append(edit(document, text)).await;
    }
    assert_eq!(hole().await, None);
    // On SQLite an open of the database moves the journal to the updates.
    desk.another().await;
    let mut stranger = desk.location.stranger().await;
    stranger.run("DELETE FROM updates WHERE seq = 1").await;
    assert_eq!(hole().await, Some((0, 1)));
    desk.storage.compact(document, 2, &Bytes::from_static(b"ab"), ALL).await.unwrap();
    assert_eq!(hole().await, None);
    stranger.run("DELETE FROM updates WHERE seq = 4").await;
    assert_eq!(hole().await, Some((2, 4)));
    stranger.run("DELETE FROM updates WHERE seq = 5").await;
    assert_eq!(hole().await, Some((2, 4)));
    let Log { numbers, is_merged, .. } = desk.storage.log(document).await.unwrap().unwrap();
    assert_eq!((numbers, is_merged), (vec![2, 3], true));
}
