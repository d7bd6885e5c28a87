//! What a person really typed, edit by edit, from a writer to a room as the server keeps it.

use std::io::Read as _;
use std::time::Instant;

use bytes::Bytes;
use flate2::read::GzDecoder;
use galley::sync::ROOT;
use galley::sync::log::{Origin, UpdateLog};
use serde::Deserialize;
use yrs::updates::encoder::Encode as _;
use yrs::{Doc, ReadTxn as _, StateVector, Text as _, Transact as _};

use crate::fragments::median;
use crate::judge::{apply, document, text_of};
use crate::target::say;

/// Its credit stands in the README beside it.
const SVELTE_COMPONENT: &[u8] = include_bytes!("../data/traces/sveltecomponent.json.gz");
const WRITER: u64 = 4_000_000_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trace {
    start_content: String,
    end_content: String,
    txns: Vec<Transaction>,
}

#[derive(Deserialize)]
struct Transaction {
    /// Where, how many letters go, and what comes instead.
    patches: Vec<(u32, u32, String)>,
}

fn svelte_component() -> Trace {
    let mut json = String::new();
    GzDecoder::new(SVELTE_COMPONENT).read_to_string(&mut json).expect("a whole file");
    let trace: Trace = serde_json::from_str(&json).expect("a trace");
    assert!(trace.start_content.is_empty() && trace.txns.len() == 18_335);
    trace
}

fn write(writer: &Doc, transaction: &Transaction) -> Bytes {
    let root = writer.get_or_insert_text(ROOT);
    let mut edit = writer.transact_mut();
    for (at, length, with) in &transaction.patches {
        if 0 < *length {
            root.remove_range(&mut edit, *at, *length);
        }
        root.insert(&mut edit, *at, with);
    }
    edit.encode_update_v1().into()
}

/// Brings a reader up to what the room has.
fn catch_up(reader: &Doc, log: &UpdateLog) {
    let vector = reader.transact().state_vector().encode_v1();
    apply(reader, &log.diff(&vector).expect("a reader's vector"));
}

#[test]
fn g8_a_real_editing_trace_arrives_whole_and_its_last_edits_cost_what_the_first_did() {
    let trace = svelte_component();
    let (writer, reader) = (document(WRITER), document(1));
    let mut log = UpdateLog::empty();
    let mut times = Vec::with_capacity(trace.txns.len());
    let mut sent = 0;
    let quarter = trace.txns.len() / 4;
    for (at, transaction) in trace.txns.iter().enumerate() {
        let update = write(&writer, transaction);
        sent += update.len();
        let began = Instant::now();
        let checked = log.check(&update, Origin::Client).expect("an edit of a stock client");
        log.append(update, checked);
        times.push(began.elapsed());
        if at % quarter == 0 {
            catch_up(&reader, &log);
            assert_eq!(text_of(&reader), text_of(&writer), "after {at} transactions");
        }
    }
    catch_up(&reader, &log);
    assert_eq!(text_of(&reader), trace.end_content);
    assert_eq!(text_of(&writer), trace.end_content);
    let (first, last) = (median(&times[..quarter]), median(&times[times.len() - quarter..]));
    assert!(last < first * 4, "{first:?} at first, {last:?} at last");

    let merged = log.merged();
    let late = document(2);
    apply(&late, &merged);
    assert_eq!(text_of(&late), trace.end_content);
    let mut reopened = UpdateLog::open(vec![merged.clone()]).expect("what was merged");
    assert_eq!(reopened.merged(), merged);
    assert_eq!(reopened.state_vector(), log.state_vector());
    let (text, whole) = (trace.end_content.len(), merged.len());
    let theirs = writer.transact().encode_state_as_update_v1(&StateVector::default()).len();
    assert!(whole * 10 < theirs * 11, "{whole} bytes, and {theirs} as yrs writes it");
    assert!(whole < 5 * text, "{whole} bytes for a text of {text}");
    say(&format!(
        "trace: {} edits of {sent} bytes, merged to {whole} (yrs: {theirs}) for {text} of text; check and append \
         {first:?} at first, {last:?} at last",
        times.len()
    ));
}
