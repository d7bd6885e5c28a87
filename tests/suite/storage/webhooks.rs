//! The outbox of webhooks: written with its event, claimed by one server, delivered in order.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use crate::storage::database::{
    Desk, append_one, at, document_of, edit, new_link, new_reply, new_review, ratify, user, within,
};
use crate::storage::proxy::Proxy;
use crate::storage::reviews::review_of;
use crate::storage::webhook_fixtures::{
    A, B, SOON, all_to_a, claim, drain, expire, kinds, quiet, replied, rows, set, target, wake,
};
use galley::domain::export::ExportFormat;
use galley::domain::fence::Fence;
use galley::domain::ids::{DecisionId, WebhookId};
use galley::domain::reminder::TimeZone;
use galley::domain::review::{ReviewStatus, Verdict};
use galley::domain::seat::{Role, Seat};
use galley::domain::webhook::{WebhookEvent, WebhookState};
use galley::exports::store;
use galley::exports::store::{ExportKey, ExportMark, NewExport, StoredExport};
use galley::storage::Storage;
use galley::storage::decisions::{DecisionPart, NewDecision};
use galley::storage::guard::{FenceGuard, Guarded};
use galley::storage::pagination::Page;
use galley::storage::reviews::ReviewChange;
use galley::storage::seats::Ratified;
use galley::storage::webhook_claims::{ClaimSize, ClaimedWebhook};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::support::postgres_server;

const SEATS: [WebhookEvent; 2] = [WebhookEvent::SeatTaken, WebhookEvent::SeatLeft];

crate::storage::on_both_engines! {
    webhooks:
    an_event_writes_one_row_for_each_endpoint_that_wants_it
    without_an_endpoint_no_row_is_written
    each_kind_of_a_decision_is_one_webhook
    a_grant_begins_and_ends_once_each_in_order
    g11_two_servers_claim_each_webhook_once
    a_lane_has_one_webhook_at_a_time_in_the_order_of_its_commits
    a_lane_goes_on_after_a_step_of_the_clock
    a_dead_webhook_makes_the_next_one_due_and_is_replayed_at_the_end
    an_orphan_is_dead_after_its_time
    g10_a_refused_event_leaves_no_webhook
    g10_a_rolled_back_event_leaves_no_webhook
}

/// The longest pause between two attempts.
const LONG: Duration = Duration::from_hours(1);

pub(crate) async fn an_event_writes_one_row_for_each_endpoint_that_wants_it(desk: Desk) {
    let storage = &desk.storage;
    let reviews = [WebhookEvent::ReviewCreated, WebhookEvent::ReviewReplied];
    storage.set_webhooks(vec![target(A, &reviews), target(B, &reviews[..1])]);
    let mut added = storage.webhooks_added();
    let seated = desk.seated().await;
    assert_eq!(rows(storage, None).await, 0, "no endpoint wants seats");
    let review = new_review(seated.link);
    storage.create_review(&review, seated.reviewer).await.unwrap();
    assert!(added.has_changed().unwrap(), "the deliverer wakes");
    added.mark_unchanged();
    let count = storage.measure_webhooks().await.unwrap();
    assert_eq!(count.dead, 0);
    let before = count.pending;
    let reply = new_reply("yes");
    storage.add_reply(seated.link, review.id, &reply, seated.writer, at(5)).await.unwrap();
    assert_eq!(storage.measure_webhooks().await.unwrap().pending, before + 1, "B wants no replies");
    let listed = storage.webhooks(None, &Page { limit: 9, before: None }).await.unwrap();
    assert!(listed.iter().all(|it| it.document == Some(seated.document)));
    assert!(listed.iter().all(|it| it.link == Some(seated.link)));
    let [to_a, to_b] = [claim(storage, A).await, claim(storage, B).await];
    assert_eq!((to_a.len(), to_b.len()), (1, 1), "one at a time");
    let data: Value = serde_json::from_str(&to_a[0].data).unwrap();
    assert_eq!(data["review_id"], review.id.to_string());
    assert_eq!((&data["kind"], &data["author_id"]), (&"suggestion".into(), &"lee".into()));
    assert_ne!(to_a[0].claim.id, to_b[0].claim.id);
}

pub(crate) async fn without_an_endpoint_no_row_is_written(desk: Desk) {
    let seated = desk.seated().await;
    replied(&desk, &seated, 2).await;
    assert!(!desk.storage.seat_left(seated.writer.seat, Fence(10), at(9)).await.unwrap());
    assert_eq!(rows(&desk.storage, None).await, 0);
    assert_eq!(desk.storage.taken_seats(None, 9).await.unwrap(), []);
}

pub(crate) async fn each_kind_of_a_decision_is_one_webhook(desk: Desk) {
    let storage = &desk.storage;
    all_to_a(storage);
    let seated = quiet(&desk).await;
    let (one, two) = (new_review(seated.link), new_review(seated.link));
    for review in [&one, &two] {
        storage.create_review(review, seated.reviewer).await.unwrap();
    }
    let parts = [&one, &two].map(|review| DecisionPart {
        review: review.id,
        version: 1,
        part: 0,
        current: None,
        position: None,
    });
    let decision = NewDecision {
        id: DecisionId::generate(),
        document: seated.document,
        link: seated.link,
        verdict: Verdict::Reject,
        by: user("kim"),
        at: at(6),
        parts: parts.to_vec(),
    };
    let done = storage.decide(&decision, seated.writer, None).await.unwrap();
    assert!(matches!(done, Guarded::Done(_)));
    let reopen = ReviewChange { status: Some(ReviewStatus::Open), ..ReviewChange::default() };
    let (link, guard) = (seated.link, seated.writer);
    storage.change_review(link, one.id, &reopen, Some(2), guard, at(7)).await.unwrap();
    let (format, zone) = (ExportFormat::Docx, TimeZone::UTC);
    let key = ExportKey { link, format, has_reviews: true, zone };
    let [title, names, zone] = ["글", "", "UTC"].map(str::to_owned);
    let mark = ExportMark { seq: 1, change: 0, title, names, zone };
    let export = StoredExport { mark, hash: [7; 32], length: 5, took_ms: 3, built_at: at(8) };
    assert!(store::begin_export(storage, key, Fence(1), at(8)).await.unwrap());
    let new = NewExport { key, export, bytes: "bytes".into() };
    assert!(!store::store_export(storage, Fence(2), &new).await.unwrap(), "another build");
    assert!(store::store_export(storage, Fence(1), &new).await.unwrap());
    let delivered = drain(storage, A).await;
    let created = "review.created";
    let decided = "review.decided";
    let expected = [created, created, decided, decided, "document.exported"];
    assert_eq!(kinds(&delivered), expected);
    let both = &delivered[2].1;
    assert_eq!((&both["status"], &both["reviews"]), (&"rejected".into(), &2.into()));
    assert_eq!(both["review_ids"][1], two.id.to_string());
    assert_eq!(
        (&both["decision_id"], &both["decided_by"]),
        (&decision.id.to_string().into(), &"kim".into())
    );
    let single = &delivered[3].1;
    assert_eq!((&single["status"], &single["decided_by"]), (&"open".into(), &"kim".into()));
    assert_eq!(
        delivered[4].1,
        serde_json::json!({ "format": "docx", "reviews": true, "bytes": 5 })
    );
}

pub(crate) async fn a_grant_begins_and_ends_once_each_in_order(desk: Desk) {
    let storage = &desk.storage;
    storage.set_webhooks(vec![target(A, &SEATS)]);
    let link = desk.link(desk.document().await).await.id;
    let seat = Seat::new(link, Role::Writer);
    ratify(storage, seat, 10).await;
    let kim = user("kim").id;
    let session = galley::domain::ids::SessionId::generate();
    // The same grant again, a newer one, and a late end of the first.
    for _ in 0..2 {
        storage.ratify(seat, Fence(20), session, &kim, at(3)).await.unwrap();
    }
    assert!(!storage.seat_left(seat, Fence(10), at(4)).await.unwrap());
    let taken = storage.taken_seats(None, 9).await.unwrap();
    assert_eq!((taken.len(), taken[0].fence, taken[0].is_ratified), (1, Fence(20), true));
    assert_eq!(storage.taken_seats(Some(seat), 9).await.unwrap(), []);
    // An eviction raises the fence.
    storage.vacate(seat, Fence(20)).await.unwrap();
    assert!(!storage.taken_seats(None, 9).await.unwrap()[0].is_ratified);
    assert!(storage.seat_left(seat, Fence(20), at(5)).await.unwrap());
    assert!(!storage.seat_left(seat, Fence(20), at(6)).await.unwrap());
    assert_eq!(storage.taken_seats(None, 9).await.unwrap(), []);
    let delivered = drain(storage, A).await;
    assert_eq!(kinds(&delivered), ["seat.taken", "seat.left", "seat.taken", "seat.left"]);
    let fences: Vec<_> = delivered.iter().map(|(_, data)| data["fence"].clone()).collect();
    assert_eq!(fences, [10, 10, 20, 20]);
    let first = &delivered[0].1;
    assert_eq!((&first["role"], &first["user_id"]), (&"writer".into(), &"kim".into()));
}

pub(crate) async fn g11_two_servers_claim_each_webhook_once(desk: Desk) {
    const DOCUMENTS: usize = 12;
    all_to_a(&desk.storage);
    for _ in 0..DOCUMENTS {
        desk.seated().await;
    }
    let servers = [desk.another().await, desk.another().await];
    let mut tasks = JoinSet::new();
    for number in 0..8 {
        let storage = servers[number % 2].clone();
        tasks.spawn(async move {
            let mut own = Vec::new();
            for _ in 0..4 {
                let size = ClaimSize { first: 2, repeated: 2 };
                own.extend(storage.claim_webhooks(A, size).await.unwrap());
            }
            own
        });
    }
    let claimed: Vec<_> = within(tasks.join_all()).await.into_iter().flatten().collect();
    let ids: HashSet<WebhookId> = claimed.iter().map(|webhook| webhook.claim.id).collect();
    let lanes: HashSet<_> = claimed.iter().map(|webhook| &webhook.claim.lane).collect();
    assert_eq!((claimed.len(), ids.len(), lanes.len()), (DOCUMENTS, DOCUMENTS, DOCUMENTS));
    for server in servers {
        server.close().await;
    }
}

/// The first attempt fails and blocks its lane, the second one delivers.
async fn attempted_twice(storage: &Storage, webhook: ClaimedWebhook) -> Option<ClaimedWebhook> {
    if webhook.attempts == 1 {
        storage.webhook_failed(&webhook.claim, "no", SOON).await.unwrap();
        return None;
    }
    assert!(storage.webhook_delivered(&webhook.claim).await.unwrap());
    Some(webhook)
}

/// Goal: the clock of the database is set back by two hours; the lane goes on at once.
pub(crate) async fn a_lane_goes_on_after_a_step_of_the_clock(desk: Desk) {
    let storage = &desk.storage;
    all_to_a(storage);
    let seated = desk.seated().await;
    storage.create_review(&new_review(seated.link), seated.reviewer).await.unwrap();
    let first = claim(storage, A).await.remove(0);
    storage.webhook_failed(&first.claim, "status 503", 2 * LONG).await.unwrap();
    assert_eq!(storage.restore_due_webhooks(3 * LONG).await.unwrap(), 0);
    assert_eq!(claim(storage, A).await, []);
    assert_eq!(storage.restore_due_webhooks(LONG).await.unwrap(), 1);
    assert_eq!(claim(storage, A).await[0].claim.id, first.claim.id);
}

pub(crate) async fn a_lane_has_one_webhook_at_a_time_in_the_order_of_its_commits(desk: Desk) {
    const REPLIES: usize = 6;
    let storage = &desk.storage;
    all_to_a(storage);
    let (one, two) = (quiet(&desk).await, quiet(&desk).await);
    // Events and deliveries at the same time: no lane loses its next attempt.
    let writing = async {
        tokio::join!(replied(&desk, &one, REPLIES), replied(&desk, &two, REPLIES));
    };
    let delivering = async {
        let mut order: BTreeMap<String, Vec<String>> = BTreeMap::new();
        while order.values().map(Vec::len).sum::<usize>() < 2 * (REPLIES + 1) {
            let claimed = claim(storage, A).await;
            let lanes: HashSet<_> = claimed.iter().map(|it| it.claim.lane.clone()).collect();
            assert_eq!(lanes.len(), claimed.len());
            let mut delivered = Vec::new();
            for webhook in claimed {
                delivered.extend(attempted_twice(storage, webhook).await);
            }
            for webhook in delivered {
                order.entry(webhook.claim.lane).or_default().push(webhook.data);
            }
        }
        order
    };
    let ((), order) = within(Box::pin(async { tokio::join!(writing, delivering) })).await;
    assert_eq!(order.len(), 2);
    for (seated, data) in [one, two].into_iter().zip(order.values()) {
        let _lane_of = seated.link;
        assert!(data[0].contains("\"kind\""), "the review comes first: {data:?}");
        assert_eq!(data.len(), REPLIES + 1);
    }
    assert_eq!(rows(storage, None).await, 0);
    assert_eq!(storage.restore_due_webhooks(LONG).await.unwrap(), 0);
}

pub(crate) async fn a_dead_webhook_makes_the_next_one_due_and_is_replayed_at_the_end(desk: Desk) {
    let storage = &desk.storage;
    all_to_a(storage);
    let seated = quiet(&desk).await;
    replied(&desk, &seated, 2).await;
    let head = claim(storage, A).await.remove(0);
    assert_eq!(claim(storage, A).await, []);
    let pending = Some(WebhookState::Pending);
    let state = storage.webhook_failed(&head.claim, "status 500", Duration::from_secs(60)).await;
    assert_eq!(state.unwrap(), pending);
    assert_eq!(claim(storage, A).await, [], "the pause of the head");
    expire(&desk).await;
    wake(&desk).await;
    let head = claim(storage, A).await.remove(0);
    assert_eq!((head.kind.as_str(), head.attempts), ("review.created", 2));
    let state = storage.webhook_failed(&head.claim, "status 500\0", SOON).await.unwrap();
    assert_eq!(state, Some(WebhookState::Dead));
    let dead = storage.webhooks(state, &Page { limit: 9, before: None }).await.unwrap();
    assert_eq!((dead.len(), dead[0].next_at), (1, None));
    assert_eq!(dead[0].last_error.as_deref(), Some("status 500\0"));
    // The next one is due; the replayed one goes to the end.
    let next = claim(storage, A).await.remove(0);
    let replayed = storage.replay_webhook(dead[0].id).await.unwrap().unwrap();
    assert_eq!(
        (replayed.state, replayed.attempts, replayed.next_at),
        (WebhookState::Pending, 0, None)
    );
    assert_eq!(storage.replay_webhook(replayed.id).await.unwrap().unwrap().next_at, None);
    assert!(storage.webhook_delivered(&next.claim).await.unwrap());
    let last = drain(storage, A).await;
    assert_eq!(
        (next.kind.as_str(), kinds(&last)),
        ("review.replied", vec!["review.replied", "review.created"])
    );
    assert_eq!(storage.replay_webhook(replayed.id).await.unwrap(), None);
    // All dead ones, in their order.
    replied(&desk, &seated, 2).await;
    expire(&desk).await;
    while let Some(webhook) = claim(storage, A).await.pop() {
        storage.webhook_failed(&webhook.claim, "no", SOON).await.unwrap();
    }
    assert_eq!(rows(storage, Some(WebhookState::Dead)).await, 3);
    let counts =
        [storage.replay_dead_webhooks(2, None).await, storage.replay_dead_webhooks(9, None).await];
    assert_eq!(counts, [Ok(2), Ok(1)]);
    let replayed = drain(storage, A).await;
    assert_eq!(kinds(&replayed), ["review.created", "review.replied", "review.replied"]);
}

pub(crate) async fn an_orphan_is_dead_after_its_time(desk: Desk) {
    let storage = &desk.storage;
    storage.set_webhooks(vec![target(A, &SEATS)]);
    desk.seated().await;
    let others = [B.to_owned()];
    assert_eq!(storage.orphaned_webhooks(&others, 9).await.unwrap(), []);
    expire(&desk).await;
    assert_eq!(storage.orphaned_webhooks(&[A.to_owned()], 9).await.unwrap(), []);
    let orphans = storage.orphaned_webhooks(&others, 9).await.unwrap();
    assert_eq!(orphans.len(), 1, "the first of its lane");
    let state = storage.webhook_failed(&orphans[0], "no endpoint", SOON).await.unwrap();
    assert_eq!(state, Some(WebhookState::Dead));
    assert_eq!(storage.orphaned_webhooks(&others, 9).await.unwrap().len(), 1, "the next one");
    let count = storage.measure_webhooks().await.unwrap();
    assert_eq!((count.pending, count.dead), (1, 1));
    assert_eq!(storage.delete_dead_webhooks(B, 9).await.unwrap(), 0, "of another endpoint");
    assert_eq!(storage.delete_dead_webhooks(A, 9).await.unwrap(), 1);
}

/// Goal: a write that the database refuses leaves no row in the outbox.
pub(crate) async fn g10_a_refused_event_leaves_no_webhook(desk: Desk) {
    all_to_a(&desk.storage);
    let (storage, seated) = (&desk.storage, quiet(&desk).await);
    let (link, review) = (seated.link, new_review(seated.link));
    storage.create_review(&review, seated.reviewer).await.unwrap();
    drain(storage, A).await;
    let old = |guard: FenceGuard| FenceGuard { fence: Fence(guard.fence.0 - 1), ..guard };
    let fenced = storage.create_review(&new_review(link), old(seated.reviewer)).await.unwrap();
    assert!(matches!(fenced, Guarded::Fenced), "{fenced:?}");
    let reply = new_reply("!");
    let replied =
        async |to, guard| storage.add_reply(link, to, &reply, guard, at(5)).await.unwrap();
    assert!(matches!(replied(review.id, old(seated.writer)).await, Guarded::Fenced));
    assert!(matches!(replied(new_review(link).id, seated.writer).await, Guarded::NotFound));
    let passed =
        storage.pass_turn(link, Role::Writer, &user("kim"), old(seated.writer), at(5)).await;
    assert!(matches!(passed.unwrap(), Guarded::Fenced));
    let close = ReviewChange { status: Some(ReviewStatus::Resolved), ..ReviewChange::default() };
    let changed = async |version, guard| {
        storage.change_review(link, review.id, &close, Some(version), guard, at(6)).await.unwrap()
    };
    assert!(matches!(changed(7, seated.writer).await, Guarded::VersionMismatch { .. }));
    assert!(matches!(changed(1, old(seated.writer)).await, Guarded::Fenced));
    assert_eq!(rows(storage, None).await, 0);
    assert!(matches!(changed(1, seated.writer).await, Guarded::Done(_)));
    assert_eq!(rows(storage, None).await, 1);
}

/// Goal: a transaction that fails after it wrote a webhook leaves neither the webhook nor the event.
pub(crate) async fn g10_a_rolled_back_event_leaves_no_webhook(desk: Desk) {
    all_to_a(&desk.storage);
    let (storage, seated) = (&desk.storage, quiet(&desk).await);
    let review = new_review(seated.link);
    set(
        &desk,
        "CREATE TRIGGER fails AFTER INSERT ON webhooks BEGIN SELECT RAISE(ABORT, 'no'); END",
        "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS \
           $$ BEGIN RAISE EXCEPTION 'no'; END $$; \
         CREATE CONSTRAINT TRIGGER fails AFTER INSERT ON webhooks DEFERRABLE INITIALLY DEFERRED \
           FOR EACH ROW EXECUTE FUNCTION fails()",
    )
    .await;
    assert!(storage.create_review(&review, seated.reviewer).await.is_err());
    assert_eq!(rows(storage, None).await, 0);
    assert!(review_of(storage, seated.link, review.id).await.is_none());
    set(&desk, "DROP TRIGGER fails", "DROP TRIGGER fails ON webhooks").await;
    storage.create_review(&review, seated.reviewer).await.unwrap();
    assert_eq!(rows(storage, None).await, 1);
}

/// Goal: the webhooks of an event are one statement for any number of endpoints, and an edit costs none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_statement_writes_the_webhooks_of_an_event() {
    let mut counted = Vec::new();
    for endpoints in [0, 1, 20] {
        let database = postgres_server::shared().database().await;
        let proxy = Proxy::to(&database.url());
        let storage = Storage::open(&proxy.url()).await.unwrap();
        let events = [WebhookEvent::ReviewCreated];
        let targets = (0..endpoints).map(|number| target(&number.to_string(), &events));
        storage.set_webhooks(targets.collect());
        let mut trips = [0; 3];
        // The first round prepares the statements.
        for _ in 0..2 {
            let document = document_of(&storage, &user("kim")).await;
            let link =
                storage.find_or_create_link(&new_link(document)).await.unwrap().unwrap().0.id;
            let seat = Seat::new(link, Role::Reviewer);
            storage.join_link(link, &user("lee"), at(1)).await.unwrap();
            proxy.round_trips();
            assert_eq!(ratify(&storage, seat, 9).await, Ratified::Accepted);
            let grant = proxy.round_trips();
            let guard = FenceGuard { seat, fence: Fence(9) };
            storage.create_review(&new_review(link), guard).await.unwrap();
            let review = proxy.round_trips();
            append_one(&storage, edit(document, "an update")).await;
            trips = [grant, review, proxy.round_trips()];
        }
        let count = storage.measure_webhooks().await.unwrap();
        assert_eq!(count.pending, 2 * endpoints);
        counted.push(trips);
        storage.close().await;
    }
    let [none, one, many] = counted[..] else { panic!("three counts") };
    assert_eq!((one, one[1]), (many, none[1] + 1));
    assert_eq!(
        [one[0], one[2]],
        [none[0], none[2]],
        "no endpoint wants seats, and an edit is no event"
    );
}
