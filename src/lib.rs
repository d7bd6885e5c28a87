//! Galley.

pub mod domain;
pub mod locks;
