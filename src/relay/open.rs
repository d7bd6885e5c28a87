//! From `locks.url` to clients of Redis, as the relay needs them.

use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{Client, IntoConnectionInfo, ProtocolVersion};

use crate::domain::redis_url::RedisUrl;
use crate::relay::RelayError;

/// An idle connection is probed after this long: a subscriber sends nothing that could fail.
const PROBED_AFTER: Duration = Duration::from_secs(6);
/// The kernel gives a connection up when its peer acknowledged nothing for this long.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);

/// Where the relay may connect to.
#[derive(Debug)]
pub(super) struct Target {
    /// At least one; each attempt goes to the next.
    pub(super) clients: Vec<Client>,
    /// Whether they are nodes of a Cluster, any of which passes messages on to all others.
    pub(super) is_cluster: bool,
}

/// What is at `url`. Opens nothing.
pub(super) fn target(url: &str) -> Result<Target, RelayError> {
    let url = RedisUrl::parse(url)
        .map_err(|fault| RelayError::Unsupported(format!("`locks.url` is of no use: {fault}")))?;
    let (urls, is_cluster) = match url {
        RedisUrl::Single(url) => (vec![url], false),
        RedisUrl::Cluster(nodes) => (nodes, true),
    };
    let clients = urls.iter().map(|url| client(url)).collect::<Result<_, _>>()?;
    Ok(Target { clients, is_cluster })
}

fn client(url: &str) -> Result<Client, RelayError> {
    let unsupported = |why: String| RelayError::Unsupported(why);
    if url.starts_with("rediss:") {
        // The process has one provider of cryptography; somebody else may have named it already.
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
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
