//! Updates and frames of yjs 13.6.33, parsed with the same meaning.

use super::{Fixture, append, append_all, apply, document, text_of};
use crate::awareness::{decode_awareness, encode_awareness};
use crate::error::Rejected;
use crate::log::{Origin, UpdateLog};
use crate::protocol::{self, ClientFrame};
use crate::text::Text;
use galley_domain::anchor::{AnchorOrigin, AnchorState, RelativeRange, TextRange};

fn typing() -> Fixture {
    Fixture::read(include_str!("../../../tests/data/yjs/typing.json"))
}

fn together() -> Fixture {
    Fixture::read(include_str!("../../../tests/data/yjs/together.json"))
}

fn offline() -> Fixture {
    Fixture::read(include_str!("../../../tests/data/yjs/offline.json"))
}

#[test]
fn the_log_equals_the_documents_of_the_browsers() {
    for fixture in [typing(), together()] {
        let mut log = UpdateLog::empty();
        append_all(&mut log, fixture.all("updates"));
        assert_eq!(Text::build(&log.merged()).unwrap().content(), fixture.text());
        assert_eq!(log.state_vector(), fixture.bytes("state_vector"));
        // The browser's own encoding of the same document is not new.
        let checked = log.check(&fixture.bytes("whole"), Origin::Client).unwrap();
        assert!(!checked.is_new && checked.clients.is_empty());
        // A log built from it alone is equal.
        let from_whole = UpdateLog::open(vec![fixture.bytes("whole")]).unwrap();
        assert_eq!(from_whole.state_vector(), fixture.bytes("state_vector"));
    }
}

#[test]
fn a_client_that_left_at_any_moment_syncs_completely() {
    let fixture = together();
    let updates = fixture.all("updates");
    let mut log = UpdateLog::empty();
    append_all(&mut log, updates.clone());
    let mut left = UpdateLog::empty();
    let reader = document(1);
    for update in updates {
        let diff = log.diff(&left.state_vector()).unwrap();
        let returned = document(2);
        apply(&returned, &left.merged());
        apply(&returned, &diff);
        assert_eq!(text_of(&returned), fixture.text());
        apply(&reader, &update);
        append(&mut left, update);
        assert_eq!(Text::build(&left.merged()).unwrap().content(), text_of(&reader));
    }
    assert_eq!(left.merged(), log.merged());
}

#[test]
fn the_order_of_rows_in_the_database_may_be_merged_anywhere() {
    let updates = together().all("updates");
    for cut in 0..updates.len() {
        let (early, late) = updates.split_at(cut);
        let snapshot = UpdateLog::open(early.to_vec()).unwrap().merged();
        let rows = [&[snapshot][..], late].concat();
        assert_eq!(
            Text::build(&UpdateLog::open(rows).unwrap().merged()).unwrap().content(),
            together().text()
        );
    }
}

#[test]
fn an_offline_edit_is_accepted_though_the_log_has_a_part_of_it() {
    let fixture = offline();
    for step2 in ["step2", "whole_step2"] {
        let mut log = UpdateLog::open(fixture.all("server")).unwrap();
        let checked = log.check(&fixture.bytes(step2), Origin::Client).unwrap();
        assert!(checked.is_new);
        assert_eq!(checked.clients, [22, 21]);
        log.append(fixture.bytes(step2), checked);
        assert_eq!(Text::build(&log.merged()).unwrap().content(), fixture.text());
        assert_eq!(log.state_vector(), fixture.bytes("state_vector"));
        assert!(!log.check(&fixture.bytes("whole"), Origin::Client).unwrap().is_new);
    }
}

#[test]
fn g10_content_other_than_text_is_rejected_and_leaves_no_trace() {
    let fixture = Fixture::read(include_str!("../../../tests/data/yjs/refused.json"));
    let mut log = UpdateLog::empty();
    let refused = |name: &str| log.check(&fixture.bytes(name), Origin::Client).unwrap_err();
    let kinds = ["embed", "attribute", "other_root", "map", "array", "nested_type"];
    for name in kinds.into_iter().chain(["sub_document", "binary", "deep_values"]) {
        assert!(
            matches!(refused(name), Rejected::Forbidden(_) | Rejected::Unsupported(_)),
            "{name}: {:?}",
            refused(name)
        );
    }
    assert_eq!(refused("deep_format"), Rejected::TooDeep);
    for name in ["gap_own", "gap_origin", "gap_delete", "skip"] {
        assert_eq!(refused(name), Rejected::Gap, "{name}");
    }
    assert_eq!(log.merged()[..], [0, 0]);
}

#[test]
fn relative_positions_of_yjs_resolve_as_in_yjs() {
    let fixture = Fixture::read(include_str!("../../../tests/data/yjs/positions.json"));
    let (updates, positions) = (fixture.all("updates"), fixture.all("positions"));
    let origin = AnchorOrigin {
        range: TextRange { start: 13, end: 18 },
        quote: "brown".to_owned(),
        prefix: "The quick 🦊 ".to_owned(),
        suffix: " fox. 한국어 text.".to_owned(),
    };
    let current = RelativeRange { start: positions[0].to_vec(), end: positions[1].to_vec() };
    let states = ["exact", "exact", "exact", "exact", "edited", "orphaned", "orphaned"];
    for (step, state) in fixture.value("steps").as_array().unwrap().iter().zip(states) {
        let stored = usize::try_from(step["updates"].as_u64().unwrap()).unwrap();
        let merged = UpdateLog::open(updates[..stored].to_vec()).unwrap().merged();
        let text = Text::build(&merged).unwrap();
        assert_eq!(text.content(), step["text"].as_str().unwrap());
        let offsets: Vec<Option<u64>> =
            positions.iter().map(|at| text.offset(at).map(u64::from)).collect();
        let wanted: Vec<Option<u64>> =
            step["offsets"].as_array().unwrap().iter().map(serde_json::Value::as_u64).collect();
        assert_eq!(offsets, wanted);
        let resolved = text.resolve(&origin, &current).anchor;
        assert_eq!(serde_json::to_value(resolved.state).unwrap(), state, "{resolved:?}");
        if resolved.state == AnchorState::Exact {
            let made =
                text.relative(TextRange { start: resolved.start, end: resolved.end }).unwrap();
            assert_eq!(made, current, "yrs makes the position that yjs makes");
        }
    }
}

#[test]
fn frames_are_those_of_the_stock_client() {
    let fixture = Fixture::read(include_str!("../../../tests/data/yjs/frames.json"));
    let bytes = |name: &str| fixture.bytes(name);
    let (step1, step2, update) = (bytes("step1"), bytes("step2"), bytes("update"));
    let Ok(ClientFrame::SyncStep1(vector)) = protocol::parse(&step1) else { panic!("{step1:?}") };
    assert_eq!(protocol::sync_step1(vector), step1);
    let Ok(ClientFrame::SyncStep2(missing)) = protocol::parse(&step2) else { panic!("{step2:?}") };
    assert_eq!(protocol::sync_step2(missing), step2);
    let Ok(ClientFrame::Update(edit)) = protocol::parse(&update) else { panic!("{update:?}") };
    assert_eq!(protocol::update(edit), update);
    assert_eq!(protocol::parse(&bytes("query")), Ok(ClientFrame::QueryAwareness));
    for (name, state) in [("awareness", true), ("gone", false)] {
        let whole = bytes(name);
        let Ok(ClientFrame::Awareness(presence)) = protocol::parse(&whole) else {
            panic!("{whole:?}")
        };
        let entries = decode_awareness(presence).unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].state.is_some(), state);
        assert_eq!(protocol::awareness(&encode_awareness(&entries)), whole);
    }
}
