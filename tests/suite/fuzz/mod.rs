//! Fuzz tests of every decoder that reads bytes from outside.
//!
//! The tests mutate real input, in process and on stable Rust, for `GALLEY_FUZZ_SECONDS` in all (60
//! by default). Each execution has its own seed, and a failure names it; `GALLEY_SEED` runs that
//! execution first. The folder `corpus/` contains inputs that once failed, here or in other
//! implementations; each run replays them. [`trace`] covers real edits of a user.

mod corpus;
mod fragmented_text;
mod mutate;
mod properties;
mod seeds;
mod target;
mod typed_trace;
