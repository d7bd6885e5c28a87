//! Who is known: an id and a name for each.

use chrono::{DateTime, Utc};

use crate::domain::user::User;
use crate::storage::error::StorageError;
use crate::storage::{Storage, on_engine};

impl Storage {
    /// Writes down what a user is called now. Costs a read when nothing has changed.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn save_user(&self, user: &User, now: DateTime<Utc>) -> Result<(), StorageError> {
        on_engine!(self, save_user(user, now))
    }
}
