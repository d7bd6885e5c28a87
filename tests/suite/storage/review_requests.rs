//! Requests of one user to another.

use crate::storage::database::{Desk, at, document_of, user, within};
use crate::storage::proxy::Proxy;
use chrono::TimeDelta;
use galley::domain::ids::{DocumentId, RequestId, ShareLinkId};
use galley::domain::review_request::RequestState;
use galley::domain::seat::Role;
use galley::partners::request::{
    AcceptedRequest, Decided, Direction, LinkOutcome, LinkToOffer, NewRequest, Refusal,
    RequestFilter, Requested, ReviewRequest,
};
use galley::partners::store::requests::{
    self, accept_request, create_request, decline_requests, refuse_request, requests_of,
};
use galley::storage::Storage;
use galley::storage::guard::Guarded;
use galley::storage::invites::ReplacedReviewer;
use galley::storage::links::Joined;
use galley::storage::pagination::Page;
use galley::storage::partners::Partnership;
use tokio::task::JoinSet;

use crate::support::postgres_server;

crate::storage::on_both_engines! {
    review_requests:
    g11_without_the_lock_two_users_who_request_each_other_have_one_pending_request
    of_an_acceptance_a_refusal_and_a_withdrawal_at_once_one_is_stored
    an_acceptance_makes_partners_and_joins_the_document
    an_acceptance_leaves_the_reviewer_of_a_link_and_stores_the_attempt
    a_document_of_the_bin_is_joined_by_no_acceptance
    g13_an_acceptance_beyond_the_partners_of_a_user_changes_nothing
    a_pending_request_ends_with_the_partnership
    a_partner_becomes_the_reviewer_of_a_link_without_one
    g13_a_user_sends_and_receives_a_bounded_number_of_requests
    g13_a_day_has_a_bounded_number_of_requests
    g17_guests_leave_the_requests_of_other_users_their_room
    an_expired_request_admits_the_next_one
    requests_are_listed_by_direction_and_state
    g13_requests_beyond_their_retention_are_deleted
    a_refused_request_is_not_stored
}

/// Goal: guests have a bound of their own, a switch refuses them, and one call declines all.
pub(crate) async fn g17_guests_leave_the_requests_of_other_users_their_room(desk: Desk) {
    let storage = &desk.storage;
    enter(&desk, &["kim", "lee", "park", "choi", "jung"]).await;
    let guest = |from| NewRequest { guests: Some(2), ..new_request(from, "kim", 1) };
    let request = async |new: NewRequest| create_request(storage, &new).await.unwrap();
    for from in ["lee", "park"] {
        assert!(matches!(request(guest(from)).await, Requested::Created(_)));
    }
    assert_eq!(request(guest("choi")).await, Requested::GuestsFull);
    assert!(matches!(request(new_request("choi", "kim", 1)).await, Requested::Created(_)));
    let kim = user("kim");
    assert_eq!(decline_requests(storage, &kim.id, at(2)).await, Ok(3));
    let state = Some(RequestState::Declined);
    let filter =
        RequestFilter { user: kim.id.clone(), direction: Direction::Received, state, now: at(3) };
    assert_eq!(requests_of(storage, &filter, &PAGE).await.unwrap().len(), 3);
    let takes = async |user| storage.profile_of(user).await.unwrap().unwrap().1;
    assert!(takes(&kim.id).await);
    storage.set_guest_requests(&kim, false).await.unwrap();
    assert!(!takes(&kim.id).await);
    assert_eq!(request(guest("jung")).await, Requested::NoGuests);
    assert!(matches!(request(new_request("jung", "kim", 1)).await, Requested::Created(_)));
}

pub(crate) fn new_request(from: &str, to: &str, second: i64) -> NewRequest {
    NewRequest {
        id: RequestId::generate(),
        from: user(from),
        to: user(to).id,
        sender_role: Role::Writer,
        message: Some("봐 주세요".to_owned()),
        document: None,
        guests: None,
        now: at(second),
    }
}

fn link_to_offer() -> LinkToOffer {
    LinkToOffer { id: ShareLinkId::generate(), invite_hash: [5; 32] }
}

async fn enter(desk: &Desk, names: &[&str]) {
    for name in names {
        desk.storage.save_user(&user(name), at(0)).await.unwrap();
    }
}

/// A stored request.
async fn created(storage: &Storage, new: &NewRequest) -> ReviewRequest {
    match create_request(storage, new).await.unwrap() {
        Requested::Created(request) => *request,
        other => panic!("{other:?}"),
    }
}

async fn accepted(
    storage: &Storage,
    id: RequestId,
    by: &str,
    second: i64,
) -> Decided<AcceptedRequest> {
    match accept_request(storage, id, &user(by).id, &link_to_offer(), at(second)).await.unwrap() {
        Guarded::Done(decided) => decided,
        other => panic!("{other:?}"),
    }
}

async fn link_of_accepted(storage: &Storage, id: RequestId, second: i64) -> LinkOutcome {
    match accepted(storage, id, "lee", second).await {
        Decided::Done(accepted) => accepted.link,
        other => panic!("{other:?}"),
    }
}

fn about(document: DocumentId, second: i64) -> NewRequest {
    NewRequest { document: Some(document), ..new_request("kim", "lee", second) }
}

pub(crate) async fn g11_without_the_lock_two_users_who_request_each_other_have_one_pending_request(
    desk: Desk,
) {
    let another = desk.another().await;
    for pair in 0..20 {
        let (one, other) = (format!("kim{pair}"), format!("lee{pair}"));
        enter(&desk, &[&one, &other]).await;
        let mut tasks = JoinSet::new();
        for number in 0..4 {
            let (from, to) = if number % 2 == 0 { (&one, &other) } else { (&other, &one) };
            let storage = if number < 2 { desk.storage.clone() } else { another.clone() };
            let new = new_request(from, to, 1);
            tasks
                .spawn(async move { (new.clone(), create_request(&storage, &new).await.unwrap()) });
        }
        let outcomes = within(tasks.join_all()).await;
        let created: Vec<_> = outcomes
            .iter()
            .filter(|(_, outcome)| matches!(outcome, Requested::Created(_)))
            .map(|(new, _)| (new.id, new.from.id.clone()))
            .collect();
        let [(id, sender)] = created.as_slice() else { panic!("{outcomes:?}") };
        for (new, outcome) in &outcomes {
            match outcome {
                Requested::Created(_) => {}
                Requested::AlreadySent(pending) => {
                    assert_eq!((pending, &new.from.id), (id, sender));
                }
                Requested::AlreadyReceived(pending) => {
                    assert_eq!((pending, &new.to), (id, sender));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

pub(crate) async fn of_an_acceptance_a_refusal_and_a_withdrawal_at_once_one_is_stored(desk: Desk) {
    let another = desk.another().await;
    for round in 0..20 {
        let (from, to) = (format!("kim{round}"), format!("lee{round}"));
        enter(&desk, &[&from, &to]).await;
        let id = created(&desk.storage, &new_request(&from, &to, 1)).await.id;
        let (kim, lee, link) = (user(&from).id, user(&to).id, link_to_offer());
        let (accepted, declined, withdrawn) = within(async {
            tokio::join!(
                accept_request(&desk.storage, id, &lee, &link, at(2)),
                refuse_request(&another, id, &lee, Refusal::Decline, at(2)),
                refuse_request(&another, id, &kim, Refusal::Withdraw, at(2)),
            )
        })
        .await;
        let is_accepted = matches!(accepted.unwrap(), Guarded::Done(Decided::Done(_)));
        let refusals = [declined.unwrap(), withdrawn.unwrap()];
        let refused = refusals.iter().filter(|it| matches!(it, Decided::Done(_))).count();
        assert_eq!(usize::from(is_accepted) + refused, 1, "{refusals:?}");
        assert_eq!(desk.storage.are_partners(&kim, &lee).await.unwrap(), is_accepted);
        let state = requests::request(&desk.storage, id, at(3)).await.unwrap().unwrap().state;
        assert_eq!(state == RequestState::Accepted, is_accepted, "{state:?}");
        assert_ne!(state, RequestState::Pending);
    }
}

pub(crate) async fn an_acceptance_makes_partners_and_joins_the_document(desk: Desk) {
    let (storage, lee) = (&desk.storage, user("lee"));
    enter(&desk, &["lee"]).await;
    let document = desk.document().await;
    let request = created(storage, &about(document, 1)).await;
    assert_eq!((request.state, request.document), (RequestState::Pending, Some(document)));
    assert_eq!((request.title.as_deref(), request.decided_at), (Some("지원서"), None));
    assert_eq!((&request.from, &request.to), (&user("kim"), &lee));
    for (caller, outcome) in [("kim", Decided::OtherSide), ("park", Decided::Gone)] {
        assert_eq!(accepted(storage, request.id, caller, 2).await, outcome, "{caller}");
    }
    assert!(!storage.are_partners(&request.from.id, &lee.id).await.unwrap());
    assert_eq!(storage.link_of(document).await.unwrap(), None);

    let first = accepted(storage, request.id, "lee", 3).await;

    let link = storage.link_of(document).await.unwrap().unwrap();
    assert_eq!((&link.reviewer, link.invite_hash), (&Some(lee.clone()), [5; 32]));
    let Decided::Done(first) = first else { panic!("{first:?}") };
    assert_eq!(first.link, LinkOutcome::Joined(link.id));
    assert_eq!(first.request.state, RequestState::Accepted);
    assert_eq!(first.request.decided_at, Some(at(3)));
    assert!(storage.are_partners(&request.from.id, &lee.id).await.unwrap());
    // The reply to the first may be lost; the second changes nothing.
    assert!(first.is_first);
    let second = AcceptedRequest { is_first: false, ..first };
    assert_eq!(accepted(storage, request.id, "lee", 9).await, Decided::Done(second));
    let refused = refuse_request(storage, request.id, &lee.id, Refusal::Decline, at(9)).await;
    assert_eq!(refused.unwrap(), Decided::NotPending(RequestState::Accepted));
}

pub(crate) async fn an_acceptance_leaves_the_reviewer_of_a_link_and_stores_the_attempt(desk: Desk) {
    let (storage, lee, park) = (&desk.storage, user("lee"), user("park"));
    enter(&desk, &["lee"]).await;
    let document = desk.document().await;
    let link = desk.link(document).await.id;
    storage.join_link(link, &park, at(1)).await.unwrap();
    let request = created(storage, &about(document, 2)).await;

    let outcome = link_of_accepted(storage, request.id, 3).await;

    assert_eq!(outcome, LinkOutcome::ReviewerExists { document, is_noted: true });
    assert!(storage.are_partners(&request.from.id, &lee.id).await.unwrap());
    assert_eq!(storage.link(link).await.unwrap().unwrap().reviewer, Some(park.clone()));
    let attempts = storage.invite_state(link).await.unwrap().unwrap().attempts;
    assert_eq!(attempts.iter().map(|attempt| &attempt.user).collect::<Vec<_>>(), [&lee]);
    // The owner lets the partner in, as any refused user.
    let replaced = storage.replace_reviewer(link, &lee.id, at(4)).await.unwrap();
    assert_eq!(replaced, ReplacedReviewer::Done(Some(park.id)));
}

pub(crate) async fn a_document_of_the_bin_is_joined_by_no_acceptance(desk: Desk) {
    let (storage, kim, lee) = (&desk.storage, user("kim").id, user("lee").id);
    enter(&desk, &["lee"]).await;
    let document = desk.document().await;
    let request = created(storage, &about(document, 1)).await;
    storage.bin_document(document, at(2)).await.unwrap();
    let shown = requests::request(storage, request.id, at(2)).await.unwrap().unwrap();
    assert_eq!((shown.document, shown.title), (Some(document), None));
    assert_eq!(link_of_accepted(storage, request.id, 3).await, LinkOutcome::DocumentGone);
    assert!(storage.are_partners(&kim, &lee).await.unwrap());
    // A purge leaves the request without its document.
    assert!(storage.purge_document(document, None).await.unwrap());
    let shown = requests::request(storage, request.id, at(4)).await.unwrap().unwrap();
    assert_eq!((shown.document, shown.state), (None, RequestState::Accepted));
}

const PAGE: Page<RequestId> = Page { limit: 10, before: None };
/// Five hundred users and requests or partners of one, in one statement.
const CROWD: &str = "INSERT INTO users (id, name, updated_at) \
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) \
    SELECT 'p' || i, 'P', (SELECT updated_at FROM users WHERE id = 'kim') FROM n;";

pub(crate) async fn g13_an_acceptance_beyond_the_partners_of_a_user_changes_nothing(desk: Desk) {
    let (storage, kim, lee) = (&desk.storage, user("kim").id, user("lee").id);
    enter(&desk, &["kim", "lee"]).await;
    let mut stranger = desk.location.stranger().await;
    stranger.run(CROWD).await;
    stranger
        .run(
            "INSERT INTO partners (low_id, high_id, since) \
             SELECT 'kim', id, updated_at FROM users WHERE name = 'P'",
        )
        .await;
    let document = desk.document().await;
    let id = created(storage, &about(document, 1)).await.id;
    let outcome = accept_request(storage, id, &lee, &link_to_offer(), at(2)).await.unwrap();
    assert_eq!(outcome, Guarded::Full);
    let request = requests::request(storage, id, at(3)).await.unwrap().unwrap();
    assert_eq!(request.state, RequestState::Pending);
    assert_eq!(storage.link_of(document).await.unwrap(), None);
    assert_eq!(storage.make_partners(&lee, &kim, at(3)).await.unwrap(), Partnership::Full);
    assert!(storage.remove_partners(&kim, &user("p7").id, at(3)).await.unwrap());
    assert!(matches!(link_of_accepted(storage, id, 4).await, LinkOutcome::Joined(_)));
}

/// A claim of an offer makes partners beside a pending request.
pub(crate) async fn a_pending_request_ends_with_the_partnership(desk: Desk) {
    let (storage, kim, lee) = (&desk.storage, user("kim").id, user("lee").id);
    enter(&desk, &["lee"]).await;
    for (remover, other, state) in
        [(&kim, &lee, RequestState::Withdrawn), (&lee, &kim, RequestState::Declined)]
    {
        let id = created(storage, &new_request("kim", "lee", 1)).await.id;
        storage.make_partners(&kim, &lee, at(2)).await.unwrap();
        assert!(storage.remove_partners(remover, other, at(3)).await.unwrap());
        let request = requests::request(storage, id, at(4)).await.unwrap().unwrap();
        assert_eq!((request.state, request.decided_at), (state, Some(at(3))));
        assert_eq!(accepted(storage, id, "lee", 5).await, Decided::NotPending(state));
        assert!(!storage.are_partners(&kim, &lee).await.unwrap());
    }
}

pub(crate) async fn a_partner_becomes_the_reviewer_of_a_link_without_one(desk: Desk) {
    let (storage, lee, park) = (&desk.storage, user("lee"), user("park"));
    enter(&desk, &["kim", "lee", "park"]).await;
    let link = desk.link(desk.document().await).await.id;
    let put = async |who: &str, second| {
        storage.replace_reviewer(link, &user(who).id, at(second)).await.unwrap()
    };
    assert_eq!(put("lee", 1).await, ReplacedReviewer::NotAPartner);
    storage.make_partners(&user("kim").id, &lee.id, at(1)).await.unwrap();
    storage.make_partners(&user("kim").id, &park.id, at(1)).await.unwrap();
    for _ in 0..2 {
        assert_eq!(put("lee", 2).await, ReplacedReviewer::Done(None));
    }
    assert_eq!(put("park", 3).await, ReplacedReviewer::ReviewerExists);
    assert_eq!(storage.link(link).await.unwrap().unwrap().reviewer, Some(lee.clone()));
    // A partner whom the link refused replaces the reviewer, as any refused user.
    let refused = storage.join_link(link, &park, at(4)).await.unwrap();
    assert!(matches!(refused, Joined::ReviewerExists { .. }));
    assert_eq!(put("park", 5).await, ReplacedReviewer::Done(Some(lee.id)));
}

pub(crate) async fn g13_a_user_sends_and_receives_a_bounded_number_of_requests(desk: Desk) {
    let storage = &desk.storage;
    enter(&desk, &["kim"]).await;
    desk.location.stranger().await.run(CROWD).await;
    let mut first = None;
    for number in 1..=20 {
        let request = created(storage, &new_request("kim", &format!("p{number}"), 1)).await;
        first.get_or_insert(request.id);
    }
    // Two servers send one more at once: none is stored.
    let another = desk.another().await;
    let (one, other) = (new_request("kim", "p21", 2), new_request("kim", "p22", 2));
    let outcomes = tokio::join!(create_request(storage, &one), create_request(&another, &other));
    assert_eq!(outcomes.0.unwrap(), Requested::SenderFull);
    assert_eq!(outcomes.1.unwrap(), Requested::SenderFull);
    // A withdrawn request leaves room for another, and for one only.
    let kim = user("kim").id;
    refuse_request(storage, first.unwrap(), &kim, Refusal::Withdraw, at(3)).await.unwrap();
    let mut tasks = JoinSet::new();
    for number in 30..38 {
        let storage = if number % 2 == 0 { storage.clone() } else { another.clone() };
        let new = new_request("kim", &format!("p{number}"), 4);
        tasks.spawn(async move { create_request(&storage, &new).await.unwrap() });
    }
    let outcomes = within(tasks.join_all()).await;
    let is_created = |outcome: &&Requested| matches!(outcome, Requested::Created(_));
    assert_eq!(outcomes.iter().filter(is_created).count(), 1, "{outcomes:?}");

    enter(&desk, &["lee"]).await;
    for number in 100..300 {
        created(storage, &new_request(&format!("p{number}"), "lee", 1)).await;
    }
    let last = create_request(storage, &new_request("p300", "lee", 1)).await.unwrap();
    assert_eq!(last, Requested::ReceiverFull);
}

pub(crate) async fn g13_a_day_has_a_bounded_number_of_requests(desk: Desk) {
    let (storage, kim) = (&desk.storage, user("kim").id);
    enter(&desk, &["kim", "lee"]).await;
    desk.location.stranger().await.run(CROWD).await;
    let day = 24 * 60 * 60;
    let create_and_withdraw = async |to: &str, second| {
        let id = created(storage, &new_request("kim", to, second)).await.id;
        refuse_request(storage, id, &kim, Refusal::Withdraw, at(second)).await.unwrap();
    };
    for second in [1, 2, 3] {
        create_and_withdraw("lee", second).await;
    }
    let fourth = create_request(storage, &new_request("kim", "lee", 4)).await.unwrap();
    assert_eq!(fourth, Requested::DayFull { until: at(1 + day) });
    // The bound is the sender's: the other user may still ask.
    let id = created(storage, &new_request("lee", "kim", 5)).await.id;
    refuse_request(storage, id, &kim, Refusal::Decline, at(5)).await.unwrap();

    for number in 4..=50 {
        create_and_withdraw(&format!("p{number}"), number).await;
    }
    let next = create_request(storage, &new_request("kim", "p60", 51)).await.unwrap();
    assert_eq!(next, Requested::DayFull { until: at(1 + day) });
    created(storage, &new_request("kim", "p60", 1 + day)).await;
    let next = create_request(storage, &new_request("kim", "p61", 1 + day)).await.unwrap();
    assert_eq!(next, Requested::DayFull { until: at(2 + day) });
}

pub(crate) async fn an_expired_request_admits_the_next_one(desk: Desk) {
    let (storage, lee) = (&desk.storage, user("lee").id);
    enter(&desk, &["lee"]).await;
    let request = created(storage, &new_request("kim", "lee", 0)).await;
    let end = request.expires_at;
    assert_eq!(end - request.created_at, TimeDelta::days(30));
    let state = async |now| requests::request(storage, request.id, now).await.unwrap().unwrap();
    let just_before = end - TimeDelta::milliseconds(1);
    assert_eq!(state(just_before).await.state, RequestState::Pending);
    let expired = state(end).await;
    assert_eq!((expired.state, expired.decided_at), (RequestState::Expired, Some(end)));
    let late = accept_request(storage, request.id, &lee, &link_to_offer(), end).await.unwrap();
    assert_eq!(late, Guarded::Done(Decided::NotPending(RequestState::Expired)));
    let late = refuse_request(storage, request.id, &lee, Refusal::Decline, end).await.unwrap();
    assert_eq!(late, Decided::NotPending(RequestState::Expired));
    // The pair may ask again, in the other direction as well.
    let next = NewRequest { now: end, ..new_request("lee", "kim", 0) };
    let next = created(storage, &next).await;
    assert_eq!(state(end).await, expired);
    assert_eq!(next.state, RequestState::Pending);
}

pub(crate) async fn requests_are_listed_by_direction_and_state(desk: Desk) {
    let (storage, kim) = (&desk.storage, user("kim").id);
    enter(&desk, &["kim", "lee", "park", "choi"]).await;
    let to_lee = created(storage, &new_request("kim", "lee", 1)).await.id;
    let from_park = created(storage, &new_request("park", "kim", 2)).await.id;
    let to_choi = created(storage, &new_request("kim", "choi", 2)).await.id;
    created(storage, &new_request("lee", "park", 3)).await;
    refuse_request(storage, from_park, &kim, Refusal::Decline, at(4)).await.unwrap();
    let day = 24 * 60 * 60;
    let list = async |direction, state, second| {
        let filter = RequestFilter { user: kim.clone(), direction, state, now: at(second) };
        let (mut ids, mut before) = (Vec::new(), None);
        loop {
            let page = Page { limit: 2, before };
            let requests = requests_of(storage, &filter, &page).await.unwrap();
            before = requests.last().map(ReviewRequest::cursor);
            ids.extend(requests.into_iter().map(|request| request.id));
            if before.is_none() {
                break ids;
            }
        }
    };
    let mut of_one_time = [from_park, to_choi];
    of_one_time.sort_by_key(|id| std::cmp::Reverse(id.to_string()));
    let all = [of_one_time[0], of_one_time[1], to_lee];
    assert_eq!(list(Direction::Either, None, 5).await, all);
    assert_eq!(list(Direction::Sent, None, 5).await, [to_choi, to_lee]);
    assert_eq!(list(Direction::Received, None, 5).await, [from_park]);
    let (pending, expired) = (Some(RequestState::Pending), Some(RequestState::Expired));
    assert_eq!(list(Direction::Either, pending, 5).await, [to_choi, to_lee]);
    assert_eq!(list(Direction::Received, pending, 5).await, []);
    assert_eq!(list(Direction::Either, Some(RequestState::Declined), 5).await, [from_park]);
    assert_eq!(list(Direction::Either, expired, 5).await, []);
    assert_eq!(list(Direction::Either, pending, 30 * day + 1).await, [to_choi]);
    assert_eq!(list(Direction::Sent, expired, 30 * day + 1).await, [to_lee]);
}

pub(crate) async fn g13_requests_beyond_their_retention_are_deleted(desk: Desk) {
    let storage = &desk.storage;
    enter(&desk, &["kim", "lee", "park"]).await;
    let old = created(storage, &new_request("kim", "lee", 0)).await;
    let later = created(storage, &new_request("kim", "park", 60)).await;
    let now = old.created_at + TimeDelta::days(90);
    created(storage, &NewRequest { now, ..new_request("lee", "park", 0) }).await;
    assert_eq!(requests::request(storage, old.id, now).await.unwrap(), None);
    assert!(requests::request(storage, later.id, now).await.unwrap().is_some());
}

pub(crate) async fn a_refused_request_is_not_stored(desk: Desk) {
    let (storage, kim, lee) = (&desk.storage, user("kim").id, user("lee").id);
    enter(&desk, &["kim", "lee"]).await;
    let (of_lee, binned) = (desk.document_of(&user("lee"), at(0)).await.id, desk.document().await);
    storage.bin_document(binned, at(1)).await.unwrap();
    for document in [of_lee, binned, DocumentId::generate()] {
        let outcome = create_request(storage, &about(document, 2)).await.unwrap();
        assert_eq!(outcome, Requested::NoDocument);
    }
    storage.make_partners(&kim, &lee, at(3)).await.unwrap();
    for (from, to) in [("kim", "lee"), ("lee", "kim")] {
        let outcome = create_request(storage, &new_request(from, to, 4)).await.unwrap();
        assert_eq!(outcome, Requested::AlreadyPartners);
    }
    let filter = RequestFilter { user: kim, direction: Direction::Either, state: None, now: at(5) };
    assert_eq!(requests_of(storage, &filter, &PAGE).await.unwrap(), []);
}

/// Goal: the round trips to PostgreSQL of each operation, with its `BEGIN` and `COMMIT`.
#[tokio::test]
async fn each_operation_on_a_request_has_a_fixed_number_of_round_trips() {
    let database = postgres_server::shared().database().await;
    let proxy = Proxy::to(&database.url());
    let storage = Storage::open(&proxy.url()).await.unwrap();
    let mut counted = Vec::new();
    // The first round prepares the statements.
    for round in 0..2 {
        let (from, to) = (format!("kim{round}"), format!("lee{round}"));
        storage.save_user(&user(&from), at(0)).await.unwrap();
        storage.save_user(&user(&to), at(0)).await.unwrap();
        let (document, lee) = (document_of(&storage, &user(&from)).await, user(&to).id);
        proxy.round_trips();
        let first = NewRequest { document: Some(document), ..new_request(&from, &to, 1) };
        let declined = created(&storage, &first).await.id;
        let request = proxy.round_trips();
        refuse_request(&storage, declined, &lee, Refusal::Decline, at(2)).await.unwrap();
        let refusal = proxy.round_trips();
        let id = created(&storage, &NewRequest { id: RequestId::generate(), ..first }).await.id;
        proxy.round_trips();
        assert!(matches!(accepted(&storage, id, &to, 3).await, Decided::Done(_)));
        let acceptance = proxy.round_trips();
        requests::request(&storage, id, at(4)).await.unwrap();
        counted = vec![request, refusal, acceptance, proxy.round_trips()];
    }
    assert_eq!(counted, [7, 5, 12, 1]);
}
