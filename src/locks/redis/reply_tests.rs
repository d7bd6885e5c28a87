//! Answers that no script of ours gives: an error each, and never a panic or a guess.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use redis::Value;
use tokio::time::Instant;

use crate::locks::redis::reply::{
    behind, claimed, holders, released, standing, turn, verdicts, was_held,
};

/// Runs so many cases, from the seed of a run that failed if one is given.
fn runner(cases: u32) -> TestRunner {
    let given = std::env::var("GALLEY_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| getrandom::u64().expect("a random seed"));
    #[expect(clippy::print_stderr, reason = "whoever sees this test fail wants to see it again")]
    {
        eprintln!("replay with GALLEY_SEED={seed}");
    }
    let rng_seed = RngSeed::Fixed(seed);
    TestRunner::new(Config { cases, failure_persistence: None, rng_seed, ..Config::default() })
}

/// A word that an answer may hold, or that somebody put in its place.
fn word() -> impl Strategy<Value = Value> {
    let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    prop_oneof![
        any::<i64>().prop_map(Value::Int),
        (-2..3_i64).prop_map(Value::Int),
        prop::collection::vec(any::<u8>(), 0..24).prop_map(Value::BulkString),
        any::<String>().prop_map(Value::SimpleString),
        any::<f64>().prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        Just(Value::Nil),
        Just(Value::Okay),
        // What the scripts themselves say.
        Just(text("usr_1")),
        Just(text("node_0123456789abcdef0123456789abcdef")),
        any::<i64>().prop_map(move |number| text(&number.to_string())),
        any::<u64>().prop_map(move |number| text(&number.to_string())),
    ]
}

fn reply() -> impl Strategy<Value = Value> {
    word().prop_recursive(4, 48, 8, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 0..9).prop_map(Value::Array),
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Set),
            1 => prop::collection::vec((inner.clone(), inner), 0..4).prop_map(Value::Map),
        ]
    })
}

#[test]
fn g12_whatever_redis_answers_is_read_as_something_or_as_an_error() {
    let now = Instant::now();
    runner(6_000)
        .run(&(reply(), 0..4_usize), |(reply, asked)| {
            let _ = claimed(&reply, now);
            let _ = standing(&reply, now);
            let _ = released(&reply);
            let _ = was_held(&reply);
            let _ = behind(&reply);
            if let Ok(bytes) = verdicts(&reply, asked) {
                prop_assert_eq!(bytes.len(), asked);
            }
            if let Ok(holders) = holders(&reply, asked) {
                prop_assert_eq!(holders.len(), asked);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn g12_whatever_is_told_to_who_waits_is_a_turn_or_nothing() {
    let near = "[0-9]{0,24} -?[0-9]{0,24} .{0,16}".prop_map(String::into_bytes);
    let bytes = prop_oneof![prop::collection::vec(any::<u8>(), 0..64), near];
    runner(6_000)
        .run(&bytes, |bytes| {
            if let Some((value, _)) = turn(&bytes) {
                prop_assert!(bytes.ends_with(value.as_bytes()));
            }
            Ok(())
        })
        .unwrap();
}
