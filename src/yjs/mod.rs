//! Yjs without a live CRDT: frames, the update log, the text, anchors.
//!
//! A room keeps what its writer wrote as a [log] of bytes. Relaying an edit takes a look at those
//! bytes, not an integration into a document: the log is a map from each Yjs client to its
//! structs in order, which is all that merging and catching up need. Only where the text itself
//! is wanted, for an anchor, a suggestion or an export, are the structs put in their order
//! ([text]), and dropped again.
//!
//! # Invariants
//!
//! - **Y1** Nothing reaches the log, another client or `yrs` that the validator did not let
//!   through. A client may be `yrs` 0.28.1: it aborts on deep nesting, takes half a gigabyte for a
//!   state vector of seven bytes, and accepts updates after which it can never be encoded again.
//! - **Y2** The log has no gaps: each client's structs stand one after the other from clock 0,
//!   and what a struct or a deletion refers to is in the log. So a document built from it never
//!   has parts that wait for others.
//! - **Y3** Nothing is allocated, skipped or looped over because a number in the input says so:
//!   a count is held against the bytes that are left first.
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
pub mod protocol;
mod quote_search;
mod structs;
#[cfg(test)]
mod tests;
pub mod text;
pub(crate) mod trim;
mod utf16;
mod validator;
pub mod word_diff;

pub use crate::yjs::error::{AnchorMismatch, FrameError, Rejected, SyncError};

/// The one root type of a document: a `Y.Text` of this name.
pub const ROOT: &str = "content";
