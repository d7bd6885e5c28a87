//! The server, driven from outside: the real binary in a process of its own, over HTTP and
//! websockets, with a private Redis where one is needed.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that meets something unexpected is to fail"
)]

mod desk;
mod peer;
mod process;
#[expect(dead_code, reason = "what only the tests of locks use")]
#[path = "../locks/server.rs"]
mod redis_server;

mod admin;
mod cluster;
mod documents;
mod history;
mod hostile;
mod outage;
mod rest_commands;
mod rest_documents;
mod rest_edge;
mod rest_entry;
mod reviews;
mod seats;
mod traffic;
mod waiting;
