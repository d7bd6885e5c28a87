//! What storage promises, on real files in temporary folders.
//!
//! Tests that begin with `g2_`, `g7_`, `g11_` hold the promises of that number; `d1_` to `d6_`
//! those of `galley::storage`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what was not expected fails the test")]

mod documents;
mod harness;
mod kill;
mod links;
mod log;
mod movable;
mod opening;
mod reviews;
mod seats;
mod versions;
