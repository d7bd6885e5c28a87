//! Every decoder that reads what a stranger sent, against bytes that nobody meant.
//!
//! Mutations of real input, in process and on stable Rust, for `GALLEY_FUZZ_SECONDS` in all (60 if
//! it is not set). Each execution has a seed of its own, which a failure names: with that one in
//! `GALLEY_SEED` it is the first that is run. What once hurt, or is known to hurt others, is kept in
//! `corpus/` and replayed each time. [`trace`] is the other end: what a person really typed.

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
