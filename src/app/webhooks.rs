//! Prepares webhooks from the settings.

use secrecy::ExposeSecret as _;
use tokio_util::sync::CancellationToken;

use crate::config::{Settings, WebhookSettings};
use crate::notify::destination::{Destination, Scope};
use crate::notify::outgoing::Outgoing;
use crate::notify::signature::WebhookSecret;
use crate::notify::webhooks::{WebhookEndpoint, Webhooks};
use crate::seats::SeatService;
use crate::storage::Storage;

/// Prepares webhooks. Their requests have connections of their own: a slow receiver delays no push.
pub(super) fn start(settings: &Settings, storage: &Storage) -> Webhooks {
    let endpoints = settings.notify.webhooks.iter().filter_map(endpoint).collect();
    Webhooks::new(storage.clone(), Outgoing::default(), endpoints)
}

/// The settings are checked: no endpoint is left out.
fn endpoint(settings: &WebhookSettings) -> Option<WebhookEndpoint> {
    let WebhookSettings { url, secret, events } = settings;
    Some(WebhookEndpoint {
        url: url.clone(),
        to: Destination::parse(url, Scope::Anywhere).ok()?,
        secret: WebhookSecret::new(secret.expose_secret().as_bytes()),
        events: events.clone(),
    })
}

/// Delivers webhooks and searches for departed sessions, until `stop` fires.
pub(super) async fn run(webhooks: Webhooks, sessions: SeatService, stop: CancellationToken) {
    let searching = stop.clone().run_until_cancelled_owned(sessions.run_departure_search());
    tokio::join!(webhooks.keep_delivering(stop), searching);
}
