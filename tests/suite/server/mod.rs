//! Tests of the server from outside: the real binary in a process of its own, over HTTP and websockets, with
//! a private Redis and PostgreSQL where a test needs them.

mod document_quota;

mod admin_locks;
mod admin_sessions;
mod authentication;
mod budgets;
mod charges;
mod commands;
mod cost;
mod costly_texts;
mod crash_points;
mod damaged_document;
mod delivery;
mod documents;
mod dropped_handlers;
mod edge_rules;
mod gaps;
mod history;
mod hostile_clients;
mod http_edge;
mod input_validation;
mod kill_campaign;
mod malformed_frames;
mod many_servers;
mod memory_use;
mod metrics;
mod operations;
mod peer_events;
mod pgbouncer;
mod postgres;
mod redis_clock;
mod redis_cluster;
mod redis_commands;
mod redis_outage;
mod rest_documents;
mod reviews;
mod seats;
mod set_back;
mod stopping;
mod storage_outage;
mod stuck;
mod takeover;
mod talk;
mod upgrade;
mod wait_queue;
