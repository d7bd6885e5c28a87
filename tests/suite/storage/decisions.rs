//! Decisions and their undo.

use crate::storage::database::{Desk, Seated, at, edit, new_reply, user, within};
use crate::storage::reviews::{done, make};
use chrono::TimeDelta;
use galley::domain::anchor::RelativeRange;
use galley::domain::ids::{DecisionId, ReviewId};
use galley::domain::limits::{
    DECIDED_AT_ONCE_MAX, DECIDED_ONE_BY_ONE_MAX, DECISION_PARTS_PER_LINK_MAX, DECISION_UNDO_WINDOW,
};
use galley::domain::review::{Decided, ReviewStatus, Verdict};
use galley::domain::seat::Role;
use galley::storage::decisions::{
    Committed, DecisionPart, NewDecision, StoredDecision, UndoneDecision,
};
use galley::storage::guard::{FenceGuard, Guarded};
use galley::storage::log::Append;
use galley::storage::review_changes::ManyChanged;
use galley::storage::review_rows::StoredReview;
use galley::storage::reviews::ReviewChange;
use tokio::task::JoinSet;

crate::storage::on_both_engines! {
    decisions:
    an_acceptance_changes_text_and_reviews_in_one_transaction
    of_concurrent_acceptances_one_changes_the_text
    a_rejection_and_its_undo_leave_the_text
    an_undo_opens_all_reviews_of_its_decision_or_none
    of_concurrent_undos_one_changes_the_text
    g2_a_decision_under_an_older_fence_stores_nothing
    g14_a_revoked_link_takes_no_decision
    a_status_outside_of_a_decision_ends_the_decision_of_its_review
    g13_a_link_keeps_decisions_of_a_day_up_to_a_bound
    g15_a_decision_about_many_reviews_is_one_numbered_change
}

fn part(review: &StoredReview) -> DecisionPart {
    let position = |byte| RelativeRange { start: vec![byte, 0xff], end: vec![byte, 0] };
    let (current, position) = (Some(position(7)), Some(position(8)));
    DecisionPart { review: review.id, version: review.version, part: 0, current, position }
}

fn accept(seated: Seated, reviews: &[StoredReview]) -> NewDecision {
    NewDecision {
        id: DecisionId::generate(),
        document: seated.document,
        link: seated.link,
        verdict: Verdict::Accept,
        by: user("kim"),
        at: at(8),
        parts: reviews.iter().map(part).collect(),
    }
}

fn reject(seated: Seated, reviews: &[StoredReview]) -> NewDecision {
    let bare = |part| DecisionPart { current: None, position: None, ..part };
    let decision = accept(seated, reviews);
    let parts = decision.parts.clone().into_iter().map(bare).collect();
    NewDecision { verdict: Verdict::Reject, parts, ..decision }
}

fn undo(decision: &NewDecision) -> UndoneDecision {
    let NewDecision { id, document, link, by, parts, .. } = decision.clone();
    let part =
        |part: DecisionPart| DecisionPart { version: part.version + 1, position: None, ..part };
    let parts = parts.into_iter().map(part).collect();
    UndoneDecision { id, document, link, by, at: at(9), parts }
}

fn writers_edit(seated: Seated, update: &'static str, expected: i64) -> Append {
    let guard = Some(seated.writer);
    Append { guard, user: None, expected_seq: Some(expected), ..edit(seated.document, update) }
}

/// The reviews of the link, in the order of their creation.
async fn all(desk: &Desk, seated: Seated) -> Vec<StoredReview> {
    let mut reviews = desk.storage.reviews_unchecked(seated.link, None, 200).await.unwrap().reviews;
    reviews.sort_by_key(|review| review.changes.0);
    reviews
}

pub(crate) async fn decision(
    desk: &Desk,
    seated: Seated,
    id: DecisionId,
) -> Option<StoredDecision> {
    let kim = desk.storage.member(&user("kim"), seated.link).await.unwrap().expect("a member");
    desk.storage.decision(&kim, id).await.unwrap()
}

pub(crate) async fn an_acceptance_changes_text_and_reviews_in_one_transaction(desk: Desk) {
    let seated = desk.seated().await;
    let made = [make(&desk, seated).await, make(&desk, seated).await];
    let new = accept(seated, &made);
    let good = writers_edit(seated, "x", 0);
    let decide = async |new: &NewDecision, edit: &Append| {
        desk.storage.decide(new, seated.writer, Some(edit)).await.unwrap()
    };
    // A text, a version or a review that has changed since the server read it.
    assert_eq!(decide(&new, &writers_edit(seated, "x", 3)).await, Guarded::Stale);
    for number in 0..2 {
        let mut late = new.clone();
        late.parts[number].version = 7;
        assert_eq!(decide(&late, &good).await, Guarded::Stale);
        late.parts[number] =
            DecisionPart { review: ReviewId::generate(), ..new.parts[number].clone() };
        assert_eq!(decide(&late, &good).await, Guarded::Stale);
    }
    assert_eq!(desk.text(seated.document).await, b"");
    assert_eq!(all(&desk, seated).await, made);
    assert_eq!(decision(&desk, seated, new.id).await, None);

    let Committed { seq, change, reviews } = done(decide(&new, &good).await);

    assert_eq!((seq, change), (Some(1), 4));
    let decided = Some(Decided::new(new.id, user("kim"), at(8)));
    for (number, (review, made)) in (3..).zip(reviews.iter().zip(made)) {
        let expected = StoredReview {
            status: ReviewStatus::Accepted,
            decided: decided.clone(),
            version: 2,
            changes: (made.changes.0, number),
            current: RelativeRange { start: vec![7, 0xff], end: vec![7, 0] },
            updated_at: at(8),
            changed_by: Some(user("kim").id),
            ..made
        };
        assert_eq!(*review, expected);
    }
    assert_eq!(all(&desk, seated).await, reviews);
    assert_eq!(desk.text(seated.document).await, b"x");
    let stored = decision(&desk, seated, new.id).await.unwrap();
    let position = Some(RelativeRange { start: vec![8, 0xff], end: vec![8, 0] });
    let parts = reviews.iter().map(|review| (review.id, 0, position.clone())).collect();
    let expected = StoredDecision { verdict: Verdict::Accept, at: at(8), is_undone: false, parts };
    assert_eq!(stored, expected);
    let elsewhere = desk.seated().await;
    assert_eq!(decision(&desk, elsewhere, new.id).await, None);
    // Decided reviews have another version.
    let again = NewDecision { id: DecisionId::generate(), ..new };
    assert_eq!(decide(&again, &writers_edit(seated, "y", 1)).await, Guarded::Stale);
    assert_eq!(desk.text(seated.document).await, b"x");
}

pub(crate) async fn of_concurrent_acceptances_one_changes_the_text(desk: Desk) {
    let seated = desk.seated().await;
    let made = make(&desk, seated).await;
    let mut tasks = JoinSet::new();
    let handles = [desk.storage.clone(), desk.another().await];
    for number in 0..16 {
        let storage = handles[number % 2].clone();
        let new = accept(seated, std::slice::from_ref(&made));
        let edit = Append { expected_seq: None, ..writers_edit(seated, "x", 0) };
        tasks.spawn(async move { storage.decide(&new, seated.writer, Some(&edit)).await.unwrap() });
    }
    let outcomes = within(tasks.join_all()).await;
    assert_eq!(outcomes.iter().filter(|one| matches!(one, Guarded::Done(_))).count(), 1);
    assert_eq!(desk.text(seated.document).await, b"x");
}

pub(crate) async fn a_rejection_and_its_undo_leave_the_text(desk: Desk) {
    let seated = desk.seated().await;
    let made = [make(&desk, seated).await];
    let new = reject(seated, &made);
    let rejected = done(desk.storage.decide(&new, seated.writer, None).await.unwrap());
    assert_eq!(rejected.seq, None);
    assert_eq!(rejected.reviews[0].status, ReviewStatus::Rejected);
    assert_eq!(rejected.reviews[0].current, made[0].current);
    assert_eq!(decision(&desk, seated, new.id).await.unwrap().parts, [(made[0].id, 0, None)]);
    let undone = done(desk.storage.undo_decision(&undo(&new), seated.writer, None).await.unwrap());
    let [open] = &undone.reviews[..] else { panic!("{undone:?}") };
    assert_eq!((open.status, open.version, &open.decided), (ReviewStatus::Open, 3, &None));
    assert_eq!(desk.text(seated.document).await, b"");
}

pub(crate) async fn an_undo_opens_all_reviews_of_its_decision_or_none(desk: Desk) {
    let seated = desk.seated().await;
    let made = [make(&desk, seated).await, make(&desk, seated).await];
    let new = accept(seated, &made);
    let edit = writers_edit(seated, "x", 0);
    done(desk.storage.decide(&new, seated.writer, Some(&edit)).await.unwrap());
    let edit = writers_edit(seated, "y", 1);
    let undo_it = async |undone: &UndoneDecision, edit: &Append| {
        desk.storage.undo_decision(undone, seated.writer, Some(edit)).await.unwrap()
    };
    let mut late = undo(&new);
    late.parts[1].version = 1;
    assert_eq!(undo_it(&late, &edit).await, Guarded::Stale);
    let stale = writers_edit(seated, "y", 0);
    assert_eq!(undo_it(&undo(&new), &stale).await, Guarded::Stale);
    let other = UndoneDecision { id: DecisionId::generate(), ..undo(&new) };
    assert_eq!(undo_it(&other, &edit).await, Guarded::Stale);
    assert!(all(&desk, seated).await.iter().all(|one| one.status == ReviewStatus::Accepted));
    assert_eq!(desk.text(seated.document).await, b"x");

    let undone = done(undo_it(&undo(&new), &edit).await);

    assert_eq!((undone.seq, undone.change), (Some(2), 6));
    for review in &undone.reviews {
        assert_eq!((review.status, &review.decided), (ReviewStatus::Open, &None));
    }
    assert_eq!(all(&desk, seated).await, undone.reviews);
    assert_eq!(desk.text(seated.document).await, b"xy");
    let stored = decision(&desk, seated, new.id).await.unwrap();
    assert!(stored.is_undone && stored.parts.is_empty());
    // The reviews can be decided again.
    let again = accept(seated, &undone.reviews);
    let edit = writers_edit(seated, "z", 2);
    done(desk.storage.decide(&again, seated.writer, Some(&edit)).await.unwrap());
}

pub(crate) async fn of_concurrent_undos_one_changes_the_text(desk: Desk) {
    let seated = desk.seated().await;
    let new = accept(seated, &[make(&desk, seated).await]);
    let edit = writers_edit(seated, "x", 0);
    done(desk.storage.decide(&new, seated.writer, Some(&edit)).await.unwrap());
    let mut tasks = JoinSet::new();
    let handles = [desk.storage.clone(), desk.another().await];
    for number in 0..8 {
        let (storage, undone) = (handles[number % 2].clone(), undo(&new));
        let edit = Append { expected_seq: None, ..writers_edit(seated, "y", 0) };
        tasks.spawn(async move {
            storage.undo_decision(&undone, seated.writer, Some(&edit)).await.unwrap()
        });
    }
    let outcomes = within(tasks.join_all()).await;
    assert_eq!(outcomes.iter().filter(|one| matches!(one, Guarded::Done(_))).count(), 1);
    assert_eq!(desk.text(seated.document).await, b"xy");
}

pub(crate) async fn g2_a_decision_under_an_older_fence_stores_nothing(desk: Desk) {
    let (seated, elsewhere) = (desk.seated().await, desk.seated().await);
    let made = [make(&desk, seated).await, make(&desk, seated).await];
    let rejected = reject(seated, &made[1..]);
    done(desk.storage.decide(&rejected, seated.writer, None).await.unwrap());
    let before = all(&desk, seated).await;
    desk.seat(seated.link, Role::Writer, 11).await;
    for guard in [seated.writer, elsewhere.writer, seated.reviewer] {
        let edit = Append { guard: Some(guard), ..writers_edit(seated, "x", 0) };
        // The reviewer's fence is valid; the edit under it is not the writer's.
        let new = accept(seated, &made[..1]);
        let decided = desk.storage.decide(&new, guard, Some(&edit)).await.unwrap();
        assert_eq!(decided, Guarded::Fenced);
        assert_eq!(decision(&desk, seated, new.id).await, None);
        if guard.seat.role == Role::Writer {
            let new = reject(seated, &made[..1]);
            let decided = desk.storage.decide(&new, guard, None).await.unwrap();
            assert_eq!(decided, Guarded::Fenced);
            let undone = desk.storage.undo_decision(&undo(&rejected), guard, None).await.unwrap();
            assert_eq!(undone, Guarded::Fenced);
        }
    }
    assert_eq!(all(&desk, seated).await, before);
    assert_eq!(desk.text(seated.document).await, b"");
    assert!(!decision(&desk, seated, rejected.id).await.unwrap().is_undone);
}

pub(crate) async fn g14_a_revoked_link_takes_no_decision(desk: Desk) {
    let seated = desk.seated().await;
    let new = reject(seated, &[make(&desk, seated).await]);
    desk.storage.revoke_link(seated.link, at(5)).await.unwrap();
    let decided = desk.storage.decide(&new, seated.writer, None).await.unwrap();
    assert_eq!(decided, Guarded::Fenced);
}

pub(crate) async fn a_status_outside_of_a_decision_ends_the_decision_of_its_review(desk: Desk) {
    let seated = desk.seated().await;
    let (link, guard) = (seated.link, seated.writer);
    let new = reject(seated, &[make(&desk, seated).await]);
    let id = new.parts[0].review;
    done(desk.storage.decide(&new, guard, None).await.unwrap());
    // A reply is no change of the status.
    let reply = new_reply("예");
    let replied = done(desk.storage.add_reply(link, id, &reply, guard, at(9)).await.unwrap());
    assert_eq!(replied.decided.map(|decided| decided.id), Some(new.id));
    let open = ReviewChange { status: Some(ReviewStatus::Open), ..ReviewChange::default() };
    let opened = desk.storage.change_review(link, id, &open, None, guard, at(9)).await.unwrap();
    assert_eq!(done(opened).decided, None);
}

/// Decides `count` new reviews of a link that has no others, and deletes them. One statement copies the
/// first review, because thousands of transactions take a minute.
async fn decide_many(desk: &Desk, seated: Seated, count: usize, seconds: i64) -> DecisionId {
    const COLUMNS: &str = "link_id, author_id, anchor_start, anchor_end, quote, prefix, suffix, \
        current_start, current_end, body, suggestion, status, version, created_at, updated_at, bytes";
    let mut other = desk.location.stranger().await;
    let first = make(desk, seated).await;
    let copy = |_| StoredReview { id: ReviewId::generate(), ..first.clone() };
    let copies: Vec<_> = (1..count).map(copy).collect();
    if !copies.is_empty() {
        let ids: Vec<_> = copies.iter().map(|review| format!("('{}')", review.id)).collect();
        let insert = format!(
            "INSERT INTO reviews (id, {COLUMNS}) SELECT copies.column1, {COLUMNS} FROM reviews \
             CROSS JOIN (VALUES {}) AS copies WHERE reviews.id = '{}'",
            ids.join(", "),
            first.id
        );
        other.run(insert).await;
    }
    let made = [vec![first.clone()], copies].concat();
    let new = NewDecision { at: at(seconds), ..reject(seated, &made) };
    done(desk.storage.decide(&new, seated.writer, None).await.unwrap());
    let deleted = desk.storage.delete_review(seated.link, first.id, None, seated.reviewer);
    done(deleted.await.unwrap());
    other.run("DELETE FROM reviews").await;
    new.id
}

pub(crate) async fn g13_a_link_keeps_decisions_of_a_day_up_to_a_bound(desk: Desk) {
    let seated = desk.seated().await;
    let each = DECIDED_AT_ONCE_MAX / 2;
    let fit = usize::try_from(DECISION_PARTS_PER_LINK_MAX).unwrap() / each;
    let mut made = Vec::new();
    for second in 0..=i64::try_from(fit).unwrap() {
        made.push(decide_many(&desk, seated, each, second).await);
    }
    assert_eq!(decision(&desk, seated, made[0]).await, None, "beyond the bound");
    for id in &made[1..] {
        let stored = decision(&desk, seated, *id).await.expect("within the bound");
        assert_eq!(stored.parts.len(), each, "a deleted review retains its part");
    }
    let day = i64::try_from(DECISION_UNDO_WINDOW.as_secs()).unwrap();
    let last = decide_many(&desk, seated, 1, day + 3).await;
    assert_eq!(decision(&desk, seated, made[2]).await, None, "a day and a second old");
    assert!(decision(&desk, seated, made[3]).await.is_some(), "a day old");
    assert!(decision(&desk, seated, last).await.is_some());
    assert_eq!(at(day + 3) - at(3), TimeDelta::days(1));
}

pub(crate) async fn g15_a_decision_about_many_reviews_is_one_numbered_change(desk: Desk) {
    let seated = desk.seated().await;
    let mut made = Vec::new();
    for _ in 0..=DECIDED_ONE_BY_ONE_MAX {
        made.push(make(&desk, seated).await);
    }
    let created = i64::try_from(made.len()).unwrap();
    let changes =
        async |after| desk.storage.review_changes(seated.document, after).await.unwrap().unwrap();
    let new = reject(seated, &made);
    let committed = done(desk.storage.decide(&new, seated.writer, None).await.unwrap());
    let expected = Committed { seq: None, change: created + 1, reviews: Vec::new() };
    assert_eq!(committed, expected);
    let mut read = changes(created).await;
    assert_eq!((read.upto, &read.changed[..]), (created + 1, &[][..]));
    let mut many = read.decided.pop().expect("a decision");
    many.reviews.sort();
    let mut reviews: Vec<_> = made.iter().map(|review| (review.id, 2)).collect();
    reviews.sort();
    let made_by = Some((Verdict::Reject, user("kim")));
    let expected =
        ManyChanged { change: created + 1, id: new.id, made: made_by, reviews: reviews.clone() };
    assert_eq!(many, expected);

    let undone = desk.storage.undo_decision(&undo(&new), seated.writer, None).await.unwrap();
    assert_eq!(done(undone).change, created + 2);
    let mut many = changes(created + 1).await.decided.pop().expect("an undo");
    many.reviews.sort();
    for (_, version) in &mut reviews {
        *version = 3;
    }
    let expected = ManyChanged { change: created + 2, id: new.id, made: None, reviews };
    assert_eq!(many, expected);
    // A review that changed since is read by itself.
    let reply = new_reply("예");
    let guard: FenceGuard = seated.reviewer;
    let replied = desk.storage.add_reply(seated.link, made[0].id, &reply, guard, at(9)).await;
    done(replied.unwrap());
    let read = changes(created).await;
    assert!(read.decided.is_empty(), "few enough for an event each");
    assert_eq!(read.changed.len(), made.len());
}
