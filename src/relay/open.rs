//! From `locks.url` to a client of Redis, as the relay needs it.

use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{Client, IntoConnectionInfo, ProtocolVersion};

use crate::relay::RelayError;

/// An idle connection is probed after this long: a subscriber sends nothing that could fail.
const PROBED_AFTER: Duration = Duration::from_secs(6);
/// The kernel gives a connection up when its peer acknowledged nothing for this long.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);

/// A client for `url`. Opens nothing.
pub(super) fn client(url: &str) -> Result<Client, RelayError> {
    let unsupported = |why: String| RelayError::Unsupported(why);
    match url.split("://").next().unwrap_or_default() {
        "redis" => {}
        // The process has one provider of cryptography; somebody else may have named it already.
        "rediss" => drop(rustls::crypto::aws_lc_rs::default_provider().install_default()),
        _ => return Err(unsupported("the relay needs redis:// or rediss://".to_owned())),
    }
    let info = url.into_connection_info().map_err(|error| unsupported(error.to_string()))?;
    let keepalive =
        TcpKeepalive::new().with_time(PROBED_AFTER).with_interval(PROBED_AFTER / 3).with_retries(2);
    // The crate leaves Nagle's algorithm on, which holds small messages back for 40 ms.
    let tcp = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive)
        .set_user_timeout(UNACKNOWLEDGED_MAX);
    // With RESP3 one connection can subscribe and publish, and its end is told.
    let redis = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    let info = info.set_tcp_settings(tcp).set_redis_settings(redis.set_skip_set_lib_name());
    Client::open(info).map_err(|error| unsupported(error.to_string()))
}
