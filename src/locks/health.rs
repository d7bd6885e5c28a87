//! Whether Redis is fit to keep locks.

use redis::Value;

use crate::locks::calls::Calls;
use crate::locks::fault::{CLUSTER, REPLICA};
use crate::locks::scripts::pipeline;
use crate::locks::words::LocksError;

/// Asks Redis what it is, and says in one line what is wrong with that.
pub(super) async fn check(calls: &Calls) -> Result<(), LocksError> {
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
    judge(&info)
}

/// Checks after each new connection, which may lead to another Redis than the last one, and logs
/// what is wrong with it.
pub(super) async fn watch(calls: Calls) {
    let mut link = calls.link.clone();
    while link.next_opening().await {
        if let Err(error) = check(&calls).await {
            tracing::error!(%error, "Redis is not fit to keep locks");
        }
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
        let fit = "redis_mode:standalone\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n";
        assert_eq!(judge(fit), Ok(()));
        for (good, bad, remedy) in [
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
}
