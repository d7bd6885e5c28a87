//! The users whose deletion runs: their tokens are refused.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use crate::domain::ids::UserId;

/// The deletions of all servers, as this server last read them. Cloning is shallow.
#[derive(Clone, Debug, Default)]
pub struct Deleting(Arc<RwLock<State>>);

#[derive(Debug, Default)]
struct State {
    users: HashSet<UserId>,
    is_due: bool,
}

impl Deleting {
    #[must_use]
    pub fn contains(&self, user: &UserId) -> bool {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        // The usual case hashes no id.
        !state.users.is_empty() && state.users.contains(user)
    }

    /// Whether a deletion is not done.
    pub(crate) fn is_due(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_due
    }

    pub(crate) fn add(&self, user: UserId) {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        state.users.insert(user);
        state.is_due = true;
    }

    /// As the database has them now.
    pub(crate) fn set(&self, users: HashSet<UserId>, is_due: bool) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = State { users, is_due };
    }
}
