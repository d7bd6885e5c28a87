//! Sign-in of a team without a product: `OpenID` Connect, authorization code with PKCE.
//!
//! The provider signs the user in, and Galley then signs a session of its own for the user of its ID token. The server
//! stores nothing of a sign-in (see [`attempt`]), so any server completes it. Discovery document and keys are read in the
//! background, and at once where a sign-in needs them.

mod attempt;
mod discovery;
pub(crate) mod http;
pub mod settings;

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::domain::user::User;
use crate::http::auth::host_keys::{HostKeys, KEY_SET_BYTES_MAX, Provider};
use crate::http::auth::identity::TokenRefused;
use crate::oidc::attempt::Attempt;
use crate::oidc::discovery::{ClientProof, Endpoints};
use crate::oidc::http::Answer;
use crate::oidc::settings::OidcSettings;
use crate::outgoing::Outgoing;
use crate::outgoing::destination::{Destination, HostScope, form};
use crate::outgoing::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};

/// The path to which the provider sends users back.
pub const CALLBACK: &str = "/api/auth/oidc/callback";
/// Time limit of one reading of discovery document and keys: a user waits for it.
const READ_MAX: Duration = Duration::from_secs(10);
/// How long the outcome of a reading counts for others: many users may find the provider away.
const READ_PACE: Duration = Duration::from_secs(2);
/// Time limit of all requests of one sign-in, below that of a response.
const COMPLETE_MAX: Duration = Duration::from_secs(20);
/// Longest response of the token endpoint in bytes: an ID token with the groups of its user has some ten thousand.
const TOKENS_BYTES_MAX: usize = 256 * 1_024;
/// Letters of a foreign text in the log.
const SHOWN_MAX: usize = 64;

/// Why a sign-in has failed. The page has a sentence for each, and the log the cause.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("the browser sent no cookie of this sign-in")]
    Cookie,
    #[error("a guest is signed in at this browser")]
    Guest,
    #[error("the user or the provider denied it")]
    Denied,
    #[error("the provider refused it: {0}")]
    Refused(String),
    #[error("the provider does not respond as it should: {0}")]
    Away(String),
    #[error("the ID token is not valid: {0}")]
    Invalid(&'static str),
    #[error("neither the ID token nor userinfo has a claim of auth.name_claims")]
    Nameless,
}

#[derive(Clone)]
pub struct Oidc(Arc<Inner>);

struct Inner {
    settings: OidcSettings,
    secret: Option<SecretString>,
    /// The address to which the provider sends the user back.
    redirect_uri: String,
    discovery: Destination,
    outgoing: Outgoing,
    keys: HostKeys,
    endpoints: RwLock<Option<Arc<Endpoints>>>,
    /// The permit of the reading under way.
    turn: Semaphore,
    last_reading: Mutex<Option<(Instant, Result<usize, String>)>>,
}

/// The response of the token endpoint.
#[derive(Deserialize)]
struct Tokens {
    id_token: String,
    access_token: Option<String>,
}

impl Oidc {
    /// None: the issuer is no address, which the check of the settings reports.
    pub fn new(
        settings: &OidcSettings,
        secret: Option<SecretString>,
        name_claims: &[String],
        redirect_uri: String,
    ) -> Option<Self> {
        let discovery = discovery::address(&settings.issuer);
        let provider = Provider {
            setting: "auth.oidc",
            issuer: settings.issuer.clone(),
            audience: settings.client_id.clone(),
            name_claims: name_claims.to_vec(),
        };
        Some(Self(Arc::new(Inner {
            settings: settings.clone(),
            secret,
            redirect_uri,
            discovery: Destination::parse(&discovery, HostScope::Authentic).ok()?,
            outgoing: Outgoing::default(),
            keys: HostKeys::new(provider),
            endpoints: RwLock::default(),
            turn: Semaphore::new(1),
            last_reading: Mutex::default(),
        })))
    }

    #[must_use]
    pub fn keys(&self) -> HostKeys {
        self.0.keys.clone()
    }

    #[must_use]
    pub fn redirect_uri(&self) -> &str {
        &self.0.redirect_uri
    }

    /// Reads discovery document and keys, now and for ever.
    pub async fn run(self) {
        let _failed = self.read().await;
        self.keys().run(|| self.fetch()).await;
    }

    /// Reads discovery document and keys, unless a reading ended just now. Returns the number of keys.
    pub async fn read(&self) -> Result<usize, String> {
        let _permit = self.0.turn.acquire().await.map_err(|error| error.to_string())?;
        let last = self.0.last_reading.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, outcome)) = last.filter(|(at, _)| at.elapsed() < READ_PACE) {
            return outcome;
        }
        let outcome = self.0.keys.take(self.fetch().await);
        let mut last = self.0.last_reading.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((Instant::now(), outcome.clone()));
        outcome
    }

    /// The key set, after the discovery document that names it.
    async fn fetch(&self) -> Result<Bytes, String> {
        let Inner { settings, secret, discovery, outgoing, endpoints, .. } = &*self.0;
        let fetching = async {
            let document = outgoing.read("oidc", discovery, KEY_SET_BYTES_MAX).await;
            let found = document.and_then(|document| {
                Endpoints::of(&document, &settings.issuer, secret.is_some()).map(Arc::new)
            });
            let found = found.map_err(|fault| format!("the discovery document: {fault}"))?;
            *endpoints.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&found));
            outgoing.read("oidc", &found.keys, KEY_SET_BYTES_MAX).await
        };
        timeout(READ_MAX, fetching)
            .await
            .unwrap_or_else(|_elapsed| Err("it took too long".to_owned()))
    }

    fn current_endpoints(&self) -> Option<Arc<Endpoints>> {
        self.0.endpoints.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn endpoints(&self) -> Result<Arc<Endpoints>, Fault> {
        if let Some(endpoints) = self.current_endpoints() {
            return Ok(endpoints);
        }
        let outcome = self.read().await;
        self.current_endpoints().ok_or_else(|| Fault::Away(outcome.err().unwrap_or_default()))
    }

    /// The address at the provider that begins this sign-in.
    async fn authorization(&self, attempt: &Attempt) -> Result<String, Fault> {
        let OidcSettings { client_id, scopes, .. } = &self.0.settings;
        Ok(self.endpoints().await?.authorization.with_query(&[
            ("response_type", "code"),
            ("client_id", client_id),
            ("redirect_uri", &self.0.redirect_uri),
            ("scope", &scopes.join(" ")),
            ("state", &attempt.state()),
            ("nonce", &attempt.nonce()),
            ("code_challenge", &attempt.challenge()),
            ("code_challenge_method", "S256"),
        ]))
    }

    /// The address at the provider that ends its session, and leads back to `page`. None: it has none, or is away.
    async fn end_session(&self, page: &str) -> Option<String> {
        let endpoints = self.endpoints().await.ok()?;
        let pairs =
            [("client_id", &*self.0.settings.client_id), ("post_logout_redirect_uri", page)];
        endpoints.end_session.as_ref().map(|address| address.with_query(&pairs))
    }

    /// The user of the provider's answer.
    async fn complete(&self, attempt: &Attempt, answer: &Answer) -> Result<User, Fault> {
        let late = |_elapsed| Fault::Away("it took too long".to_owned());
        timeout(COMPLETE_MAX, self.complete_in_time(attempt, answer)).await.map_err(late)?
    }

    async fn complete_in_time(&self, attempt: &Attempt, answer: &Answer) -> Result<User, Fault> {
        if let Some(error) = &answer.error {
            let shown = error.chars().filter(char::is_ascii_graphic).take(SHOWN_MAX).collect();
            return Err(if error == "access_denied" {
                Fault::Denied
            } else {
                Fault::Refused(shown)
            });
        }
        if answer.iss.as_ref().is_some_and(|issuer| *issuer != self.0.settings.issuer) {
            return Err(Fault::Refused("its answer is that of another issuer".to_owned()));
        }
        let code = answer.code.as_deref().filter(|code| !code.is_empty());
        let code = code.ok_or_else(|| Fault::Refused("its answer has no code".to_owned()))?;
        let endpoints = self.endpoints().await?;
        let Tokens { id_token, access_token } = self.exchange(&endpoints, code, attempt).await?;
        let invalid = |TokenRefused(cause): TokenRefused| match cause {
            "claim name" => Fault::Nameless,
            cause => Fault::Invalid(cause),
        };
        let mut claims = self.0.keys.claims(&id_token);
        if matches!(claims, Err(TokenRefused("keys-unavailable" | "header kid"))) {
            // A new key of the provider. A failure of the reading leaves the token refused.
            let _failed = self.read().await;
            claims = self.0.keys.claims(&id_token);
        }
        let mut claims = claims.map_err(invalid)?;
        // An ID token is that of a person, whatever its provider calls a scope.
        claims.remove("scope");
        let is = |claim: &str, text: &str| claims.get(claim).and_then(Value::as_str) == Some(text);
        if !is("nonce", &attempt.nonce()) {
            return Err(Fault::Invalid("claim nonce"));
        }
        if claims.contains_key("azp") && !is("azp", &self.0.settings.client_id) {
            return Err(Fault::Invalid("claim azp"));
        }
        let mut identity = self.0.keys.identity(&claims);
        // Some providers have the name in userinfo alone.
        if let (Err(TokenRefused("claim name")), Some(userinfo), Some(token)) =
            (&identity, &endpoints.userinfo, &access_token)
        {
            let mut more = self.userinfo(userinfo, token).await?;
            if more.get("sub") != claims.get("sub") {
                return Err(Fault::Invalid("claim sub of userinfo"));
            }
            more.extend(claims);
            identity = self.0.keys.identity(&more);
        }
        Ok(identity.map_err(invalid)?.user)
    }

    /// Exchanges the code for tokens. The provider takes each code once.
    async fn exchange(
        &self,
        endpoints: &Endpoints,
        code: &str,
        attempt: &Attempt,
    ) -> Result<Tokens, Fault> {
        let Inner { settings: OidcSettings { client_id, .. }, redirect_uri, .. } = &*self.0;
        let verifier = attempt.verifier();
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri.as_str()),
            ("code_verifier", verifier.as_str()),
        ];
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        let secret = self.0.secret.as_ref().map(ExposeSecret::expose_secret).unwrap_or_default();
        match endpoints.proof {
            ClientProof::Basic => {
                // Both are encoded as in a form (RFC 6749 §2.3.1), so neither contains a `=`.
                let account = form(&[(client_id, secret)]).replacen('=', ":", 1);
                let account = format!("Basic {}", STANDARD.encode(account));
                headers.insert(AUTHORIZATION, hidden(&account)?);
            }
            ClientProof::Post => {
                pairs.extend([("client_id", client_id.as_str()), ("client_secret", secret)]);
            }
            ClientProof::None => pairs.push(("client_id", client_id.as_str())),
        }
        self.post(&endpoints.token, headers, form(&pairs)).await
    }

    async fn userinfo(&self, to: &Destination, token: &str) -> Result<Map<String, Value>, Fault> {
        let bearer = HeaderMap::from_iter([(AUTHORIZATION, hidden(&format!("Bearer {token}"))?)]);
        self.post(to, bearer, String::new()).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        to: &Destination,
        mut headers: HeaderMap,
        body: String,
    ) -> Result<T, Fault> {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let sent = self.0.outgoing.post_for("oidc", to, headers, body.into(), TOKENS_BYTES_MAX);
        let reply = sent.await.map_err(|error| Fault::Away(error.to_string()))?;
        let status = format!("status {} {}", reply.status, reply.explanation);
        match reply.status {
            200..300 => serde_json::from_slice(&reply.body).map_err(|_error| {
                Fault::Away("its response is not the JSON of the standard".to_owned())
            }),
            400..500 => Err(Fault::Refused(status)),
            _ => Err(Fault::Away(status)),
        }
    }
}

/// A value of a header that no log shows.
fn hidden(text: &str) -> Result<HeaderValue, Fault> {
    let value = HeaderValue::try_from(text);
    let mut value =
        value.map_err(|_error| Fault::Away("a token is no text of a header".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}
