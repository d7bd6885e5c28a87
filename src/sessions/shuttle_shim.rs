//! What the registry and its holdings are made of: maps, locks, numbers that many threads share.
//!
//! Named here, and nowhere in their own files, so that `session::races` can build those files a
//! second time, of parts that let it decide who goes first.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use dashmap::DashMap;
pub(crate) use dashmap::mapref::entry::Entry;
