//! Locks and pub/sub, against real `redis-server` processes, one for each test.

mod backend_contract;
mod bad_network;
mod cancel_safety;
mod cluster;
mod cluster_failures;
mod foreign_keys;
mod guards;
mod guards_redis;
mod handover;
mod health;
mod lease_holders;
mod lost_replies;
mod memory_vs_redis;
mod metrics;
mod older;
mod paused_time;
mod pubsub;
mod reassert_grace;
mod reclaim;
mod redis_commands;
mod redis_outage;
mod redis_restart;
mod renewal;
mod renewal_redis;
mod sentinel;
mod sharded_pubsub;
mod wait_queue;
mod wait_queue_redis;

/// The tests of a file that run on both backends: one list a file. Each test is a function of an empty
/// backend.
macro_rules! on_both_backends {
    (and on a cluster: $($name:ident)+) => {
        crate::locks::on_both_backends! { $($name)+ }
        crate::locks::on_both_backends! { @ redis_cluster cluster $($name)+ }
        crate::locks::on_both_backends! { @ valkey_single valkey $($name)+ }
        crate::locks::on_both_backends! { @ valkey_cluster valkey_cluster $($name)+ }
    };
    (@ $module:ident $backend:ident $($name:ident)+) => {
        mod $module {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::support::backends::TestBackend::$backend().await).await;
            })+
        }
    };
    ($($name:ident)+) => {
        crate::locks::on_both_backends! { @ memory memory $($name)+ }
        crate::locks::on_both_backends! { @ redis redis $($name)+ }
    };
}
pub(crate) use on_both_backends;
