//! Who is known: an id and a name for each.

use chrono::{DateTime, Utc};

use crate::domain::user::User;
use crate::storage::error::StorageError;
use crate::storage::{Storage, on_engine};

impl Storage {
    /// Stores a user's name as a token of that moment has it. A token that is older than the one the
    /// stored name is from changes nothing: it may still be valid after a rename. Costs a read when
    /// the name is the stored one.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn save_user(
        &self,
        user: &User,
        issued_at: DateTime<Utc>,
    ) -> Result<(), StorageError> {
        on_engine!(self, save_user(user, issued_at))
    }
}
