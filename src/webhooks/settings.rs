//! `[[notify.webhooks]]`

use std::collections::HashSet;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use crate::domain::webhook::WebhookEvent;
use crate::outgoing::destination::{Destination, HostScope};
use crate::setting::{FoundFaults, hidden, list, without_query};
use crate::webhooks::WebhookEndpoint;
use crate::webhooks::signature::WebhookSecret;

/// Endpoints of webhooks. Each polls the database every [`WEBHOOK_TICK`](crate::webhooks::limits::WEBHOOK_TICK).
const WEBHOOK_ENDPOINTS_MAX: usize = 20;
/// Shortest secret of an endpoint, in bytes: a guess of 128 bits.
const WEBHOOK_SECRET_BYTES_MIN: usize = 16;
/// Longest address of an endpoint, in bytes.
const WEBHOOK_URL_BYTES_MAX: usize = 2 * 1024;

/// The secrets of the examples in the README and the manual. Every reader of these knows them.
pub(crate) const EXAMPLE_SECRETS: [&str; 2] =
    ["32 random bytes as hexadecimal digits", "a random text of 16 bytes or more"];

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NotifySettings {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<WebhookSettings>,
}

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookSettings {
    /// The address, which may contain a secret in its query.
    #[serde(serialize_with = "without_query")]
    pub url: String,
    #[serde(serialize_with = "hidden")]
    pub secret: SecretString,
    /// While a secret is replaced: deliveries are signed with both. Empty: there is none.
    #[serde(serialize_with = "hidden")]
    pub second_secret: SecretString,
    #[serde(deserialize_with = "list")]
    pub events: Vec<WebhookEvent>,
}

impl NotifySettings {
    /// The faults omit the values: an address or a secret may be in the wrong place.
    pub(crate) fn check(&self, faults: &mut FoundFaults) {
        let most = format!("must be at most {WEBHOOK_ENDPOINTS_MAX} endpoints");
        let is_bounded = self.webhooks.len() <= WEBHOOK_ENDPOINTS_MAX;
        faults.unless(is_bounded, &["notify.webhooks"], &most);
        let mut urls = HashSet::new();
        for (index, it) in self.webhooks.iter().enumerate() {
            let WebhookSettings { url, secret, second_secret, events } = it;
            let at = |key: &str| format!("notify.webhooks[{index}].{key}");
            let at_url = at("url");
            let long = format!("must have at most {WEBHOOK_URL_BYTES_MAX} bytes");
            faults.unless(url.len() <= WEBHOOK_URL_BYTES_MAX, &[&at_url], &long);
            if let Err(error) = Destination::parse(url, HostScope::Anywhere) {
                let fault = format!("must be an https:// or http:// address: {error}");
                faults.unless(false, &[&at_url], &fault);
            }
            faults.unless(urls.insert(url), &[&at_url], "is that of another endpoint");
            let secret = secret.expose_secret();
            let is_secret =
                secret.len() >= WEBHOOK_SECRET_BYTES_MIN && !EXAMPLE_SECRETS.contains(&secret);
            let fault = format!(
                "must be at least {WEBHOOK_SECRET_BYTES_MIN} bytes, and no example of the manual; \
                 make one with `openssl rand -hex 32`"
            );
            faults.unless(is_secret, &[&at("secret")], &fault);
            let second = second_secret.expose_secret();
            let is_second = second.is_empty()
                || WEBHOOK_SECRET_BYTES_MIN <= second.len()
                    && !EXAMPLE_SECRETS.contains(&second)
                    && second != secret;
            let fault = format!("must be empty, or another secret as `secret` is: {fault}");
            faults.unless(is_second, &[&at("second_secret")], &fault);
            faults.unless(!events.is_empty(), &[&at("events")], "is empty");
        }
    }

    /// The settings are checked: no endpoint is left out.
    pub(crate) fn endpoints(&self) -> Vec<WebhookEndpoint> {
        let endpoint = |it: &WebhookSettings| {
            let WebhookSettings { url, secret, second_secret, events } = it;
            let secrets = [secret, second_secret].map(|it| it.expose_secret().as_bytes());
            Some(WebhookEndpoint {
                url: url.clone(),
                to: Destination::parse(url, HostScope::Anywhere).ok()?,
                secret: WebhookSecret::new(secrets.into_iter().filter(|it| !it.is_empty())),
                events: events.clone(),
            })
        };
        self.webhooks.iter().filter_map(endpoint).collect()
    }
}
