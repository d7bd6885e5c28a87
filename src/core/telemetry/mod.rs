//! Logs and metrics.
//!
//! Logs go to standard error, one line an event; standard output holds the result of a command.
//! The `metrics` facade collects metrics from every module; [`metrics`] renders them for Prometheus.
//! Neither holds a token, an invite or a text; labels never hold an id.

pub mod counted;
pub mod last_hour;
pub mod logs;
pub mod metrics;
mod process;
