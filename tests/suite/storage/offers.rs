//! Review offers and their claims, without the lock: the second line.

use crate::storage::database::{Desk, Location, Stranger, at, user, within};
use chrono::{DateTime, TimeDelta, Utc};
use galley::domain::fence::Fence;
use galley::domain::ids::{ClaimId, OfferId};
use galley::domain::offer::{ClaimState, OfferState};
use galley::offers::offer::{Accepted, Claimed, NewClaim, NewOffer, Offer, OfferClaim};
use galley::offers::store;
use galley::storage::Storage;
use galley::storage::pagination::Page;
use galley::storage::partners::Partnership;
use tokio::task::JoinSet;

crate::storage::on_both_engines! {
    offers:
    o1_concurrent_claims_without_the_lock_take_as_many_slots_as_there_are
    g11_of_concurrent_claims_of_one_user_one_takes_a_slot
    o2_a_claim_under_an_older_fence_takes_no_slot
    a_claim_that_ends_many_times_at_once_frees_one_slot
    of_a_withdrawal_and_an_acceptance_at_once_one_succeeds
    a_closed_offer_takes_no_claim_and_retains_those_it_has
    an_acceptance_makes_partners_unless_one_of_them_has_too_many
    g11_a_removed_partner_has_no_slot_and_a_late_acceptance_makes_no_partners
    g13_a_user_has_a_hundred_open_offers_and_older_closed_ones_are_deleted
    g13_a_user_makes_fifty_claims_a_day
    offers_and_claims_are_listed_by_page_newest_first
}

fn offer_of(owner: &str, capacity: u32, now: DateTime<Utc>) -> NewOffer {
    let (id, owner) = (OfferId::generate(), user(owner));
    NewOffer {
        id,
        owner,
        title: "다섯 편".to_owned(),
        message: Some("a\0b".to_owned()),
        capacity,
        now,
    }
}

async fn an_offer(storage: &Storage, capacity: u32) -> Offer {
    store::create_offer(storage, &offer_of("kim", capacity, at(1)))
        .await
        .unwrap()
        .expect("an offer")
}

fn claim(offer: OfferId, claimant: &str, fence: u64, now: DateTime<Utc>) -> NewClaim {
    NewClaim {
        id: ClaimId::generate(),
        offer,
        user: user(claimant),
        message: None,
        fence: Fence(fence),
        now,
        since: now - TimeDelta::hours(24),
    }
}

/// Claims under a fence above every earlier one.
async fn take(storage: &Storage, offer: OfferId, claimant: &str) -> Option<Claimed> {
    let terms = store::claim_terms(storage, offer, &user(claimant).id, at(0)).await.unwrap();
    let fence = terms.expect("an offer").fence.0 + 1;
    store::claim_offer(storage, &claim(offer, claimant, fence, at(2))).await.unwrap()
}

async fn live(storage: &Storage, offer: OfferId) -> Vec<OfferClaim> {
    store::claims_of(storage, offer, None, &Page { limit: 200, before: None }).await.unwrap()
}

async fn now_is(storage: &Storage, offer: OfferId) -> Offer {
    store::offer(storage, offer, &user("kim").id).await.unwrap().expect("an offer").offer
}

pub(crate) async fn o1_concurrent_claims_without_the_lock_take_as_many_slots_as_there_are(
    desk: Desk,
) {
    let handles = [desk.storage.clone(), desk.another().await];
    for _round in 0..5 {
        let offer = an_offer(&desk.storage, 5).await.id;
        let mut tasks = JoinSet::new();
        for number in 0..30_u64 {
            let storage = handles[usize::from(number % 2 == 0)].clone();
            tasks.spawn(async move {
                let new = claim(offer, &format!("user{number}"), 100 + number, at(2));
                store::claim_offer(&storage, &new).await.unwrap()
            });
        }
        let made: Vec<_> = within(tasks.join_all()).await.into_iter().flatten().collect();
        // The fence refuses a claim that comes after a later grant's.
        assert!((1..=5).contains(&made.len()), "{} places of 5", made.len());
        assert_eq!(
            now_is(&desk.storage, offer).await.remaining(),
            5 - u32::try_from(made.len()).unwrap()
        );
        for number in made.len()..5 {
            let late = take(&desk.storage, offer, &format!("late{number}")).await;
            assert_eq!(late.expect("a place").remaining, 4 - u32::try_from(number).unwrap());
        }
        assert_eq!(take(&desk.storage, offer, "last").await, None);
        let mut numbers: Vec<_> =
            live(&desk.storage, offer).await.iter().map(|claim| claim.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        assert_eq!(now_is(&desk.storage, offer).await.state(), OfferState::SoldOut);
    }
}

pub(crate) async fn g11_of_concurrent_claims_of_one_user_one_takes_a_slot(desk: Desk) {
    let handles = [desk.storage.clone(), desk.another().await];
    for round in 0..5 {
        let offer = an_offer(&desk.storage, 5).await.id;
        let claimant = format!("lee{round}");
        let mut tasks = JoinSet::new();
        for number in 0..10_u64 {
            let storage = handles[usize::from(number % 2 == 0)].clone();
            let new = claim(offer, &claimant, 100 + number, at(2));
            tasks.spawn(async move { store::claim_offer(&storage, &new).await.unwrap() });
        }
        let made = within(tasks.join_all()).await.into_iter().flatten().count();
        assert_eq!(made, 1);
        assert_eq!(now_is(&desk.storage, offer).await.remaining(), 4);
        assert_eq!(live(&desk.storage, offer).await.len(), 1);
    }
}

pub(crate) async fn o2_a_claim_under_an_older_fence_takes_no_slot(desk: Desk) {
    let storage = &desk.storage;
    let offer = an_offer(storage, 5).await.id;
    let first = store::claim_offer(storage, &claim(offer, "lee", 20, at(2))).await.unwrap();
    assert_eq!(first.expect("a place").claim.number, 1);
    for fence in [19, 20] {
        assert_eq!(
            store::claim_offer(storage, &claim(offer, "park", fence, at(3))).await.unwrap(),
            None
        );
    }
    let terms = store::claim_terms(storage, offer, &user("park").id, at(0)).await.unwrap().unwrap();
    assert_eq!((terms.fence, terms.view.offer.remaining()), (Fence(20), 4));
    assert!(storage.profile_of(&user("park").id).await.unwrap().is_none(), "nothing is stored");
    let second = store::claim_offer(storage, &claim(offer, "park", 21, at(4))).await.unwrap();
    assert_eq!(second.expect("a place").claim.number, 2);
}

pub(crate) async fn a_claim_that_ends_many_times_at_once_frees_one_slot(desk: Desk) {
    let handles = [desk.storage.clone(), desk.another().await];
    let offer = an_offer(&desk.storage, 2).await.id;
    for claimant in ["lee", "park"] {
        take(&desk.storage, offer, claimant).await.expect("a place");
    }
    let first = live(&desk.storage, offer).await.remove(0);
    let mut tasks = JoinSet::new();
    for storage in handles.iter().cycle().take(10) {
        let (storage, claim) = (storage.clone(), first.clone());
        tasks.spawn(async move { store::end_claim(&storage, &claim, at(5), at(0)).await.unwrap() });
    }
    let ended = within(tasks.join_all()).await.into_iter().filter(|ended| *ended).count();
    assert_eq!(ended, 1);
    assert_eq!(now_is(&desk.storage, offer).await.remaining(), 1);
    assert_eq!(store::claim_of(&desk.storage, offer, first.id).await.unwrap(), None);
    // The claimant may return, under a new number.
    let again = take(&desk.storage, offer, first.user.id.as_str()).await.expect("a place");
    assert_eq!((again.claim.number, again.remaining), (3, 0));
}

pub(crate) async fn of_a_withdrawal_and_an_acceptance_at_once_one_succeeds(desk: Desk) {
    let (storage, other) = (&desk.storage, desk.another().await);
    let kim = user("kim").id;
    for round in 0..10 {
        let offer = an_offer(storage, 1).await.id;
        let claimant = format!("lee{round}");
        let claim = take(storage, offer, &claimant).await.expect("a place").claim;
        let (ended, accepted) = within(async {
            tokio::join!(
                store::end_claim(storage, &claim, at(5), at(0)),
                store::accept_claim(&other, &claim, &kim, at(5))
            )
        })
        .await;
        let (ended, accepted) = (ended.unwrap(), accepted.unwrap());
        assert_eq!(ended, accepted == Accepted::Gone, "{accepted:?}");
        let are_partners = storage.are_partners(&kim, &claim.user.id).await.unwrap();
        assert_eq!(are_partners, !ended, "round {round}");
        assert_eq!(now_is(storage, offer).await.remaining(), u32::from(ended));
    }
}

pub(crate) async fn a_closed_offer_takes_no_claim_and_retains_those_it_has(desk: Desk) {
    let storage = &desk.storage;
    let offer = an_offer(storage, 3).await.id;
    let first = take(storage, offer, "lee").await.expect("a place").claim;
    assert!(!store::close_offer(storage, offer, &user("lee").id, at(4)).await.unwrap());
    assert!(store::close_offer(storage, offer, &user("kim").id, at(5)).await.unwrap());
    assert!(store::close_offer(storage, offer, &user("kim").id, at(9)).await.unwrap());
    assert_eq!(take(storage, offer, "park").await, None);
    let closed = now_is(storage, offer).await;
    assert_eq!((closed.state(), closed.closed_at), (OfferState::Closed, Some(at(5))));
    assert_eq!((closed.title.as_str(), closed.message.as_deref()), ("다섯 편", Some("a\0b")));
    let accepted = store::accept_claim(storage, &first, &closed.owner.id, at(6)).await.unwrap();
    let expected = OfferClaim { state: ClaimState::Accepted, ..first.clone() };
    assert_eq!(accepted, Accepted::Done(expected.clone()));
    assert!(!store::end_claim(storage, &expected, at(7), at(0)).await.unwrap());
    assert_eq!(live(storage, offer).await, [expected]);
}

pub(crate) async fn an_acceptance_makes_partners_unless_one_of_them_has_too_many(desk: Desk) {
    let storage = &desk.storage;
    let (kim, lee) = (user("kim"), user("lee"));
    let offer = an_offer(storage, 2).await.id;
    let claim = take(storage, offer, "lee").await.expect("a place").claim;
    let mut stranger = desk.location.stranger().await;
    stranger
        .run(
            "WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 599) \
             INSERT INTO users (id, name, updated_at) \
             SELECT 'partner' || i, 'P', (SELECT min(updated_at) FROM users) FROM n",
        )
        .await;
    stranger
        .run(
            "INSERT INTO partners (low_id, high_id, since) \
             SELECT 'kim', id, updated_at FROM users WHERE id LIKE 'partner%'",
        )
        .await;
    let full = store::accept_claim(storage, &claim, &kim.id, at(5)).await.unwrap();
    assert_eq!(full, Accepted::Full);
    assert_eq!(live(storage, offer).await, std::slice::from_ref(&claim));
    assert!(!storage.are_partners(&kim.id, &lee.id).await.unwrap());
    assert!(storage.remove_partners(&kim.id, &user("partner100").id, at(5)).await.unwrap());
    for _again in 0..2 {
        let accepted = store::accept_claim(storage, &claim, &kim.id, at(6)).await.unwrap();
        assert!(matches!(accepted, Accepted::Done(_)), "{accepted:?}");
        assert!(storage.are_partners(&kim.id, &lee.id).await.unwrap());
    }
    let existing = storage.make_partners(&lee.id, &kim.id, at(7)).await.unwrap();
    assert_eq!(existing, Partnership::Existing);
}

/// Two acceptances read the claim at the same moment; the pair parts between their commits.
pub(crate) async fn g11_a_removed_partner_has_no_slot_and_a_late_acceptance_makes_no_partners(
    desk: Desk,
) {
    let storage = &desk.storage;
    let (kim, lee) = (user("kim").id, user("lee").id);
    let offer = an_offer(storage, 1).await.id;
    let claim = take(storage, offer, "lee").await.expect("a place").claim;
    let accept = async || store::accept_claim(storage, &claim, &kim, at(5)).await.unwrap();
    for _double_click in 0..2 {
        assert!(matches!(accept().await, Accepted::Done(_)));
    }
    assert!(storage.remove_partners(&lee, &kim, at(6)).await.unwrap());
    assert_eq!(accept().await, Accepted::Gone);
    assert!(!storage.are_partners(&kim, &lee).await.unwrap());
    assert_eq!(live(storage, offer).await, []);
    assert!(take(storage, offer, "lee").await.is_some(), "the place is free again");
    // An unaccepted claim survives the end of another partnership of the same two.
    storage.make_partners(&kim, &lee, at(7)).await.unwrap();
    assert!(storage.remove_partners(&kim, &lee, at(8)).await.unwrap());
    assert_eq!(live(storage, offer).await.len(), 1);
    assert!(take(storage, offer, "park").await.is_none(), "the place is taken");
}

pub(crate) async fn g13_a_user_has_a_hundred_open_offers_and_older_closed_ones_are_deleted(
    desk: Desk,
) {
    let handles = [desk.storage.clone(), desk.another().await];
    an_offer(&desk.storage, 1).await;
    let mut tasks = JoinSet::new();
    for number in 0..104_usize {
        let storage = handles[number % 2].clone();
        tasks.spawn(async move {
            store::create_offer(&storage, &offer_of("kim", 1, at(2))).await.unwrap().is_some()
        });
    }
    let made = within(tasks.join_all()).await.into_iter().filter(|made| *made).count();
    assert_eq!(made, 99);
    let mut stranger = desk.location.stranger().await;
    stranger.run("UPDATE review_offers SET closed_at = created_at").await;
    stranger
        .run(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 103) \
             INSERT INTO review_offers (id, owner_id, title, capacity, created_at, closed_at) \
             SELECT 'off_' || i, 'kim', 't', 1, (SELECT min(created_at) FROM review_offers), \
             (SELECT min(created_at) FROM review_offers) FROM n",
        )
        .await;
    // 203 are closed. The new one deletes three of them, the next one none.
    for expected in [201, 202] {
        store::create_offer(&desk.storage, &offer_of("kim", 1, at(3)))
            .await
            .unwrap()
            .expect("an offer");
        let stored = count(&desk.location, "SELECT count(*) FROM review_offers").await;
        assert_eq!(stored, expected);
    }
}

/// The number that a query counts.
async fn count(location: &Location, query: &'static str) -> i64 {
    match location.stranger().await {
        Stranger::Sqlite(mut connection) => {
            sqlx::query_scalar(query).fetch_one(&mut connection).await.unwrap()
        }
        Stranger::Postgres(mut connection) => {
            sqlx::query_scalar(query).fetch_one(&mut connection).await.unwrap()
        }
    }
}

pub(crate) async fn g13_a_user_makes_fifty_claims_a_day(desk: Desk) {
    let handles = [desk.storage.clone(), desk.another().await];
    let mut offers = Vec::new();
    for _ in 0..55 {
        offers.push(an_offer(&desk.storage, 1).await.id);
    }
    let first = take(&desk.storage, offers[0], "lee").await.expect("a place").claim;
    // A withdrawn claim counts.
    assert!(store::end_claim(&desk.storage, &first, at(3), at(0)).await.unwrap());
    let mut tasks = JoinSet::new();
    for (number, offer) in offers.iter().copied().enumerate() {
        let storage = handles[number % 2].clone();
        tasks.spawn(async move {
            store::claim_offer(&storage, &claim(offer, "lee", 50, at(3))).await.unwrap().is_some()
        });
    }
    let made = within(tasks.join_all()).await.into_iter().filter(|made| *made).count();
    assert_eq!(made, 49);
    let lee = user("lee").id;
    let offer = an_offer(&desk.storage, 1).await.id;
    let spent = store::claim_terms(&desk.storage, offer, &lee, at(0)).await.unwrap().unwrap();
    assert_eq!(spent.spent_since, Some(first.created_at));
    // A day after the first claim.
    let later = first.created_at + TimeDelta::hours(24);
    let free =
        store::claim_terms(&desk.storage, offer, &lee, first.created_at).await.unwrap().unwrap();
    assert_eq!(free.spent_since, None);
    let made = store::claim_offer(&desk.storage, &claim(offer, "lee", 50, later)).await.unwrap();
    let made = made.expect("a place").claim;
    // A withdrawal deletes ended claims that no longer count.
    assert!(store::end_claim(&desk.storage, &made, later, first.created_at).await.unwrap());
    let ended = "SELECT count(*) FROM review_claims WHERE ended_at IS NOT NULL";
    assert_eq!(count(&desk.location, ended).await, 1, "the one of today");
}

pub(crate) async fn offers_and_claims_are_listed_by_page_newest_first(desk: Desk) {
    let storage = &desk.storage;
    let mut made = Vec::new();
    for second in 1..=5 {
        let new = offer_of("kim", 5, at(second));
        made.insert(0, store::create_offer(storage, &new).await.unwrap().expect("an offer"));
    }
    store::create_offer(storage, &offer_of("lee", 5, at(9))).await.unwrap().expect("an offer");
    let kim = user("kim").id;
    let mut read = Vec::new();
    let mut before = None;
    loop {
        let page = store::offers_of(storage, &kim, &Page { limit: 2, before }).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.cursor());
        read.extend(page);
    }
    assert_eq!(read, made);
    let offer = made[0].id;
    for (second, claimant) in (11_u32..).zip(["lee", "park", "choi"]) {
        let fence = u64::from(second);
        let new = claim(offer, claimant, fence, at(i64::from(second)));
        store::claim_offer(storage, &new).await.unwrap().expect("a place");
    }
    let page = Page { limit: 2, before: None };
    let first = store::claims_of(storage, offer, None, &page).await.unwrap();
    let page = Page { limit: 2, before: first.last().map(OfferClaim::cursor) };
    let rest = store::claims_of(storage, offer, None, &page).await.unwrap();
    let names = |claims: &[OfferClaim]| -> Vec<_> {
        claims.iter().map(|claim| claim.user.id.to_string()).collect()
    };
    assert_eq!(
        (names(&first), names(&rest)),
        (vec!["choi".into(), "park".into()], vec!["lee".into()])
    );
    let (park, page) = (user("park").id, Page { limit: 9, before: None });
    let own = store::claims_of(storage, offer, Some(&park), &page).await.unwrap();
    assert_eq!(names(&own), ["park"]);
    let seen = store::offer(storage, offer, &user("park").id).await.unwrap().expect("an offer");
    assert_eq!(seen.claim.map(|claim| claim.number), Some(2));
    assert_eq!(seen.offer.remaining(), 2);
}
