//! The server, driven from outside: the real binary in a process of its own, over HTTP and
//! websockets, with a private Redis where one is needed.

mod desk;
mod peer;
mod process;
#[path = "../locks/server.rs"]
mod redis_server;

mod admin;
mod cluster;
mod documents;
mod hostile;
mod outage;
mod reviews;
mod seats;
mod traffic;
