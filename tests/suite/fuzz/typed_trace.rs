//! A recorded editing session of a user: each edit goes from a writer into a room's log.

use std::time::Instant;

use galley::yjs::log::{Origin, UpdateLog};
use yrs::updates::encoder::Encode as _;
use yrs::{Doc, ReadTxn as _, StateVector, Transact as _};

use crate::fuzz::fragmented_text::median;
use crate::fuzz::properties::{apply, document, text_of};
use crate::fuzz::target::say;
use crate::support::editing_trace::{svelte_component, write};

const WRITER: u64 = 4_000_000_000;

/// Sends the missing updates of the log to a reader.
fn catch_up(reader: &Doc, log: &UpdateLog) {
    let vector = reader.transact().state_vector().encode_v1();
    apply(reader, &log.diff(&vector).expect("a reader's vector"));
}

#[test]
fn g8_a_real_editing_trace_converges_at_a_constant_cost_per_edit() {
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
