//! Redis errors, classified for Galley.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::redis_client::EndpointError;
use crate::types::LocksError;

/// Classifies an error: a retry can help, or an operator has to change a setting.
pub(crate) fn explain(error: &RedisError) -> LocksError {
    use ServerErrorKind as Is;
    let misconfigured = |what: &str| LocksError::Misconfigured(what.to_owned());
    match error.kind() {
        ErrorKind::Server(Is::ReadOnly) => misconfigured(REPLICA),
        ErrorKind::Server(Is::NoPerm) => not_permitted(error),
        ErrorKind::Server(Is::Moved | Is::Ask | Is::CrossSlot) => misconfigured(CLUSTER),
        ErrorKind::AuthenticationFailed => misconfigured(PASSWORD),
        ErrorKind::RESP3NotSupported => misconfigured(COMMANDS),
        ErrorKind::InvalidClientConfig => {
            LocksError::Misconfigured(format!("`locks.url` is invalid: {error}"))
        }
        _ if error.code() == Some("NOAUTH") => {
            misconfigured("Redis requires a password: set it in `locks.url`")
        }
        _ if error.code() == Some("WRONGPASS") => misconfigured(PASSWORD),
        // The rest of this reply names the arguments, and so the password.
        _ if error.to_string().contains("unknown command") => misconfigured(COMMANDS),
        // A script's missing right has no error code of its own, and its text differs before 7.0.
        _ if NOT_PERMITTED.iter().any(|said| error.to_string().contains(said)) => {
            not_permitted(error)
        }
        _ if error.code() == Some("FENCE") => misconfigured(FENCES_END),
        _ if error.to_string().contains("cluster support disabled") => misconfigured(NO_CLUSTER),
        _ => {
            let said = error.to_string();
            let is_so = |words| error.code() == Some(words) || said.contains(&format!("{words}: "));
            let refusal = REFUSALS.iter().find(|(words, _)| is_so(*words));
            let why = refusal.map(|(_, line)| format!("{line} ({said})"));
            LocksError::Unavailable(why.unwrap_or(said))
        }
    }
}

impl LocksError {
    /// The fault and its remedy in one line for the operator. Texts of Redis and the network may
    /// contain an address, so `None` leaves them to the log.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Self::Misconfigured(line) => Some(line),
            Self::Unavailable(why) | Self::Unsupported(why) => {
                REFUSALS.iter().map(|(_, line)| *line).find(|line| why.contains(line))
            }
        }
    }
}

/// Words of faults that may end without a change of the settings, and the line for the operator.
const REFUSALS: [(&str, &str); 4] = [
    ("OOM", "Redis is out of memory: raise its `maxmemory` or make room"),
    (
        "MISCONF",
        "Redis refuses writes because it cannot save its data: free space on the disk of Redis, or \
         turn its snapshots off (`save \"\"`), which Galley does not need",
    ),
    (
        "NOREPLICAS",
        "Redis refuses writes because too few replicas follow it: start them, or lower its \
         `min-replicas-to-write`",
    ),
    (
        "invalid peer certificate",
        "this server does not trust the certificate of Redis: renew it if it has expired, write a \
         name of it in `locks.url`, or name its authority in SSL_CERT_FILE",
    ),
];

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
const PASSWORD: &str =
    "Redis refuses the user or the password: correct them in `locks.url`, or its ACL";
const COMMANDS: &str = "Redis, or a proxy before it, lacks a command of Redis 7 (such as HELLO for RESP3): let \
     `locks.url` lead to a Redis 7.0 or newer itself";
pub(crate) const REPLICA: &str =
    "this Redis is a replica, which cannot grant locks: point `locks.url` at its primary";
pub(crate) const CLUSTER: &str =
    "this Redis is a node of a Cluster: write redis+cluster:// in `locks.url`";
pub(crate) const NO_CLUSTER: &str =
    "this Redis is not part of a Cluster: write redis:// or rediss:// in `locks.url`";
