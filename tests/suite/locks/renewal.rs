//! Renewal of locks for a lease holder. The first tests run on both backends; the others need
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

use crate::locks::lease_holders::{Notification, RecordingHolder, registered};
use crate::locks::wait_queue::SHORT;
use crate::support::backends::TestBackend;
use crate::support::fixtures::{
    LONG, claim, granted, held, kim, lee, refused, seat, until, until_free,
};

crate::locks::on_both_backends! {
    a_registered_lock_outlives_its_lease_and_expires_after_a_drop
    a_holder_that_is_not_renewable_is_skipped
    the_lock_of_an_ended_holder_is_released_before_its_lease_ends
    g6_a_lock_that_another_claim_took_over_is_lost_and_reported_once
    closing_the_locks_releases_registered_locks_and_notifies_holders
}

/// Lease and renewal interval of the seats.
const SEATS: (Duration, Duration) = (Duration::from_secs(12), Duration::from_secs(4));

fn brief() -> RenewalTiming {
    RenewalTiming::new(SHORT * 2, SHORT / 2)
}

fn as_seats() -> RenewalTiming {
    RenewalTiming::new(SEATS.0, SEATS.1)
}

async fn a_registered_lock_outlives_its_lease_and_expires_after_a_drop(backend: TestBackend) {
    let (name, lease_holder) = (seat(), RecordingHolder::new());
    let (registration, value) = registered(&backend.locks, &name, brief(), &lease_holder).await;
    let notified = lease_holder.until_notified(8).await;
    let is_renewal =
        |notified: &Notification| matches!(notified, Notification::Renewed(_, Verdict::Renewed));
    assert!(notified.iter().all(is_renewal), "{notified:?}");
    assert_eq!(refused(&backend.locks, &claim(&name, &lee())).await.value, value);
    drop(registration);
    let notified = lease_holder.notified().len();
    // The drop neither releases nor renews it.
    until_free(&backend.locks, &name).await;
    assert!(lease_holder.notified().len() <= notified + 1, "except for a round in flight");
}

async fn a_holder_that_is_not_renewable_is_skipped(backend: TestBackend) {
    let (name, lease_holder) = (seat(), RecordingHolder::new());
    let (registration, _value) = registered(&backend.locks, &name, brief(), &lease_holder).await;
    lease_holder.until_notified(1).await;
    lease_holder.is(Renewable::Later);
    let notified = lease_holder.notified().len();
    until_free(&backend.locks, &name).await;
    assert!(lease_holder.notified().len() <= notified + 1);
    // Still registered, and without another holder in between: the actor reasserts it.
    lease_holder.is(Renewable::Yes);
    let is_reasserted =
        |it: &Notification| matches!(it, Notification::Renewed(_, Verdict::Reasserted));
    until("it is back", async || lease_holder.notified().iter().any(is_reasserted)).await;
    assert!(backend.locks.holder(&name).await.expect("a reply").is_some());
    assert!(registration.end());
}

async fn the_lock_of_an_ended_holder_is_released_before_its_lease_ends(backend: TestBackend) {
    let (name, lease_holder) = (seat(), RecordingHolder::new());
    let timing = RenewalTiming::new(LONG, SHORT / 3);
    let (registration, _value) = registered(&backend.locks, &name, timing, &lease_holder).await;
    lease_holder.is(Renewable::Release);
    until_free(&backend.locks, &name).await;
    assert!(!registration.end(), "already removed");
}

async fn g6_a_lock_that_another_claim_took_over_is_lost_and_reported_once(backend: TestBackend) {
    let (name, lease_holder) = (seat(), RecordingHolder::new());
    let (registration, value) = registered(&backend.locks, &name, brief(), &lease_holder).await;
    let thief = Claim { over: Takeover::Value(value.clone()), ..claim(&name, &lee()) };
    granted(&backend.locks, &thief).await;
    let is_lost = |notified: &Notification| *notified == Notification::Lost(Loss::Taken);
    until("it is notified", async || lease_holder.notified().iter().any(is_lost)).await;
    let notified = lease_holder.notified();
    // Several rounds, in which no other notification may come.
    sleep(SHORT).await;
    assert_eq!(lease_holder.notified(), notified);
    assert!(!registration.end());
    assert_eq!(backend.locks.release(&name, &value).await, Ok(Released::NotHeld));
    assert_eq!(refused(&backend.locks, &claim(&name, &kim())).await.value, thief.value);
}

async fn closing_the_locks_releases_registered_locks_and_notifies_holders(backend: TestBackend) {
    let (other, name, lease_holder) = (backend.another().await, seat(), RecordingHolder::new());
    let (registration, _value) = registered(&backend.locks, &name, as_seats(), &lease_holder).await;
    backend.locks.close().await;
    backend.locks.stopped_renewing().await;
    assert_eq!(lease_holder.notified(), [Notification::Lost(Loss::Closed)]);
    assert_eq!(other.holder(&name).await, Ok(None));
    assert!(!registration.end());
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
        let (locks, lease_holder) = (Locks::memory(), RecordingHolder::new());
        let mut registration: Vec<(Registration, String)> = Vec::new();
        for at in 0..number {
            let timing = shortest + Duration::from_millis(137) * at;
            let timing = RenewalTiming::new(timing, timing / 3);
            registration.push(registered(&locks, &seat(), timing, &lease_holder).await);
            sleep(Duration::from_millis(7)).await;
        }
        sleep(Duration::from_secs(1)).await;
        let began = Instant::now();
        sleep(minute).await;
        // One pipeline sends all its renewals at one moment.
        let renewals = lease_holder.renewals();
        let sent: BTreeSet<_> = renewals.iter().filter(|at| began <= **at).collect();
        rounds.push(sent.len());
        let all_renewed = lease_holder.notified();
        let is_renewal = |notified: &Notification| {
            matches!(notified, Notification::Renewed(_, Verdict::Renewed))
        };
        assert!(all_renewed.iter().all(is_renewal), "none expired in between");
    }
    assert_eq!(rounds[0], rounds[1]);
    assert!((118..=120).contains(&rounds[0]), "each third of its lease: {rounds:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_300_ms_is_renewed_beside_seats_of_12_s() {
    let (locks, seats, short) = (Locks::memory(), RecordingHolder::new(), RecordingHolder::new());
    let mut registration = Vec::new();
    for _ in 0..50 {
        registration.push(registered(&locks, &seat(), as_seats(), &seats).await);
        sleep(Duration::from_millis(70)).await;
    }
    let lease = Duration::from_millis(300);
    registration
        .push(registered(&locks, &seat(), RenewalTiming::new(lease, lease / 3), &short).await);
    let guards = guards_of(&locks, [lease].into_iter()).await;
    sleep(Duration::from_secs(60)).await;
    assert!(guards.iter().all(Guard::is_held));
    let sent = short.renewals();
    assert!((590..=600).contains(&sent.len()), "{}", sent.len());
    for pair in sent.windows(2) {
        assert!(pair[1] - pair[0] <= lease / 2, "{:?}", pair[1] - pair[0]);
    }
    for notified in short.notified().iter().chain(&seats.notified()) {
        assert!(matches!(notified, Notification::Renewed(_, Verdict::Renewed)), "{notified:?}");
    }
    // The short lease does not make the seats renew more often.
    let each = seats.renewals().len() / 50;
    assert!((15..=17).contains(&each), "{each}");
}

#[tokio::test(start_paused = true)]
async fn a_requested_round_renews_all_locks_due_soon() {
    let (locks, lease_holder) = (Locks::memory(), RecordingHolder::new());
    let mut registration = Vec::new();
    for _ in 0..20 {
        registration.push(registered(&locks, &seat(), as_seats(), &lease_holder).await);
        sleep(Duration::from_millis(50)).await;
    }
    let far = RecordingHolder::new();
    registration.push(registered(&locks, &seat(), RenewalTiming::new(LONG, LONG / 3), &far).await);
    for _ in 0..5 {
        let rung = Instant::now();
        locks.renew_ahead(SEATS.1);
        sleep(Duration::from_secs(1)).await;
        let sent: Vec<_> = lease_holder.renewals();
        assert!(sent[sent.len() - 20..].iter().all(|at| *at == rung), "all, and at once");
    }
    assert_eq!((lease_holder.notified().len(), far.notified().len()), (5 * 20, 0));
}

#[tokio::test(start_paused = true)]
async fn a_mass_loss_in_a_round_is_an_alarm_and_a_few_losses_are_none() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _here = metrics::set_default_local_recorder(&recorder);
    let (locks, lease_holder) = (Locks::memory(), RecordingHolder::new());
    let mut all = Vec::new();
    for _ in 0..30 {
        let name = seat();
        let (registration, value) = registered(&locks, &name, as_seats(), &lease_holder).await;
        all.push((name, value, registration));
    }
    let alarms = |number: usize| {
        let line = format!("galley_renewal_mass_losses_total {number}\n");
        recorder.handle().render().contains(&line)
    };
    for (part, rings) in [(0..10, false), (10..20, true)] {
        for (name, value, _registration) in &all[part] {
            let value = value.clone();
            granted(&locks, &Claim { over: Takeover::Value(value), ..claim(name, &lee()) }).await;
        }
        locks.renew_ahead(SEATS.1);
        sleep(Duration::from_millis(1)).await;
        // Ten of thirty are no mass loss; ten of the remaining twenty are.
        assert_eq!(alarms(1), rings, "{}", recorder.handle().render());
    }
    let lost =
        lease_holder.notified().iter().filter(|it| **it == Notification::Lost(Loss::Taken)).count();
    assert_eq!(lost, 20);
}

#[tokio::test(start_paused = true)]
async fn the_metric_of_the_oldest_lease_returns_to_zero_without_locks() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _here = metrics::set_default_local_recorder(&recorder);
    let oldest = || -> f64 {
        let metrics = recorder.handle().render();
        let line =
            metrics.lines().find_map(|line| line.strip_prefix("galley_renewal_oldest_seconds "));
        line.expect("a metric").parse().expect("a number")
    };
    let (locks, well, silent) = (Locks::memory(), RecordingHolder::new(), RecordingHolder::new());
    let first = registered(&locks, &seat(), as_seats(), &well).await;
    sleep(SEATS.1 * 2).await;
    assert!(oldest() < 1.0, "{}", oldest());
    silent.is(Renewable::Later);
    let second = registered(&locks, &seat(), as_seats(), &silent).await;
    sleep(SEATS.1 * 2).await;
    // By the last round.
    assert!((3.5..=8.0).contains(&oldest()), "{}", oldest());
    assert!(
        well.notified().len() <= 6,
        "not renewed oftener for the other's sake: {:?}",
        well.notified()
    );
    // The actor queried the lease holder at each due renewal, and some more.
    assert!(silent.notified().is_empty() && 2 <= silent.queried() && silent.queried() < 20);
    drop((first, second));
    assert!(oldest() == 0.0);
    let value = SessionId::generate().to_string();
    assert_eq!(locks.release(&seat(), &value).await, Ok(Released::NotHeld));
}

/// A lease holder that panics in the renewal task.
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
    let registration =
        locks.register(held(&claim, &grant), as_seats(), grant.sent_at, Arc::new(Fragile));
    timeout(SEATS.1 * 2, stopped).await.expect("a notification in time");
    assert!(registration.expect("not closed").end());
}
