//! Tests of [`crate::sessions::session`]. They have a file of their own because that file is
//! compiled twice.

use std::time::Duration;

use chrono::Utc;
use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::domain::ids::{DocumentId, SessionId, ShareLinkId};
use crate::domain::seat::{Role, Seat};
use crate::domain::user::User;
use crate::outbox::close::LostReason;
use crate::outbox::outbox;
use crate::sessions::session::{Session, SessionIdentity, SessionState};

fn held(until: Instant) -> Session {
    let identity = SessionIdentity {
        session: SessionId::generate(),
        seat: Seat::new(ShareLinkId::generate(), Role::Writer),
        document: DocumentId::generate(),
        user: User { id: "u1".parse().expect("an id"), name: "Kim".to_owned() },
        resume: String::new(),
        wants_events: true,
        store_budget: None,
    };
    let session = Session::claiming(identity, outbox(1_000).0);
    session.granted(Fence(7), Utc::now(), until);
    session
}

#[tokio::test(start_paused = true)]
async fn g3_no_write_is_accepted_at_or_after_the_deadline() {
    let until = Instant::now() + Duration::from_secs(10);
    let session = held(until);
    assert!(session.may_write(until - Duration::from_micros(1)));
    assert!(!session.may_write(until));
    session.check_deadline(until);
    assert_eq!(session.state(), SessionState::Uncertain);
    assert!(session.renewed(until + Duration::from_secs(5)));
    assert!(session.may_write(until));
}

#[tokio::test(start_paused = true)]
async fn g6_a_late_renewal_does_not_revive_a_released_seat() {
    let until = Instant::now() + Duration::from_secs(10);
    let session = held(until);
    assert!(session.end());
    assert!(!session.renewed(until + Duration::from_secs(60)));
    assert!(!session.may_write(Instant::now()));
    assert!(!session.lose(LostReason::Expired), "the first end stands");
}

#[tokio::test(start_paused = true)]
async fn an_older_renewal_that_arrives_late_does_not_shorten_the_deadline() {
    let until = Instant::now() + Duration::from_secs(10);
    let session = held(until);
    session.renewed(until - Duration::from_secs(3));
    assert!(session.may_write(until - Duration::from_secs(1)));
}

/// The client sends a frame half a second after the probe.
async fn last_words(session: &Session, goes: bool, pongs: bool) {
    tokio::time::sleep(Duration::from_millis(500)).await;
    session.heard(Instant::now());
    if pongs {
        session.answered(1);
    }
    tokio::task::yield_now().await;
    if goes {
        session.went_away();
    }
}

#[tokio::test(start_paused = true)]
async fn frames_from_before_the_socket_broke_do_not_answer_a_liveness_probe() {
    let limit = Duration::from_secs(1);
    for (goes, pongs, lives) in
        [(true, false, false), (false, false, true), (true, true, true), (false, true, true)]
    {
        let session = held(Instant::now() + Duration::from_secs(10));
        let (answers, ()) =
            tokio::join!(session.answers_within(limit), last_words(&session, goes, pongs));
        assert_eq!(answers, lives, "goes: {goes}, pongs: {pongs}");
    }
    let session = held(Instant::now() + Duration::from_secs(10));
    assert!(!session.answers_within(limit).await, "the client sent nothing");
}
