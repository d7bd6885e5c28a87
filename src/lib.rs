//! Galley.

pub mod domain;
