//! Tests of the server from outside: the real binary in a process of its own, over HTTP and websockets, with
//! a private Redis and PostgreSQL where a test needs them.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test panics on an unexpected result"
)]

#[expect(dead_code, reason = "only the tests of locks use the rest")]
#[path = "../locks/cluster_server.rs"]
mod cluster_server;
mod desk;
mod full;
mod inside;
mod peer;
#[path = "../storage/server.rs"]
mod postgres_server;
mod process;
#[expect(dead_code, reason = "only the tests of decoders use the rest")]
#[path = "../fuzz/random.rs"]
mod random;
mod raw;
#[expect(dead_code, reason = "only the tests of locks use the rest")]
#[path = "../locks/server.rs"]
mod redis_server;

#[expect(dead_code, reason = "only the tests of locks use the rest")]
#[path = "../locks/proxy.rs"]
mod proxy;
#[path = "../locks/resp.rs"]
mod resp;
#[path = "../locks/side.rs"]
mod side;
#[expect(dead_code, reason = "only `campaign` uses the rest")]
#[path = "../campaign/wire.rs"]
mod wire;

use redis_server as server;
#[expect(dead_code, reason = "only the campaign uses the rest")]
#[path = "../campaign/redis.rs"]
mod shifted_redis;

mod across;
mod acts;
mod admin;
mod admin_locks;
mod budgets;
mod charges;
mod clock;
mod cluster;
mod company;
mod cost;
mod costly;
mod crash_points;
mod damaged;
mod delivery;
mod documents;
mod dropped;
mod edge_rules;
mod figures;
mod gaps;
mod history;
mod hostile;
mod kills;
mod outage;
mod pooler;
mod postgres;
mod redis_cluster;
mod rest_commands;
mod rest_documents;
mod rest_edge;
mod rest_entry;
mod rest_strict;
mod reviews;
mod seats;
mod set_back;
mod sockets;
mod stopping;
mod storage_away;
mod stuck;
mod traffic;
mod typist;
mod waiting;
mod weight;
