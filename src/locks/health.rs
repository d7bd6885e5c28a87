//! Whether Redis is fit to keep locks.

use chrono::{DateTime, TimeDelta, Utc};
use redis::Value;

use crate::domain::ids::NodeId;
use crate::locks::calls::Calls;
use crate::locks::fault::{CLUSTER, REPLICA};
use crate::locks::reply;
use crate::locks::scripts::pipeline;
use crate::locks::words::LocksError;

/// The oldest version that the tests run on. Others that speak its protocol name it, or a later
/// one, as theirs.
const OLDEST: u32 = 7;

/// Asks Redis what it is, tries what it permits, and says in one line what is wrong. Gives how far
/// its clock is ahead of ours.
pub(super) async fn check(calls: &Calls, server: NodeId) -> Result<TimeDelta, LocksError> {
    let mut request = pipeline();
    for section in ["server", "replication", "memory"] {
        request.cmd("INFO").arg(section);
    }
    let mut info = String::new();
    for reply in calls.ask(&request).await? {
        match reply {
            Value::BulkString(bytes) => info.push_str(&String::from_utf8_lossy(&bytes)),
            Value::VerbatimString { text, .. } => info.push_str(&text),
            _ => {}
        }
    }
    judge(&info)?;
    let asked_at = Utc::now();
    let mut request = pipeline();
    // Whose answer counts here: without the right to load scripts, the next restart ends it all.
    request.add_command(calls.scripts.check.loading());
    request.add_command(calls.scripts.check(server));
    let reply = calls.ask(&request).await?.into_iter().nth(1);
    let answered_at = Utc::now();
    let theirs = reply.as_ref().and_then(reply::time).ok_or_else(reply::unexpected)?;
    let ahead = ahead(asked_at, theirs, answered_at);
    metrics::gauge!("galley_locks_clock_ahead_seconds").set(ahead.as_seconds_f64());
    Ok(ahead)
}

/// How far a clock that was read between two moments of ours is outside of them.
fn ahead(before: DateTime<Utc>, theirs: DateTime<Utc>, after: DateTime<Utc>) -> TimeDelta {
    if theirs < before {
        theirs - before
    } else if after < theirs {
        theirs - after
    } else {
        TimeDelta::zero()
    }
}

fn judge(info: &str) -> Result<(), LocksError> {
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
    if field("redis_mode") == Some("cluster") {
        return misconfigured(CLUSTER.to_owned());
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
        assert_eq!(judge(fit), Ok(()));
        for (good, bad, remedy) in [
            ("7.0.15", "6.2.14", "7.0 or newer"),
            ("role:master", "role:slave", "primary"),
            ("redis_mode:standalone", "redis_mode:cluster", "single Redis"),
            ("noeviction", "allkeys-lru", "noeviction"),
            ("maxmemory_policy:noeviction", "", "permit INFO"),
        ] {
            let Err(LocksError::Misconfigured(why)) = judge(&fit.replace(good, bad)) else {
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
