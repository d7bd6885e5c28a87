//! What there is to ask without wanting a lock: who has which, who waits, and whether Redis is fit.

use crate::domain::seat::Seat;
use crate::locks::Locks;
use crate::locks::name::LockName;
use crate::locks::types::{Holder, InLine, LocksError};

impl Locks {
    /// Who has a lock.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the keeper gave no answer.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed by asking.
    pub async fn holder(&self, name: &LockName) -> Result<Option<Holder>, LocksError> {
        let holders = self.holders(std::slice::from_ref(name)).await?;
        Ok(holders.into_iter().next().flatten())
    }

    /// Who has each of these locks, by position, in one round trip.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the keeper gave no answer.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed by asking.
    pub async fn holders(&self, names: &[LockName]) -> Result<Vec<Option<Holder>>, LocksError> {
        self.0.keeper.holders(names).await
    }

    /// Who waits for a lock, the first first, and of many only the first `most`.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the keeper gave no answer.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed by asking.
    pub async fn behind(&self, name: &LockName, most: usize) -> Result<Vec<InLine>, LocksError> {
        self.0.keeper.behind(name, most).await
    }

    /// Everything that is held, on whatever server: seats and other locks. For the admin page: it
    /// walks all keys. A holder's value is a secret, and not to be shown.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the keeper gave no answer.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed by asking.
    pub async fn held(&self) -> Result<Vec<(LockName, Holder)>, LocksError> {
        self.0.keeper.held().await
    }

    /// Every seat that is taken, on whatever server. For the admin page: it walks all keys.
    ///
    /// # Errors
    ///
    /// [`LocksError`] when the keeper gave no answer.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed by asking.
    pub async fn seats(&self) -> Result<Vec<(Seat, Holder)>, LocksError> {
        self.0.keeper.seats().await
    }

    /// Whether locks can be trusted: the keeper answers, is the primary, and evicts nothing. Once
    /// that is found not to be so, nothing is granted until a later check finds it fit; what is held
    /// can go on being renewed.
    ///
    /// # Errors
    ///
    /// [`LocksError::Misconfigured`] says in one line what is wrong and what to do about it.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; what was found by then stands.
    pub async fn check(&self) -> Result<(), LocksError> {
        self.0.keeper.check().await
    }
}
