//! The talk of both users about a text: remarks on the whole text, replies, seen marks, the turn.

use galley::domain::anchor::{AnchorOrigin, RelativeRange};
use galley::domain::limits::SUMMARIES_PER_LINK_MAX;
use galley::domain::review::ReviewKind;
use galley::storage::reviews::{NewReview, ReviewChange};
use galley::storage::seats::Guarded;

use crate::storage::database::{Desk, Seated, at, new_review};

crate::storage::on_both_engines! {
    talk:
    a_remark_on_the_whole_text_reads_back_without_a_suggestion
    g13_a_link_rejects_remarks_on_the_whole_text_beyond_their_limit
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
    assert_eq!(desk.storage.review(seated.link, new.id).await.unwrap(), Some(made.clone()));
    // A server of the previous version knows no remark on the whole text.
    let change = ReviewChange { suggestion: Some(Some("x".to_owned())), ..ReviewChange::default() };
    let (link, guard) = (seated.link, seated.reviewer);
    let changed = desk.storage.change_review(link, new.id, &change, None, guard, at(6)).await;
    let changed = done(changed.unwrap());
    assert_eq!((changed.kind(), changed.suggestion), (ReviewKind::Summary, None));
}

pub(crate) async fn g13_a_link_rejects_remarks_on_the_whole_text_beyond_their_limit(desk: Desk) {
    let seated = desk.seated().await;
    for _ in 0..SUMMARIES_PER_LINK_MAX {
        done(desk.storage.create_review(&summary(seated), seated.reviewer).await.unwrap());
    }
    let one_more = desk.storage.create_review(&summary(seated), seated.writer).await.unwrap();
    assert_eq!(one_more, Guarded::Full);
    done(desk.storage.create_review(&new_review(seated.link), seated.reviewer).await.unwrap());
    let elsewhere = desk.seated().await;
    done(desk.storage.create_review(&summary(elsewhere), elsewhere.reviewer).await.unwrap());
}
