//! How many files the process may have open: each connection is one.
//!
//! A shell gives 1,024 and lets a process ask for more. With fewer than `limits.connections` the server
//! could not accept a connection long before its own bound.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files beside the connections: databases, Redis, the listener, the log.
const OTHER_FILES: u64 = 256;

/// Raises the bound as far as the system allows, and warns if `connections` do not fit.
pub(super) fn raise_bound(connections: u32) {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the bound on open files could not be raised");
    }
    // None: there is no bound.
    let Some(files) = getrlimit(Resource::Nofile).current else { return };
    let needed = u64::from(connections).saturating_add(OTHER_FILES);
    if files < needed {
        tracing::warn!(
            files,
            needed,
            "the system lets this process open fewer files than limits.connections needs: raise its \
             hard limit (ulimit -Hn, LimitNOFILE=), or lower limits.connections"
        );
    }
}
