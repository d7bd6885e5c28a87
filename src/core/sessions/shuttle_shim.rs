//! The primitives of the registry and its sessions: maps, locks, atomics.
//!
//! Only this file imports them. So `sessions::shuttle_tests` can compile those files a second time
//! with primitives that let `shuttle` schedule the threads.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use dashmap::DashMap;
pub(crate) use dashmap::mapref::entry::Entry;
