//! Galley.

pub mod domain;
pub mod locks;
pub mod relay;
pub mod session;
pub mod storage;
pub mod sync;
