//! Tokens that are refused before their end: all of a user from before a moment, or a single one.
//!
//! A server reads the rows at its start, and the new ones at each tick; it queries none for a request.

use std::borrow::Borrow;

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::ids::UserId;
use crate::domain::limits::TOKEN_AGE_MAX;
use crate::storage::audit::{AuditEntry, append};
use crate::storage::statement::{Row, sql};
use crate::storage::tx::{Tx, run};
use crate::storage::tx_error::TxError;
use crate::storage::{Storage, StorageFuture};

/// Whose tokens a revocation refuses: a user's, a single one, or all. No id of a user has a colon or a star.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenSubject(pub(crate) String);

impl TokenSubject {
    pub const ALL: &'static str = "*";
    const TOKEN: &'static str = "token:";

    /// Every user. The purge leaves such a row in place of the rows that it deletes.
    #[must_use]
    pub fn all() -> Self {
        Self(Self::ALL.to_owned())
    }

    #[must_use]
    pub fn user(id: &UserId) -> Self {
        Self(id.to_string())
    }

    /// By the hash of the token without its signature: of some algorithms another signature is valid, too.
    #[must_use]
    pub fn token(hash: &str) -> Self {
        Self([Self::TOKEN, hash].concat())
    }

    #[must_use]
    pub fn is_token(&self) -> bool {
        self.0.starts_with(Self::TOKEN)
    }
}

impl Borrow<str> for TokenSubject {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    pub subject: TokenSubject,
    /// Tokens that were issued up to this time are refused.
    pub before: DateTime<Utc>,
    /// No token of the subject that was issued before lives longer.
    pub until: DateTime<Utc>,
}

/// No transaction takes longer from its statement to its commit: a row is visible by then.
const COMMIT_MAX: TimeDelta = TimeDelta::seconds(60);
/// Rows that one purge deletes, at most.
const PURGED_AT_ONCE: i64 = 1_000;

/// Refuses every token of the user that was issued up to `now`, and what could sign the user in anew: codes for
/// other devices. Pushes end with the sign-ins. The result takes effect here at once, on other servers at
/// their next tick.
pub async fn revoke_user(
    tx: &mut Tx,
    user: &UserId,
    now: DateTime<Utc>,
) -> Result<Revocation, TxError> {
    let (subject, until) = (TokenSubject::user(user), now + TOKEN_AGE_MAX);
    let revocation = Revocation { subject, before: now, until };
    put(tx, &revocation).await?;
    sql!("DELETE FROM transfer_codes WHERE user_id = {user}").run(tx).await?;
    sql!("DELETE FROM push_subscriptions WHERE user_id = {user}").run(tx).await?;
    Ok(revocation)
}

async fn put(tx: &mut Tx, revocation: &Revocation) -> Result<(), TxError> {
    let Revocation { subject, before, until } = revocation;
    sql!(
        "INSERT INTO revocations AS r (subject, before, made_at, until) \
         VALUES ({subject.0}, {before}, {@now}, {until}) \
         ON CONFLICT (subject) DO UPDATE SET made_at = excluded.made_at, \
           before = CASE WHEN r.before < excluded.before THEN excluded.before ELSE r.before END, \
           until = CASE WHEN r.until < excluded.until THEN excluded.until ELSE r.until END"
    )
    .run(tx)
    .await
    .map(drop)
}

impl Storage {
    /// Ends all sign-ins of a user. One transaction has the row of the audit.
    pub fn sign_out_everywhere<'a>(
        &'a self,
        user: &'a UserId,
        now: DateTime<Utc>,
        entry: &'a AuditEntry,
    ) -> StorageFuture<'a, Revocation> {
        run!(self, Write, tx => {
            append(tx, entry).await?;
            revoke_user(tx, user, now).await
        })
    }

    pub fn revoke<'a>(&'a self, revocation: &'a Revocation) -> StorageFuture<'a, ()> {
        run!(self, Write, tx => { put(tx, revocation).await })
    }

    /// The revocations that a server may not have read by `read_to`, and the time until which it has read them
    /// now, by the clock of the database. `None`: the server has read none.
    pub fn revocations(
        &self,
        read_to: Option<DateTime<Utc>>,
    ) -> StorageFuture<'_, (Vec<Revocation>, Option<DateTime<Utc>>)> {
        let since = read_to.map_or(DateTime::UNIX_EPOCH, |read_to| read_to - COMMIT_MAX);
        run!(self, Read, tx => {
            // All rows count if the clock of the database was set back.
            let rows = sql!(
                "SELECT subject, before, until, {@now} AS now FROM revocations \
                 WHERE made_at >= CASE WHEN {since} <= {@now} THEN {since} \
                 ELSE {DateTime::<Utc>::UNIX_EPOCH} END"
            );
            let rows = rows.rows(tx).await?;
            let read_to = rows.last().map(|row| row.get("now")).transpose()?.or(read_to);
            Ok((rows.iter().map(row_from).collect::<Result<_, _>>()?, read_to))
        })
    }

    /// Whether a token is refused by a revocation that this server may not have read.
    pub fn is_revoked<'a>(
        &'a self,
        user: &'a UserId,
        token: &'a TokenSubject,
        issued_at: DateTime<Utc>,
    ) -> StorageFuture<'a, bool> {
        run!(self, Read, tx => {
            let found = sql!(
                "SELECT 1 FROM revocations WHERE subject IN ({user}, {token.0}, \
                 {TokenSubject::ALL}) AND before >= {issued_at} LIMIT 1"
            );
            Ok(found.row(tx).await?.is_some())
        })
    }

    /// Deletes some rows whose tokens have ended. That of a user refuses tokens without an end, too, so the
    /// row of all users takes its moment.
    pub fn purge_revocations(&self, now: DateTime<Utc>) -> StorageFuture<'_, u64> {
        run!(self, Write, tx => {
            let ended = sql!(
                "SELECT subject, before, until FROM revocations \
                 WHERE until <= {now} AND subject <> '*' ORDER BY until LIMIT {PURGED_AT_ONCE}"
            );
            let ended: Vec<_> =
                ended.rows(tx).await?.iter().map(row_from).collect::<Result<_, _>>()?;
            let of_users = ended.iter().filter(|row| !row.subject.is_token());
            if let Some(before) = of_users.map(|row| row.before).max() {
                put(tx, &Revocation { subject: TokenSubject::all(), before, until: now }).await?;
            }
            for Revocation { subject, .. } in &ended {
                sql!("DELETE FROM revocations WHERE subject = {subject.0}").run(tx).await?;
            }
            Ok(u64::try_from(ended.len()).unwrap_or(u64::MAX))
        })
    }
}

fn row_from(row: &Row) -> Result<Revocation, TxError> {
    let subject = TokenSubject(row.get("subject")?);
    Ok(Revocation { subject, before: row.get("before")?, until: row.get("until")? })
}
