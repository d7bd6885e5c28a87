//! The talk of both users about a text: remarks on the whole text, replies, seen marks, the turn.

use crate::storage::database::{Desk, Seated, at, new_reply, new_review, user};
use crate::storage::reviews::review_of;
use galley::domain::anchor::{AnchorOrigin, RelativeRange};
use galley::domain::fence::Fence;
use galley::domain::ids::{ReplyId, ReviewId, SessionId, ShareLinkId, UserId};
use galley::domain::limits::SUMMARIES_PER_AUTHOR_MAX;
use galley::domain::progress::{Progress, ReviewCounts};
use galley::domain::review::{ReviewKind, ReviewStatus};
use galley::domain::seat::{Role, Seat};
use galley::storage::guard::{FenceGuard, Guarded};
use galley::storage::progress::Passed;
use galley::storage::replies::{NewReply, OwnReply};
use galley::storage::review_rows::StoredReview;
use galley::storage::reviews::{NewReview, ReviewChange};

crate::storage::on_both_engines! {
    talk:
    a_remark_on_the_whole_text_reads_back_without_a_suggestion
    g13_a_link_rejects_remarks_on_the_whole_text_beyond_their_limit
    a_reply_is_edited_and_deleted_by_its_author_under_its_review
    g17_an_edited_reply_counts_towards_the_bytes_of_its_review
    g2_a_reply_and_a_turn_are_unchanged_under_an_older_fence_or_another_link
    a_change_names_its_user_unless_an_older_server_made_it
    a_seen_mark_rises_up_to_the_last_change_and_belongs_to_a_member
    the_progress_of_links_counts_their_reviews_for_a_member
    a_turn_takes_a_number_of_the_review_changes_when_it_changes
}

fn done<T: std::fmt::Debug>(guarded: Guarded<T>) -> T {
    match guarded {
        Guarded::Done(value) => value,
        other => panic!("{other:?}"),
    }
}

fn summary(seated: Seated) -> NewReview {
    NewReview {
        is_summary: true,
        origin: AnchorOrigin::of_whole_text(),
        current: RelativeRange::of_whole_text(),
        suggestion: None,
        ..new_review(seated.link)
    }
}

pub(crate) async fn a_remark_on_the_whole_text_reads_back_without_a_suggestion(desk: Desk) {
    let seated = desk.seated().await;
    let new = summary(seated);

    let made = done(desk.storage.create_review(&new, seated.writer).await.unwrap());

    assert_eq!((made.kind(), &made.origin), (ReviewKind::Summary, &new.origin));
    assert_eq!(review_of(&desk.storage, seated.link, new.id).await, Some(made.clone()));
    // A server of the previous version knows no remark on the whole text.
    let change = ReviewChange { suggestion: Some(Some("x".to_owned())), ..ReviewChange::default() };
    let (link, guard) = (seated.link, seated.reviewer);
    let changed = desk.storage.change_review(link, new.id, &change, None, guard, at(6)).await;
    let changed = done(changed.unwrap());
    assert_eq!((changed.kind(), changed.suggestion), (ReviewKind::Summary, None));
}

pub(crate) async fn g13_a_link_rejects_remarks_on_the_whole_text_beyond_their_limit(desk: Desk) {
    let seated = desk.seated().await;
    for _ in 0..SUMMARIES_PER_AUTHOR_MAX {
        done(desk.storage.create_review(&summary(seated), seated.reviewer).await.unwrap());
    }
    let one_more = desk.storage.create_review(&summary(seated), seated.writer).await.unwrap();
    assert_eq!(one_more, Guarded::Full);
    // The next reviewer has remarks of their own.
    let other = NewReview { author: user("park"), ..summary(seated) };
    done(desk.storage.create_review(&other, seated.reviewer).await.unwrap());
    done(desk.storage.create_review(&new_review(seated.link), seated.reviewer).await.unwrap());
    let elsewhere = desk.seated().await;
    done(desk.storage.create_review(&summary(elsewhere), elsewhere.reviewer).await.unwrap());
}

fn own(link: ShareLinkId, review: ReviewId, id: ReplyId) -> OwnReply {
    OwnReply { link, review, id, author: user("kim").id }
}

async fn make(desk: &Desk, seated: Seated) -> StoredReview {
    done(desk.storage.create_review(&new_review(seated.link), seated.reviewer).await.unwrap())
}

pub(crate) async fn a_reply_is_edited_and_deleted_by_its_author_under_its_review(desk: Desk) {
    let seated = desk.seated().await;
    let (link, guard, storage) = (seated.link, seated.writer, &desk.storage);
    let (review, other) = (make(&desk, seated).await.id, make(&desk, seated).await.id);
    let (first, second) = (new_reply("one"), new_reply("two"));
    for reply in [&first, &second] {
        done(storage.add_reply(link, review, reply, guard, at(5)).await.unwrap());
    }
    let of_lee = OwnReply { author: user("lee").id, ..own(link, review, first.id) };
    let missing = [of_lee, own(link, other, first.id), own(link, review, ReplyId::generate())];
    for reply in &missing {
        let edited = storage.edit_reply(reply, "x", None, guard, at(6)).await.unwrap();
        assert_eq!(edited, Guarded::NotFound, "{reply:?}");
        let deleted = storage.delete_reply(reply, None, guard, at(6)).await.unwrap();
        assert_eq!(deleted, Guarded::NotFound, "{reply:?}");
    }
    let before = review_of(storage, link, review).await.unwrap();
    assert_eq!((before.version, before.changes.1), (3, 4), "nothing has changed");

    let reply = own(link, review, first.id);
    let stale = storage.edit_reply(&reply, "x", Some(2), guard, at(6)).await.unwrap();
    assert_eq!(stale, Guarded::VersionMismatch { current: 3 });
    let edited = storage.edit_reply(&reply, "하나 🙂", Some(3), guard, at(7)).await.unwrap();
    let edited = done(edited);
    assert_eq!((edited.version, edited.changes.1, edited.updated_at), (4, 5, at(7)));
    let [one, two] = edited.replies.as_slice() else { panic!("{edited:?}") };
    assert_eq!((one.body.as_str(), one.created_at, one.edited_at), ("하나 🙂", at(5), Some(at(7))));
    assert_eq!((two.body.as_str(), two.edited_at), ("two", None));
    assert_eq!(review_of(storage, link, review).await, Some(edited));

    let stale = storage.delete_reply(&reply, Some(3), guard, at(8)).await.unwrap();
    assert_eq!(stale, Guarded::VersionMismatch { current: 4 });
    let left = done(storage.delete_reply(&reply, Some(4), guard, at(8)).await.unwrap());
    assert_eq!((left.version, left.changes.1, left.replies.len()), (5, 6, 1));
    let third =
        done(storage.add_reply(link, review, &new_reply("three"), guard, at(9)).await.unwrap());
    let bodies: Vec<_> = third.replies.iter().map(|reply| reply.body.as_str()).collect();
    assert_eq!(bodies, ["two", "three"]);
}

pub(crate) async fn g17_an_edited_reply_counts_towards_the_bytes_of_its_review(desk: Desk) {
    let seated = desk.seated().await;
    let (link, guard, storage) = (seated.link, seated.writer, &desk.storage);
    let review = make(&desk, seated).await.id;
    let long = "가".repeat(20_000);
    let mut ids = Vec::new();
    loop {
        let reply = NewReply { id: ReplyId::generate(), ..new_reply(&long) };
        match storage.add_reply(link, review, &reply, guard, at(5)).await.unwrap() {
            Guarded::Done(_) => ids.push(reply.id),
            Guarded::Full => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ids.len(), 4);
    let edit = async |id, body: String| {
        storage.edit_reply(&own(link, review, id), &body, None, guard, at(6)).await.unwrap()
    };
    // Some 262 KB fit: 22 KB remain.
    assert_eq!(edit(ids[0], "가".repeat(30_000)).await, Guarded::Full);
    done(edit(ids[0], "가".repeat(27_000)).await);
    assert_eq!(edit(ids[1], "가".repeat(27_000)).await, Guarded::Full);
    done(edit(ids[0], "short".to_owned()).await);
    done(edit(ids[1], "가".repeat(40_000)).await);
    done(storage.delete_reply(&own(link, review, ids[1]), None, guard, at(7)).await.unwrap());
    done(edit(ids[0], "가".repeat(40_000)).await);
    assert_eq!(edit(ids[2], "가".repeat(30_000)).await, Guarded::Full);
}

pub(crate) async fn g2_a_reply_and_a_turn_are_unchanged_under_an_older_fence_or_another_link(
    desk: Desk,
) {
    let (seated, elsewhere) = (desk.seated().await, desk.seated().await);
    let (link, storage) = (seated.link, &desk.storage);
    let review = make(&desk, seated).await.id;
    let reply = new_reply("one");
    let made = done(storage.add_reply(link, review, &reply, seated.writer, at(5)).await.unwrap());
    desk.seat(link, Role::Reviewer, 21).await;
    desk.seat(link, Role::Writer, 11).await;
    let unratified = FenceGuard { fence: Fence(12), ..seated.writer };
    for guard in [seated.writer, seated.reviewer, unratified, elsewhere.writer] {
        let reply = own(link, review, reply.id);
        let edited = storage.edit_reply(&reply, "x", None, guard, at(6)).await.unwrap();
        assert_eq!(edited, Guarded::Fenced);
        let deleted = storage.delete_reply(&reply, None, guard, at(6)).await.unwrap();
        assert_eq!(deleted, Guarded::Fenced);
        let kim = user("kim");
        let passed = storage.pass_turn(link, Role::Reviewer, &kim, guard, at(6)).await.unwrap();
        assert_eq!(passed, Guarded::Fenced);
    }
    assert_eq!(review_of(storage, link, review).await, Some(made));
    let progress = storage.progress_of(&user("kim").id, &[link]).await.unwrap();
    assert_eq!(progress[&link].turn, None);
}

/// A link whose reviewer lee has joined and holds the reviewer's seat.
async fn joined(desk: &Desk) -> Seated {
    let seated = desk.seated().await;
    desk.storage.join_link(seated.link, &user("lee"), at(2)).await.unwrap();
    let seat = Seat::new(seated.link, Role::Reviewer);
    let (fence, lee) = (Fence(30), user("lee").id);
    desk.storage.ratify(seat, fence, SessionId::generate(), &lee, at(2)).await.unwrap();
    Seated { reviewer: FenceGuard { seat, fence }, ..seated }
}

async fn progress(desk: &Desk, who: &UserId, link: ShareLinkId) -> Progress {
    desk.storage.progress_of(who, &[link]).await.unwrap().remove(&link).unwrap()
}

pub(crate) async fn a_change_names_its_user_unless_an_older_server_made_it(desk: Desk) {
    let seated = joined(&desk).await;
    let (link, storage) = (seated.link, &desk.storage);
    let (kim, lee) = (user("kim").id, user("lee").id);
    let made = make(&desk, seated).await;
    assert_eq!(made.changed_by.as_ref(), Some(&lee));
    let reply = new_reply("x");
    let replied =
        done(storage.add_reply(link, made.id, &reply, seated.writer, at(5)).await.unwrap());
    assert_eq!(replied.changed_by.as_ref(), Some(&kim));
    let status = ReviewChange { status: Some(ReviewStatus::Resolved), ..ReviewChange::default() };
    let resolved = storage.change_review(link, made.id, &status, None, seated.writer, at(6)).await;
    assert_eq!(done(resolved.unwrap()).changed_by.as_ref(), Some(&kim));
    assert_eq!(progress(&desk, &kim, link).await.reviews.unread, 0);
    assert_eq!(progress(&desk, &lee, link).await.reviews.unread, 1);
    // A server of the previous version numbers its change, and names no user.
    let mut older = desk.location.stranger().await;
    older.run("UPDATE documents SET review_changes = review_changes + 1").await;
    older.run("UPDATE reviews SET last_change = last_change + 1, version = version + 1").await;
    let changed = review_of(storage, link, made.id).await.unwrap();
    assert_eq!((changed.changes.1, changed.changed_by), (4, None));
    for who in [&kim, &lee] {
        assert_eq!(progress(&desk, who, link).await.reviews.unread, 1);
    }
}

pub(crate) async fn a_seen_mark_rises_up_to_the_last_change_and_belongs_to_a_member(desk: Desk) {
    let seated = joined(&desk).await;
    let (link, storage) = (seated.link, &desk.storage);
    let (kim, lee, park) = (user("kim").id, user("lee").id, user("park").id);
    for _ in 0..3 {
        make(&desk, seated).await;
    }
    let seen = async |who: &UserId| progress(&desk, who, link).await.seen;
    for (change, expected) in [(2, 2), (1, 2), (-5, 2), (i64::MAX, 3), (0, 3)] {
        let before = seen(&kim).await;
        let is_raised = storage.mark_seen(link, &kim, change).await.unwrap();
        assert_eq!((seen(&kim).await, is_raised), (expected, before < expected));
    }
    assert_eq!(seen(&lee).await, 0);
    assert!(!storage.mark_seen(link, &park, 3).await.unwrap());
    assert_eq!(seen(&park).await, 0, "no member");
    storage.mark_seen(link, &lee, 1).await.unwrap();
    assert_eq!((seen(&lee).await, seen(&kim).await), (1, 3));
    // The next reviewer begins without a mark, and replaces the one before.
    let mut stranger = desk.location.stranger().await;
    stranger.run("INSERT INTO users (id, name, updated_at) SELECT 'park', 'PARK', updated_at FROM users LIMIT 1").await;
    stranger.run("UPDATE share_links SET reviewer_id = 'park' WHERE reviewer_id = 'lee'").await;
    assert_eq!(seen(&park).await, 0);
    assert!(!storage.mark_seen(link, &lee, 3).await.unwrap());
    assert_eq!(seen(&lee).await, 1, "no member any more");
    storage.mark_seen(link, &park, 2).await.unwrap();
    assert_eq!((seen(&park).await, seen(&lee).await), (2, 0));
    storage.revoke_link(link, at(9)).await.unwrap();
    assert!(!storage.mark_seen(link, &park, 3).await.unwrap());
    assert_eq!(seen(&park).await, 2, "a revoked link");
}

pub(crate) async fn the_progress_of_links_counts_their_reviews_for_a_member(desk: Desk) {
    let (one, two, empty) = (joined(&desk).await, joined(&desk).await, joined(&desk).await);
    let (kim, lee) = (user("kim").id, user("lee").id);
    for _ in 0..3 {
        make(&desk, one).await;
    }
    let made = make(&desk, two).await;
    let comment = NewReview { suggestion: None, ..new_review(two.link) };
    done(desk.storage.create_review(&comment, two.writer).await.unwrap());
    let status = ReviewChange { status: Some(ReviewStatus::Rejected), ..ReviewChange::default() };
    let rejected = desk.storage.change_review(two.link, made.id, &status, None, two.writer, at(6));
    done(rejected.await.unwrap());
    desk.storage.mark_seen(one.link, &kim, 2).await.unwrap();
    let links = [one.link, two.link, empty.link, ShareLinkId::generate()];
    let counts = async |who: &UserId| {
        let progress = desk.storage.progress_of(who, &links).await.unwrap();
        assert_eq!(progress[&links[3]], Progress::default(), "an unknown link has no review");
        [one.link, two.link, empty.link].map(|link| (progress[&link].seen, progress[&link].reviews))
    };
    let of = |open, unread, total| ReviewCounts { open, unread, total };
    assert_eq!(counts(&kim).await, [(2, of(3, 1, 3)), (0, of(1, 0, 2)), (0, of(0, 0, 0))]);
    assert_eq!(counts(&lee).await, [(0, of(3, 0, 3)), (0, of(1, 2, 2)), (0, of(0, 0, 0))]);
    assert!(desk.storage.progress_of(&kim, &[]).await.unwrap().is_empty());
}

pub(crate) async fn a_turn_takes_a_number_of_the_review_changes_when_it_changes(desk: Desk) {
    let seated = joined(&desk).await;
    let (link, document, storage) = (seated.link, seated.document, &desk.storage);
    let (kim, lee) = (user("kim"), user("lee"));
    make(&desk, seated).await;
    let pass = async |to, by, guard, second| {
        done(storage.pass_turn(link, to, by, guard, at(second)).await.unwrap())
    };
    let Passed::Changed(first) = pass(Role::Reviewer, &kim, seated.writer, 5).await else {
        panic!("the first turn")
    };
    assert_eq!((first.turn.role, first.turn.since, &first.turn.by), (Role::Reviewer, at(5), &kim));
    assert_eq!(first.change, 2);
    let same = pass(Role::Reviewer, &lee, seated.reviewer, 6).await;
    assert_eq!(same, Passed::Same(first.turn.clone()));
    let changes = storage.review_changes(document, 1).await.unwrap().unwrap();
    assert_eq!((changes.upto, changes.turn, changes.changed.len()), (2, Some(first.clone()), 0));
    let changes = storage.review_changes(document, 2).await.unwrap().unwrap();
    assert_eq!(changes.turn, None);
    let Passed::Changed(second) = pass(Role::Writer, &lee, seated.reviewer, 7).await else {
        panic!("another turn")
    };
    assert_eq!((second.change, &second.turn.by), (3, &lee));
    assert_eq!(progress(&desk, &kim.id, link).await.turn, Some(second.turn));
    // Concurrent passes of one turn: one takes a number.
    let passes = (0..8).map(|_| pass(Role::Reviewer, &kim, seated.writer, 8));
    let outcomes = futures_util::future::join_all(passes).await;
    let changed = outcomes.iter().filter(|one| matches!(one, Passed::Changed(_))).count();
    assert_eq!(changed, 1);
}
