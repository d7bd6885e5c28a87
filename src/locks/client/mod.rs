//! The interface of a caller: options, claims, guards and waits.

pub(super) mod acquire;
pub(super) mod estimates;
pub(super) mod guard;
pub(super) mod guard_state;
pub(super) mod options;
pub(super) mod wait;
