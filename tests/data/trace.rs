//! A real editing trace and how a stock client would have sent it.

use std::io::Read as _;

use bytes::Bytes;
use flate2::read::GzDecoder;
use galley::yjs::ROOT;
use serde::Deserialize;
use yrs::{Doc, Text as _, Transact as _};

/// Its credit stands in the README beside it.
const SVELTE_COMPONENT: &[u8] = include_bytes!("traces/sveltecomponent.json.gz");

/// What a person typed into an empty document.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trace {
    start_content: String,
    pub(crate) end_content: String,
    pub(crate) txns: Vec<Transaction>,
}

/// What was typed at once.
#[derive(Deserialize)]
pub(crate) struct Transaction {
    /// Where, how many letters go, and what comes instead.
    patches: Vec<(u32, u32, String)>,
}

pub(crate) fn svelte_component() -> Trace {
    let mut json = String::new();
    GzDecoder::new(SVELTE_COMPONENT).read_to_string(&mut json).expect("a whole file");
    let trace: Trace = serde_json::from_str(&json).expect("a trace");
    assert!(trace.start_content.is_empty() && trace.txns.len() == 18_335);
    trace
}

/// Does it to the writer's document; gives the update that the others are sent.
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
