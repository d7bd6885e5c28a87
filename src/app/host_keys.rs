//! The key set of the host application's identity provider: read at the start, then in the background.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use crate::config::AuthSettings;
use crate::http::auth::host_keys::{HostKeys, KEY_SET_BYTES_MAX, Provider};
use crate::outgoing::Outgoing;
use crate::outgoing::destination::{Destination, Scope};

/// How long a start waits for the set. Without it the server starts all the same.
const FIRST_READ_MAX: Duration = Duration::from_secs(3);

pub(super) struct KeySource {
    keys: HostKeys,
    to: Destination,
    outgoing: Outgoing,
}

impl KeySource {
    /// None: the settings name no provider.
    pub(super) fn of(auth: &AuthSettings) -> Option<Self> {
        let to = Destination::parse(auth.jwks_url.as_deref()?, Scope::Authentic).ok()?;
        let (issuer, audience) = auth.issuer.clone().zip(auth.audience.clone())?;
        let provider = Provider { issuer, audience, name_claims: auth.name_claims.clone() };
        Some(Self { keys: HostKeys::new(provider), to, outgoing: Outgoing::default() })
    }

    /// Reads the set a first time. A failure stops no start: the log and `/readyz` have it.
    pub(super) async fn start(auth: &AuthSettings) -> Option<Self> {
        let source = Self::of(auth)?;
        let _failed = source.read().await;
        Some(source)
    }

    pub(super) fn keys(&self) -> HostKeys {
        self.keys.clone()
    }

    /// Reads the set once, and returns its number of keys.
    pub(super) async fn read(&self) -> Result<usize, String> {
        let fetched = timeout(FIRST_READ_MAX, fetch(&self.outgoing, &self.to)).await;
        self.keys.take(fetched.unwrap_or_else(|_elapsed| Err("it took too long".to_owned())))
    }

    /// Reads the set again, for ever.
    pub(super) async fn run(self) {
        let Self { keys, to, outgoing } = self;
        keys.run(|| fetch(&outgoing, &to)).await;
    }
}

async fn fetch(outgoing: &Outgoing, to: &Destination) -> Result<Bytes, String> {
    let reply = outgoing.get("keys", to, KEY_SET_BYTES_MAX).await;
    let reply = reply.map_err(|error| error.to_string())?;
    match reply.is_success() {
        true => Ok(reply.body),
        false => Err(format!("status {} {}", reply.status, reply.explanation)),
    }
}
