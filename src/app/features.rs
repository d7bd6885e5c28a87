//! The features: their routes, their services from the settings, and their periodic work.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::admin::{self, Console};
use crate::app::secrets::{self, SecretError};
use crate::config::Settings;
use crate::domain::ids::NodeId;
use crate::exports;
use crate::exports::build::Exports;
use crate::exports::rendering::PdfFonts;
use crate::http::auth::tokens::Tokens;
use crate::http::routes::Routes;
use crate::locks::Locks;
use crate::offers::{self, Offers};
use crate::oidc::{self, Oidc};
use crate::outgoing::Outgoing;
use crate::partners::{self, Partners};
use crate::periodic::{self, Jobs, Work};
use crate::persons::{self, Persons};
use crate::push::{self, Notify};
use crate::reminders::{self, Reminders};
use crate::runtime::Runtime;
use crate::sharing::invite::Invites;
use crate::storage::Storage;
use crate::transfer::{self, Transfers};
use crate::versions::{self, Versions};
use crate::webhooks::{self, Webhooks};

pub(super) struct Core<'a> {
    pub(super) settings: &'a Settings,
    pub(super) node: NodeId,
    pub(super) storage: &'a Storage,
    pub(super) locks: &'a Locks,
    pub(super) runtime: &'a Runtime,
    pub(super) invites: &'a Invites,
    pub(super) tokens: &'a Tokens,
    pub(super) oidc: Option<&'a Oidc>,
}

pub(super) struct Features {
    pub(super) routes: Routes,
    jobs: Jobs,
    exports: Exports,
    persons: (Persons, Duration),
    notify: Notify,
    webhooks: Webhooks,
}

pub(crate) fn routes() -> Routes {
    Routes::default()
        .merge(admin::http::routes())
        .merge(exports::http::routes())
        .merge(offers::http::routes())
        .merge(oidc::http::routes())
        .merge(partners::http::routes())
        .merge(periodic::http::routes())
        .merge(persons::http::routes())
        .merge(push::http::routes())
        .merge(reminders::http::routes())
        .merge(transfer::http::routes())
        .merge(versions::http::routes())
        .merge(webhooks::http::routes())
}

impl Features {
    /// Prepares the features. From here on the transaction of an event writes its webhooks.
    pub(super) fn prepare(core: &Core<'_>) -> Result<Self, SecretError> {
        let Core { settings, node, storage, locks, runtime, invites, tokens, oidc } = *core;
        let Runtime { tasks, texts, seats, peers, .. } = runtime;
        let tasks = &tasks.tracker;
        let notify = push_of(settings, storage)?;
        let persons = Persons::new(storage.clone(), texts.clone(), invites.clone(), tokens.clone());
        let (terms, limits) = (settings.jobs.terms(), &settings.limits);
        let reminders = Reminders::new(storage.clone(), locks.clone(), notify.clone(), terms);
        let jobs: Vec<Box<dyn periodic::Job>> =
            vec![Box::new(reminders.clone()), Box::new(persons.clone())];
        let jobs = Jobs::new(storage.clone(), locks.clone(), node, jobs);
        let partners = Partners::new(
            storage.clone(),
            locks.clone(),
            invites.clone(),
            *limits.guest_requests_pending,
            &limits.reserved_handles,
        );
        let fonts = PdfFonts::new(settings.exports.fonts.clone(), tasks.clone());
        let exports =
            Exports::new(texts.clone(), storage.clone(), locks.clone(), tasks.clone(), fonts);
        // Their requests have connections of their own: a slow receiver delays no push.
        let endpoints = settings.notify.endpoints();
        let webhooks = Webhooks::new(storage.clone(), Outgoing::default(), endpoints);
        let routes = routes()
            .with(Console::new(seats.clone(), peers.clone(), storage.clone(), locks.clone()))
            .with(exports.clone())
            .with(jobs.clone())
            .with(notify.clone())
            .with(oidc.cloned())
            .with(Offers::new(storage.clone(), locks.clone()))
            .with(partners)
            .with(persons.clone())
            .with(reminders)
            .with(Transfers::new(storage.clone(), invites.clone()))
            .with(Versions::new(seats.clone(), texts.clone(), storage.clone()))
            .with(webhooks.clone());
        let persons = (persons, *settings.seats.renew_every);
        Ok(Self { routes, jobs, exports, persons, notify, webhooks })
    }

    pub(super) fn work(&self) -> Vec<Work> {
        let (persons, tick) = &self.persons;
        vec![self.exports.trimming(), persons.looking(*tick)]
    }

    /// The work that ends by itself after `stop`, because it may not be dropped, with its names.
    pub(super) fn until(
        self,
        stop: &CancellationToken,
    ) -> Vec<(&'static str, BoxFuture<'static, ()>)> {
        let Self { jobs, notify, webhooks, .. } = self;
        let pushing = stop.clone().run_until_cancelled_owned(notify.run_retries());
        vec![
            ("jobs", Box::pin(jobs.run_ticks(stop.clone()))),
            ("webhooks", Box::pin(webhooks.run_deliveries(stop.clone()))),
            ("pushes", Box::pin(pushing.map(drop))),
        ]
    }
}

/// Prepares Web Push. A folder without write access stops no start: a server that ran before Web Push
/// existed goes on without it.
fn push_of(settings: &Settings, storage: &Storage) -> Result<Notify, SecretError> {
    let push = &settings.push;
    let key = match push.enabled.then(|| secrets::find_or_make_push_key(&push.key_file)) {
        None => None,
        Some(Ok(key)) => Some(key),
        Some(Err(error @ SecretError::Io { .. })) => {
            tracing::warn!(
                error = %source_of(&error),
                "the server sends no pushes: see push.key_file, or set push.enabled = false"
            );
            None
        }
        Some(Err(error)) => return Err(error),
    };
    let options = key.map(|key| push.options(key, settings.server.public_url.as_ref()));
    Ok(Notify::new(storage.clone(), Outgoing::default(), options))
}

fn source_of(error: &SecretError) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    format!("{error}: {cause}")
}
