//! The corpus, and one test for each target.
//!
//! A file of `corpus/<target>/` begins with `# taken` or `# refused` and the reason. Its bytes
//! follow in hexadecimal.

use std::fs;
use std::path::Path;

use galley::yjs::log::UpdateLog;

use crate::fuzz::properties::{self, apply, document};
use crate::fuzz::seeds;
use crate::fuzz::target::{fuzz, unhex};

/// One input of the corpus.
pub(crate) struct CorpusEntry {
    name: String,
    is_taken: bool,
    pub(crate) bytes: Vec<u8>,
}

/// The corpus of a target, ordered by name.
pub(crate) fn all(target: &str) -> Vec<CorpusEntry> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/fuzz/corpus").join(target);
    let files = fs::read_dir(folder).expect("a folder for each target");
    let mut entries: Vec<CorpusEntry> = files
        .map(|file| {
            let path = file.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("text");
            let (head, hex) = text.split_once('\n').expect("a first line with the mark");
            let is_taken = head.starts_with("# taken");
            assert!(is_taken || head.starts_with("# refused"), "{name} has neither mark");
            CorpusEntry { name, is_taken, bytes: unhex(hex) }
        })
        .collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries
}

fn replay(target: &str, mut judge: impl FnMut(&[u8]) -> bool) {
    let entries = all(target);
    assert!(!entries.is_empty(), "no corpus for {target}");
    for one in entries {
        assert_eq!(judge(&one.bytes), one.is_taken, "{target}/{}", one.name);
    }
}

#[test]
fn g12_g13_each_corpus_input_gets_its_recorded_verdict() {
    replay("update", |input| properties::update(&UpdateLog::empty(), input));
    let (log, whole, _) = seeds::vectors();
    let client = document(1);
    apply(&client, &whole);
    replay("state_vector", |input| properties::state_vector(&log, &client, input));
    replay("frame", properties::frame);
    replay("awareness", properties::awareness);
    let (text, origin, _) = seeds::positions();
    replay("place", |input| properties::position(&text, &origin, input));
    replay("relay", properties::relay);
    let (tokens, identity, _) = seeds::tokens();
    replay("token", |input| properties::token(&tokens, &identity, input));
    replay("cursor", properties::cursor);
}

#[test]
fn g12_fuzzed_updates_break_no_replica() {
    let moments = seeds::moments();
    let inputs: Vec<_> = moments.iter().map(|(_, update)| update.clone()).collect();
    fuzz("update", 40.0, &inputs, |input, from| properties::update(&moments[from].0, input));
}

#[test]
fn g12_fuzzed_state_vectors_get_a_correct_reply_or_are_rejected() {
    let (log, whole, inputs) = seeds::vectors();
    let client = document(1);
    apply(&client, &whole);
    fuzz("state_vector", 12.0, &inputs, |input, _| properties::state_vector(&log, &client, input));
}

#[test]
fn g12_fuzzed_frames_are_parsed_whole_or_rejected() {
    fuzz("frame", 8.0, &seeds::frames(), |input, _| properties::frame(input));
}

#[test]
fn g12_fuzzed_awareness_updates_break_no_peer() {
    fuzz("awareness", 8.0, &seeds::presence(), |input, _| properties::awareness(input));
}

#[test]
fn g12_fuzzed_positions_resolve_within_the_text() {
    let (text, origin, inputs) = seeds::positions();
    fuzz("place", 12.0, &inputs, |input, _| properties::position(&text, &origin, input));
}

#[test]
fn g12_fuzzed_envelopes_are_decoded_whole_or_rejected() {
    fuzz("relay", 8.0, &seeds::envelopes(), |input, _| properties::relay(input));
}

#[test]
fn g14_no_fuzzed_token_verifies_as_another_identity() {
    let (tokens, identity, inputs) = seeds::tokens();
    // Almost no mutation verifies, so the count includes inputs with the form of a token.
    let has_form = |input: &[u8]| input.split(|byte| *byte == b'.').count() == 3;
    fuzz("token", 7.0, &inputs, |input, _| {
        properties::token(&tokens, &identity, input) || has_form(input)
    });
}

#[test]
fn g12_fuzzed_cursors_round_trip_or_are_rejected() {
    fuzz("cursor", 5.0, &seeds::cursors(), |input, _| properties::cursor(input));
}
