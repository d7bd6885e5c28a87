//! Renewal: one [`actor`] renews all locks of this process. [`schedule`] holds the entries and
//! their due times, without IO; [`lease`] describes the holder of an entry.

pub(super) mod actor;
pub(super) mod lease;
pub(super) mod schedule;
