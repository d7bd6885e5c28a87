//! Locks and pub/sub, against real `redis-server` processes, one for each test.

mod backend_contract;
mod bad_network;
mod cancel_safety;
mod cluster;
mod cluster_failures;
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
mod wait_queue;
mod wait_queue_redis;

/// The tests of a file that run on both backends: one list a file. Each test is a function of an empty
/// backend.
macro_rules! on_both_backends {
    (and on a cluster: $($name:ident)+) => {
        crate::locks::on_both_backends! { $($name)+ }
        mod redis_cluster {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::support::backends::TestBackend::cluster().await).await;
            })+
        }
    };
    ($($name:ident)+) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::support::backends::TestBackend::memory().await).await;
            })+
        }
        mod redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::support::backends::TestBackend::redis().await).await;
            })+
        }
    };
}
pub(crate) use on_both_backends;
