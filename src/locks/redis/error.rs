//! What Redis's errors mean to us.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::locks::types::LocksError;
use crate::redis_client::ReachError;

/// Why there is no answer, and what that says about the question.
#[derive(Clone, Debug)]
pub(in crate::locks) enum Fault {
    /// It was never sent.
    Unsent(LocksError),
    /// It may have been carried out, or may yet be.
    Unknown(LocksError),
    /// Redis refused it.
    Refused(LocksError),
}

impl From<Fault> for LocksError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unsent(error) | Fault::Unknown(error) | Fault::Refused(error) => error,
        }
    }
}

/// The error in our words: whether waiting helps, or somebody has to change a setting.
pub(in crate::locks) fn explain(error: &RedisError) -> LocksError {
    use ServerErrorKind as Is;
    let misconfigured = |what: &str| LocksError::Misconfigured(what.to_owned());
    match error.kind() {
        ErrorKind::Server(Is::ReadOnly) => misconfigured(REPLICA),
        ErrorKind::Server(Is::NoPerm) => not_permitted(error),
        ErrorKind::Server(Is::Moved | Is::Ask | Is::CrossSlot) => misconfigured(CLUSTER),
        ErrorKind::AuthenticationFailed => {
            misconfigured("Redis refuses the password: set it in `locks.url`")
        }
        ErrorKind::RESP3NotSupported => {
            misconfigured("this server does not speak RESP3: use Redis 6 or newer")
        }
        ErrorKind::InvalidClientConfig => {
            LocksError::Misconfigured(format!("`locks.url` is of no use: {error}"))
        }
        _ if matches!(error.code(), Some("NOAUTH" | "WRONGPASS")) => {
            misconfigured("Redis wants a password: set it in `locks.url`")
        }
        // What a script may not do has no code of its own, and was said differently before 7.0.
        _ if NOT_PERMITTED.iter().any(|said| error.to_string().contains(said)) => {
            not_permitted(error)
        }
        _ if error.code() == Some("FENCE") => misconfigured(FENCES_END),
        _ if error.to_string().contains("cluster support disabled") => misconfigured(NO_CLUSTER),
        _ if error.code() == Some("OOM") => LocksError::Unavailable(
            "Redis is out of memory: raise its `maxmemory` or make room".to_owned(),
        ),
        _ => LocksError::Unavailable(error.to_string()),
    }
}

/// The same of an address.
pub(in crate::locks) fn explain_url(error: ReachError) -> LocksError {
    match error {
        ReachError::Url(_) => LocksError::Unsupported(error.to_string()),
        ReachError::Client(error) => explain(&error),
    }
}

/// How Redis says that a script does what its user may not do.
const NOT_PERMITTED: [&str; 2] = ["The user executing the script can't", "ACL failure in script"];

fn not_permitted(error: &RedisError) -> LocksError {
    LocksError::Misconfigured(format!(
        "Redis does not permit it ({}): allow the user `~share-link:* ~lock:* &* +@all`",
        error.to_string().trim_end()
    ))
}

/// What is wrong with a fence or a clock that counts no further, and what to do.
pub(in crate::locks) const FENCES_END: &str = "a fence of this lock, or the clock of Redis, is beyond the year 2255 (2^53 µs), where fences do \
     not rise any more: set the clock right, and remove the grant key of the lock";
/// What is wrong with a replica, and what to do.
pub(in crate::locks) const REPLICA: &str =
    "this Redis is a replica, which cannot grant locks: point `locks.url` at its primary";
/// What is wrong with a node of a Cluster that is taken for a single Redis, and what to do.
pub(in crate::locks) const CLUSTER: &str =
    "this Redis is a node of a Cluster: write redis+cluster:// in `locks.url`";
/// What is wrong with a single Redis that is taken for a Cluster, and what to do.
pub(in crate::locks) const NO_CLUSTER: &str =
    "this Redis is not part of a Cluster: write redis:// or rediss:// in `locks.url`";
