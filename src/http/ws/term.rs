//! The term of a socket: it ends with its token, and a frame with a new token of the same user moves its end.

use chrono::Utc;
use tokio::time::Instant;

use crate::http::auth::revocations::Listing;
use crate::http::auth::tokens::{Identity, KEYS_UNAVAILABLE, Tokens};
use crate::http::ws::params::{TOKEN_NOT_VALID, close_of};
use crate::outbox::Outbox;
use crate::outbox::close::Close;
use crate::yjs::error::FrameError;

const TOKEN_EXPIRED: Close = Close::Unauthenticated("token-expired");

pub(super) struct Term {
    tokens: Tokens,
    identity: Identity,
    ends_at: Instant,
    /// A token whose key the server did not have. It is verified again at the end.
    pending: Option<Box<str>>,
    listing: Option<Listing>,
}

impl Term {
    pub(super) fn of(tokens: &Tokens, identity: &Identity) -> Self {
        let (tokens, ends_at) = (tokens.clone(), end_of(identity));
        Self { tokens, identity: identity.clone(), ends_at, pending: None, listing: None }
    }

    /// From here on a revocation of the token closes the socket of `outbox`.
    pub(super) fn list(&mut self, outbox: Outbox) {
        self.listing = Some(self.tokens.revocations().list(&self.identity, outbox));
    }

    pub(super) fn ends_at(&self) -> Instant {
        self.ends_at
    }

    /// Takes the token of a renewal, as [`renewal`](crate::yjs::protocol::renewal) reads it.
    pub(super) fn renew(&mut self, token: Result<&str, FrameError>) -> Result<(), Close> {
        let token = token.map_err(|_malformed| Close::Malformed("frame"))?;
        // The timer may be late.
        if self.ends_at <= Instant::now() {
            return Err(TOKEN_EXPIRED);
        }
        self.take(token)
    }

    fn take(&mut self, token: &str) -> Result<(), Close> {
        match self.tokens.verify(token) {
            Ok(identity) if identity.user.id == self.identity.user.id => {
                (self.ends_at, self.pending) = (end_of(&identity), None);
                self.listing.iter().for_each(|listing| listing.renew(&identity));
                self.identity = identity;
                Ok(())
            }
            Ok(_other) => Err(TOKEN_NOT_VALID),
            // A new key of the provider ends no session.
            Err(KEYS_UNAVAILABLE) => {
                self.pending = Some(token.into());
                Ok(())
            }
            Err(refused) => Err(close_of(refused)),
        }
    }

    /// The end has come: the close, unless a pending token is valid by now.
    pub(super) fn end(&mut self) -> Result<(), Close> {
        let token = self.pending.take().ok_or(TOKEN_EXPIRED)?;
        self.take(&token)?;
        // Still pending: the client may come back with it.
        self.pending.take().map_or(Ok(()), |_token| Err(close_of(KEYS_UNAVAILABLE)))
    }
}

fn end_of(identity: &Identity) -> Instant {
    Instant::now() + (identity.expires_at - Utc::now()).to_std().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::TimeDelta;

    use super::*;
    use crate::domain::user::User;
    use crate::http::auth::host_keys::{HostKeys, Provider};
    use crate::yjs::protocol::{renewal, token as token_frame};

    const MINUTE: Duration = Duration::from_secs(60);

    fn signed(tokens: &Tokens, id: &str, ttl: Duration) -> String {
        let user = User { id: id.parse().expect("an id"), name: "Kim".to_owned() };
        tokens.sign(&user, false, ttl, Utc::now()).expect("signed").token
    }

    fn term_of(tokens: &Tokens) -> Term {
        let identity = tokens.verify(&signed(tokens, "kim", MINUTE)).expect("valid");
        Term::of(tokens, &identity)
    }

    fn renew(term: &mut Term, token: &str) -> Result<(), Close> {
        term.renew(renewal(&token_frame(token)).expect("a renewal"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_moves_the_end_and_one_after_the_end_does_not() {
        let tokens = Tokens::new(b"0123456789abcdef0123456789abcdef");
        let mut term = term_of(&tokens);
        let first = term.ends_at();
        assert_eq!(renew(&mut term, &signed(&tokens, "kim", 5 * MINUTE)), Ok(()));
        assert!(first + 3 * MINUTE < term.ends_at());
        let bare = [&[101][..], signed(&tokens, "kim", MINUTE).as_bytes()].concat();
        assert_eq!(term.renew(renewal(&bare).expect("a renewal")), Ok(()));
        assert!(term.ends_at() < first + MINUTE, "an earlier end counts, too");
        let late = signed(&tokens, "kim", 5 * MINUTE);
        tokio::time::advance(term.ends_at() - Instant::now() + Duration::from_millis(1)).await;
        assert_eq!(renew(&mut term, &late), Err(TOKEN_EXPIRED));
        assert_eq!(term.end(), Err(TOKEN_EXPIRED));
    }

    #[test]
    fn a_token_of_another_user_or_an_invalid_one_renews_nothing() {
        let tokens = Tokens::new(b"0123456789abcdef0123456789abcdef");
        let mut term = term_of(&tokens);
        let before = term.ends_at();
        let other = Tokens::new(b"another secret of enough length.");
        let refused = Err(Close::Unauthenticated("token-not-valid"));
        for token in [
            signed(&tokens, "lee", MINUTE),
            signed(&other, "kim", MINUTE),
            String::new(),
            "x".repeat(5_000),
        ] {
            assert_eq!(renew(&mut term, &token), refused);
        }
        assert_eq!(term.ends_at(), before);
        for frame in [&[101][..], &[101, 2, b'x'], &[101, 0, 0]] {
            let token = renewal(frame).expect("a renewal");
            assert_eq!(term.renew(token), Err(Close::Malformed("frame")));
        }
        for frame in [&[][..], &[3], &[100, 0], &[0, 0, 1, 0]] {
            assert_eq!(renewal(frame), None);
        }
        // A token of the provider, whose key set is not there.
        let (setting, issuer, audience) = ("auth.jwks_url", String::new(), String::new());
        let provider = Provider { setting, issuer, audience, name_claims: vec![] };
        let keys = tokens.clone().with_provider(Some(HostKeys::new(provider)));
        let mut waiting = term_of(&keys);
        assert_eq!(renew(&mut waiting, "eyJhbGciOiJFUzI1NiIsImtpZCI6IjEifQ.e30.eA"), Ok(()));
        assert_eq!(waiting.end(), Err(Close::Unavailable("keys")));
        let past = Utc::now() - TimeDelta::seconds(61);
        let user = User { id: "kim".parse().expect("an id"), name: "Kim".to_owned() };
        let past = tokens.sign(&user, false, MINUTE, past).expect("signed").token;
        assert_eq!(renew(&mut term, &past), refused);
    }
}
