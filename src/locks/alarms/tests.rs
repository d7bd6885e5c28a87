//! Raising and clearing of alarms, under paused time.

use tokio::time::advance;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn kinds(alarms: &Alarms) -> Vec<AlarmKind> {
    alarms.in_force().iter().map(|alarm| alarm.kind).collect()
}

#[tokio::test(start_paused = true)]
async fn more_failures_than_one_in_twenty_raise_an_alarm_and_a_few_do_not() {
    let alarms = Alarms::default();
    for _attempt in 0..18 {
        alarms.attempted("job", MS, "granted");
    }
    alarms.attempted("job", MS, "failed");
    assert_eq!(kinds(&alarms), [], "nineteen give no share");
    alarms.attempted("job", MS, "busy");
    assert_eq!(kinds(&alarms), [], "one in twenty may fail, and busy is an answer");
    alarms.attempted("job", MS, "timeout");
    let raised = alarms.in_force();
    assert_eq!((raised.len(), raised[0].class.as_str()), (1, "job"));
    assert!((raised[0].measured - 2.0 / 21.0).abs() < 1e-9, "{raised:?}");
    // It counts until half a minute before five minutes have passed.
    advance(SLOT * 9).await;
    assert_eq!(kinds(&alarms), [AlarmKind::Failures]);
    advance(SLOT).await;
    assert_eq!(kinds(&alarms), []);
}

#[tokio::test(start_paused = true)]
async fn a_mean_wait_of_more_than_a_second_is_an_alarm_until_the_mean_is_shorter() {
    let alarms = Alarms::default();
    alarms.attempted("job", WAIT_MAX, "granted");
    assert_eq!(kinds(&alarms), []);
    alarms.attempted("job", WAIT_MAX + 2 * MS, "timeout");
    assert_eq!(kinds(&alarms), [AlarmKind::Wait]);
    alarms.attempted("job", MS, "busy");
    assert_eq!(kinds(&alarms), [AlarmKind::Wait], "a busy reply is no wait");
    alarms.attempted("job", MS, "granted");
    assert_eq!(kinds(&alarms), []);
}

#[tokio::test(start_paused = true)]
async fn a_hold_of_more_than_five_seconds_is_an_alarm_while_it_lasts_and_after() {
    let alarms = Alarms::default();
    let began = Instant::now();
    alarms.began("job", began);
    advance(HOLD_MAX).await;
    assert_eq!(kinds(&alarms), []);
    advance(MS).await;
    assert_eq!(kinds(&alarms), [AlarmKind::Hold]);
    advance(SLOT * 20).await;
    assert_eq!(kinds(&alarms), [AlarmKind::Hold], "it still lasts");
    alarms.ended("job", began);
    assert_eq!(kinds(&alarms), [AlarmKind::Hold]);
    advance(SLOT * 10).await;
    assert_eq!(kinds(&alarms), []);
    assert!(alarms.classes().is_empty(), "and the class is removed");
}

#[tokio::test(start_paused = true)]
async fn seats_raise_no_alarm_for_long_waits_and_holds() {
    let alarms = Alarms::default();
    let began = Instant::now();
    alarms.began(SEAT, began);
    advance(SLOT).await;
    alarms.ended(SEAT, began);
    for _attempt in 0..30 {
        alarms.attempted(SEAT, SLOT, "granted");
        alarms.attempted(SEAT, SLOT, "timeout");
    }
    assert_eq!(kinds(&alarms), []);
    for _attempt in 0..10 {
        alarms.attempted(SEAT, MS, "failed");
    }
    assert_eq!(kinds(&alarms), [AlarmKind::Failures]);
}

#[tokio::test(start_paused = true)]
async fn g13_the_alarms_of_unbounded_classes_are_bounded() {
    let alarms = Alarms::default();
    for class in 0..1_000 {
        alarms.attempted(&class.to_string(), MS, "granted");
    }
    assert_eq!(alarms.classes().len(), CLASSES_MAX);
    for _half_minute in 0..100 {
        alarms.attempted("0", MS, "granted");
        advance(SLOT).await;
    }
    assert!(alarms.classes()["0"].slots.len() <= 10);
}
