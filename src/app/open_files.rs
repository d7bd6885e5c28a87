//! The process's limit on open files. Each connection takes one.
//!
//! A shell grants 1,024 and lets a process raise that to the hard limit. Below `limits.connections` the
//! server would fail to accept connections long before its own limit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files besides the connections: databases, Redis, the listener, the log.
const OTHER_FILES: u64 = 256;

/// Raises the limit to the hard limit. `Err`: `connections` do not fit, and the remedy.
pub(super) fn raise_bound(connections: u32) -> Result<String, String> {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit on open files could not be raised");
    }
    // `None`: the system sets no limit.
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let needed = u64::from(connections).saturating_add(OTHER_FILES);
    if files < needed {
        return Err(format!(
            "the system lets this process open fewer files than limits.connections needs ({files} of \
             {needed}): raise its hard limit (ulimit -Hn, LimitNOFILE=), or lower limits.connections"
        ));
    }
    Ok(format!("limits.connections needs {needed}"))
}
