//! The backend of the locks: Redis, or this process. A closed set, so an enum and not a trait.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::time::Instant;

use crate::memory::Memory;
use crate::name::LockName;
use crate::redis::Remote;
use crate::types::{
    CallError, Claim, Claimed, HeldLock, Holder, LocksError, QueuedClaim, Released, Round,
};
use crate::wait_queue::{QueueEntry, QueueStatus, WaiterRegistry};

#[derive(Clone, Debug)]
pub(super) enum Backend {
    Memory(Arc<Memory>),
    Redis(Arc<Remote>),
}

impl Backend {
    pub(super) async fn claim(&self, claim: &Claim) -> Result<Claimed, LocksError> {
        match self {
            Self::Memory(memory) => memory.claim(claim),
            Self::Redis(remote) => remote.claim(claim).await,
        }
    }

    pub(super) async fn check_in(
        &self,
        claim: &Claim,
        waiter: &QueueEntry,
    ) -> Result<QueueStatus, CallError> {
        match self {
            Self::Memory(memory) => memory.check_in(claim, waiter).map_err(CallError::Refused),
            Self::Redis(remote) => remote.check_in(claim, waiter).await,
        }
    }

    pub(super) fn key_of(&self, name: &LockName) -> String {
        match self {
            Self::Memory(_) => name.key().to_owned(),
            Self::Redis(remote) => remote.key_of(name),
        }
    }

    /// Restarts one lease that has not ended, and returns when the request was sent. Reasserts
    /// nothing.
    pub(super) async fn renew_one(
        &self,
        held: &HeldLock,
        ttl: Duration,
    ) -> Result<Option<Instant>, CallError> {
        match self {
            Self::Memory(memory) => Ok(memory.renew_one(held, ttl)),
            Self::Redis(remote) => remote.renew_one(held, ttl).await,
        }
    }

    pub(super) fn waiter_registry(&self) -> &Arc<WaiterRegistry> {
        match self {
            Self::Memory(memory) => &memory.waiter_registry,
            Self::Redis(remote) => &remote.waiter_registry,
        }
    }

    /// Releases a lock; the backend grants it to no other claimant for `rest`.
    pub(super) async fn release(
        &self,
        name: &LockName,
        value: &str,
        rest: Duration,
    ) -> Result<Released, LocksError> {
        match self {
            Self::Memory(memory) => Ok(memory.release(name, value, rest)),
            Self::Redis(remote) => remote.release(name, value, rest).await,
        }
    }

    /// Releases a lock, or leaves its queue, in the background.
    pub(super) fn release_soon(&self, name: &LockName, value: &str, rest: Duration) {
        match self {
            Self::Memory(memory) => {
                memory.release(name, value, rest);
            }
            Self::Redis(remote) => remote.release_soon(name, value, rest),
        }
    }

    /// Renews each lock for its TTL, in one pipeline for each Redis node; waits at most `node_timeout`
    /// for each of several nodes. `extends` marks the locks whose grant expiry the round extends.
    pub(super) async fn renew(
        &self,
        held: &[(&HeldLock, Duration)],
        extends: &[bool],
        node_timeout: Duration,
    ) -> Result<Round, LocksError> {
        match self {
            Self::Memory(memory) => Ok(memory.renew(held)),
            Self::Redis(remote) => remote.calls.renew(held, extends, node_timeout).await,
        }
    }

    pub(super) async fn holders(
        &self,
        names: &[LockName],
    ) -> Result<Vec<Option<Holder>>, LocksError> {
        match self {
            Self::Memory(memory) => Ok(names.iter().map(|name| memory.holder(name)).collect()),
            Self::Redis(remote) => remote.holders(names).await,
        }
    }

    pub(super) async fn waiters(
        &self,
        name: &LockName,
        most: usize,
    ) -> Result<Vec<QueuedClaim>, LocksError> {
        match self {
            Self::Memory(memory) => Ok(memory.waiters(name, most)),
            Self::Redis(remote) => Ok(remote.calls.waiters(name, most).await?),
        }
    }

    pub(super) async fn held(&self) -> Result<Vec<(LockName, Holder)>, LocksError> {
        match self {
            Self::Memory(memory) => Ok(memory.held()),
            Self::Redis(remote) => remote.held().await,
        }
    }

    pub(super) async fn check(&self) -> Result<(), LocksError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(remote) => remote.health.check().await,
        }
    }

    pub(super) fn warnings(&self) -> Vec<&'static str> {
        match self {
            Self::Memory(_) => Vec::new(),
            Self::Redis(remote) => remote.health.warnings(),
        }
    }

    pub(super) fn clock_ahead(&self) -> TimeDelta {
        match self {
            Self::Memory(_) => TimeDelta::zero(),
            Self::Redis(remote) => remote.health.clock_ahead(),
        }
    }

    /// Resolves after each reconnect of the renewal connection: Redis may have come back empty.
    pub(super) async fn reconnected(&self) {
        match self {
            Self::Memory(_) => std::future::pending().await,
            Self::Redis(remote) => remote.reconnected.notified().await,
        }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Memory(_) => {}
            Self::Redis(remote) => remote.close().await,
        }
    }
}
