//! A document at one moment, and the right to build its text.

use std::sync::Arc;

use bytes::Bytes;

use crate::bounds::permits::Permit;

/// The right to run one build.
pub type BuildPermit = Arc<Permit>;

#[derive(Clone, Debug)]
pub struct Snapshot {
    pub merged: Bytes,
    pub seq: i64,
    pub is_durable: bool,
    /// Rises with each update of an open room.
    pub version: u64,
    /// The permit to build its text, held as long as the snapshot lives.
    pub permit: Option<BuildPermit>,
}
