//! Tokens that are refused before their end, in the memory of this server, and the sockets that end with them.
//!
//! The server reads the revocations of the database at its start, and the new ones every
//! [`READ_EVERY`]: a request queries none. A server that cannot read the database goes on with those it has.

use std::borrow::Borrow as _;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::accounts::Accounts;
use crate::http::auth::identity::Identity;
use crate::outbox::Outbox;
use crate::outbox::close::Close;
use crate::storage::error::StorageError;
use crate::storage::revocations::{Revocation, TokenSubject};

/// The tick: how long a revoked token works on another server.
pub const READ_EVERY: Duration = Duration::from_secs(2);

const REVOKED: Close = Close::Unauthenticated("revoked");

#[derive(Clone, Default)]
pub struct Revocations(Arc<Inner>);

#[derive(Default)]
struct Inner {
    set: RwLock<Set>,
    sockets: Mutex<Sockets>,
    /// The time of the last read, by the clock of the database.
    read_to: Mutex<Option<DateTime<Utc>>>,
    is_failing: AtomicBool,
}

/// The moment of each subject, and the end of its row.
#[derive(Default)]
struct Set(HashMap<TokenSubject, (DateTime<Utc>, DateTime<Utc>)>);

#[derive(Default)]
struct Sockets {
    last: u64,
    listed: HashMap<u64, (Identity, Outbox)>,
}

/// A listed socket, until its drop.
pub(crate) struct Listing {
    of: Revocations,
    number: u64,
}

impl Revocations {
    pub(crate) fn include(&self, identity: &Identity) -> bool {
        self.0.set.read().unwrap_or_else(PoisonError::into_inner).has(identity)
    }

    /// Reads those that the database has since the last read.
    pub async fn read(&self, accounts: &Accounts) -> Result<(), StorageError> {
        let read_to = *self.0.read_to.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, read_to) = accounts.revocations(read_to).await?;
        *self.0.read_to.lock().unwrap_or_else(PoisonError::into_inner) = read_to;
        self.take(rows);
        Ok(())
    }

    pub async fn read_or_log(&self, accounts: &Accounts) {
        let read = self.read(accounts).await;
        let was_failing = self.0.is_failing.swap(read.is_err(), Ordering::Relaxed);
        if let (Err(error), false) = (read, was_failing) {
            tracing::warn!(%error, "revoked tokens of other servers are not read; they work here until then");
        }
    }

    /// Puts revocations in force here, and ends their sockets.
    pub fn take(&self, rows: impl IntoIterator<Item = Revocation>) {
        let is_changed = {
            let mut set = self.0.set.write().unwrap_or_else(PoisonError::into_inner);
            set.forget_ended(Utc::now());
            rows.into_iter().fold(false, |changed, row| set.take(row) | changed)
        };
        if is_changed {
            let sockets = self.sockets();
            let ended = sockets.listed.values().filter(|(identity, _)| self.include(identity));
            ended.for_each(|(_, outbox)| outbox.close(REVOKED));
        }
    }

    /// Ends the socket of `outbox` with the token of `identity`.
    pub(crate) fn list(&self, identity: &Identity, outbox: Outbox) -> Listing {
        let mut sockets = self.sockets();
        sockets.last += 1;
        let number = sockets.last;
        sockets.listed.insert(number, (identity.clone(), outbox));
        drop(sockets);
        let listing = Listing { of: self.clone(), number };
        // It may be revoked since it was verified.
        listing.renew(identity);
        listing
    }

    fn sockets(&self) -> MutexGuard<'_, Sockets> {
        self.0.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listing {
    /// The socket has a new token.
    pub(crate) fn renew(&self, identity: &Identity) {
        if let Some((of, outbox)) = self.of.sockets().listed.get_mut(&self.number) {
            *of = identity.clone();
            if self.of.include(identity) {
                outbox.close(REVOKED);
            }
        }
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        self.of.sockets().listed.remove(&self.number);
    }
}

impl Set {
    fn has(&self, Identity { user, token, issued_at, .. }: &Identity) -> bool {
        let is_of = |subject: &str| self.0.get(subject).is_some_and(|(it, _)| issued_at <= it);
        !self.0.is_empty()
            && (is_of(user.id.as_str()) || is_of(token.borrow()) || is_of(TokenSubject::ALL))
    }

    /// False: it is in force already.
    fn take(&mut self, Revocation { subject, before, until }: Revocation) -> bool {
        let is_new = self.0.get(&subject).is_none_or(|(moment, _)| *moment < before);
        if is_new {
            self.0.insert(subject, (before, until));
        }
        is_new
    }

    /// The row of a user stays until the purge puts that of all users in its stead.
    fn forget_ended(&mut self, now: DateTime<Utc>) {
        let of_all = self.0.get(TokenSubject::ALL).map(|(before, _)| *before);
        self.0.retain(|subject, (before, until)| {
            now < *until || (!subject.is_token() && (of_all <= Some(*before)))
        });
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::domain::user::User;
    use crate::http::auth::tokens::Tokens;
    use crate::outbox::outbox;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn identity(sub: &str, issued_at: DateTime<Utc>) -> Identity {
        let tokens = Tokens::new(b"0123456789abcdef0123456789abcdef");
        let user = User { id: sub.parse().expect("an id"), name: "Kim".to_owned() };
        let signed = tokens.sign(&user, false, HOUR, issued_at).expect("signed");
        tokens.verify(&signed.token).expect("valid")
    }

    fn of(subject: TokenSubject, before: DateTime<Utc>) -> Revocation {
        Revocation { subject, before, until: before + HOUR }
    }

    #[test]
    fn g14_a_revocation_refuses_the_earlier_tokens_of_its_user_alone() {
        let now = Utc::now();
        let (old, new) = (now - TimeDelta::minutes(9), now - TimeDelta::minutes(1));
        let [kim, kims_next, lee] =
            [("kim", old), ("kim", new), ("lee", old)].map(|it| identity(it.0, it.1));
        let revocations = Revocations::default();
        let user = |moment| of(TokenSubject::user(&kim.user.id), moment);
        revocations.take([user(now - TimeDelta::minutes(5)), user(old - HOUR)]);
        let included = || [&kim, &kims_next, &lee].map(|it| revocations.include(it));
        assert_eq!(included(), [true, false, false], "an earlier row takes nothing back");
        revocations.take([of(lee.token.clone(), now)]);
        assert_eq!(included(), [true, false, true]);
        revocations.take([of(TokenSubject::all(), now)]);
        assert_eq!(included(), [true; 3]);
        // Its second counts as before: `iat` has whole seconds.
        let at = identity("park", now);
        let revocations = Revocations::default();
        revocations.take([of(TokenSubject::user(&at.user.id), now)]);
        assert!(revocations.include(&at));
    }

    #[test]
    fn a_revocation_of_one_token_ends_no_other_of_its_user() {
        let [one, other] = [1, 2].map(|age| identity("kim", Utc::now() - TimeDelta::minutes(age)));
        let revocations = Revocations::default();
        revocations.take([of(one.token.clone(), Utc::now())]);
        assert!(revocations.include(&one) && !revocations.include(&other));
        assert_eq!(revocations.0.set.read().expect("a set").0.len(), 1);
        let mut set = revocations.0.set.write().expect("a set");
        set.forget_ended(Utc::now() + 2 * HOUR);
        assert!(set.0.is_empty());
    }

    #[test]
    fn a_listed_socket_ends_with_its_token_and_a_renewed_one_stays() {
        let revocations = Revocations::default();
        let now = Utc::now();
        let old = identity("kim", now - TimeDelta::minutes(9));
        let closes = [(); 2].map(|()| outbox(1_000));
        let [first, second] = [0, 1].map(|at: usize| revocations.list(&old, closes[at].0.clone()));
        second.renew(&identity("kim", now - TimeDelta::minutes(1)));
        let moment = now - TimeDelta::minutes(5);
        revocations.take([of(TokenSubject::user(&old.user.id), moment)]);
        assert_eq!([0, 1].map(|at: usize| closes[at].0.close_reason()), [Some(REVOKED), None]);
        // Between the verification of its token and here.
        let late = outbox(1_000);
        let third = revocations.list(&old, late.0.clone());
        assert_eq!(late.0.close_reason(), Some(REVOKED));
        drop((first, second, third));
        assert!(revocations.sockets().listed.is_empty());
    }
}
