//! The core of the server: documents and their storage, messages between servers, sessions, rooms, seats,
//! reviews and sharing. It knows no HTTP, no settings and no feature: the compiler shows it.

#![allow(
    missing_docs,
    reason = "a comment states a reason, a unit or an invariant, or is left out"
)]

extern crate self as galley_core; // `sql!` names it.

pub use galley_domain as domain;
pub use galley_locks as locks;
pub use galley_sql as sql;
pub use galley_yjs as yjs;

pub mod accounts;
pub mod bounds;
pub mod outbox;
pub mod pubsub;
pub mod reviews;
pub mod rooms;
pub mod runtime;
pub mod seats;
pub mod sessions;
pub mod sharing;
pub mod storage;
pub mod tasks;
pub mod telemetry;
