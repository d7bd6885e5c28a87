//! Redis errors, classified for Galley.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::redis_client::EndpointError;
use crate::types::LocksError;

/// Why a call has no result, and whether Redis executed it.
#[derive(Clone, Debug)]
pub(crate) enum CallError {
    Unsent(LocksError),
    /// Redis may have executed the call, or may still execute it.
    Unknown(LocksError),
    /// Redis refused the call.
    Refused(LocksError),
}

impl From<CallError> for LocksError {
    fn from(fault: CallError) -> Self {
        match fault {
            CallError::Unsent(error) | CallError::Unknown(error) | CallError::Refused(error) => {
                error
            }
        }
    }
}

/// Classifies an error: a retry can help, or an operator has to change a setting.
pub(crate) fn explain(error: &RedisError) -> LocksError {
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
            LocksError::Misconfigured(format!("`locks.url` is invalid: {error}"))
        }
        _ if matches!(error.code(), Some("NOAUTH" | "WRONGPASS")) => {
            misconfigured("Redis requires a password: set it in `locks.url`")
        }
        // A script's missing right has no error code of its own, and its text differs before 7.0.
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

pub(crate) fn explain_url(error: EndpointError) -> LocksError {
    match error {
        EndpointError::Url(_) => LocksError::Unsupported(error.to_string()),
        EndpointError::Client(error) => explain(&error),
    }
}

/// Redis's texts for a script whose user lacks a right.
const NOT_PERMITTED: [&str; 2] = ["The user executing the script can't", "ACL failure in script"];

fn not_permitted(error: &RedisError) -> LocksError {
    LocksError::Misconfigured(format!(
        "Redis does not permit it ({}): allow the user `~share-link:* ~lock:* &* +@all`",
        error.to_string().trim_end()
    ))
}

pub(crate) const FENCES_END: &str = "a fence of this lock, or the clock of Redis, is beyond the year 2255 (2^53 µs), where fences do \
     not rise any more: set the clock right, and remove the grant key of the lock";
pub(crate) const REPLICA: &str =
    "this Redis is a replica, which cannot grant locks: point `locks.url` at its primary";
pub(crate) const CLUSTER: &str =
    "this Redis is a node of a Cluster: write redis+cluster:// in `locks.url`";
pub(crate) const NO_CLUSTER: &str =
    "this Redis is not part of a Cluster: write redis:// or rediss:// in `locks.url`";
