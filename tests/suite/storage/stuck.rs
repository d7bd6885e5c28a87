//! Groups with locked rows, with rows that do not parse, and on a database that was set back. The
//! tests show which edits storage commits and which it rejects (G16, decision 40).

use crate::storage::database::{Desk, Location, Seated, at, edit, new_link, ratify, user, within};
use galley::domain::fence::Fence;
use galley::domain::ids::{DocumentId, ShareLinkId};
use galley::domain::seat::{Role, Seat};
use galley::storage::Storage;
use galley::storage::log::{Append, Appended};
use galley::storage::seats::SeatRight;

use crate::support::postgres_server::locked_row;

crate::storage::on_both_engines! {
    stuck:
    g16_a_fence_that_does_not_parse_rejects_the_edits_of_its_seat_only
    g16_an_owner_that_does_not_parse_rejects_the_edits_of_its_document_only
    d3_a_set_back_database_rejects_edits_after_the_lost_ones
    g2_a_lost_fence_is_detected_and_ratified_again
}

fn stored(seq: i64) -> Appended {
    Appended::Stored { seq }
}

fn by(seated: Seated, text: &'static str) -> Append {
    Append { guard: Some(seated.writer), clients: vec![7], ..edit(seated.document, text) }
}

/// Two documents; one SQL statement can damage the first alone, because its writer has fence 30.
async fn two(desk: &Desk) -> (Seated, Seated) {
    let (mut one, two) = (desk.seated().await, desk.seated().await);
    one.writer = desk.seat(one.link, Role::Writer, 30).await;
    let outcomes = desk.storage.append(&[by(one, "a"), by(two, "b")]).await.unwrap();
    assert_eq!(outcomes, [stored(1), stored(1)]);
    (one, two)
}

pub(crate) async fn g16_a_fence_that_does_not_parse_rejects_the_edits_of_its_seat_only(desk: Desk) {
    let (one, two) = two(&desk).await;
    let mut stranger = desk.location.stranger().await;
    stranger.run("UPDATE seats SET fence = -30 WHERE fence = 30").await;
    for seq in 2..4 {
        let outcomes = desk.storage.append(&[by(one, "x"), by(two, "y"), by(one, "z")]).await;
        assert_eq!(outcomes.unwrap(), [Appended::Damaged, stored(seq), Appended::Orphaned]);
    }
    // After a repair by hand the seat accepts edits without a restart.
    stranger.run("UPDATE seats SET fence = 30 WHERE fence = -30").await;
    assert_eq!(desk.append(by(one, "x")).await, stored(2));
}

pub(crate) async fn g16_an_owner_that_does_not_parse_rejects_the_edits_of_its_document_only(
    desk: Desk,
) {
    let (one, two) = two(&desk).await;
    let other = Append { clients: vec![8], ..by(one, "x") };
    assert_eq!(desk.append(other.clone()).await, stored(2));
    let mut stranger = desk.location.stranger().await;
    stranger.run("UPDATE clients SET user_id = 'no id: has spaces' WHERE client = 8").await;
    let outcomes = desk.storage.append(&[other, by(two, "y")]).await.unwrap();
    assert_eq!(outcomes, [Appended::Damaged, stored(2)]);
    // The text is complete, and the log reports the damage beside it.
    let log = desk.storage.log(one.document).await.unwrap().unwrap();
    assert_eq!((log.parts.concat(), log.hole()), (b"ax".to_vec(), None));
    assert!(log.damage.is_some() && log.owners.len() == 1, "{log:?}");
}

pub(crate) async fn d3_a_set_back_database_rejects_edits_after_the_lost_ones(desk: Desk) {
    let (one, two) = two(&desk).await;
    for seq in 2..6 {
        assert_eq!(desk.append(by(one, "x")).await, stored(seq));
    }
    let mut stranger = desk.location.stranger().await;
    let lose = match desk.location {
        Location::Folder(_) => "DELETE FROM journal WHERE seq > 2",
        Location::Server(_) => {
            "DELETE FROM updates WHERE seq > 2; UPDATE documents SET last_seq = 2 WHERE last_seq > 2"
        }
    };
    stranger.run(lose).await;
    let after = |seated, after| Append { after, ..by(seated, "y") };
    let outcomes = desk.storage.append(&[after(one, 5), after(one, 5), after(two, 1)]).await;
    let set_back = Appended::SetBack { last: 2 };
    assert_eq!(outcomes.unwrap(), [set_back, Appended::Orphaned, stored(2)]);
    assert_eq!(desk.text(one.document).await, b"ax");
    assert_eq!(desk.append(after(one, 2)).await, stored(3));
}

pub(crate) async fn g2_a_lost_fence_is_detected_and_ratified_again(desk: Desk) {
    let (one, two) = two(&desk).await;
    let (kim, lee) = (user("kim").id, user("lee").id);
    let vacant = desk.link(desk.document().await).await.id;
    let revoked = desk.link(desk.document().await).await.id;
    desk.storage.revoke_link(revoked, at(3)).await.unwrap();
    let seats = [
        (two.reviewer.seat, lee.clone()),
        (two.reviewer.seat, kim.clone()),
        (Seat::new(ShareLinkId::generate(), Role::Writer), kim.clone()),
        (Seat::new(revoked, Role::Reviewer), lee.clone()),
        (Seat::new(vacant, Role::Writer), kim.clone()),
        (Seat::new(vacant, Role::Reviewer), lee),
        (one.writer.seat, kim),
    ];
    let rights = desk.storage.seat_rights(&seats).await.unwrap();
    let ratified = |fence| SeatRight::Ratified(Fence(fence));
    let (gone, removed) = (SeatRight::Revoked, SeatRight::Removed);
    let expected = [ratified(20), removed, gone, gone, ratified(0), removed, ratified(30)];
    assert_eq!(rights, expected.map(Some));
    assert_eq!(desk.storage.seat_rights(&[]).await.unwrap(), []);

    desk.location.stranger().await.run("UPDATE seats SET fence = 10 WHERE fence = 30").await;
    assert_eq!(desk.append(by(one, "x")).await, Appended::Fenced);
    ratify(&desk.storage, one.writer.seat, 30).await;
    assert_eq!(desk.append(by(one, "x")).await, stored(2));
}

/// A connection that locks the row of the document.
async fn lock(desk: &Desk, document: DocumentId) -> sqlx::PgConnection {
    locked_row(&desk.location.url(), &document.to_string()).await
}

#[tokio::test]
async fn g16_a_locked_row_delays_no_other_document_of_its_group() {
    let desk = Desk::postgres().await;
    let (one, two) = two(&desk).await;
    let gone = edit(DocumentId::generate(), "z");
    let mut other = lock(&desk, one.document).await;
    let batch = [by(one, "x"), by(two, "y"), gone, by(one, "z")];
    let outcomes = within(desk.storage.append(&batch)).await.unwrap();
    assert_eq!(outcomes, [Appended::Busy, stored(2), Appended::Gone, Appended::Busy]);
    let alone = within(desk.storage.append_unlocked(&[by(one, "x")])).await.unwrap();
    assert_eq!(alone, [Appended::Busy]);
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    let outcomes = within(desk.storage.append_unlocked(&[by(one, "x"), by(one, "z")])).await;
    assert_eq!(outcomes.unwrap(), [stored(2), stored(3)]);
    assert_eq!(desk.text(one.document).await, b"axz");
}

/// Goal: an edit that waits for a locked row holds no connection, so other calls continue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g16_edits_of_a_locked_document_hold_no_connection() {
    let desk = Desk::postgres().await;
    let (one, two) = two(&desk).await;
    let _other = lock(&desk, one.document).await;
    let storage: &Storage = &desk.storage;
    let stuck = futures_util::future::join_all((0..8).map(|_| async {
        let outcomes = storage.append(&[by(one, "x")]).await.unwrap();
        assert_eq!(outcomes, [Appended::Busy]);
    }));
    let others = async {
        storage.find_or_create_link(&new_link(two.document)).await.unwrap();
        storage.document(one.document).await.unwrap()
    };
    within(async { tokio::join!(stuck, others) }).await;
}
