//! Queries that change no lock: holders, waiters, all held locks, and the preflight check of Redis.

use crate::Locks;
use crate::name::LockName;
use crate::types::{Holder, LocksError, QueuedClaim};
use galley_domain::seat::Seat;

impl Locks {
    /// Reads the holder of a lock.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the backend did not reply.
    ///
    /// # Cancel safety
    ///
    /// The query changes nothing.
    pub async fn holder(&self, name: &LockName) -> Result<Option<Holder>, LocksError> {
        let holders = self.holders(std::slice::from_ref(name)).await?;
        Ok(holders.into_iter().next().flatten())
    }

    /// Reads the holder of each of these locks, by position, in one round trip.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the backend did not reply.
    ///
    /// # Cancel safety
    ///
    /// The query changes nothing.
    pub async fn holders(&self, names: &[LockName]) -> Result<Vec<Option<Holder>>, LocksError> {
        self.0.backend.holders(names).await
    }

    /// Reads the first `most` waiters of a lock, in order of arrival.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the backend did not reply.
    ///
    /// # Cancel safety
    ///
    /// The query changes nothing.
    pub async fn waiters(
        &self,
        name: &LockName,
        most: usize,
    ) -> Result<Vec<QueuedClaim>, LocksError> {
        self.0.backend.waiters(name, most).await
    }

    /// Lists all held locks of all servers, seats included. For the admin page. The cost: a scan of
    /// all keys. A holder's value is a secret; the caller must not show it.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the backend did not reply.
    ///
    /// # Cancel safety
    ///
    /// The query changes nothing.
    pub async fn held(&self) -> Result<Vec<(LockName, Holder)>, LocksError> {
        self.0.backend.held().await
    }

    /// As [`Locks::held`], the seats alone.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the backend did not reply.
    ///
    /// # Cancel safety
    ///
    /// The query changes nothing.
    pub async fn seats(&self) -> Result<Vec<(Seat, Holder)>, LocksError> {
        let seat = |(name, holder): (LockName, Holder)| Some((name.as_seat()?, holder));
        Ok(self.held().await?.into_iter().filter_map(seat).collect())
    }

    /// Checks whether locks are safe: the backend replies, is the primary, and evicts no key. After
    /// a failed check the backend grants nothing until a later check succeeds; renewals continue.
    ///
    /// # Errors
    ///
    /// [`LocksError::Misconfigured`] names the fault and its remedy in one line.
    ///
    /// # Cancel safety
    ///
    /// The check changes no lock; findings up to the drop stay recorded.
    pub async fn check(&self) -> Result<(), LocksError> {
        self.0.backend.check().await
    }
}
