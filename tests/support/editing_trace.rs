//! A real editing trace, and the updates that a stock client would send for it.

use std::io::Read as _;

use bytes::Bytes;
use flate2::read::GzDecoder;
use galley::yjs::ROOT;
use serde::Deserialize;
use yrs::{Doc, Text as _, Transact as _};

/// The README beside it contains the credit.
const SVELTE_COMPONENT: &[u8] = include_bytes!("../data/traces/sveltecomponent.json.gz");

/// The edits of a user in an empty document.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trace {
    start_content: String,
    pub(crate) end_content: String,
    pub(crate) txns: Vec<Transaction>,
}

/// Edits of one transaction.
#[derive(Deserialize)]
pub(crate) struct Transaction {
    /// The position, the number of deleted letters, and the inserted text.
    patches: Vec<(u32, u32, String)>,
}

pub(crate) fn svelte_component() -> Trace {
    let mut json = String::new();
    GzDecoder::new(SVELTE_COMPONENT).read_to_string(&mut json).expect("a whole file");
    let trace: Trace = serde_json::from_str(&json).expect("a trace");
    assert!(trace.start_content.is_empty() && trace.txns.len() == 18_335);
    trace
}

/// Applies a transaction to the writer's document, and returns the update for the other clients.
pub(crate) fn write(writer: &Doc, transaction: &Transaction) -> Bytes {
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
