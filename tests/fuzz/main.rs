//! Fuzz tests of every decoder that reads bytes from outside.
//!
//! The tests mutate real input, in process and on stable Rust, for `GALLEY_FUZZ_SECONDS` in all (60
//! by default). Each execution has its own seed, and a failure names it; `GALLEY_SEED` runs that
//! execution first. The folder `corpus/` contains inputs that once failed, here or in other
//! implementations; each run replays them. [`trace`] covers real edits of a user.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what was not expected fails the test"
)]

#[path = "../data/trace.rs"]
mod data;
mod fragments;
mod judge;
mod kept;
mod mutate;
mod random;
mod seeds;
mod target;
mod trace;
