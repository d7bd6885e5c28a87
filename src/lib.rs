//! The server as a library, for its own binary and for its tests. What follows is the page that says
//! how it is built.
#![doc = ""]
#![doc = include_str!("ARCHITECTURE.md")]

pub mod app;
pub mod config;
pub mod domain;
pub mod http;
pub mod locks;
pub mod pubsub;
pub mod redis_client;
pub mod session;
pub mod sharing;
pub mod storage;
pub mod telemetry;
pub mod yjs;
