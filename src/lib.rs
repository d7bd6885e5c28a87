//! Galley.

pub mod domain;
pub mod sync;
