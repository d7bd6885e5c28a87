//! Replies that no script of Galley returns: each is an error, and no parser panics or guesses.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use redis::Value;
use tokio::time::Instant;

use crate::redis::reply::{
    claimed, handover, holders, queue_status, released, verdicts, waiters, was_held,
};

/// Runs this many cases. `GALLEY_SEED` replays a run that failed.
fn runner(cases: u32) -> TestRunner {
    let given = std::env::var("GALLEY_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| getrandom::u64().expect("a random seed"));
    #[expect(clippy::print_stderr, reason = "the seed replays a failed run")]
    {
        eprintln!("replay with GALLEY_SEED={seed}");
    }
    let rng_seed = RngSeed::Fixed(seed);
    TestRunner::new(Config { cases, failure_persistence: None, rng_seed, ..Config::default() })
}

/// A field of a reply, valid or arbitrary.
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
        // Fields that the scripts return.
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
fn g12_any_reply_of_redis_is_parsed_or_is_an_error() {
    let now = Instant::now();
    runner(6_000)
        .run(&(reply(), 0..4_usize), |(reply, locks)| {
            let _ = claimed(&reply, now);
            let _ = queue_status(&reply, now);
            let _ = released(&reply);
            let _ = was_held(&reply);
            let _ = waiters(&reply);
            if let Ok(bytes) = verdicts(&reply, locks) {
                prop_assert_eq!(bytes.len(), locks);
            }
            if let Ok(holders) = holders(&reply, locks) {
                prop_assert_eq!(holders.len(), locks);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn g12_any_hand_over_message_is_parsed_or_ignored() {
    let near = "[0-9]{0,24} -?[0-9]{0,24} .{0,16}".prop_map(String::into_bytes);
    let bytes = prop_oneof![prop::collection::vec(any::<u8>(), 0..64), near];
    runner(6_000)
        .run(&bytes, |bytes| {
            if let Some((value, _)) = handover(&bytes) {
                prop_assert!(bytes.ends_with(value.as_bytes()));
            }
            Ok(())
        })
        .unwrap();
}
