//! The statements of each subject, and the methods of [`Storage`](crate::storage::Storage) that run them.

mod bin;
pub(in crate::storage) mod decisions;
mod documents;
mod exports;
mod invites;
mod jobs;
pub(in crate::storage) mod links;
mod offers;
mod partners;
mod people;
mod progress;
mod push_subscriptions;
mod reminder_candidates;
mod reminders;
mod replies;
mod review_changes;
mod review_requests;
mod review_rows;
mod review_webhooks;
mod reviews;
mod transfers;
mod turns;
mod users;
mod versions;
mod webhook_claims;
pub(in crate::storage) mod webhook_seats;
mod webhooks;
