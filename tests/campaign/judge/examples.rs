//! Hand-written histories: one that breaks no law, and for each law one that breaks it alone.

use crate::history::{Event, How, Listed, What};
use crate::judge::vacuous::{Counts, ROUND_SECONDS, complaints};
use crate::judge::{DATABASE, judge};

/// A history under construction; each step is one second after the previous one.
#[derive(Clone, Default)]
struct History(Vec<Event>);

impl History {
    fn add(self, what: What) -> Self {
        self.later(1, what)
    }

    /// A step with this delay after the previous one.
    fn later(mut self, seconds: u64, what: What) -> Self {
        let at = self.0.last().map_or(0, |last| last.at) + 1_000 * seconds;
        self.0.push(Event { at, what });
        self
    }

    fn claim(self, socket: u32, role: &str, how: How, brings: &[&str]) -> Self {
        let brings = brings.iter().map(ToString::to_string).collect();
        let (document, link) = ("doc".to_owned(), "link".to_owned());
        let role = role.to_owned();
        self.add(What::Claim { socket, tab: socket, document, link, role, how, brings })
    }

    fn granted(self, socket: u32, role: &str, fence: i64) -> Self {
        let (link, role) = ("link".to_owned(), role.to_owned());
        let session = format!("session-{socket}");
        self.add(What::Ratified { link, role, fence, session: session.clone() })
            .add(What::Granted { socket, session, fence: u64::try_from(fence).expect("positive") })
    }

    fn typed(self, socket: u32, mark: &str) -> Self {
        self.add(What::Typed { socket, mark: mark.to_owned() })
    }

    fn saved(self, socket: u32, mark: &str) -> Self {
        self.add(What::Saved { socket, mark: mark.to_owned() })
    }

    fn row(self, seq: i64, socket: u32, fence: i64, mark: &str) -> Self {
        let (document, session) = ("doc".to_owned(), Some(format!("session-{socket}")));
        let marks = vec![mark.to_owned()];
        self.add(What::Row { document, seq, session, fence: Some(fence), marks })
    }

    fn closed(self, socket: u32, code: u16, reason: &str) -> Self {
        self.add(What::Closed { socket, code, reason: reason.to_owned() })
    }

    fn left(self, socket: u32) -> Self {
        self.add(What::Left { socket, clean: true })
    }

    fn fault(self, kind: &str) -> Self {
        let (kind, target) = (kind.to_owned(), "all".to_owned());
        let began = self.add(What::Fault { kind: kind.clone(), target: target.clone() });
        began.add(What::Healed { kind, target })
    }

    fn reads(self, source: &str, marks: &[&str]) -> Self {
        let (document, source) = ("doc".to_owned(), source.to_owned());
        let marks = marks.iter().map(ToString::to_string).collect();
        self.add(What::Reads { document, source, marks })
    }

    /// At rest: a fresh tab acquired a seat, and all replicas contain these marks.
    fn rest(self, marks: &[&str]) -> Self {
        let recovered = What::Recovered { document: "doc".to_owned(), after_ms: 900 };
        self.add(recovered).reads(DATABASE, marks).reads("server 0", marks)
    }

    /// A writer that typed one mark; the database stored it and `document.saved` named it.
    fn writer() -> Self {
        let claimed = Self::default().claim(1, "writer", How::Plain, &[]);
        claimed.granted(1, "writer", 10).typed(1, "w1").row(1, 1, 10, "w1").saved(1, "w1")
    }

    /// The laws that it breaks.
    fn breaks(&self) -> Vec<&'static str> {
        judge(&self.0).into_iter().map(|violation| violation.law).collect()
    }
}

fn due(subject: &str) -> What {
    What::Due { subject: subject.to_owned() }
}

#[test]
fn a_history_of_take_overs_faults_and_returns_breaks_no_law() {
    let history = History::writer()
        .claim(2, "writer", How::TakeOver, &[])
        .granted(2, "writer", 11)
        .closed(1, 4410, "taken_over")
        .typed(2, "w2")
        .fault("server-killed")
        .closed(2, 1006, "cut")
        .claim(3, "writer", How::Resume, &["w2"])
        .granted(3, "writer", 12)
        .row(2, 3, 12, "w2")
        .left(3)
        .rest(&["w1", "w2"]);
    assert_eq!(history.breaks(), Vec::<&str>::new());
}

#[test]
fn g1_a_fence_that_falls_is_found() {
    let history = History::writer().left(1).claim(2, "writer", How::Plain, &[]);
    assert_eq!(history.granted(2, "writer", 9).breaks(), ["G1"]);
}

#[test]
fn g1_a_grant_that_the_database_does_not_know_is_found() {
    let granted = What::Granted { socket: 1, session: "session-1".to_owned(), fence: 4 };
    let history = History::default().claim(1, "writer", How::Plain, &[]).add(granted);
    assert_eq!(history.breaks(), ["G1"]);
}

#[test]
fn g1_a_grant_beside_a_session_that_was_not_taken_over_is_found() {
    let observed = |mut history: History| {
        // The campaign is awake.
        for _ in 0..8 {
            let at = history.0.last().map_or(0, |last| last.at) + 300;
            history.0.push(Event { at, what: due("nothing") });
        }
        let at = history.0.last().map_or(0, |last| last.at);
        let (link, role) = ("link".to_owned(), "writer".to_owned());
        let session = "session-2".to_owned();
        let ratified = What::Ratified { link, role, fence: 11, session: session.clone() };
        history.0.push(Event { at, what: ratified });
        history.0.push(Event { at, what: What::Granted { socket: 2, session, fence: 11 } });
        history
    };
    let claimed = |how| History::writer().claim(2, "writer", how, &[]);
    assert_eq!(observed(claimed(How::Plain)).breaks(), ["G1"]);
    assert_eq!(observed(claimed(How::TakeOver)).breaks(), Vec::<&str>::new());
    assert_eq!(observed(claimed(How::Plain).left(1)).breaks(), Vec::<&str>::new());
    let excused = claimed(How::Plain).fault("redis-flushed");
    assert_eq!(observed(excused).breaks(), Vec::<&str>::new());
}

#[test]
fn g2_a_row_of_the_session_before_the_last_grant_is_found() {
    let history = History::writer().typed(1, "w2").claim(2, "writer", How::TakeOver, &[]);
    // Written when session 2 was ratified, by session 1.
    let history = history.granted(2, "writer", 11).row(2, 2, 11, "w2");
    assert_eq!(history.breaks(), ["G2"]);
}

#[test]
fn g2_a_row_under_a_fence_that_was_never_granted_is_found() {
    assert_eq!(History::writer().row(2, 1, 11, "w1").breaks(), ["G2"]);
}

#[test]
fn g3_an_edit_typed_and_saved_after_a_newer_grant_is_found() {
    let history = History::writer().claim(2, "writer", How::TakeOver, &[]);
    let history = history.granted(2, "writer", 11).typed(1, "w3").saved(1, "w3");
    assert_eq!(history.breaks(), ["G3"]);
    // An acknowledgement that arrives late breaks nothing.
    let history = History::writer().typed(1, "w3").claim(2, "writer", How::TakeOver, &[]);
    assert_eq!(history.granted(2, "writer", 11).saved(1, "w3").breaks(), Vec::<&str>::new());
}

#[test]
fn g4_a_refusal_without_a_holder_is_found_where_no_fault_excuses_it() {
    let refused = |history: History| {
        let claimed = history.later(20, due("nothing")).claim(2, "writer", How::Plain, &[]);
        claimed.closed(2, 4409, "taken")
    };
    assert_eq!(refused(History::writer().left(1)).breaks(), ["G4"]);
    assert_eq!(refused(History::writer()).breaks(), Vec::<&str>::new());
    let claimed = History::writer().left(1).later(20, due("nothing"));
    let faulty = claimed.fault("redis-frozen").claim(2, "writer", How::Plain, &[]);
    assert_eq!(faulty.closed(2, 4409, "taken").breaks(), Vec::<&str>::new());
}

#[test]
fn g4_a_document_in_which_no_tab_recovers_is_found() {
    assert_eq!(History::writer().left(1).reads(DATABASE, &["w1"]).breaks(), ["G4"]);
    let recovered = |after_ms| What::Recovered { document: "doc".to_owned(), after_ms };
    let late = History::writer().left(1).add(recovered(46_000)).rest(&["w1"]);
    assert_eq!(late.breaks(), ["G4"]);
    let before = History::writer().left(1).add(recovered(900)).fault("server-killed");
    assert_eq!(before.reads(DATABASE, &["w1"]).breaks(), ["G4"]);
}

#[test]
fn g5_a_waiter_that_is_passed_over_is_found() {
    let waiting = |socket| What::Waiting { socket, position: 1 };
    let history = History::writer()
        .claim(2, "writer", How::Wait, &[])
        .add(waiting(2))
        .later(2, due("nothing"))
        .claim(3, "writer", How::Wait, &[])
        .add(waiting(3))
        .left(1)
        .granted(3, "writer", 11);
    assert_eq!(history.clone().breaks(), ["G5"]);
    // The first waiter has left.
    let gone = What::Left { socket: 2, clean: true };
    assert_eq!(history.add(gone).breaks(), Vec::<&str>::new());
}

#[test]
fn g6_a_seat_lost_without_a_later_grant_is_found() {
    assert_eq!(History::writer().closed(1, 4410, "expired").breaks(), ["G6"]);
    let excused = History::writer().fault("redis-flushed").closed(1, 4410, "expired");
    assert_eq!(excused.breaks(), Vec::<&str>::new());
    // The link ends before the database ratifies the successor.
    let revoked = What::Revoked { link: "link".to_owned() };
    let ended = History::writer().closed(1, 4410, "taken_over").add(revoked.clone());
    assert_eq!(ended.breaks(), Vec::<&str>::new());
    let later = History::writer().closed(1, 4410, "taken_over").later(9, revoked);
    assert_eq!(later.breaks(), ["G6"]);
    let alone = History::writer().add(What::Calm { only: "redis-old".to_owned() });
    let alone = alone.fault("redis-old").closed(1, 4410, "expired").add(What::CalmEnds);
    assert_eq!(alone.breaks(), ["G6"]);
}

#[test]
fn g7_a_saved_edit_that_is_missing_is_found() {
    assert_eq!(History::writer().left(1).rest(&[]).breaks(), ["G7"]);
    let deleted = What::Deleted { document: "doc".to_owned() };
    let history = History::writer().left(1).add(deleted).rest(&[]);
    assert_eq!(history.breaks(), Vec::<&str>::new());
}

#[test]
fn g7_a_set_back_edit_that_a_seated_writer_has_must_come_back() {
    let set_back = |held: &[&str]| {
        let held = held.iter().map(ToString::to_string).collect();
        let (document, lost) = ("doc".to_owned(), vec!["w1".to_owned()]);
        let back = What::CameBack { document: document.clone(), marks: Vec::new() };
        History::writer().add(What::SetBack { document, lost, held }).add(back).left(1).rest(&[])
    };
    assert_eq!(set_back(&["w1"]).breaks(), ["G7"]);
    assert_eq!(set_back(&[]).breaks(), Vec::<&str>::new());
}

#[test]
fn g8_replicas_that_differ_and_marks_that_stand_twice_are_found() {
    let history = History::writer().left(1).rest(&["w1"]).reads("socket 7", &["w1", "w9"]);
    assert_eq!(history.breaks(), ["G8"]);
    assert_eq!(History::writer().left(1).rest(&["w1", "w1"]).breaks(), ["G8"]);
    assert_eq!(History::writer().left(1).rest(&["w1", "w8"]).breaks(), ["G8"]);
}

#[test]
fn g10_a_reviewers_edit_is_found_in_any_replica() {
    let intruded = What::Intruded { socket: 2, mark: "x1".to_owned() };
    let history = History::writer().add(intruded);
    assert_eq!(history.clone().breaks(), Vec::<&str>::new());
    let seen = What::Seen { socket: 1, mark: "x1".to_owned() };
    assert_eq!(history.add(seen).breaks(), ["G10"]);
}

#[test]
fn g14_a_socket_that_outlives_its_link_is_found() {
    let revoked = History::writer().add(What::Revoked { link: "link".to_owned() });
    assert_eq!(revoked.clone().add(due("link")).breaks(), ["G14"]);
    assert_eq!(revoked.clone().closed(1, 4404, "").add(due("link")).breaks(), Vec::<&str>::new());
    let late = revoked.closed(1, 4404, "").claim(2, "writer", How::Plain, &[]);
    assert_eq!(late.granted(2, "writer", 11).left(2).breaks(), ["G14"]);
}

#[test]
fn g15_an_accepted_suggestion_that_a_replica_does_not_show_is_found() {
    let mark = "0.s1".to_owned();
    let accepted = What::Accepted { document: "doc".to_owned(), mark: mark.clone() };
    let history = History::writer().row(2, 1, 10, &mark).add(accepted);
    assert_eq!(history.clone().add(due(&mark)).breaks(), ["G15"]);
    let seen = What::Seen { socket: 1, mark: mark.clone() };
    assert_eq!(history.add(seen).add(due(&mark)).breaks(), Vec::<&str>::new());
}

fn suggested(marks: &[&str]) -> What {
    let (link, suggestion) = ("link".to_owned(), "one".to_owned());
    What::Suggested { link, suggestion, marks: marks.iter().map(ToString::to_string).collect() }
}

fn acknowledged(version: i64, marks: &[&str]) -> What {
    let (link, suggestion) = ("link".to_owned(), "one".to_owned());
    let marks = marks.iter().map(ToString::to_string).collect();
    What::Acknowledged { link, suggestion, version, marks }
}

fn listed(source: &str, version: i64, marks: &[&str]) -> What {
    let marks = marks.iter().map(ToString::to_string).collect();
    let (id, status) = ("one".to_owned(), "open".to_owned());
    let suggestions = vec![Listed { id, version, status, marks, offsets: vec![0] }];
    What::Listed { link: "link".to_owned(), source: source.to_owned(), suggestions }
}

#[test]
fn g7_an_acknowledged_suggestion_that_is_missing_or_older_is_found() {
    let (first, second) = (["typed.s1.0"], ["typed.s2.0"]);
    let sent = History::writer().add(suggested(&first)).add(acknowledged(1, &first));
    let sent = sent.add(suggested(&second)).add(acknowledged(2, &second));
    // An answer that was lost: a version more.
    let third = sent.clone().add(suggested(&["typed.s3.0"]));
    assert_eq!(sent.clone().add(listed("server 0", 2, &second)).breaks(), Vec::<&str>::new());
    assert_eq!(third.add(listed("server 0", 3, &["typed.s3.0"])).breaks(), Vec::<&str>::new());
    assert_eq!(sent.clone().add(listed("server 0", 1, &first)).breaks(), ["G7"]);
    assert_eq!(sent.clone().add(listed("server 0", 2, &first)).breaks(), ["G7"]);
    assert_eq!(sent.clone().add(listed("server 0", 3, &["typed.s9.0"])).breaks(), ["G7"]);
    let (link, source) = ("link".to_owned(), "server 0".to_owned());
    let empty = What::Listed { link, source, suggestions: Vec::new() };
    assert_eq!(sent.add(empty).breaks(), ["G7"]);
}

#[test]
fn g7_a_change_that_is_in_no_list_and_that_its_author_takes_for_stored_is_found() {
    let (first, second) = (["typed.s1.0"], ["typed.s2.0"]);
    let marks = || second.map(str::to_owned).to_vec();
    let sent = History::writer().add(suggested(&first)).add(acknowledged(1, &first));
    let changed = sent.add(suggested(&second));
    let old = listed("server 0", 1, &first);
    let one = || "one".to_owned();
    let refused = What::Refused { suggestion: one(), marks: marks() };
    let unsent = What::Unsent { suggestion: one(), marks: marks() };
    for noted in [refused, unsent.clone()] {
        assert_eq!(changed.clone().add(noted).add(old.clone()).breaks(), Vec::<&str>::new());
    }
    assert_eq!(changed.clone().add(old.clone()).breaks(), ["G7"]);
    // The page called the words before it unsent.
    let earlier = What::Unsent { suggestion: one(), marks: first.map(str::to_owned).to_vec() };
    assert_eq!(changed.clone().add(earlier).add(old).breaks(), ["G7"]);
    let stored = listed("server 0", 2, &second);
    assert_eq!(changed.add(unsent).add(stored).breaks(), Vec::<&str>::new());
}

#[test]
fn g8_servers_that_list_other_suggestions_are_found() {
    let marks = ["typed.s1.0"];
    let sent = History::writer().add(suggested(&marks)).add(listed("server 0", 1, &marks));
    assert_eq!(sent.clone().add(listed("server 1", 1, &marks)).breaks(), Vec::<&str>::new());
    assert_eq!(sent.add(listed("server 1", 2, &marks)).breaks(), ["G8"]);
}

#[test]
fn g10_a_suggested_text_before_its_acceptance_and_a_half_accepted_suggestion_are_found() {
    let (one, two) = ("typed.s1.0", "typed.s1.1");
    let stored =
        History::writer().add(suggested(&[one, two])).row(2, 1, 10, one).row(3, 1, 10, two);
    assert_eq!(stored.breaks(), ["G10", "G10"]);
    let accepted = What::Accepted { document: "doc".to_owned(), mark: one.to_owned() };
    let accepted = stored.add(accepted);
    assert_eq!(accepted.clone().left(1).rest(&["w1", one, two]).breaks(), Vec::<&str>::new());
    assert_eq!(accepted.left(1).rest(&["w1", one]).breaks(), ["G10"]);
}

#[test]
fn a_run_without_enough_events_is_rejected() {
    let mut counts = Counts::default();
    counts.add(&History::writer().fault("server-killed").fault("server-killed").0);
    let complaints = complaints(&counts, ROUND_SECONDS);
    for name in [
        "grants",
        "saved",
        "take-overs",
        "accepted",
        "lists judged",
        "redis-old",
        "set-back and held",
    ] {
        let is_named = complaints.iter().any(|it| it.starts_with(&format!("{name}:")));
        assert!(is_named, "{name} is missing in {complaints:?}");
    }
    assert!(complaints.iter().all(|it| !it.starts_with("server-killed:")));
}

#[test]
fn a_history_round_trips_through_its_file() {
    for event in History::writer().fault("redis-cut").rest(&["w1"]).0 {
        let line = serde_json::to_string(&event).expect("JSON");
        assert_eq!(serde_json::from_str::<Event>(&line).expect("an event"), event, "{line}");
    }
}
