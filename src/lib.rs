//! Galley.

pub mod config;
pub mod domain;
pub mod http;
pub mod storage;
pub mod telemetry;
