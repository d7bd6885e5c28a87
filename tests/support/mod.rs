//! Programs and clients that every test binary shares: servers in processes of their own, clients, proxies.

#![allow(
    dead_code,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "each binary uses a part of it, and an unexpected state fails a test"
)]

pub(crate) mod backends;
pub(crate) mod contract;
pub(crate) mod editing_trace;
pub(crate) mod fixtures;
pub(crate) mod galley_process;
pub(crate) mod http_client;
pub(crate) mod identity_provider;
pub(crate) mod postgres_server;
pub(crate) mod proxy;
pub(crate) mod push_service;
pub(crate) mod raw_socket;
pub(crate) mod redis_cluster;
pub(crate) mod redis_monitor;
pub(crate) mod redis_server;
pub(crate) mod resp;
pub(crate) mod rest_client;
pub(crate) mod rng;
pub(crate) mod server_state;
pub(crate) mod shifted_redis;
pub(crate) mod stopwatch;
pub(crate) mod tcp_side;
pub(crate) mod tls;
pub(crate) mod tracked_changes;
pub(crate) mod typing_clients;
pub(crate) mod webhook_receiver;
pub(crate) mod wire;
pub(crate) mod ws_client;
pub(crate) mod zip_archive;
