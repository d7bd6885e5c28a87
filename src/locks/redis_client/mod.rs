//! The address of Redis and the settings of its connections: from `locks.url` to clients.
//!
//! Locks and pub/sub use the same Redis over separate connections, and do not depend on each other.
//! This module holds their common part: the meaning of an address, the settings of a connection,
//! the lookup of the primary through Sentinels, and the slots of a Cluster.

mod address;
mod endpoint;
mod sentinel;
pub mod slots;
pub mod url;

use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{Client, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisError};

pub use crate::redis_client::address::Address;
pub use crate::redis_client::endpoint::Addresses;
use crate::redis_client::sentinel::Sentinels;
use crate::redis_client::url::{InvalidRedisUrl, RedisUrl};

/// The kernel probes an idle connection after this long, and repeats the probe after a third of it.
const PROBED_AFTER: Duration = Duration::from_secs(6);
/// The kernel closes a connection when its peer acknowledged nothing for this long.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);

/// The Redis behind `locks.url`.
#[derive(Debug)]
pub struct RedisTarget {
    /// The kind of Redis.
    pub kind: Kind,
    /// The addresses: of the primary, or of any node of the Cluster.
    pub addresses: Addresses,
}

/// Kinds of Redis.
#[derive(Clone, Debug)]
pub enum Kind {
    /// One primary, at a fixed address or as Sentinels name it.
    Single,
    /// A Cluster with some of its nodes, at least one.
    Cluster(Vec<Client>),
}

/// Why `locks.url` is unusable. The error does not contain the address.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The address has no supported form.
    #[error("`locks.url` is invalid: it {0}")]
    Url(#[from] InvalidRedisUrl),
    /// The `redis` crate rejects the address.
    #[error(transparent)]
    Client(#[from] RedisError),
}

/// Resolves `url` to clients. Opens no connection.
///
/// # Errors
///
/// [`EndpointError`] when the address is unusable.
pub fn target(url: &str) -> Result<RedisTarget, EndpointError> {
    match RedisUrl::parse(url)? {
        RedisUrl::Single(url) => {
            let addresses = Addresses::new(vec![client(&url)?]);
            Ok(RedisTarget { kind: Kind::Single, addresses })
        }
        RedisUrl::Cluster(nodes) => {
            let nodes = nodes.iter().map(|url| client(url)).collect::<Result<Vec<_>, _>>()?;
            Ok(RedisTarget { kind: Kind::Cluster(nodes.clone()), addresses: Addresses::new(nodes) })
        }
        RedisUrl::Sentinel { sentinels, name, primary } => {
            let all = sentinels.iter().map(|url| client(url)).collect::<Result<_, _>>()?;
            let sentinels = Sentinels::new(all, name, client(&primary)?);
            Ok(RedisTarget { kind: Kind::Single, addresses: Addresses::by(sentinels) })
        }
    }
}

fn client(url: &str) -> Result<Client, RedisError> {
    #[cfg(feature = "tls")]
    if url.starts_with("rediss:") {
        // The process has one provider of cryptography; other code may have installed it already.
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    }
    Client::open(tuned(url.into_connection_info()?))
}

fn tuned(info: ConnectionInfo) -> ConnectionInfo {
    let keepalive =
        TcpKeepalive::new().with_time(PROBED_AFTER).with_interval(PROBED_AFTER / 3).with_retries(2);
    // The crate leaves Nagle's algorithm on, which delays small requests by 40 ms.
    let tcp = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive)
        .set_user_timeout(UNACKNOWLEDGED_MAX);
    // RESP3: a push reports the end of a connection, and a subscribed connection can publish.
    let redis =
        info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3).set_skip_set_lib_name();
    info.set_tcp_settings(tcp).set_redis_settings(redis)
}

/// Between half of `pause` and all of it, so that servers do not reconnect in step.
#[must_use]
pub fn jittered(pause: Duration) -> Duration {
    // Without randomness they reconnect in step; Redis survives that.
    let random = getrandom::u32().unwrap_or(u32::MAX);
    pause / 2 + pause.mul_f64(f64::from(random) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jitter_of_a_pause_is_at_most_half_of_it_and_varies() {
        let pause = Duration::from_secs(1);
        let mut drawn: Vec<_> = (0..100).map(|_| jittered(pause)).collect();
        drawn.sort_unstable();
        assert!(pause / 2 <= drawn[0] && drawn[99] <= pause, "{drawn:?}");
        assert_ne!(drawn[0], drawn[99]);
    }

    fn nodes(url: &str) -> Vec<Client> {
        match target(url).expect("a valid address").kind {
            Kind::Cluster(nodes) => nodes,
            Kind::Single => panic!("{url} is a single Redis"),
        }
    }

    #[test]
    fn an_unsupported_url_is_rejected_in_one_line() {
        for url in ["redis+sentinel://a:1,b:2", "http://a", "a", ""] {
            let Err(EndpointError::Url(why)) = target(url) else { panic!("{url} was accepted") };
            assert_eq!(why.to_string().lines().count(), 1, "{why}");
        }
    }

    #[test]
    fn a_malformed_url_is_rejected_without_its_password() {
        for url in ["redis://:hunter2@a:x/", "redis+cluster://:hunter2@a:1,b:x"] {
            let why = target(url).expect_err("a fault").to_string();
            assert!(!why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn valid_urls_are_accepted() {
        for url in ["redis://127.0.0.1", "redis://u:p@localhost:7/3", "rediss://cache.example:6380"]
        {
            assert!(matches!(target(url).expect(url).kind, Kind::Single));
        }
        assert!(target("rediss+sentinel://u:p@a:1,b:2/main/3").is_ok());
        let nodes = nodes("rediss+cluster://u:p%40@a:1,[::1]:2");
        let nodes: Vec<_> = nodes.iter().map(|node| Address::of(node).to_string()).collect();
        assert_eq!(nodes, ["a:1", "::1:2"]);
    }

    #[test]
    fn a_discovered_node_has_the_credentials_of_its_seed() {
        let nodes = nodes("redis+cluster://u:p%40@a:1");
        let seed = Address::of(&nodes[0]);
        for (named, expected) in [("b:2", "b:2"), (":3", "a:3"), ("fe80::1:4", "fe80::1:4")] {
            let address = Address::read(named, &seed).expect("an address");
            let client = address.client_like(&nodes[0]).expect("a client");
            assert_eq!(Address::of(&client).to_string(), expected);
            assert_eq!(client.get_connection_info().redis_settings().password(), Some("p@"));
        }
    }

    #[tokio::test]
    async fn each_attempt_connects_to_the_next_address() {
        let addresses = target("redis+cluster://a:1,b:2").expect("a good address").addresses;
        for port in [1, 2, 1] {
            let client = addresses.next().await.expect("a client");
            assert_eq!(Address::of(&client).port, port);
        }
        assert_eq!(addresses.last().map(|address| address.port), Some(1));
    }
}
