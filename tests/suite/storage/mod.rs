//! The promises of storage on both engines: real files in temporary folders, and a real PostgreSQL
//! that the tests start.
//!
//! Tests that begin with `g2_` to `g17_` prove the promises of those numbers; `d1_` to `d8_`
//! those of `galley_core::storage`.

mod audit;
mod bin;
mod crash;
pub(crate) mod database;
mod decisions;
mod documents;
mod exports;
pub(crate) mod files;
mod identity;
mod links;
mod log;
mod migrations;
mod offers;
mod open;
mod partners;
mod people;
mod postgres;
mod proxy;
mod push_subscriptions;
mod reminders;
pub(crate) mod review_requests;
mod reviews;
mod revocations;
mod seats;
mod statements;
mod stuck;
pub(crate) mod suggestions;
mod talk;
mod versions;
mod webhook_claims;
pub(crate) mod webhook_fixtures;
mod webhook_floods;
mod webhook_turns;
mod webhooks;

/// One suite for both engines: each test is a function of an open, empty database.
macro_rules! on_both_engines {
    ($suite:ident: $($name:ident)+) => {
        crate::on_each_engine! { crate::storage::database::Desk: $($name)+ }
    };
}
pub(crate) use on_both_engines;
