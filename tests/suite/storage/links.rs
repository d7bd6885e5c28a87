//! Share links.

use std::collections::HashSet;

use crate::storage::database::{Desk, at, new_link, user, within};
use galley::domain::ids::{DocumentId, ShareLinkId};
use galley::domain::user::User;
use galley::storage::links::{FindOrCreate, Joined};
use galley::storage::pagination::Page;
use tokio::task::JoinSet;

crate::storage::on_both_engines! {
    links:
    g11_a_hundred_concurrent_calls_in_two_processes_create_one_link
    a_link_contains_its_writer_and_the_current_title
    an_unknown_document_gets_no_link
    a_revoked_link_stays_readable_and_permits_a_new_link
    of_concurrent_joins_one_user_becomes_the_reviewer_and_stays_it
    a_users_links_are_the_active_ones_as_writer_or_reviewer_newest_first
}

pub(crate) async fn g11_a_hundred_concurrent_calls_in_two_processes_create_one_link(desk: Desk) {
    let document = desk.document().await;
    let handles = [desk.storage.clone(), desk.another().await];
    let mut tasks = JoinSet::new();
    for number in 0..100 {
        let storage = handles[number % 2].clone();
        let request = async move { storage.find_or_create_link(&new_link(document)).await };
        tasks.spawn(request);
    }

    let answers = within(tasks.join_all()).await;

    let answers: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().unwrap()).collect();
    let ids: HashSet<ShareLinkId> = answers.iter().map(|(link, _)| link.id).collect();
    assert_eq!(ids.len(), 1);
    let created = answers.iter().filter(|(_, found)| *found == FindOrCreate::Created).count();
    assert_eq!(created, 1);
}

pub(crate) async fn a_link_contains_its_writer_and_the_current_title(desk: Desk) {
    let document = desk.document().await;
    let new = new_link(document);
    let (made, _) = desk.storage.find_or_create_link(&new).await.unwrap().unwrap();
    assert_eq!((made.id, made.document_id, made.invite_hash), (new.id, document, [7; 32]));
    assert_eq!((made.writer.clone(), made.reviewer.clone()), (user("kim"), None));
    assert_eq!((made.created_at, made.revoked_at), (at(1), None));

    desk.storage.rename_document(document, "다른 제목", at(2)).await.unwrap();

    let read = desk.storage.link(made.id).await.unwrap().unwrap();
    assert_eq!(read.title, "다른 제목");
}

pub(crate) async fn an_unknown_document_gets_no_link(desk: Desk) {
    let storage = &desk.storage;
    let none = storage.find_or_create_link(&new_link(DocumentId::generate())).await.unwrap();
    assert_eq!(none, None);
    assert_eq!(storage.link(ShareLinkId::generate()).await.unwrap(), None);
}

pub(crate) async fn a_revoked_link_stays_readable_and_permits_a_new_link(desk: Desk) {
    let document = desk.document().await;
    let old = desk.link(document).await;
    assert!(desk.storage.revoke_link(old.id, at(5)).await.unwrap());
    assert!(!desk.storage.revoke_link(old.id, at(6)).await.unwrap());
    assert!(!desk.storage.revoke_link(ShareLinkId::generate(), at(6)).await.unwrap());

    let read = desk.storage.link(old.id).await.unwrap().unwrap();
    assert_eq!(read.revoked_at, Some(at(5)));
    assert_ne!(desk.link(document).await.id, old.id);
    let joined = desk.storage.join_link(old.id, &user("lee"), at(7)).await.unwrap();
    assert_eq!(joined, Joined::Gone);
    let unknown = desk.storage.join_link(ShareLinkId::generate(), &user("lee"), at(7)).await;
    assert_eq!(unknown.unwrap(), Joined::Gone);
}

pub(crate) async fn of_concurrent_joins_one_user_becomes_the_reviewer_and_stays_it(desk: Desk) {
    let link = desk.link(desk.document().await).await.id;
    let handles = [desk.storage.clone(), desk.another().await];
    let mut tasks = JoinSet::new();
    for number in 0..30 {
        let storage = handles[number % 2].clone();
        let lee = user(&format!("lee{number}"));
        tasks.spawn(async move { storage.join_link(link, &lee, at(2)).await.unwrap() });
    }

    let outcomes = within(tasks.join_all()).await;

    let of_those = |outcome: &Joined| match outcome {
        Joined::Reviewer(link) => link.reviewer.clone(),
        Joined::ReviewerExists { .. } | Joined::Gone => None,
    };
    let reviewers: Vec<User> = outcomes.iter().filter_map(of_those).collect();
    let [reviewer] = &reviewers[..] else { panic!("{reviewers:?}") };
    assert!(!outcomes.contains(&Joined::Gone));
    let again = desk.storage.join_link(link, reviewer, at(3)).await.unwrap();
    assert_eq!(of_those(&again).as_ref(), Some(reviewer));
}

pub(crate) async fn a_users_links_are_the_active_ones_as_writer_or_reviewer_newest_first(
    desk: Desk,
) {
    let (kim, lee) = (user("kim"), user("lee"));
    let written = desk.link(desk.document_of(&kim, at(0)).await.id).await.id;
    let mut newer = new_link(desk.document_of(&lee, at(0)).await.id);
    newer.now = at(9);
    desk.storage.find_or_create_link(&newer).await.unwrap();
    desk.storage.join_link(newer.id, &kim, at(9)).await.unwrap();
    let revoked = desk.link(desk.document_of(&kim, at(0)).await.id).await.id;
    desk.storage.revoke_link(revoked, at(9)).await.unwrap();
    desk.link(desk.document_of(&user("park"), at(0)).await.id).await;

    let ids = async |of: &User| {
        // Pages of one row: each begins where the previous one ended.
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let page = Page { limit: 1, before };
            let links = desk.storage.links_of(&of.id, &page).await.unwrap();
            let Some(last) = links.last() else { return seen };
            before = Some(last.cursor());
            seen.push(last.id);
        }
    };

    assert_eq!(ids(&kim).await, [newer.id, written]);
    assert_eq!(ids(&lee).await, [newer.id]);
}
