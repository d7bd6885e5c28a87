//! The statements of each subject, and the methods of [`Storage`](crate::storage::Storage) that run them.

mod absent_waiters;
pub mod audit;
pub(crate) mod bin;
pub(crate) mod decisions;
pub(crate) mod document_webhooks;
pub(crate) mod documents;
pub mod invites;
pub mod links;
pub mod partners;
pub(crate) mod progress;
pub(crate) mod replies;
pub(crate) mod review_changes;
pub(crate) mod review_rows;
pub(crate) mod review_webhooks;
pub(crate) mod reviews;
pub mod revocations;
mod root;
pub(crate) mod sections;
mod suggestions;
pub(crate) mod turns;
pub mod users;
pub(crate) mod versions;
pub(crate) mod webhook_claims;
pub(crate) mod webhook_seats;
pub mod webhooks;
