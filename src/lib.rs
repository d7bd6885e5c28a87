//! The server as a library, for its own binary and for its tests. The page below describes the architecture.
#![doc = ""]
#![doc = include_str!("ARCHITECTURE.md")]
#![allow(
    missing_docs,
    reason = "a comment states a reason, a unit or an invariant, or is left out"
)]

pub use galley_core::{
    accounts, bounds, outbox, pubsub, reviews, rooms, runtime, seats, sessions, sharing, sql,
    storage, tasks, telemetry,
};
pub use galley_domain as domain;
pub use galley_files as files;
pub use galley_locks as locks;
pub use galley_yjs as yjs;

pub mod admin;
pub mod app;
pub mod config;
pub mod exports;
pub mod http;
pub mod offers;
pub mod oidc;
pub mod outgoing;
pub mod partners;
pub mod periodic;
pub mod persons;
pub mod push;
pub mod reminders;
pub mod setting;
pub mod transfer;
pub mod versions;
pub mod webhooks;
