//! Users as callers: their names, the end of their sign-ins, and the audit of acts that need one.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::ids::UserId;
use crate::domain::user::User;
use crate::storage::audit::{AUDIT_PURGED_AT_ONCE, AuditEntry, AuditQuery, AuditRow};
use crate::storage::error::StorageError;
use crate::storage::revocations::{Revocation, TokenSubject};
use crate::storage::{Storage, StorageFuture};

/// Period of the purge of old rows.
pub const PURGE_EVERY: Duration = Duration::from_secs(600);

#[derive(Clone)]
pub struct Accounts {
    storage: Storage,
    audit_retention: Duration,
}

impl Accounts {
    #[must_use]
    pub fn new(storage: Storage, audit_retention: Duration) -> Self {
        Self { storage, audit_retention }
    }

    /// `None`: no row refers to the user yet.
    pub async fn user(&self, id: &UserId) -> Result<Option<User>, StorageError> {
        let stored = self.storage.profile_of(id).await?;
        Ok(stored.map(|(name, _)| User { id: id.clone(), name }))
    }

    /// Appends the row of an act that has no transaction of its own, before the act. An unknown user gets a name,
    /// which the user's first token replaces.
    pub async fn begin(&self, entry: &AuditEntry, new: Option<&User>) -> Result<(), StorageError> {
        self.storage.append_audit(entry, new).await
    }

    pub async fn audit(&self, query: &AuditQuery) -> Result<Vec<AuditRow>, StorageError> {
        self.storage.audit(query).await
    }

    /// Ends all sign-ins of a user.
    pub async fn sign_out_everywhere(
        &self,
        user: &UserId,
        entry: &AuditEntry,
    ) -> Result<Revocation, StorageError> {
        self.storage.sign_out_everywhere(user, Utc::now(), entry).await
    }

    /// Ends one token, which lives until `expires_at`.
    pub async fn sign_out(
        &self,
        token: TokenSubject,
        expires_at: DateTime<Utc>,
    ) -> Result<Revocation, StorageError> {
        let revocation = Revocation { subject: token, before: expires_at, until: expires_at };
        self.storage.revoke(&revocation).await?;
        Ok(revocation)
    }

    pub async fn is_revoked(
        &self,
        user: &UserId,
        token: &TokenSubject,
        issued_at: DateTime<Utc>,
    ) -> Result<bool, StorageError> {
        self.storage.is_revoked(user, token, issued_at).await
    }

    pub fn revocations(
        &self,
        read_to: Option<DateTime<Utc>>,
    ) -> StorageFuture<'_, (Vec<Revocation>, Option<DateTime<Utc>>)> {
        self.storage.revocations(read_to)
    }

    /// Deletes the rows of the audit after their retention, and revocations whose tokens have ended.
    pub async fn purge(&self) {
        let now = Utc::now();
        let retention = TimeDelta::from_std(self.audit_retention).unwrap_or(TimeDelta::MAX);
        let oldest = now.checked_sub_signed(retention).unwrap_or(DateTime::UNIX_EPOCH);
        let purge = async {
            while self.storage.purge_audit(oldest).await? == u64::from(AUDIT_PURGED_AT_ONCE) {}
            self.storage.purge_revocations(now).await
        };
        if let Err(error) = purge.await {
            tracing::warn!(%error, "the audit and the revocations were not purged");
        }
    }
}
