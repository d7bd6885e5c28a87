//! Typed suggestions: their parts in each reader, and the bounds of a link.

use crate::storage::database::{Desk, Seated, at, edit, user};
use crate::storage::decisions;
use crate::storage::reviews::{done, review_of};
use galley::domain::anchor::{AnchorOrigin, RelativeRange, TextRange};
use galley::domain::fence::Fence;
use galley::domain::ids::{DecisionId, ReviewId};
use galley::domain::limits::{
    OPEN_PARTS_PER_LINK_MAX, OPEN_PER_LINK_MAX, PARTS_PER_SUGGESTION_MAX,
};
use galley::domain::review::{ReviewOrigin, ReviewOutcome, ReviewStatus, Verdict};
use galley::domain::suggestion::Refusal;
use galley::storage::decisions::{DecisionPart, NewDecision, UndoneDecision};
use galley::storage::guard::{FenceGuard, Guarded};
use galley::storage::review_changes::DELETIONS_MAX;
use galley::storage::review_rows::{StoredPart, StoredReview};
use galley::storage::suggestions::{AnchoredItem, AnchoredSuggestion, ItemOutcome, OpenParts};

crate::storage::on_both_engines! {
    suggestions:
    the_parts_of_a_suggestion_are_in_each_reader_and_follow_its_decision
    g2_a_batch_under_an_older_fence_stores_nothing
    g13_a_link_has_a_bound_of_open_suggestions_and_of_their_parts
    the_id_of_a_deleted_suggestion_is_spent_and_no_version_of_it_comes_again
    a_reviewer_withdraws_no_suggestion_of_the_former_reviewer
    a_batch_that_was_placed_before_another_one_is_placed_again
}

pub(crate) fn part(byte: u8, quote: &str, text: &str) -> StoredPart {
    StoredPart {
        origin: AnchorOrigin {
            range: TextRange { start: u32::from(byte), end: u32::from(byte) + 1 },
            quote: quote.to_owned(),
            prefix: "앞".to_owned(),
            suffix: "뒤".to_owned(),
        },
        current: RelativeRange { start: vec![byte, 1], end: vec![byte, 2] },
        text: text.to_owned(),
    }
}

pub(crate) fn suggestion(parts: Vec<StoredPart>) -> AnchoredSuggestion {
    AnchoredSuggestion { id: ReviewId::generate(), version: None, body: None, parts }
}

pub(crate) async fn suggest(desk: &Desk, seated: Seated, new: &AnchoredSuggestion) -> ItemOutcome {
    let items = [AnchoredItem::Put(new.clone())];
    let (link, guard) = (seated.link, seated.reviewer);
    let author = user("lee");
    let outcomes = desk.storage.suggest(link, &author, &items, None, guard, at(4)).await.unwrap();
    done(outcomes).pop().expect("an outcome")
}

async fn open_parts(desk: &Desk, seated: Seated) -> OpenParts {
    let lee = desk.storage.member(&user("lee"), seated.link).await.unwrap().expect("a member");
    desk.storage.open_parts(&lee).await.unwrap()
}

pub(crate) fn stored(outcome: ItemOutcome) -> StoredReview {
    match outcome {
        ItemOutcome::Stored(review) => *review,
        other => panic!("{other:?} is not stored"),
    }
}

/// A suggestion as each reader has it.
async fn read(desk: &Desk, seated: Seated, id: ReviewId) -> StoredReview {
    let (storage, link) = (&desk.storage, seated.link);
    let one = review_of(storage, link, id).await.expect("a review");
    let page = storage.reviews_unchecked(link, None, 200).await.unwrap().reviews;
    assert_eq!(page.iter().find(|review| review.id == id), Some(&one));
    // Few reviews are read one by one, many by one statement.
    let mut ids = vec![id];
    let kim = storage.member(&user("kim"), link).await.unwrap().expect("a member");
    assert_eq!(storage.reviews_among(&kim, &ids).await.unwrap(), std::slice::from_ref(&one));
    ids.extend((0..30).map(|_| ReviewId::generate()));
    assert_eq!(storage.reviews_among(&kim, &ids).await.unwrap(), std::slice::from_ref(&one));
    one
}

pub(crate) async fn the_parts_of_a_suggestion_are_in_each_reader_and_follow_its_decision(
    desk: Desk,
) {
    let seated = desk.seated().await;
    let parts = vec![part(1, "", "새 "), part(2, "옛", ""), part(3, "둘", "셋")];
    let new = suggestion(parts.clone());
    let made = stored(suggest(&desk, seated, &new).await);
    assert_eq!(
        (made.version, made.source, made.more.as_slice()),
        (1, ReviewOrigin::Typed, &parts[1..])
    );
    assert_eq!(read(&desk, seated, made.id).await, made);
    assert_eq!(suggest(&desk, seated, &new).await, ItemOutcome::StoredBefore(1));
    let open = open_parts(&desk, seated).await;
    let positions = open.positions;
    let gaps = positions.iter().filter(|(_, _, is_gap)| *is_gap).count();
    assert_eq!((positions.len(), gaps), (3, 1));

    let fewer = AnchoredSuggestion { version: Some(1), parts: parts[..2].to_vec(), ..new };
    let changed = stored(suggest(&desk, seated, &fewer).await);
    assert_eq!((changed.version, changed.more.as_slice()), (2, &parts[1..2]));
    assert_eq!(read(&desk, seated, made.id).await, changed);
    assert_eq!(
        changed.bytes(),
        parts[..2].iter().map(|part| part.origin.quote.len() + part.text.len() + 6).sum::<usize>()
    );

    // The parts in the order of the text, which is not theirs.
    let position = |byte| Some(RelativeRange { start: vec![byte], end: vec![byte, byte] });
    let decided = |part, byte, version| DecisionPart {
        review: made.id,
        version,
        part,
        current: position(byte),
        position: position(byte + 1),
    };
    let decision = NewDecision {
        id: DecisionId::generate(),
        document: seated.document,
        link: seated.link,
        verdict: Verdict::Accept,
        by: user("kim"),
        at: at(8),
        parts: vec![decided(1, 21, 2), decided(0, 11, 2)],
    };
    let update = edit(seated.document, "x");
    let edit = galley::storage::log::Append {
        guard: Some(seated.writer),
        user: None,
        expected_seq: Some(0),
        ..update
    };
    let committed = done(desk.storage.decide(&decision, seated.writer, Some(&edit)).await.unwrap());
    assert_eq!(committed.reviews.len(), 1, "a review is announced once");
    let accepted = read(&desk, seated, made.id).await;
    assert_eq!((accepted.status, accepted.version), (ReviewStatus::Accepted, 3));
    assert_eq!(Some(accepted.current), position(11));
    assert_eq!(Some(accepted.more[0].current.clone()), position(21));
    let found = decisions::decision(&desk, seated, decision.id).await.expect("a decision");
    assert_eq!(found.parts, [(made.id, 1, position(22)), (made.id, 0, position(12))]);
    let undone = UndoneDecision {
        id: decision.id,
        document: seated.document,
        link: seated.link,
        by: user("kim"),
        at: at(9),
        parts: vec![decided(1, 31, 3), decided(0, 41, 3)],
    };
    done(desk.storage.undo_decision(&undone, seated.writer, None).await.unwrap());
    let open = read(&desk, seated, made.id).await;
    assert_eq!(
        (open.status, Some(open.more[0].current.clone())),
        (ReviewStatus::Open, position(31))
    );
}

pub(crate) async fn g2_a_batch_under_an_older_fence_stores_nothing(desk: Desk) {
    let seated = desk.seated().await;
    let old = FenceGuard { fence: Fence(seated.reviewer.fence.0 - 1), ..seated.reviewer };
    let items = [AnchoredItem::Put(suggestion(vec![part(1, "옛", "새")]))];
    for guard in [old, FenceGuard { seat: desk.seated().await.reviewer.seat, ..seated.reviewer }] {
        let author = user("lee");
        let outcome = desk.storage.suggest(seated.link, &author, &items, None, guard, at(4)).await;
        assert_eq!(outcome.unwrap(), Guarded::Fenced);
    }
    assert_eq!(desk.storage.reviews_unchecked(seated.link, None, 9).await.unwrap().reviews, []);
}

pub(crate) async fn g13_a_link_has_a_bound_of_open_suggestions_and_of_their_parts(desk: Desk) {
    let seated = desk.seated().await;
    let many: Vec<_> = (0..PARTS_PER_SUGGESTION_MAX).map(|_| part(1, "옛", "새")).collect();
    let parts = i64::try_from(many.len()).unwrap();
    for _ in 0..OPEN_PARTS_PER_LINK_MAX / parts {
        stored(suggest(&desk, seated, &suggestion(many.clone())).await);
    }
    let one = suggestion(vec![part(1, "옛", "새")]);
    let full = ItemOutcome::Refused(Refusal::Full, None);
    assert_eq!(suggest(&desk, seated, &one).await, full);
    // A suggestion of another link has room, and as many as the bound in batches.
    let elsewhere = desk.seated().await;
    let items: Vec<_> = (0..OPEN_PER_LINK_MAX)
        .map(|_| AnchoredItem::Put(suggestion(vec![part(1, "옛", "새")])))
        .collect();
    for items in items.chunks(200) {
        let (link, guard) = (elsewhere.link, elsewhere.reviewer);
        let author = user("lee");
        let outcomes =
            desk.storage.suggest(link, &author, items, None, guard, at(4)).await.unwrap();
        assert!(done(outcomes).iter().all(|it| matches!(it, ItemOutcome::Stored(_))));
    }
    assert_eq!(suggest(&desk, elsewhere, &one).await, full);
}

pub(crate) fn withdrawal(id: ReviewId, version: i64) -> AnchoredItem {
    AnchoredItem::Withdraw { id, version, outcome: ReviewOutcome::Withdrawn }
}

/// The outcome of one item of an author.
pub(crate) async fn send(
    desk: &Desk,
    seated: Seated,
    author: &str,
    item: AnchoredItem,
) -> ItemOutcome {
    let (link, guard, author) = (seated.link, seated.reviewer, user(author));
    let outcomes = desk.storage.suggest(link, &author, &[item], None, guard, at(5)).await.unwrap();
    done(outcomes).pop().expect("an outcome")
}

/// The reviewer withdrew a suggestion and put other words under its id: the version that the writer had read
/// named them.
pub(crate) async fn the_id_of_a_deleted_suggestion_is_spent_and_no_version_of_it_comes_again(
    desk: Desk,
) {
    let seated = desk.seated().await;
    let new = suggestion(vec![part(1, "옛", "새")]);
    let other = AnchoredSuggestion { parts: vec![part(2, "둘", "셋")], ..new.clone() };
    let spent = ItemOutcome::Refused(Refusal::Decided, None);
    let gone = ItemOutcome::Refused(Refusal::Version, None);
    let made = stored(suggest(&desk, seated, &new).await);
    let changed = AnchoredSuggestion { version: Some(made.version), ..other.clone() };
    let changed = stored(suggest(&desk, seated, &changed).await);
    let withdrawn = send(&desk, seated, "lee", withdrawal(new.id, changed.version)).await;
    assert!(matches!(withdrawn, ItemOutcome::Deleted(..)), "{withdrawn:?}");
    for late in [&new, &other] {
        assert_eq!(suggest(&desk, seated, late).await, spent);
        let named = AnchoredSuggestion { version: Some(1), ..(*late).clone() };
        assert_eq!(suggest(&desk, seated, &named).await, gone);
    }
    let again = send(&desk, seated, "lee", withdrawal(new.id, changed.version)).await;
    assert_eq!(again, ItemOutcome::WithdrawnBefore);
    // Its author deletes one by the form.
    let deleted = stored(suggest(&desk, seated, &suggestion(vec![part(3, "넷", "")])).await);
    let deleting = desk.storage.delete_review(seated.link, deleted.id, None, seated.reviewer);
    done(deleting.await.unwrap());
    let late = AnchoredSuggestion { id: deleted.id, ..new.clone() };
    assert_eq!(suggest(&desk, seated, &late).await, spent);

    // The last of so many changes that the database forgets both.
    let mut stranger = desk.location.stranger().await;
    let changes = DELETIONS_MAX - 1;
    stranger.run(format!("UPDATE documents SET review_changes = review_changes + {changes}")).await;
    assert_eq!(suggest(&desk, seated, &late).await, spent);
    let last = stored(suggest(&desk, seated, &suggestion(vec![part(4, "다섯", "")])).await);
    send(&desk, seated, "lee", withdrawal(last.id, last.version)).await;
    let revived = stored(suggest(&desk, seated, &other).await);
    assert!(changed.version < revived.version, "{} {}", changed.version, revived.version);
    assert_eq!(revived.changes.0, revived.changes.1, "it is new");
}

pub(crate) async fn a_reviewer_withdraws_no_suggestion_of_the_former_reviewer(desk: Desk) {
    let seated = desk.seated().await;
    let made = stored(suggest(&desk, seated, &suggestion(vec![part(1, "옛", "새")])).await);
    let foreign = send(&desk, seated, "park", withdrawal(made.id, made.version)).await;
    assert_eq!(foreign, ItemOutcome::Refused(Refusal::NotYours, None));
    let over = AnchoredSuggestion { id: made.id, ..suggestion(vec![part(2, "둘", "셋")]) };
    let over = AnchoredSuggestion { version: Some(made.version), ..over };
    let foreign = send(&desk, seated, "park", AnchoredItem::Put(over)).await;
    assert_eq!(foreign, ItemOutcome::Refused(Refusal::NotYours, None));
    assert_eq!(read(&desk, seated, made.id).await, made);
}

/// Two batches that were placed beside the same parts kept two suggestions on one passage.
pub(crate) async fn a_batch_that_was_placed_before_another_one_is_placed_again(desk: Desk) {
    let seated = desk.seated().await;
    let seen = async || Some(open_parts(&desk, seated).await.last_change);
    let batch = async |seen, item| {
        let (link, guard, author) = (seated.link, seated.reviewer, user("lee"));
        desk.storage.suggest(link, &author, &[item], seen, guard, at(5)).await.unwrap()
    };
    let one = AnchoredItem::Put(suggestion(vec![part(1, "옛", "새")]));
    let two = AnchoredItem::Put(suggestion(vec![part(1, "옛", "헌")]));
    let (first, second) = (seen().await, seen().await);
    let outcome = done(batch(first, one).await).pop().expect("an outcome");
    let made = stored(outcome);
    assert_eq!(batch(second, two.clone()).await, Guarded::Stale);
    // A withdrawal takes no room.
    let before = seen().await;
    done(batch(before, withdrawal(made.id, made.version)).await);
    assert!(matches!(batch(before, two).await, Guarded::Done(_)));
}
