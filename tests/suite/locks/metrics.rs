//! Metrics: by class of lock, never by name.

use std::time::Duration;

use galley::locks::{AcquireOptions, AlarmKind, Lease, LockName, Locks};
use metrics_exporter_prometheus::PrometheusBuilder;

use crate::locks::wait_queue::{SHORT, await_grant, enter};
use crate::support::fixtures::{LONG, claim, kim, lee, queued, seat, seated};

#[tokio::test]
async fn attempts_waits_and_holds_are_counted_by_class_and_never_by_name() {
    // All work of this test runs on this thread.
    let recorder = PrometheusBuilder::new().build_recorder();
    let _here = metrics::set_default_local_recorder(&recorder);
    let (locks, name) = (Locks::memory(), LockName::named("export:doc_secret"));
    let options = AcquireOptions::new(Lease::Fixed(LONG));
    let guard = locks.try_lock(&name, &options).await.expect("a free lock");
    assert!(locks.try_lock(&name, &options).await.is_err());
    assert!(locks.lock(&name, &options.clone().backing_off()).await.is_err());
    assert!(locks.lock(&name, &options.clone().with(queued(SHORT))).await.is_err());
    guard.release().await.expect("a reply");
    let done = locks.with_lock(&name, &options.with(queued(SHORT)), async |_fence| ()).await;
    assert_eq!(done, Ok(()));

    let held_seat = seat();
    let old = seated(&locks, &held_seat, &kim(), LONG).await;
    let (waiting, _at) = enter(&locks, &claim(&held_seat, &lee())).await;
    locks.release(&held_seat, &old.value).await.expect("a reply");
    await_grant(waiting).await;

    let metrics = recorder.handle().render();
    for (line, value) in [
        ("galley_lock_acquisitions_total{class=\"export\",outcome=\"granted\"}", 2),
        ("galley_lock_acquisitions_total{class=\"export\",outcome=\"busy\"}", 1),
        ("galley_lock_acquisitions_total{class=\"export\",outcome=\"timeout\"}", 2),
        ("galley_lock_acquisitions_total{class=\"seat\",outcome=\"granted\"}", 2),
        ("galley_lock_hold_seconds_count{class=\"export\"}", 2),
        ("galley_lock_wait_seconds_count{class=\"export\"}", 5),
        ("galley_lock_wait_seconds_count{class=\"seat\"}", 2),
    ] {
        assert!(metrics.contains(&format!("{line} {value}\n")), "{line} {value}\n{metrics}");
    }
    assert!(!metrics.contains("doc_secret") && !metrics.contains("shr_"), "{metrics}");
    let waited: f64 = metrics
        .lines()
        .find_map(|line| line.strip_prefix("galley_lock_wait_seconds_sum{class=\"export\"} "))
        .expect("a sum")
        .parse()
        .expect("a number");
    assert!(Duration::from_millis(600).as_secs_f64() < waited, "timed-out waits count: {waited}");
}

#[tokio::test(start_paused = true)]
async fn an_alarm_is_a_metric_of_its_class_and_returns_to_zero() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _here = metrics::set_default_local_recorder(&recorder);
    let (locks, name) = (Locks::memory(), LockName::named("export:doc_secret"));
    let options = AcquireOptions::new(Lease::Renewed(LONG));
    let shown = |value| {
        let line = format!("galley_lock_alarm{{class=\"export\",alarm=\"hold\"}} {value}\n");
        recorder.handle().render().contains(&line)
    };
    let guard = locks.try_lock(&name, &options).await.expect("a free lock");
    assert!(shown(0) && locks.alarms().is_empty());
    tokio::time::advance(Duration::from_secs(6)).await;
    let alarms = locks.alarms();
    assert_eq!((alarms.len(), alarms[0].kind), (1, AlarmKind::Hold), "{alarms:?}");
    assert!(5.9 < alarms[0].measured && alarms[0].measured < 7.0, "{alarms:?}");
    assert!(shown(1));
    guard.release().await.expect("a reply");
    tokio::time::advance(Duration::from_secs(301)).await;
    assert_eq!(locks.alarms(), []);
    assert!(shown(0));
}
