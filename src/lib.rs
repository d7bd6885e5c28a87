//! Galley.

pub mod domain;
pub mod storage;
