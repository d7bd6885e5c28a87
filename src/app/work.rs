//! The periodic work of the core on every server: a row each.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::ready;
use tokio::sync::Mutex;

use crate::accounts;
use crate::config::Settings;
use crate::http::HttpState;
use crate::http::auth::revocations;
use crate::locks::Locks;
use crate::periodic::Work;
use crate::seats::departures::{SEARCH_EVERY, Search};
use crate::storage::Storage;
use crate::storage::capacity::MEASURE_EVERY;
use crate::telemetry::metrics::Metrics;

/// Interval at which the exporter drains histogram samples into their buckets.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

pub(super) fn work(
    settings: &Settings,
    state: &HttpState,
    storage: &Storage,
    locks: Locks,
    metrics: Option<Metrics>,
) -> Vec<Work> {
    let (limiter, guest_budgets) = (state.limiter.clone(), state.guest_budgets.clone());
    let (budgets, departures) = (Arc::clone(state.seats.budgets()), state.seats.clone());
    let (storage, bytes_max) = (storage.clone(), *settings.limits.stored_bytes);
    let (sharing, search) = (state.sharing.clone(), Arc::new(Mutex::new(Search::default())));
    // Drains metrics and drops idle counters, so that memory does not grow.
    let upkeep = move || {
        metrics.iter().for_each(Metrics::upkeep);
        limiter.forget_the_quiet();
        guest_budgets.forget_idle();
        budgets.forget_idle();
        // Reading the alarms clears those of classes without recent events.
        let _in_force = locks.alarms();
        ready(())
    };
    let revoking = (state.tokens.revocations().clone(), state.accounts.clone());
    let accounts = state.accounts.clone();
    vec![
        Work::new("upkeep", UPKEEP_EVERY, upkeep),
        Work::new("measure", MEASURE_EVERY, move || {
            let storage = storage.clone();
            async move { storage.measure(bytes_max).await }
        }),
        Work::new("purge", sharing.purge_every(), move || {
            let sharing = sharing.clone();
            async move { sharing.purge().await }
        }),
        Work::new("revocations", revocations::READ_EVERY, move || {
            let (revocations, accounts) = revoking.clone();
            async move { revocations.read_or_log(&accounts).await }
        }),
        Work::new("accounts", accounts::PURGE_EVERY, move || {
            let accounts = accounts.clone();
            async move { accounts.purge().await }
        }),
        Work::new("departures", SEARCH_EVERY, move || {
            let (seats, search) = (departures.clone(), Arc::clone(&search));
            async move { seats.search_departures(&mut *search.lock().await).await }
        }),
    ]
}
