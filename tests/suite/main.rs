//! The suite: the server and its parts against real Redis, SQLite and PostgreSQL.
//!
//! `cargo test --test suite locks::` runs one part.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "an unexpected state fails the test"
)]

mod fuzz;
mod jobs;
mod locks;
mod notify;
mod server;
mod storage;
#[path = "../support/mod.rs"]
mod support;
