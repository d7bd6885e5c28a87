//! The identity providers: the key set of the host application's, and the sign-in of `auth.oidc`. Both are read at the
//! start, then in the background.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::app::secrets::{self, SecretError};
use crate::config::AuthSettings;
use crate::http::auth::host_keys::{HostKeys, KEY_SET_BYTES_MAX, Provider};
use crate::http::origin::Origins;
use crate::oidc::{self, Oidc};
use crate::outgoing::Outgoing;
use crate::outgoing::destination::{Destination, HostScope};

/// How long a start waits for the set. Without it the server starts all the same.
const FIRST_READ_MAX: Duration = Duration::from_secs(3);

pub(super) struct Providers {
    tokens: Option<KeySource>,
    pub(super) oidc: Option<Oidc>,
}

impl Providers {
    /// Reads the key set a first time. A failure stops no start: the log and `/readyz` have it.
    pub(super) async fn start(auth: &AuthSettings, origins: &Origins) -> Result<Self, SecretError> {
        let (tokens, oidc) = (KeySource::of(auth), oidc_of(auth, origins)?);
        if let Some(source) = &tokens {
            let _failed = source.read().await;
        }
        Ok(Self { tokens, oidc })
    }

    /// The keys of the host application's tokens.
    pub(super) fn keys(&self) -> Option<HostKeys> {
        self.tokens.as_ref().map(|source| source.keys.clone())
    }

    /// All key sets, each with its name in `/readyz`.
    pub(super) fn key_sets(&self) -> impl Iterator<Item = (&'static str, HostKeys)> {
        let of_oidc = self.oidc.as_ref().map(|oidc| ("oidc", oidc.keys()));
        self.keys().map(|keys| ("keys", keys)).into_iter().chain(of_oidc)
    }

    /// Reads them again, until `stop`.
    pub(super) fn work(
        self,
        stop: &CancellationToken,
    ) -> impl Iterator<Item = (&'static str, BoxFuture<'static, ()>)> {
        let tokens = self.tokens.map(|source| ("keys", source.run().boxed()));
        let all = tokens.into_iter().chain(self.oidc.map(|oidc| ("oidc", oidc.run().boxed())));
        all.map(|(name, reading)| {
            let reading = stop.clone().run_until_cancelled_owned(reading);
            (name, reading.map(drop).boxed())
        })
    }
}

/// None: the settings name no provider for the sign-in.
pub(super) fn oidc_of(auth: &AuthSettings, origins: &Origins) -> Result<Option<Oidc>, SecretError> {
    let Some(settings) = &auth.oidc else { return Ok(None) };
    let file = settings.client_secret_file.as_deref();
    let secret = file.map(|file| secrets::given("auth.oidc.client_secret_file", file));
    let redirect_uri = format!("{}{}", origins.page(), oidc::CALLBACK);
    Ok(Oidc::new(settings, secret.transpose()?, &auth.name_claims, redirect_uri))
}

pub(super) struct KeySource {
    keys: HostKeys,
    to: Destination,
    outgoing: Outgoing,
}

impl KeySource {
    /// None: the settings name no provider.
    pub(super) fn of(auth: &AuthSettings) -> Option<Self> {
        let to = Destination::parse(auth.jwks_url.as_deref()?, HostScope::Authentic).ok()?;
        let (issuer, audience) = auth.issuer.clone().zip(auth.audience.clone())?;
        let (setting, name_claims) = ("auth.jwks_url", auth.name_claims.clone());
        let provider = Provider { setting, issuer, audience, name_claims };
        Some(Self { keys: HostKeys::new(provider), to, outgoing: Outgoing::default() })
    }

    /// Reads the set once, and returns its number of keys.
    pub(super) async fn read(&self) -> Result<usize, String> {
        let fetched = timeout(FIRST_READ_MAX, fetch(&self.outgoing, &self.to)).await;
        self.keys.take(fetched.unwrap_or_else(|_elapsed| Err("it took too long".to_owned())))
    }

    /// Reads the set again, for ever.
    async fn run(self) {
        let Self { keys, to, outgoing } = self;
        keys.run(|| fetch(&outgoing, &to)).await;
    }
}

async fn fetch(outgoing: &Outgoing, to: &Destination) -> Result<Bytes, String> {
    outgoing.read("keys", to, KEY_SET_BYTES_MAX).await
}
