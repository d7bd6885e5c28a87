//! The server as a library, for its own binary and for its tests. Without the feature `server` the
//! library is [`locks`] and the modules below it, for any program. The page below describes the
//! architecture.
#![doc = ""]
// The page links to every module.
#![cfg_attr(feature = "server", doc = include_str!("ARCHITECTURE.md"))]

#[cfg(feature = "server")]
pub mod admin;
#[cfg(feature = "server")]
pub mod app;
#[cfg(feature = "server")]
pub mod config;
pub mod domain;
#[cfg(feature = "server")]
pub mod exports;
#[cfg(feature = "server")]
pub mod http;
#[cfg(feature = "server")]
pub mod jobs;
pub mod locks;
#[cfg(feature = "server")]
pub mod notify;
#[cfg(feature = "server")]
pub mod outbox;
#[cfg(feature = "server")]
pub mod partners;
#[cfg(feature = "server")]
pub mod pubsub;
pub mod redis_client;
#[cfg(feature = "server")]
pub mod reviews;
#[cfg(feature = "server")]
pub mod rooms;
#[cfg(feature = "server")]
pub mod seats;
#[cfg(feature = "server")]
pub mod sessions;
#[cfg(feature = "server")]
pub mod sharing;
#[cfg(feature = "server")]
pub mod storage;
#[cfg(feature = "server")]
pub mod telemetry;
#[cfg(feature = "server")]
pub mod versions;
#[cfg(feature = "server")]
pub mod yjs;
