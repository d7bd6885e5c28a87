//! Shares of a bound: the units that each key holds at once, and those of all keys.
//!
//! A share counts for up to two keys: for an address, and for its user.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Cloning is shallow.
#[derive(Debug)]
pub struct Shares<K>(Arc<Mutex<Held<K>>>);

#[derive(Debug)]
struct Held<K> {
    all: u64,
    /// A key without a share is removed.
    keys: HashMap<K, u64>,
}

/// Its drop returns its units.
#[derive(Debug)]
pub struct Share<K: Clone + Eq + Hash> {
    shares: Shares<K>,
    keys: [Option<K>; 2],
    units: u64,
}

impl<K> Clone for Shares<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> Default for Shares<K> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Held { all: 0, keys: HashMap::new() })))
    }
}

impl<K: Clone + Eq + Hash> Shares<K> {
    /// A share of nothing yet.
    #[must_use]
    pub fn open(&self, keys: [Option<K>; 2]) -> Share<K> {
        Share { shares: self.clone(), keys, units: 0 }
    }

    /// One unit for the key. `admit` gets the units of all, and of the key.
    pub fn take<E>(
        &self,
        key: Option<K>,
        admit: impl FnOnce(u64, u64) -> Result<(), E>,
    ) -> Result<Share<K>, E> {
        let mut share = self.open([key, None]);
        share.grow(1, |all, [own, _none]| admit(all, own)).map(|()| share)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        let held = self.held();
        held.all == 0 && held.keys.is_empty()
    }

    fn held(&self) -> MutexGuard<'_, Held<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> Share<K> {
    /// `admit` gets the units of all, and of each key. On an error the share stays as it was.
    pub fn grow<E>(
        &mut self,
        units: u64,
        admit: impl FnOnce(u64, [u64; 2]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut held = self.shares.held();
        let of = |key: &Option<K>| key.as_ref().and_then(|key| held.keys.get(key)).copied();
        admit(held.all, self.keys.each_ref().map(|key| of(key).unwrap_or(0)))?;
        if units == 0 {
            return Ok(());
        }
        held.all = held.all.saturating_add(units);
        for key in self.keys.iter().flatten() {
            match held.keys.get_mut(key) {
                Some(sum) => *sum = sum.saturating_add(units),
                None => drop(held.keys.insert(key.clone(), units)),
            }
        }
        drop(held);
        self.units = self.units.saturating_add(units);
        Ok(())
    }

    pub fn shrink(&mut self, units: u64) {
        let units = units.min(self.units);
        if units == 0 {
            return;
        }
        self.units -= units;
        let mut held = self.shares.held();
        held.all = held.all.saturating_sub(units);
        for key in self.keys.iter().flatten() {
            let Some(sum) = held.keys.get_mut(key) else { continue };
            *sum = sum.saturating_sub(units);
            if *sum == 0 {
                held.keys.remove(key);
            }
        }
    }

    #[must_use]
    pub fn units(&self) -> u64 {
        self.units
    }

    #[must_use]
    pub fn keys(&self) -> &[Option<K>; 2] {
        &self.keys
    }
}

impl<K: Clone + Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        self.shrink(self.units);
    }
}
