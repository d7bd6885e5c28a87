//! Bounds of what a user or an address may cost (G13, G16, G17), in four kinds:
//!
//! - [`shares`]: at once. The drop of a share returns it: connections, bytes in memory, pushes, claims.
//! - [`permits`]: at once, with a fair queue: builds of texts, files, creations of documents.
//! - [`allowances`]: in time, by key. A refused try costs nothing, and its wait is true. `sessions/budgets` and
//!   `http/limit` use them; a websocket above a rate is closed, and has the token buckets of `governor`.
//!
//! [`limits`](crate::domain::limits) and the settings name the numbers.

pub mod allowances;
pub mod permits;
pub mod shares;
