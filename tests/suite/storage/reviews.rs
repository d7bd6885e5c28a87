//! Reviews.

use crate::storage::database::{Desk, Seated, at, new_invite, new_reply, new_review, user};
use galley::domain::anchor::RelativeRange;
use galley::domain::fence::Fence;
use galley::domain::ids::{ReplyId, ReviewId, ShareLinkId};
use galley::domain::limits::{
    OPEN_PER_LINK_MAX, REPLIES_PER_REVIEW_MAX, REVIEW_BYTES_MAX, REVIEW_PAGE_BYTES_MAX,
    REVIEW_PAGE_ROWS_MAX, REVIEWS_BYTES_MAX,
};
use galley::domain::review::ReviewStatus;
use galley::domain::seat::Role;
use galley::storage::Storage;
use galley::storage::guard::{FenceGuard, Guarded};
use galley::storage::links::Membership;
use galley::storage::review_changes::{DeletedReview, ReviewChanges};
use galley::storage::review_rows::StoredReview;
use galley::storage::reviews::{NewReview, ReviewChange};

crate::storage::on_both_engines! {
    reviews:
    a_created_review_reads_back_unchanged
    reviews_are_listed_oldest_first_with_their_replies_in_order
    g14_a_reader_who_is_no_member_of_an_active_link_reads_no_review
    a_change_updates_its_fields_only_and_increments_the_version
    an_unknown_review_is_not_found
    a_deleted_review_deletes_its_replies
    g2_a_review_is_unchanged_under_an_older_fence_or_another_link
    g14_a_revoked_link_accepts_no_review
    a_moved_review_retains_its_version
    g13_a_review_rejects_replies_beyond_its_limit
    g13_a_link_rejects_reviews_beyond_its_limit
    g17_a_review_rejects_bytes_beyond_its_limit
    g17_a_link_rejects_bytes_of_reviews_beyond_its_limit
    g17_a_list_of_reviews_is_read_in_pages_of_bounded_rows_and_bytes
    g15_each_change_of_a_review_has_the_next_number_of_its_document
}

pub(crate) async fn make(desk: &Desk, seated: Seated) -> StoredReview {
    done(desk.storage.create_review(&new_review(seated.link), seated.reviewer).await.unwrap())
}

pub(crate) fn done<T: std::fmt::Debug>(guarded: Guarded<T>) -> T {
    match guarded {
        Guarded::Done(value) => value,
        other => panic!("{other:?}"),
    }
}

/// A review as the writer of the link reads it. `None` also if the writer has no such link.
pub(crate) async fn review_of(
    storage: &Storage,
    link: ShareLinkId,
    id: ReviewId,
) -> Option<StoredReview> {
    let member = storage.member(&user("kim"), link).await.unwrap()?;
    storage.review(&member, id).await.unwrap()
}

fn to_status(status: ReviewStatus) -> ReviewChange {
    ReviewChange { status: Some(status), ..ReviewChange::default() }
}

pub(crate) async fn a_created_review_reads_back_unchanged(desk: Desk) {
    let seated = desk.seated().await;
    let new = new_review(seated.link);

    let made = done(desk.storage.create_review(&new, seated.reviewer).await.unwrap());

    assert_eq!((made.id, made.link, &made.author), (new.id, new.link, &new.author));
    assert_eq!((&made.origin, &made.current), (&new.origin, &new.current));
    assert_eq!((&made.body, &made.suggestion), (&new.body, &new.suggestion));
    assert_eq!((made.status, made.version), (ReviewStatus::Open, 1));
    assert_eq!((made.created_at, made.updated_at), (at(4), at(4)));
    assert_eq!(review_of(&desk.storage, seated.link, new.id).await, Some(made.clone()));
    assert_eq!(
        desk.storage.reviews_unchecked(seated.link, None, 100).await.unwrap().reviews,
        [made]
    );
    let elsewhere = desk.seated().await.link;
    assert_eq!(review_of(&desk.storage, elsewhere, new.id).await, None);
}

pub(crate) async fn g14_a_reader_who_is_no_member_of_an_active_link_reads_no_review(desk: Desk) {
    let (seated, storage) = (desk.seated().await, &desk.storage);
    let link = seated.link;
    let member = async |who: &str| storage.member(&user(who), link).await.unwrap();
    let (kim, lee) = (member("kim").await.unwrap(), member("lee").await.unwrap());
    assert!(member("park").await.is_none());
    // Whether a proof of a membership, which may be old, reads the list, and the number of reviews.
    let listed = async |member: &Membership| {
        let page = storage.reviews(member, None, 9).await.unwrap();
        page.map(|page| page.reviews.len())
    };
    assert_eq!(listed(&kim).await, Some(0));
    let id = make(&desk, seated).await.id;
    let reads = async |member: &Membership| storage.review(member, id).await.unwrap().is_some();
    for one in [&kim, &lee] {
        assert_eq!((listed(one).await, reads(one).await), (Some(1), true));
    }
    storage.remove_reviewer(link, &new_invite([8; 32], at(5))).await.unwrap();
    assert_eq!((listed(&lee).await, reads(&lee).await), (None, false));
    assert_eq!((listed(&kim).await, reads(&kim).await), (Some(1), true));
    storage.revoke_link(link, at(6)).await.unwrap();
    assert_eq!((listed(&kim).await, reads(&kim).await), (None, false));
    assert!(member("kim").await.is_none() && member("lee").await.is_none());
}

pub(crate) async fn reviews_are_listed_oldest_first_with_their_replies_in_order(desk: Desk) {
    let seated = desk.seated().await;
    let mut ids = Vec::new();
    for second in [5, 3, 4] {
        let new = NewReview { now: at(second), ..new_review(seated.link) };
        desk.storage.create_review(&new, seated.reviewer).await.unwrap();
        ids.push(new.id);
    }
    for body in ["one", "two", "three"] {
        // All at the same time: the order does not depend on a clock.
        let reply = new_reply(body);
        let guard = seated.writer;
        done(desk.storage.add_reply(seated.link, ids[0], &reply, guard, at(6)).await.unwrap());
    }

    let listed = desk.storage.reviews_unchecked(seated.link, None, 100).await.unwrap().reviews;

    let order: Vec<ReviewId> = listed.iter().map(|review| review.id).collect();
    assert_eq!(order, [ids[1], ids[2], ids[0]]);
    let bodies: Vec<&str> = listed[2].replies.iter().map(|reply| reply.body.as_str()).collect();
    assert_eq!(bodies, ["one", "two", "three"]);
    assert_eq!((listed[2].version, listed[2].updated_at), (4, at(6)));
    assert_eq!(listed[2].replies[0].author, user("kim"));
    assert_eq!(review_of(&desk.storage, seated.link, ids[0]).await.unwrap(), listed[2]);
}

pub(crate) async fn a_change_updates_its_fields_only_and_increments_the_version(desk: Desk) {
    let seated = desk.seated().await;
    let made = make(&desk, seated).await;
    let change = async |change: &ReviewChange, expected| {
        let (link, guard) = (seated.link, seated.reviewer);
        desk.storage.change_review(link, made.id, change, expected, guard, at(7)).await.unwrap()
    };
    let body = ReviewChange { body: Some("다른 말".to_owned()), ..ReviewChange::default() };
    let changed = done(change(&body, Some(1)).await);
    let expected = StoredReview {
        body: "다른 말".to_owned(),
        version: 2,
        changes: (1, 2),
        updated_at: at(7),
        ..made.clone()
    };
    assert_eq!(changed, expected);

    let none = ReviewChange { suggestion: Some(None), ..ReviewChange::default() };
    assert_eq!(done(change(&none, None).await).suggestion, None);
    let empty = ReviewChange { suggestion: Some(Some(String::new())), ..ReviewChange::default() };
    assert_eq!(done(change(&empty, None).await).suggestion.as_deref(), Some(""));
    let resolved = done(change(&to_status(ReviewStatus::Resolved), Some(4)).await);
    assert_eq!((resolved.status, resolved.version), (ReviewStatus::Resolved, 5));
    let mismatch = change(&body, Some(4)).await;
    assert_eq!(mismatch, Guarded::VersionMismatch { current: 5 });
    let late = change(&body, None).await;
    assert_eq!(late, Guarded::VersionMismatch { current: 5 }, "decided, and not worded anew");
}

pub(crate) async fn an_unknown_review_is_not_found(desk: Desk) {
    let (seated, elsewhere) = (desk.seated().await, desk.seated().await);
    let other = make(&desk, elsewhere).await.id;
    let (link, guard) = (seated.link, seated.reviewer);
    for id in [ReviewId::generate(), other] {
        let change = ReviewChange::default();
        let changed = desk.storage.change_review(link, id, &change, None, guard, at(5)).await;
        assert_eq!(changed.unwrap(), Guarded::NotFound);
        let deleted = desk.storage.delete_review(link, id, None, guard).await;
        assert_eq!(deleted.unwrap(), Guarded::NotFound);
        let reply = new_reply("x");
        let replied = desk.storage.add_reply(link, id, &reply, guard, at(5)).await;
        assert_eq!(replied.unwrap(), Guarded::NotFound);
    }
    assert_eq!(desk.text(seated.document).await, b"");
}

pub(crate) async fn a_deleted_review_deletes_its_replies(desk: Desk) {
    let seated = desk.seated().await;
    let made = make(&desk, seated).await;
    let (link, guard) = (seated.link, seated.reviewer);
    let reply = new_reply("x");
    done(desk.storage.add_reply(link, made.id, &reply, guard, at(5)).await.unwrap());
    let late = desk.storage.delete_review(link, made.id, Some(1), guard).await.unwrap();
    assert_eq!(late, Guarded::VersionMismatch { current: 2 });
    done(desk.storage.delete_review(link, made.id, Some(2), guard).await.unwrap());
    assert_eq!(desk.storage.reviews_unchecked(link, None, 100).await.unwrap().reviews, []);
    // A surviving row of the reply would still occupy its id.
    let again = make(&desk, seated).await.id;
    done(desk.storage.add_reply(link, again, &reply, guard, at(6)).await.unwrap());
}

pub(crate) async fn g2_a_review_is_unchanged_under_an_older_fence_or_another_link(desk: Desk) {
    let (seated, elsewhere) = (desk.seated().await, desk.seated().await);
    let made = make(&desk, seated).await;
    desk.seat(seated.link, Role::Reviewer, 21).await;
    desk.seat(seated.link, Role::Writer, 11).await;
    let link = seated.link;
    let unratified = FenceGuard { fence: Fence(22), ..seated.reviewer };
    for guard in [seated.reviewer, seated.writer, unratified, elsewhere.reviewer] {
        let created = desk.storage.create_review(&new_review(link), guard).await;
        assert_eq!(created.unwrap(), Guarded::Fenced);
        let change = to_status(ReviewStatus::Rejected);
        let changed = desk.storage.change_review(link, made.id, &change, None, guard, at(9)).await;
        assert_eq!(changed.unwrap(), Guarded::Fenced);
        let reply = new_reply("x");
        let replied = desk.storage.add_reply(link, made.id, &reply, guard, at(9)).await;
        assert_eq!(replied.unwrap(), Guarded::Fenced);
        let deleted = desk.storage.delete_review(link, made.id, None, guard).await;
        assert_eq!(deleted.unwrap(), Guarded::Fenced);
    }
    assert_eq!(desk.storage.reviews_unchecked(link, None, 100).await.unwrap().reviews, [made]);
    assert_eq!(desk.text(seated.document).await, b"");
}

pub(crate) async fn g14_a_revoked_link_accepts_no_review(desk: Desk) {
    let seated = desk.seated().await;
    desk.storage.revoke_link(seated.link, at(5)).await.unwrap();
    let created = desk.storage.create_review(&new_review(seated.link), seated.reviewer).await;
    assert_eq!(created.unwrap(), Guarded::Fenced);
}

pub(crate) async fn a_moved_review_retains_its_version(desk: Desk) {
    let seated = desk.seated().await;
    let made = make(&desk, seated).await;
    let current = RelativeRange { start: vec![9], end: vec![] };
    desk.storage.relocate(made.id, 0, &made.current, &current).await.unwrap();
    let moved = review_of(&desk.storage, seated.link, made.id).await.unwrap();
    assert_eq!(moved, StoredReview { current, ..made.clone() });
    // A read that began before the move found a place of the earlier position.
    let late = RelativeRange { start: vec![7], end: vec![7] };
    desk.storage.relocate(made.id, 0, &made.current, &late).await.unwrap();
    let stays = review_of(&desk.storage, seated.link, made.id).await.unwrap();
    assert_eq!(stays, moved);
}

pub(crate) async fn g13_a_review_rejects_replies_beyond_its_limit(desk: Desk) {
    let seated = desk.seated().await;
    let id = make(&desk, seated).await.id;
    let (link, guard) = (seated.link, seated.writer);
    for _ in 0..REPLIES_PER_REVIEW_MAX {
        let reply = new_reply("x");
        done(desk.storage.add_reply(link, id, &reply, guard, at(5)).await.unwrap());
    }
    let one_more = desk.storage.add_reply(link, id, &new_reply("x"), guard, at(5)).await.unwrap();
    assert_eq!(one_more, Guarded::Full);
    let review = review_of(&desk.storage, link, id).await.unwrap();
    assert_eq!(i64::try_from(review.replies.len()), Ok(REPLIES_PER_REVIEW_MAX));
    let ids: std::collections::HashSet<ReplyId> =
        review.replies.iter().map(|reply| reply.id).collect();
    assert_eq!(ids.len(), review.replies.len());
}

pub(crate) async fn g13_a_link_rejects_reviews_beyond_its_limit(desk: Desk) {
    let seated = desk.seated().await;
    for _ in 1..OPEN_PER_LINK_MAX {
        make(&desk, seated).await;
    }
    let last = make(&desk, seated).await;
    let create = async |suggestion: Option<&str>| {
        let suggestion = suggestion.map(str::to_owned);
        let new = NewReview { suggestion, ..new_review(seated.link) };
        desk.storage.create_review(&new, seated.reviewer).await.unwrap()
    };
    assert_eq!(create(Some("x")).await, Guarded::Full);
    done(create(None).await);
    // A decided suggestion makes room for another.
    let change = to_status(ReviewStatus::Resolved);
    let (link, guard) = (seated.link, seated.writer);
    let closed = desk.storage.change_review(link, last.id, &change, Some(1), guard, at(7)).await;
    done(closed.unwrap());
    done(create(Some("x")).await);
    assert_eq!(create(Some("x")).await, Guarded::Full);
    let elsewhere = desk.seated().await;
    make(&desk, elsewhere).await;
}

/// A text of `bytes` bytes, in characters of three bytes.
fn long(bytes: usize) -> String {
    "가".repeat(bytes / 3)
}

fn to_body(body: String) -> ReviewChange {
    ReviewChange { body: Some(body), ..ReviewChange::default() }
}

pub(crate) async fn g17_a_review_rejects_bytes_beyond_its_limit(desk: Desk) {
    let seated = desk.seated().await;
    let (link, guard, storage) = (seated.link, seated.writer, &desk.storage);
    let id = make(&desk, seated).await.id;
    let reply = new_reply(&long(60_000));
    let mut refused = None;
    for _ in 0..6 {
        let reply = galley::storage::replies::NewReply { id: ReplyId::generate(), ..reply.clone() };
        match storage.add_reply(link, id, &reply, guard, at(5)).await.unwrap() {
            Guarded::Done(_) => {}
            other => refused = Some(other),
        }
    }
    assert_eq!(refused, Some(Guarded::Full));
    let review = review_of(storage, link, id).await.unwrap();
    assert_eq!((review.replies.len(), review.version), (4, 5));
    assert!(i64::try_from(review.bytes()).unwrap() <= REVIEW_BYTES_MAX);
    // A full review still accepts new text and decisions that do not grow it.
    let change = async |change: ReviewChange| {
        storage.change_review(link, id, &change, None, seated.reviewer, at(6)).await.unwrap()
    };
    assert_eq!(change(to_body(long(30_000))).await, Guarded::Full);
    done(change(to_body("short".to_owned())).await);
    done(change(to_status(ReviewStatus::Resolved)).await);
}

pub(crate) async fn g17_a_link_rejects_bytes_of_reviews_beyond_its_limit(desk: Desk) {
    let seated = desk.seated().await;
    let (link, guard, storage) = (seated.link, seated.reviewer, &desk.storage);
    let create = async |body: String| {
        let new = NewReview { body, ..new_review(link) };
        storage.create_review(&new, guard).await.unwrap()
    };
    let mut made = Vec::new();
    while let Guarded::Done(review) = create(long(240_000)).await {
        made.push(review.id);
    }
    assert_eq!(i64::try_from(made.len()), Ok(REVIEWS_BYTES_MAX / 240_000));
    assert_eq!(create(long(240_000)).await, Guarded::Full);
    // A deleted review frees its bytes.
    done(storage.delete_review(link, made[0], None, guard).await.unwrap());
    done(create(long(240_000)).await);
    // Each link has its own limit.
    make(&desk, desk.seated().await).await;
}

pub(crate) async fn g17_a_list_of_reviews_is_read_in_pages_of_bounded_rows_and_bytes(desk: Desk) {
    let seated = desk.seated().await;
    let (link, guard, storage) = (seated.link, seated.reviewer, &desk.storage);
    let mut made = Vec::new();
    for second in 0..i64::from(REVIEW_PAGE_ROWS_MAX) + 20 {
        // Groups of equal times, so that page boundaries fall within a group.
        let size = if second < 20 { 200_000 } else { 3 };
        let new = NewReview { now: at(second / 3), body: long(size), ..new_review(link) };
        made.push(done(storage.create_review(&new, guard).await.unwrap()));
    }
    made.sort_by_key(|review| (review.created_at, review.id.to_string()));
    let (mut read, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = storage.reviews_unchecked(link, after, u32::MAX).await.unwrap();
        let bytes: usize = page.reviews.iter().map(StoredReview::bytes).sum();
        assert!(i64::try_from(bytes).unwrap() <= REVIEW_PAGE_BYTES_MAX);
        assert!(u32::try_from(page.reviews.len()).unwrap() <= REVIEW_PAGE_ROWS_MAX);
        read.extend(page.reviews);
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(read, made);
    assert!((4..10).contains(&pages), "{pages}");
    let few = storage.reviews_unchecked(link, None, 2).await.unwrap();
    assert_eq!(few.reviews, made[..2]);
    assert_eq!(few.next.map(|next| next.id), Some(made[1].id));
}

pub(crate) async fn g15_each_change_of_a_review_has_the_next_number_of_its_document(desk: Desk) {
    let seated = desk.seated().await;
    let document = desk.storage.link(seated.link).await.unwrap().unwrap().document_id;
    let changes =
        async |after| desk.storage.review_changes(document, after).await.unwrap().unwrap();
    assert_eq!(changes(0).await, ReviewChanges::default());

    let (one, two) = (make(&desk, seated).await, make(&desk, seated).await);
    assert_eq!((one.changes, two.changes), ((1, 1), (2, 2)));
    let reply = new_reply("예");
    let replied = desk.storage.add_reply(seated.link, one.id, &reply, seated.reviewer, at(8));
    let one = done(replied.await.unwrap());
    assert_eq!(one.changes, (1, 3));
    let expected = ReviewChanges {
        upto: 3,
        changed: vec![two.clone(), one.clone()],
        ..ReviewChanges::default()
    };
    assert_eq!(changes(0).await, expected, "in the order of their last changes");
    assert_eq!(changes(2).await.changed, std::slice::from_ref(&one));

    // A rejected write consumes no number.
    let fenced = FenceGuard { fence: Fence(1), ..seated.reviewer };
    let refused = desk.storage.delete_review(seated.link, two.id, None, fenced).await.unwrap();
    assert_eq!(refused, Guarded::Fenced);
    let deleted = desk.storage.delete_review(seated.link, two.id, None, seated.reviewer).await;
    assert_eq!(done(deleted.unwrap()), 4);
    let gone = DeletedReview { id: two.id, link: seated.link, change: 4 };
    let (changed, deleted) = (vec![one.clone()], vec![gone]);
    let expected = ReviewChanges { upto: 4, changed, deleted, ..ReviewChanges::default() };
    assert_eq!(changes(2).await, expected);
    assert!(changes(2).await.is_whole(2));
    assert_eq!(desk.storage.log(document).await.unwrap().unwrap().review_changes, 4);
    let numbers = desk.storage.last_numbers(&[document]).await.unwrap();
    assert_eq!(numbers[&document].review_change, 4);

    // A revoked link's reviews appear in no change list.
    assert!(desk.storage.revoke_link(seated.link, at(9)).await.unwrap());
    assert_eq!(changes(0).await.changed, []);
}
