//! Requests to other programs, and pushes, against a push service of the tests' own.

mod outgoing;
mod web_push;
mod webhooks;
