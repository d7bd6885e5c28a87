//! Tests of the server from outside: the real binary in a process of its own, over HTTP and websockets, with
//! a private Redis and PostgreSQL where a test needs them.
//!
//! The tests of a route are in the file with the name of its path: those of `/api/review-offers` in
//! `review_offers.rs`, those of `/api/admin/locks` in `admin_locks.rs`. Below a document or a share link the
//! next part names the file: `/api/share-links/{id}/reviews` is in `reviews.rs`. The first lines of such a file
//! name its paths, and a search for a path that is in another file finds them. The other files are about a
//! property of many routes or of the sockets.

mod bin;
mod document_quota;

mod acts;
mod admin_audit;
mod admin_jobs;
mod admin_locks;
mod admin_series;
mod admin_sessions;
mod admin_share_links;
mod auth;
mod authorization;
mod backup;
mod budgets;
mod charges;
mod commands;
mod cost;
mod costly_texts;
mod crash_points;
mod damaged_document;
mod decision_fixtures;
mod decisions;
mod delivery;
mod doctor;
mod documents;
mod dropped_handlers;
mod edge_rules;
mod export_kills;
mod exports;
mod exports_docx;
#[cfg(feature = "pdf")]
mod exports_pdf;
mod exports_tracked;
mod gaps;
mod host_documents;
mod host_pages;
mod hostile_clients;
mod http_edge;
mod imports;
mod incoming_text;
mod input_validation;
mod kill_campaign;
mod live_documents;
mod lost_seats;
mod malformed_frames;
mod many_servers;
mod me;
mod memory_use;
mod metrics;
mod offer_fixtures;
mod offer_grants;
mod offer_races;
mod oidc;
mod oidc_fixtures;
mod openapi;
mod operation_fixtures;
mod operations;
mod partners;
mod peer_events;
mod people;
mod person_fixtures;
mod person_kills;
mod persons;
mod pgbouncer;
mod plans;
mod postgres;
mod progress;
mod provider_keys;
mod push_subscriptions;
mod readiness;
mod redis_clock;
mod redis_cluster;
mod redis_commands;
mod redis_outage;
mod reminder_fixtures;
mod reminder_races;
mod reminders;
mod replies;
mod request_fixtures;
mod request_operations;
mod request_pushes;
mod review_members;
mod review_offers;
mod review_requests;
mod reviewers;
mod reviews;
mod seats;
mod sections;
mod server_tokens;
mod set_back;
mod share_links;
mod sign_outs;
mod statements;
mod stopping;
mod storage_outage;
mod stuck;
mod subscribers;
mod suggestion_batches;
mod suggestion_kills;
mod suggestions;
mod takeover;
mod token_secrets;
mod upgrade;
mod versions;
mod wait_queue;
mod webhooks;
