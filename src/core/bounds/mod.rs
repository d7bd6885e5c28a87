//! Bounds of what a user or an address may cost (G13, G16, G17), in four kinds:
//!
//! - [`shares`]: at once. The drop of a share returns it: connections, bytes in memory, pushes, claims.
//! - [`permits`]: at once, with a fair queue: builds of texts, files, creations of documents.
//! - token buckets of `governor`: in time. Here is [`store_budget`]; `sessions/budgets` and `http/limit` have
//!   the others.
//! - [`allowances`]: in time, for tries that cost nothing if they fail, or nothing unless they fail.
//!
//! [`limits`](crate::domain::limits) and the settings name the numbers.

pub mod allowances;
pub mod permits;
pub mod shares;
pub mod store_budget;
