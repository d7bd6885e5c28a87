//! `/api/me/reminders`, and the reminders themselves: each reason, the settings, and quiet hours.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::time::Instant;

use crate::server::many_servers::Cluster;
use crate::server::reminder_fixtures::{QUICK, browser, review, runs, sum};
use crate::support::galley_process::Server;
use crate::support::push_service::{PushService, Response};
use crate::support::raw_socket;
use crate::support::redis_server::TEST_TIMEOUT;
use crate::support::rest_client::Person;

const ALL: &str = "/api/me/reminders";

fn settings() -> Value {
    json!({
        "review_unanswered": true,
        "seat_free": true,
        "request_unanswered": true,
        "quiet": null,
        "time_zone": null,
    })
}

async fn set(server: &Server, who: &Person, body: &Value) {
    assert_eq!(&server.call(who, "PUT", ALL, Some(body.clone())).await.ok(200), body);
}

/// Goal: one push for both reviews, after the writer has left, and no second one.
#[tokio::test]
async fn a_writer_who_is_away_is_reminded_once_of_reviews_without_answer() {
    let (server, service) = (Server::with(&QUICK).await, PushService::start().await);
    let desk = server.desk("text").await;
    let kims = browser(&server, &desk.writer, &service).await;
    let lees = browser(&server, &desk.reviewer, &service).await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    review(&server, &desk).await;
    review(&server, &desk).await;
    // The first runs may precede the time of the reviews.
    runs(&server, 3).await;
    let connected = runs(&server, 2).await;
    assert_eq!((sum(&connected, "present"), service.received().len()), (2, 0));
    writer.leave().await;
    let push = service.has(1).await.remove(0);
    assert_eq!(push.path, kims.path, "the writer's browser, not {}", lees.path);
    let payload = kims.decrypt(&push.body);
    assert_eq!(payload["kind"], "review.unanswered");
    assert_eq!(payload["url"], format!("/d/{}", desk.document));
    let params = json!({ "title": "자기소개서", "by": "Lee", "count": "2" });
    assert_eq!(payload["params"], params);
    let later = runs(&server, 4).await;
    assert_eq!((sum(&later, "candidates"), service.received().len()), (0, 1));
    // A later review is another reason, and the push says how many wait.
    review(&server, &desk).await;
    let pushes = service.has(2).await;
    assert_eq!(kims.decrypt(&pushes[1].body)["params"]["count"], "3");
    drop(reviewer);
}

/// Waits for a run that finds an absent waiter of a taken seat.
async fn seat_is_awaited(server: &Server) {
    let began = Instant::now();
    while sum(&runs(server, 1).await, "present") == 0 {
        assert!(began.elapsed() < TEST_TIMEOUT, "no run finds the waiter");
    }
}

/// Goal: a waiter whose connection broke is reminded when the seat is free; one who gave up is not.
#[tokio::test]
async fn a_waiter_whose_connection_broke_is_reminded_of_the_free_seat() {
    let (server, service) = (Server::with(&QUICK).await, PushService::start().await);
    let desk = server.desk("text").await;
    let lees = browser(&server, &desk.reviewer, &service).await;
    for gives_up in [true, false] {
        let holder = server.reviewer(&desk).await;
        let waiter = server.claim_seat(&desk, "reviewer", "events=1&wait=60").await;
        waiter.event("seat.waiting").await;
        if gives_up {
            waiter.leave().await;
            assert_eq!(sum(&runs(&server, 5).await, "present"), 0);
        } else {
            drop(waiter);
            seat_is_awaited(&server).await;
        }
        assert_eq!(service.received().len(), 0);
        holder.leave().await;
        if gives_up {
            runs(&server, 3).await;
            assert_eq!(service.received().len(), 0);
        }
    }
    let push = service.has(1).await.remove(0);
    let payload = lees.decrypt(&push.body);
    assert_eq!(
        (&payload["kind"], &payload["params"]["role"]),
        (&json!("seat.free"), &json!("reviewer"))
    );
    assert_eq!(payload["url"], format!("/s/{}", desk.link));
    runs(&server, 3).await;
    assert_eq!(service.received().len(), 1);
}

/// Goal: a waiter whose connection is dead without a close gets the seat, never sees it, and is reminded
/// when it is free again.
#[tokio::test]
async fn a_waiter_whose_half_open_connection_got_the_seat_is_reminded() {
    let (server, service) = (Server::with(&QUICK).await, PushService::start().await);
    let desk = server.desk("text").await;
    let lees = browser(&server, &desk.reviewer, &service).await;
    let holder = server.reviewer(&desk).await;
    // It answers no ping.
    let mut half_open = raw_socket::open(&server, &desk, "reviewer", "events=1&wait=60").await;
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).contains("seat.waiting") {
        assert_ne!(half_open.read_buf(&mut received).await.expect("a frame"), 0);
    }
    holder.leave().await;
    let push = service.has(1).await.remove(0);
    assert_eq!(lees.decrypt(&push.body)["kind"], "seat.free");
}

/// Goal: a user who came back and took the seat needs no reminder of it.
#[tokio::test]
async fn a_waiter_who_has_been_in_the_seat_since_is_not_reminded() {
    let (server, service) = (Server::with(&QUICK).await, PushService::start().await);
    let desk = server.desk("text").await;
    browser(&server, &desk.reviewer, &service).await;
    let holder = server.reviewer(&desk).await;
    let waiter = server.claim_seat(&desk, "reviewer", "events=1&wait=60").await;
    waiter.event("seat.waiting").await;
    drop(waiter);
    seat_is_awaited(&server).await;
    let again = server.seated(&desk, "reviewer", "events=1&takeover=1").await;
    drop(holder);
    again.leave().await;
    let after = runs(&server, 4).await;
    assert_eq!((sum(&after[1..], "candidates"), service.received().len()), (0, 0));
}

#[tokio::test]
async fn a_receiver_is_reminded_of_a_request_without_answer() {
    let (server, service) = (Server::with(&QUICK).await, PushService::start().await);
    let (kim, lee) = (server.guest("Kim").await, server.guest("Lee").await);
    let lees = browser(&server, &lee, &service).await;
    browser(&server, &kim, &service).await;
    let body = json!({ "to": lee.id, "as": "writer" });
    server.post(&kim, "/api/review-requests", body).await.ok(201);
    // A new request has a notification of its own.
    let is_reminder = |body: &[u8]| lees.decrypt(body)["kind"] == "request.unanswered";
    let reminders = || {
        let received = service.received().into_iter().filter(|push| push.path == lees.path);
        received.filter(|push| is_reminder(&push.body)).collect::<Vec<_>>()
    };
    runs(&server, 6).await;
    let found = reminders();
    assert_eq!(found.len(), 1);
    let payload = lees.decrypt(&found[0].body);
    assert_eq!(
        (&payload["url"], &payload["params"]),
        (&json!("/#requests"), &json!({ "from": "Kim" }))
    );
}

/// Goal: a reminder in quiet hours is neither sent nor lost.
#[tokio::test]
async fn a_reminder_in_quiet_hours_is_sent_after_them() {
    let (server, service) = (Server::with(&QUICK).await, PushService::start().await);
    let desk = server.desk("text").await;
    browser(&server, &desk.writer, &service).await;
    // Seoul is nine hours ahead and has no summer time.
    let now = Utc::now() + TimeDelta::hours(9);
    let time = |hours| (now + TimeDelta::hours(hours)).format("%H:%M").to_string();
    let mut quiet = settings();
    quiet["quiet"] = json!({ "from": time(-2), "to": time(2) });
    quiet["time_zone"] = json!("Asia/Seoul");
    set(&server, &desk.writer, &quiet).await;
    let reviewer = server.reviewer(&desk).await;
    review(&server, &desk).await;
    runs(&server, 3).await;
    let during = runs(&server, 3).await;
    assert_eq!((sum(&during, "postponed"), service.received().len()), (3, 0));
    quiet["time_zone"] = json!("America/New_York");
    set(&server, &desk.writer, &quiet).await;
    service.has(1).await;
    drop(reviewer);
}

#[tokio::test]
async fn a_kind_that_a_user_switched_off_is_no_candidate() {
    let (server, service) = (Server::with(&QUICK).await, PushService::start().await);
    let desk = server.desk("text").await;
    browser(&server, &desk.writer, &service).await;
    let mut off = settings();
    off["review_unanswered"] = json!(false);
    set(&server, &desk.writer, &off).await;
    let reviewer = server.reviewer(&desk).await;
    review(&server, &desk).await;
    let during = runs(&server, 5).await;
    assert_eq!((sum(&during, "candidates"), service.received().len()), (0, 0));
    set(&server, &desk.writer, &settings()).await;
    service.has(1).await;
    drop(reviewer);
}

#[tokio::test]
async fn the_settings_of_a_user_hold_on_every_server() {
    let cluster = Cluster::start().await;
    let (kim, lee) = (cluster.one.guest("Kim").await, cluster.one.guest("Lee").await);
    assert_eq!(cluster.one.get(&kim, ALL).await.ok(200), settings());
    let chosen = json!({
        "review_unanswered": false,
        "seat_free": true,
        "request_unanswered": false,
        "quiet": { "from": "22:30", "to": "07:00" },
        "time_zone": "Europe/Berlin",
    });
    set(&cluster.one, &kim, &chosen).await;
    assert_eq!(cluster.two.get(&kim, ALL).await.ok(200), chosen);
    assert_eq!(cluster.two.get(&lee, ALL).await.ok(200), settings());
    set(&cluster.two, &kim, &settings()).await;
    assert_eq!(cluster.one.get(&kim, ALL).await.ok(200), settings());
}

#[tokio::test]
async fn bad_settings_are_refused_with_their_field_and_not_stored() {
    let server = Server::start().await;
    let kim = server.guest("Kim").await;
    let mut wrong = Vec::new();
    for (field, quiet) in [
        ("quiet.from", json!({ "from": "8:00", "to": "09:00" })),
        ("quiet.from", json!({ "from": "24:00", "to": "09:00" })),
        ("quiet.to", json!({ "from": "08:00", "to": "noon" })),
        ("quiet.to", json!({ "from": "08:00", "to": "08:00" })),
    ] {
        let mut body = settings();
        body["quiet"] = quiet;
        wrong.push((field, body));
    }
    for zone in ["", "Seoul", "UTC+9", "Mars/Olympus"] {
        let mut body = settings();
        body["time_zone"] = json!(zone);
        wrong.push(("time_zone", body));
    }
    for (field, body) in wrong {
        let answer = server.call(&kim, "PUT", ALL, Some(body)).await;
        assert_eq!(answer.json["field"], field);
        answer.problem(422, "invalid-reminders");
    }
    for body in [json!({}), json!({ "review_unanswered": 1 }), json!([])] {
        server.call(&kim, "PUT", ALL, Some(body)).await.problem(422, "invalid");
    }
    let mut without_zone = settings();
    without_zone.as_object_mut().expect("an object").remove("time_zone");
    server.call(&kim, "PUT", ALL, Some(without_zone)).await.problem(422, "invalid");
    assert_eq!(server.get(&kim, ALL).await.ok(200), settings());
}

/// Goal: a batch that a slow push service keeps running for more than five seconds raises an alarm.
#[tokio::test]
async fn a_long_batch_raises_the_alarm_of_its_class() {
    let (server, service) = (Server::with(&QUICK).await, PushService::start().await);
    service.respond(Response::Late(Duration::from_secs(6)));
    let desk = server.desk("text").await;
    browser(&server, &desk.writer, &service).await;
    let reviewer = server.reviewer(&desk).await;
    review(&server, &desk).await;
    drop(reviewer);
    server.has("galley_lock_alarm{class=\"job\",alarm=\"hold\"}", 1).await;
}

/// Goal: a user who floods the settings is limited like any other.
#[tokio::test]
async fn g17_the_settings_are_charged_to_the_address_of_a_guest() {
    let server = Server::with(&[("LIMITS__GUEST_BYTES_PER_HOUR", "65536")]).await;
    let kim = server.guest("Kim").await;
    // Twice as many as the hour allows: a slow machine may send each so late that the first ones are forgotten.
    for _ in 0..2 * 65_536 / 256 {
        let answer = server.call(&kim, "PUT", ALL, Some(settings())).await;
        if answer.status == 429 {
            return answer.problem(429, "too-many-requests");
        }
    }
    panic!("no limit");
}
