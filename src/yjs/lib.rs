//! Yjs without a live CRDT: frames, the update log, the text, anchors.
//!
//! A room stores its writer's updates as a [log] of bytes. To relay an edit, the server parses these
//! bytes and integrates them into no document. The log maps each Yjs client to its structs in order,
//! which suffices for merging and syncing. Only an anchor, a suggestion or an export needs the
//! [text]: the server then orders the structs, and drops the result afterwards.
//!
//! # Invariants
//!
//! - **Y1** The log, other clients and `yrs` receive only updates that the validator accepted. A
//!   client may use `yrs` 0.28.1, which aborts on deep nesting and allocates half a gigabyte for a
//!   state vector of seven bytes. It accepts updates after which it can never encode the document
//!   again.
//! - **Y2** The log has no gaps: the structs of each client follow each other from clock 0, and the
//!   log contains every unit that a struct or a deletion refers to. So no struct of a document built
//!   from it waits for another.
//! - **Y3** No number in the input causes an allocation, a skip or a loop by itself: the reader
//!   compares a count with the remaining bytes first.
//! - **Y4** Offsets are UTF-16 code units, as in the browser, and never fall inside a surrogate
//!   pair: `yrs` would put U+FFFD in its place on every replica.

pub mod awareness;
mod client_log;
mod delete_set;
mod dependency_order;
mod document_order;
pub mod error;
mod json;
mod lib0;
pub mod log;
mod parts;
pub mod protocol;
mod quote_search;
mod replacements;
mod returned;
pub mod sections;
mod structs;
#[cfg(test)]
mod tests;
pub mod text;
pub mod trim;
mod utf16;
mod validator;
pub mod word_diff;

pub use crate::error::{AnchorMismatch, FrameError, Rejected, SyncError};

/// The only root type of a document: a `Y.Text` of this name.
pub const ROOT: &str = "content";
