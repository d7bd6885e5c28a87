//! The server as a library, for its own binary and for its tests. The page below describes its
//! architecture.
#![doc = ""]
#![doc = include_str!("ARCHITECTURE.md")]

pub mod admin;
pub mod app;
pub mod config;
pub mod domain;
pub mod http;
pub mod locks;
pub mod outbox;
pub mod pubsub;
pub mod redis_client;
pub mod reviews;
pub mod rooms;
pub mod seats;
pub mod sessions;
pub mod sharing;
pub mod storage;
pub mod telemetry;
pub mod versions;
pub mod yjs;
