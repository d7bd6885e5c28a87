//! Preflight: the checks that a Redis must pass before the server grants locks in it.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::try_join_all;
use redis::{ErrorKind, RedisResult, ServerErrorKind, Value};
use tokio::time::Instant;

use crate::name::{check_keys, check_keys_in};
use crate::redis::call::{Calls, Topology};
use crate::redis::cluster::Cluster;
use crate::redis::connection::CALL_TIMEOUT;
use crate::redis::error::{CLUSTER, FENCES_END, NO_CLUSTER, REPLICA};
use crate::redis::node::Node;
use crate::redis::reply;
use crate::redis::scripts::{FENCE_END, Scripts, pipeline};
use crate::types::{LocksError, unexpected};
use galley_domain::ids::NodeId;

/// The oldest version that the tests run on. Compatible servers report it, or a later one, as
/// theirs.
const OLDEST: u32 = 7;

/// Checks the configuration of Redis, exercises its permissions, and reports a fault in one line.
/// On a Cluster it checks each primary. Returns the largest offset of a clock that is ahead of this
/// server's, or behind it (negative).
pub(crate) async fn check(calls: &Calls, server: NodeId) -> Result<TimeDelta, LocksError> {
    let ahead = match &calls.route {
        Topology::Single(node) => {
            let keys = check_keys(server);
            judge(&info(node).await?, CLUSTER)?;
            exercise_permissions(node, &calls.scripts, &keys, server).await?
        }
        Topology::Cluster(cluster) => {
            let view = cluster.some_view(Instant::now() + CALL_TIMEOUT).await?;
            let primaries = view.nodes().iter().map(|node| async {
                let is_there = |slot| view.node_of(slot).is_some_and(|of| Arc::ptr_eq(of, node));
                let Some(keys) = check_keys_in(server, is_there) else { return Ok(None) };
                check_primary(node, &calls.scripts, &keys, server)
                    .await
                    .map(Some)
                    .map_err(|error| of_node(cluster, node, &error))
            });
            let aheads = try_join_all(primaries).await?;
            let missing = view.missing();
            if missing > 0 {
                return Err(LocksError::Unavailable(format!(
                    "{missing} slots of the Cluster have no node: see `redis-cli --cluster check`"
                )));
            }
            aheads.into_iter().flatten().max_by_key(TimeDelta::abs).unwrap_or_default()
        }
    };
    metrics::gauge!("galley_locks_clock_ahead_seconds").set(ahead.as_seconds_f64());
    Ok(ahead)
}

async fn check_primary(
    node: &Node,
    scripts: &Scripts,
    keys: &[String; 2],
    server: NodeId,
) -> Result<TimeDelta, LocksError> {
    judge(&info(node).await?, NO_CLUSTER)?;
    exercise_permissions(node, scripts, keys, server).await
}

async fn info(node: &Node) -> Result<String, LocksError> {
    let mut request = pipeline();
    for section in ["server", "replication", "memory"] {
        request.cmd("INFO").arg(section);
    }
    let mut info = String::new();
    for reply in node.query(&request).await? {
        match reply {
            Value::BulkString(bytes) => info.push_str(&String::from_utf8_lossy(&bytes)),
            Value::VerbatimString { text, .. } => info.push_str(&text),
            _ => {}
        }
    }
    Ok(info)
}

/// Exercises the permissions that the scripts need. Returns how far the node's clock is ahead of
/// this server's.
async fn exercise_permissions(
    node: &Node,
    scripts: &Scripts,
    keys: &[String; 2],
    server: NodeId,
) -> Result<TimeDelta, LocksError> {
    let (sent_at, began) = (Utc::now(), Instant::now());
    let mut request = pipeline();
    // The reply to `SCRIPT LOAD` counts: without that right no call works after the next restart.
    request.add_command(scripts.check.loading());
    request.add_command(scripts.check(keys, server));
    let reply = node.query(&request).await?.into_iter().nth(1);
    node.identity.mark_serving();
    let answered_at = Utc::now();
    let theirs = reply.as_ref().and_then(reply::time).ok_or_else(unexpected)?;
    if theirs.timestamp_micros() >= FENCE_END {
        return Err(LocksError::Misconfigured(FENCES_END.to_owned()));
    }
    let back = node.clock.seen(theirs, began, Instant::now());
    if let Some(back) = back {
        metrics::counter!("galley_locks_clock_steps_back_total").increment(1);
        tracing::warn!(
            redis = %node.address,
            seconds = back.as_secs_f64(),
            "the clock of Redis stepped back: leases and queue entries of dead servers last so much longer"
        );
    }
    Ok(ahead(sent_at, theirs, answered_at))
}

/// Whether a primary of a Cluster refuses a command of sharded pub/sub to this user. Nothing is subscribed: Redis
/// checks the right first, and the two channels have different slots.
pub(crate) async fn refuses_sharded_pubsub(calls: &Calls) -> Result<bool, LocksError> {
    let Topology::Cluster(cluster) = &calls.route else { return Ok(false) };
    let mut request = pipeline();
    request.cmd("SSUBSCRIBE").arg("share-link:room:{a}").arg("share-link:room:{b}");
    request.cmd("SPUBLISH").arg("share-link:room:{a}").arg("");
    let deadline = Instant::now() + CALL_TIMEOUT;
    let view = cluster.some_view(deadline).await?;
    let nodes = view.nodes().iter().map(|node| node.calls.query(&request, deadline));
    let is_refused = |reply: &RedisResult<Value>| {
        let error = reply.as_ref().err();
        error.is_some_and(|it| it.kind() == ErrorKind::Server(ServerErrorKind::NoPerm))
    };
    let mut replies = try_join_all(nodes).await?.into_iter().flat_map(|reply| reply.replies);
    Ok(replies.any(|reply| is_refused(&reply)))
}

fn of_node(cluster: &Cluster, node: &Node, error: &LocksError) -> LocksError {
    let named = |why: &str| format!("{}: {why}", node.address);
    match error {
        // Another node has replaced it or owns its slots: the slot map is stale, and nothing is
        // misconfigured.
        LocksError::Misconfigured(why) if [REPLICA, CLUSTER].contains(&why.as_str()) => {
            cluster.request_refresh();
            LocksError::Unavailable(named("it is not the primary of its slots any more"))
        }
        LocksError::Misconfigured(why) => LocksError::Misconfigured(named(why)),
        LocksError::Unavailable(why) => LocksError::Unavailable(named(why)),
        LocksError::Unsupported(why) => LocksError::Unsupported(named(why)),
    }
}

/// How far a clock is outside the interval of this server's clock in which it was read.
fn ahead(before: DateTime<Utc>, theirs: DateTime<Utc>, after: DateTime<Utc>) -> TimeDelta {
    if theirs < before {
        theirs - before
    } else if after < theirs {
        theirs - after
    } else {
        TimeDelta::zero()
    }
}

/// Checks the `INFO` of a node. `other_mode` is the error of a Cluster node where a single Redis is
/// expected, or the reverse.
fn judge(info: &str, other_mode: &str) -> Result<(), LocksError> {
    let field = |name: &str| {
        info.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'))
    };
    let misconfigured = |what: String| Err(LocksError::Misconfigured(what));
    if field("role").is_some_and(|role| role != "master") {
        return misconfigured(REPLICA.to_owned());
    }
    let version = field("redis_version").unwrap_or("unknown");
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major < OLDEST) {
        return misconfigured(format!(
            "Redis {version} is too old: use {OLDEST}.0 or newer, or a server that is like it"
        ));
    }
    // Valkey names it otherwise, and its configuration may bring the name of Redis back.
    let is_of_cluster = ["redis_mode", "server_mode"].map(field).contains(&Some("cluster"));
    if is_of_cluster != (other_mode == NO_CLUSTER) {
        return misconfigured(other_mode.to_owned());
    }
    match field("maxmemory_policy") {
        Some("noeviction") => Ok(()),
        Some(policy) => misconfigured(format!(
            "with maxmemory-policy {policy} Redis may evict locks: set it to noeviction, or give \
             Galley a Redis of its own"
        )),
        None => misconfigured("Redis does not tell its maxmemory-policy: permit INFO".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_a_line_with_its_remedy() {
        let fit = "redis_version:7.0.15\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n";
        assert_eq!(judge(fit, CLUSTER), Ok(()));
        let of_cluster = fit.replace("standalone", "cluster");
        assert_eq!(judge(&of_cluster, NO_CLUSTER), Ok(()));
        let of_valkey = of_cluster.replace("redis_mode", "server_mode");
        assert_eq!(judge(&of_valkey, NO_CLUSTER), Ok(()));
        assert!(judge(&of_valkey, CLUSTER).is_err());
        let Err(LocksError::Misconfigured(why)) = judge(fit, NO_CLUSTER) else { panic!("passed") };
        assert!(why.contains("write redis://"), "{why}");
        for (good, bad, remedy) in [
            ("7.0.15", "6.2.14", "7.0 or newer"),
            ("role:master", "role:slave", "primary"),
            ("redis_mode:standalone", "redis_mode:cluster", "write redis+cluster://"),
            ("noeviction", "allkeys-lru", "noeviction"),
            ("maxmemory_policy:noeviction", "", "permit INFO"),
        ] {
            let Err(LocksError::Misconfigured(why)) = judge(&fit.replace(good, bad), CLUSTER)
            else {
                panic!("{bad} passed");
            };
            assert!(why.contains(remedy) && why.lines().count() == 1, "{why}");
        }
    }

    #[test]
    fn a_clock_is_off_by_no_less_than_is_certain() {
        let at = |ms| DateTime::from_timestamp_millis(ms).expect("a time");
        for (theirs, off) in [(900, -100), (1_000, 0), (1_050, 0), (1_100, 0), (1_150, 50)] {
            assert_eq!(ahead(at(1_000), at(theirs), at(1_100)), TimeDelta::milliseconds(off));
        }
    }
}
