//! Fences: which grants the database ratifies, and which writes it accepts.

use crate::storage::database::{Desk, append_one, at, edit, floor, ratify, user, within};
use bytes::Bytes;
use galley::domain::fence::Fence;
use galley::domain::ids::{SessionId, ShareLinkId};
use galley::domain::seat::{Role, Seat};
use galley::storage::Storage;
use galley::storage::guard::FenceGuard;
use galley::storage::log::{Append, Appended};
use galley::storage::seats::Ratified;
use tokio::task::JoinSet;

crate::storage::on_both_engines! {
    seats:
    g2_a_grant_is_ratified_only_above_every_earlier_fence
    a_repeated_ratification_is_idempotent_until_the_seat_is_vacated
    no_grant_is_ratified_on_a_revoked_or_unknown_link
    coalesced_queries_each_return_the_link_of_their_seat
    g2_coalesced_ratifications_each_return_their_own_outcome
    g2_a_write_under_any_fence_but_the_last_changes_nothing
    g10_the_fence_of_a_reviewer_or_of_another_link_permits_no_edit
    g2_an_evicted_holders_writes_are_rejected_before_the_next_grant
    g14_a_revoked_link_permits_no_edit
    g2_the_fences_of_accepted_writes_never_decrease_in_races
}

pub(crate) async fn g2_a_grant_is_ratified_only_above_every_earlier_fence(desk: Desk) {
    let link = desk.link(desk.document().await).await.id;
    let seat = Seat::new(link, Role::Writer);
    assert_eq!(floor(&desk.storage, seat).await, Fence::ZERO);
    assert_eq!(ratify(&desk.storage, seat, 10).await, Ratified::Accepted);
    for fence in [10, 9, 0] {
        let refused = Ratified::Refused { last: Fence(10) };
        assert_eq!(ratify(&desk.storage, seat, fence).await, refused);
    }
    assert_eq!(ratify(&desk.storage, seat, 11).await, Ratified::Accepted);
    assert_eq!(floor(&desk.storage, seat).await, Fence(11));
    let other = Seat::new(link, Role::Reviewer);
    assert_eq!(floor(&desk.storage, other).await, Fence::ZERO);
}

pub(crate) async fn a_repeated_ratification_is_idempotent_until_the_seat_is_vacated(desk: Desk) {
    let seat = Seat::new(desk.link(desk.document().await).await.id, Role::Writer);
    let (session, kim) = (SessionId::generate(), user("kim").id);
    for _ in 0..2 {
        let answer = desk.storage.ratify(seat, Fence(10), session, &kim, at(2)).await.unwrap();
        assert_eq!(answer, Ratified::Accepted);
    }
    desk.storage.vacate(seat, Fence(10)).await.unwrap();
    let late = desk.storage.ratify(seat, Fence(10), session, &kim, at(2)).await.unwrap();
    assert_eq!(late, Ratified::Refused { last: Fence(11) });
}

pub(crate) async fn no_grant_is_ratified_on_a_revoked_or_unknown_link(desk: Desk) {
    let link = desk.link(desk.document().await).await.id;
    desk.storage.revoke_link(link, at(3)).await.unwrap();
    for link in [link, ShareLinkId::generate()] {
        let gone = ratify(&desk.storage, Seat::new(link, Role::Writer), 10).await;
        assert_eq!(gone, Ratified::Gone);
    }
}

pub(crate) async fn coalesced_queries_each_return_the_link_of_their_seat(desk: Desk) {
    let mut links = Vec::new();
    for number in 0..12_u64 {
        let link = desk.link(desk.document().await).await;
        if number % 2 == 0 {
            desk.seat(link.id, Role::Writer, 10 + number).await;
        }
        links.push(link);
    }
    let (joined, lee) = (links[4].id, user("lee"));
    desk.storage.join_link(joined, &lee, at(2)).await.unwrap();
    let revoked = links[5].id;
    assert!(desk.storage.revoke_link(revoked, at(3)).await.unwrap());
    let seats = (0..).zip(&links).flat_map(|(number, link)| {
        Role::ALL.iter().map(move |role| (number, Seat::new(link.id, *role)))
    });
    let mut queries = JoinSet::new();
    // Two queries for each seat.
    for (number, seat) in seats.clone().chain(seats) {
        let storage = desk.storage.clone();
        queries.spawn(async move { (number, seat, storage.seat_lookup(seat).await.unwrap()) });
    }
    let nowhere = desk.storage.seat_lookup(Seat::new(ShareLinkId::generate(), Role::Writer));
    assert_eq!(nowhere.await.unwrap(), None);
    for (number, seat, seat_lookup) in queries.join_all().await {
        let seat_lookup = seat_lookup.unwrap();
        let is_seated = seat.role == Role::Writer && number % 2 == 0;
        let floor = if is_seated { Fence(10 + number) } else { Fence::ZERO };
        assert_eq!((seat_lookup.link.id, seat_lookup.floor), (seat.link, floor), "{seat}");
        assert_eq!(seat_lookup.link.revoked_at, (seat.link == revoked).then_some(at(3)), "{seat}");
        let reviewer = (seat.link == joined).then(|| lee.clone());
        assert_eq!(seat_lookup.link.reviewer, reviewer, "{seat}");
        let document = links.iter().find(|link| link.id == seat.link).map(|it| it.document_id);
        assert_eq!(Some(seat_lookup.link.document_id), document, "{seat}");
        let has_user = seat.role == Role::Writer || seat.link == joined;
        assert_eq!(seat_lookup.named_at.is_some(), has_user, "{seat}");
    }
}

pub(crate) async fn g2_coalesced_ratifications_each_return_their_own_outcome(desk: Desk) {
    let mut links = Vec::new();
    for _ in 0..12 {
        links.push(desk.link(desk.document().await).await.id);
    }
    let (gone, seated) = (links[3], Seat::new(links[7], Role::Writer));
    desk.storage.revoke_link(gone, at(3)).await.unwrap();
    assert_eq!(ratify(&desk.storage, seated, 50).await, Ratified::Accepted);
    let seats =
        links.into_iter().flat_map(|link| Role::ALL.iter().map(move |role| Seat::new(link, *role)));
    // Two grants for each seat: the one with the higher fence is ratified in the end.
    let grants: Vec<_> = seats.flat_map(|seat| [(seat, 21), (seat, 20)]).collect();
    let mut queries = JoinSet::new();
    for (seat, fence) in grants {
        let storage = desk.storage.clone();
        queries.spawn(async move { (seat, fence, ratify(&storage, seat, fence).await) });
    }
    for (seat, fence, answer) in queries.join_all().await {
        let expected = match answer {
            _ if seat.link == gone => Ratified::Gone,
            _ if seat == seated => Ratified::Refused { last: Fence(50) },
            Ratified::Refused { .. } if fence == 20 => Ratified::Refused { last: Fence(21) },
            _ => Ratified::Accepted,
        };
        assert_eq!(answer, expected, "{seat} under {fence}");
        let last = if seat == seated { 50 } else { 21 };
        let is_there = seat.link != gone;
        assert!(!is_there || floor(&desk.storage, seat).await == Fence(last));
    }
}

pub(crate) async fn g2_a_write_under_any_fence_but_the_last_changes_nothing(desk: Desk) {
    let seated = desk.seated().await;
    let first = Append { guard: Some(seated.writer), ..edit(seated.document, "a") };
    assert_eq!(desk.append(first.clone()).await, Appended::Stored { seq: 1 });
    let newer = desk.seat(seated.link, Role::Writer, 30).await;
    let before = desk.storage.document(seated.document).await.unwrap();

    let late = Append { clients: vec![5], now: at(99), ..first };
    assert_eq!(desk.append(late.clone()).await, Appended::Fenced);
    let unratified = FenceGuard { fence: Fence(31), ..newer };
    let early = Append { guard: Some(unratified), ..late.clone() };
    assert_eq!(desk.append(early).await, Appended::Fenced);

    assert_eq!(desk.text(seated.document).await, b"a");
    assert_eq!(desk.storage.document(seated.document).await.unwrap(), before);
    assert_eq!(desk.owners(seated.document).await, []);
    let good = Append { guard: Some(newer), ..late };
    assert_eq!(desk.append(good).await, Appended::Stored { seq: 2 });
}

pub(crate) async fn g10_the_fence_of_a_reviewer_or_of_another_link_permits_no_edit(desk: Desk) {
    let (here, elsewhere) = (desk.seated().await, desk.seated().await);
    for guard in [here.reviewer, elsewhere.writer] {
        let append = Append { guard: Some(guard), ..edit(here.document, "x") };
        assert_eq!(desk.append(append).await, Appended::Fenced);
    }
    assert_eq!(desk.text(here.document).await, b"");
}

pub(crate) async fn g2_an_evicted_holders_writes_are_rejected_before_the_next_grant(desk: Desk) {
    let seated = desk.seated().await;
    desk.storage.vacate(seated.writer.seat, Fence(9)).await.unwrap();
    let append = Append { guard: Some(seated.writer), ..edit(seated.document, "x") };
    assert_eq!(desk.append(append.clone()).await, Appended::Stored { seq: 1 });
    desk.storage.vacate(seated.writer.seat, Fence(10)).await.unwrap();
    assert_eq!(desk.append(append).await, Appended::Fenced);
    assert_eq!(floor(&desk.storage, seated.writer.seat).await, Fence(11));
}

pub(crate) async fn g14_a_revoked_link_permits_no_edit(desk: Desk) {
    let seated = desk.seated().await;
    desk.storage.revoke_link(seated.link, at(5)).await.unwrap();
    let append = Append { guard: Some(seated.writer), ..edit(seated.document, "x") };
    assert_eq!(desk.append(append).await, Appended::Fenced);
}

/// Ratifies ever higher fences, and writes each fence under itself.
async fn sit_and_write(storage: Storage, seat: Seat, append: Append) {
    for _ in 0..20 {
        let last = floor(&storage, seat).await;
        let fence = Fence(last.0 + 1);
        let ratified = ratify(&storage, seat, fence.0).await;
        let mark = Bytes::from(format!("{:04};", fence.0));
        // The write follows in any case: a loser that believes that it holds the seat is the point
        // of the test.
        let write =
            Append { guard: Some(FenceGuard { seat, fence }), update: mark, ..append.clone() };
        for _ in 0..2 {
            append_one(&storage, write.clone()).await;
        }
        if ratified == Ratified::Accepted {
            assert!(fence <= floor(&storage, seat).await);
        }
    }
}

pub(crate) async fn g2_the_fences_of_accepted_writes_never_decrease_in_races(desk: Desk) {
    let document = desk.document().await;
    let seat = Seat::new(desk.link(document).await.id, Role::Writer);
    let mut tasks = JoinSet::new();
    for storage in [desk.storage.clone(), desk.another().await] {
        for _ in 0..3 {
            tasks.spawn(sit_and_write(storage.clone(), seat, edit(document, "")));
        }
    }

    within(tasks.join_all()).await;

    let text = String::from_utf8(desk.text(document).await).unwrap();
    let fences: Vec<u64> = text.split_terminator(';').map(|fence| fence.parse().unwrap()).collect();
    assert!(20 <= fences.len(), "{fences:?}");
    assert!(fences.is_sorted(), "{fences:?}");
}
