//! The progress of a share link: seen marks, counts of its reviews, and the turn.
//!
//! A change of a review counts as unread for a member if its number is above the member's mark and
//! another user made it. The turn takes a number among the review changes of its document, so a server
//! that missed its message reads it (G15).

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::domain::ids::{ShareLinkId, UserId};
use crate::domain::progress::{Progress, Turn};
use crate::domain::seat::Role;
use crate::domain::user::User;
use crate::domain::webhook::WebhookEvent;
use crate::storage::error::StorageError;
use crate::storage::seats::{FenceGuard, Guarded};
use crate::storage::{Storage, StorageFuture, boxed_on_engine, on_engine};

/// The turn of a link, and the number of the change that set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTurn {
    /// The turn.
    pub turn: Turn,
    /// The number among the review changes of the document.
    pub change: i64,
}

/// The outcome of passing the turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passed {
    /// The call set the turn.
    Changed(StoredTurn),
    /// It was that role's turn already.
    Same(Turn),
}

impl Storage {
    /// Raises the seen mark of a member to `change`, and at most to the last change. A lower mark, and
    /// the mark of another user, change nothing.
    pub fn mark_seen<'a>(
        &'a self,
        link: ShareLinkId,
        user: &'a UserId,
        change: i64,
    ) -> StorageFuture<'a, ()> {
        boxed_on_engine!(self, mark_seen(link, user, change))
    }

    /// The progress of these links for a user, read in one statement. The cost: an entry of the index
    /// for each of their reviews, and no row of a review.
    pub fn progress_of<'a>(
        &'a self,
        user: &'a UserId,
        links: &'a [ShareLinkId],
    ) -> StorageFuture<'a, HashMap<ShareLinkId, Progress>> {
        boxed_on_engine!(self, progress_of(user, links))
    }

    /// Sets the role whose turn it is.
    ///
    /// # Errors
    ///
    /// [`StorageError`] when the database cannot be written.
    pub async fn pass_turn(
        &self,
        link: ShareLinkId,
        to: Role,
        by: &User,
        guard: FenceGuard,
        now: DateTime<Utc>,
    ) -> Result<Guarded<Passed>, StorageError> {
        let passed = on_engine!(self, pass_turn(link, to, by, guard, now));
        self.committed(WebhookEvent::TurnChanged);
        passed
    }
}
