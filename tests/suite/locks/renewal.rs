//! Renewal of locks for a tenant. `main.rs` runs the first tests on both backends; the others need
//! a long time, which they pause.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use galley::domain::ids::SessionId;
use galley::locks::{
    AcquireOptions, Claim, Guard, Lease, LockName, Locks, Loss, Released, RenewalTiming, Takeover,
    Verdict,
};
use galley::locks::{LeaseHolder, Registration, Renewable};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::time::{Instant, sleep, timeout};

use crate::locks::lease_holders::{Lodger, Told, kept_as};
use crate::locks::wait_queue::SHORT;
use crate::support::backends::Place;
use crate::support::fixtures::{
    LONG, claim, granted, held, kim, lee, refused, seat, until, until_free,
};

/// Lease and renewal interval of the seats.
const SEATS: (Duration, Duration) = (Duration::from_secs(12), Duration::from_secs(4));

fn brief() -> RenewalTiming {
    RenewalTiming::new(SHORT * 2, SHORT / 2)
}

fn as_seats() -> RenewalTiming {
    RenewalTiming::new(SEATS.0, SEATS.1)
}

pub(crate) async fn a_registered_lock_outlives_its_lease_and_expires_after_a_drop(place: Place) {
    let (name, lodger) = (seat(), Lodger::new());
    let (kept, value) = kept_as(&place.locks, &name, brief(), &lodger).await;
    let told = lodger.until_told(8).await;
    let is_renewal = |told: &Told| matches!(told, Told::Renewed(_, Verdict::Renewed));
    assert!(told.iter().all(is_renewal), "{told:?}");
    assert_eq!(refused(&place.locks, &claim(&name, &lee())).await.value, value);
    drop(kept);
    let told = lodger.told().len();
    // The drop neither releases nor renews it.
    until_free(&place.locks, &name).await;
    assert!(lodger.told().len() <= told + 1, "except for a round in flight");
}

pub(crate) async fn a_tenant_that_is_not_renewable_is_skipped(place: Place) {
    let (name, lodger) = (seat(), Lodger::new());
    let (kept, _value) = kept_as(&place.locks, &name, brief(), &lodger).await;
    lodger.until_told(1).await;
    lodger.is(Renewable::Later);
    let told = lodger.told().len();
    until_free(&place.locks, &name).await;
    assert!(lodger.told().len() <= told + 1);
    // Still registered, and without another holder in between: the actor reasserts it.
    lodger.is(Renewable::Yes);
    until("it is back", async || place.locks.holder(&name).await.expect("a reply").is_some()).await;
    assert!(lodger.told().iter().any(|it| matches!(it, Told::Renewed(_, Verdict::Reasserted))));
    assert!(kept.end());
}

pub(crate) async fn the_lock_of_an_ended_tenant_is_released_before_its_lease_ends(place: Place) {
    let (name, lodger) = (seat(), Lodger::new());
    let timing = RenewalTiming::new(LONG, SHORT / 3);
    let (kept, _value) = kept_as(&place.locks, &name, timing, &lodger).await;
    lodger.is(Renewable::Release);
    until_free(&place.locks, &name).await;
    assert!(!kept.end(), "already removed");
}

pub(crate) async fn g6_a_lock_that_another_claim_took_over_is_lost_and_reported_once(place: Place) {
    let (name, lodger) = (seat(), Lodger::new());
    let (kept, value) = kept_as(&place.locks, &name, brief(), &lodger).await;
    let thief = Claim { over: Takeover::Value(value.clone()), ..claim(&name, &lee()) };
    granted(&place.locks, &thief).await;
    let is_lost = |told: &Told| *told == Told::Lost(Loss::Taken);
    until("it is notified", async || lodger.told().iter().any(is_lost)).await;
    let told = lodger.told();
    sleep(SHORT).await;
    assert_eq!(lodger.told(), told);
    assert!(!kept.end());
    assert_eq!(place.locks.release(&name, &value).await, Ok(Released::NotHeld));
    assert_eq!(refused(&place.locks, &claim(&name, &kim())).await.value, thief.value);
}

pub(crate) async fn closing_the_locks_releases_registered_locks_and_notifies_tenants(place: Place) {
    let (other, name, lodger) = (place.another().await, seat(), Lodger::new());
    let (kept, _value) = kept_as(&place.locks, &name, as_seats(), &lodger).await;
    place.locks.close().await;
    place.locks.stopped_renewing().await;
    assert_eq!(lodger.told(), [Told::Lost(Loss::Closed)]);
    assert_eq!(other.holder(&name).await, Ok(None));
    assert!(!kept.end());
}

/// Guards with these leases, each claimed some time after the one before.
async fn guards_of(locks: &Locks, leases: impl Iterator<Item = Duration>) -> Vec<Guard> {
    let mut guards = Vec::new();
    for (number, lease) in leases.enumerate() {
        let name = LockName::named(&format!("job:{number}"));
        let options = AcquireOptions::new(Lease::Renewed(lease));
        guards.push(locks.try_lock(&name, &options).await.expect("a free lock"));
        sleep(Duration::from_millis(7)).await;
    }
    guards
}

#[tokio::test(start_paused = true)]
async fn a_hundred_different_leases_are_renewed_in_as_many_rounds_as_one() {
    let (minute, shortest) = (Duration::from_secs(60), Duration::from_millis(1_500));
    let mut rounds = Vec::new();
    for number in [1, 100] {
        let (locks, lodger) = (Locks::memory(), Lodger::new());
        let mut kept: Vec<(Registration, String)> = Vec::new();
        for at in 0..number {
            let timing = shortest + Duration::from_millis(137) * at;
            let timing = RenewalTiming::new(timing, timing / 3);
            kept.push(kept_as(&locks, &seat(), timing, &lodger).await);
            sleep(Duration::from_millis(7)).await;
        }
        sleep(Duration::from_secs(1)).await;
        let began = Instant::now();
        sleep(minute).await;
        // One pipeline sends all its renewals at one moment.
        let renewals = lodger.renewals();
        let sent: BTreeSet<_> = renewals.iter().filter(|at| began <= **at).collect();
        rounds.push(sent.len());
        let all_renewed = lodger.told();
        let is_renewal = |told: &Told| matches!(told, Told::Renewed(_, Verdict::Renewed));
        assert!(all_renewed.iter().all(is_renewal), "none expired in between");
    }
    assert_eq!(rounds[0], rounds[1]);
    assert!((118..=120).contains(&rounds[0]), "each third of its lease: {rounds:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_300_ms_is_renewed_beside_seats_of_12_s() {
    let (locks, seats, short) = (Locks::memory(), Lodger::new(), Lodger::new());
    let mut kept = Vec::new();
    for _ in 0..50 {
        kept.push(kept_as(&locks, &seat(), as_seats(), &seats).await);
        sleep(Duration::from_millis(70)).await;
    }
    let lease = Duration::from_millis(300);
    kept.push(kept_as(&locks, &seat(), RenewalTiming::new(lease, lease / 3), &short).await);
    let guards = guards_of(&locks, [lease].into_iter()).await;
    sleep(Duration::from_secs(60)).await;
    assert!(guards.iter().all(Guard::is_held));
    let sent = short.renewals();
    assert!((590..=600).contains(&sent.len()), "{}", sent.len());
    for pair in sent.windows(2) {
        assert!(pair[1] - pair[0] <= lease / 2, "{:?}", pair[1] - pair[0]);
    }
    for told in short.told().iter().chain(&seats.told()) {
        assert!(matches!(told, Told::Renewed(_, Verdict::Renewed)), "{told:?}");
    }
    // The short lease does not make the seats renew more often.
    let each = seats.renewals().len() / 50;
    assert!((15..=17).contains(&each), "{each}");
}

#[tokio::test(start_paused = true)]
async fn a_requested_round_renews_all_locks_due_soon() {
    let (locks, lodger) = (Locks::memory(), Lodger::new());
    let mut kept = Vec::new();
    for _ in 0..20 {
        kept.push(kept_as(&locks, &seat(), as_seats(), &lodger).await);
        sleep(Duration::from_millis(50)).await;
    }
    let far = Lodger::new();
    kept.push(kept_as(&locks, &seat(), RenewalTiming::new(LONG, LONG / 3), &far).await);
    for _ in 0..5 {
        let rung = Instant::now();
        locks.renew_ahead(SEATS.1);
        sleep(Duration::from_secs(1)).await;
        let sent: Vec<_> = lodger.renewals();
        assert!(sent[sent.len() - 20..].iter().all(|at| *at == rung), "all, and at once");
    }
    assert_eq!((lodger.told().len(), far.told().len()), (5 * 20, 0));
}

#[tokio::test(start_paused = true)]
async fn a_mass_loss_in_a_round_is_an_alarm_and_a_few_losses_are_none() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _here = metrics::set_default_local_recorder(&recorder);
    let (locks, lodger) = (Locks::memory(), Lodger::new());
    let mut all = Vec::new();
    for _ in 0..30 {
        let name = seat();
        let (kept, value) = kept_as(&locks, &name, as_seats(), &lodger).await;
        all.push((name, value, kept));
    }
    let alarms = |number: usize| {
        let line = format!("galley_renewal_mass_losses_total {number}\n");
        recorder.handle().render().contains(&line)
    };
    for (part, rings) in [(0..10, false), (10..20, true)] {
        for (name, value, _kept) in &all[part] {
            let value = value.clone();
            granted(&locks, &Claim { over: Takeover::Value(value), ..claim(name, &lee()) }).await;
        }
        locks.renew_ahead(SEATS.1);
        sleep(Duration::from_millis(1)).await;
        // Ten of thirty are no mass loss; ten of the remaining twenty are.
        assert_eq!(alarms(1), rings, "{}", recorder.handle().render());
    }
    let lost = lodger.told().iter().filter(|it| **it == Told::Lost(Loss::Taken)).count();
    assert_eq!(lost, 20);
}

#[tokio::test(start_paused = true)]
async fn the_metric_of_the_oldest_lease_returns_to_zero_without_locks() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _here = metrics::set_default_local_recorder(&recorder);
    let oldest = || -> f64 {
        let figures = recorder.handle().render();
        let line =
            figures.lines().find_map(|line| line.strip_prefix("galley_renewal_oldest_seconds "));
        line.expect("a metric").parse().expect("a number")
    };
    let (locks, well, silent) = (Locks::memory(), Lodger::new(), Lodger::new());
    let first = kept_as(&locks, &seat(), as_seats(), &well).await;
    sleep(SEATS.1 * 2).await;
    assert!(oldest() < 1.0, "{}", oldest());
    silent.is(Renewable::Later);
    let second = kept_as(&locks, &seat(), as_seats(), &silent).await;
    sleep(SEATS.1 * 2).await;
    // By the last round.
    assert!((3.5..=8.0).contains(&oldest()), "{}", oldest());
    assert!(well.told().len() <= 6, "not renewed oftener for the other's sake: {:?}", well.told());
    // The actor queried the tenant at each due renewal, and some more.
    assert!(silent.told().is_empty() && 2 <= silent.asked() && silent.asked() < 20);
    drop((first, second));
    assert!(oldest() == 0.0);
    let value = SessionId::generate().to_string();
    assert_eq!(locks.release(&seat(), &value).await, Ok(Released::NotHeld));
}

/// A tenant that panics in the renewal task.
#[derive(Debug)]
struct Fragile;

impl LeaseHolder for Fragile {
    fn lives(&self, _now: Instant) -> Renewable {
        panic!("on purpose")
    }

    fn renewed(&self, _sent_at: Instant, _verdict: Verdict) {}

    fn lost(&self, _loss: Loss) {}
}

/// Goal: callers that depend on renewal learn of its end in time to stop.
#[tokio::test(start_paused = true)]
async fn g3_the_death_of_the_renewal_task_is_reported() {
    let (locks, claim) = (Locks::memory(), claim(&seat(), &kim()));
    let grant = granted(&locks, &claim).await;
    let stopped = locks.stopped_renewing();
    tokio::pin!(stopped);
    assert!(timeout(SEATS.1, &mut stopped).await.is_err());
    let kept = locks.register(held(&claim, &grant), as_seats(), grant.sent_at, Arc::new(Fragile));
    timeout(SEATS.1 * 2, stopped).await.expect("a notification in time");
    assert!(kept.expect("not closed").end());
}
