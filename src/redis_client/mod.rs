//! Where Redis is, and how it is connected to: from `locks.url` to clients.
//!
//! Locks and relay speak to the same Redis over connections of their own and know nothing of each
//! other. What both have to know stands here: what an address means, how a connection is tuned, and
//! where the primary is that Sentinels watch over.

mod endpoint;
mod sentinel;
pub mod url;

use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{Client, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisError};

pub use crate::redis_client::endpoint::{Address, Addresses};
use crate::redis_client::sentinel::Sentinels;
use crate::redis_client::url::{InvalidRedisUrl, RedisUrl};

/// An idle connection is probed after this long, and each probe repeated after a third of it.
const PROBED_AFTER: Duration = Duration::from_secs(6);
/// The kernel gives a connection up when its peer acknowledged nothing for this long.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);

/// What `locks.url` leads to.
#[derive(Debug)]
pub struct Target {
    /// What kind of Redis that is.
    pub kind: Kind,
    /// Where it is: the primary, or any node of the Cluster.
    pub addresses: Addresses,
}

/// Kinds of Redis.
#[derive(Clone, Debug)]
pub enum Kind {
    /// One primary, at a fixed address or wherever Sentinels say.
    Single,
    /// A Cluster, of which these are some nodes: at least one.
    Cluster(Vec<Client>),
}

/// Why there is no way to Redis by this address. The address is not repeated.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// It is not one that is spoken to.
    #[error("`locks.url` is of no use: it {0}")]
    Url(#[from] InvalidRedisUrl),
    /// It makes no sense to the client.
    #[error(transparent)]
    Client(#[from] RedisError),
}

/// What is at `url`. Opens nothing.
///
/// # Errors
///
/// [`ReachError`] when the address is of no use.
pub fn target(url: &str) -> Result<Target, ReachError> {
    match RedisUrl::parse(url)? {
        RedisUrl::Single(url) => {
            let addresses = Addresses::new(vec![client(&url)?]);
            Ok(Target { kind: Kind::Single, addresses })
        }
        RedisUrl::Cluster(nodes) => {
            let nodes = nodes.iter().map(|url| client(url)).collect::<Result<Vec<_>, _>>()?;
            Ok(Target { kind: Kind::Cluster(nodes.clone()), addresses: Addresses::new(nodes) })
        }
        RedisUrl::Sentinel { sentinels, name, primary } => {
            let all = sentinels.iter().map(|url| client(url)).collect::<Result<_, _>>()?;
            let sentinels = Sentinels::new(all, name, client(&primary)?);
            Ok(Target { kind: Kind::Single, addresses: Addresses::by(sentinels) })
        }
    }
}

fn client(url: &str) -> Result<Client, RedisError> {
    if url.starts_with("rediss:") {
        // The process has one provider of cryptography; somebody else may have named it already.
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    }
    Client::open(tuned(url.into_connection_info()?))
}

fn tuned(info: ConnectionInfo) -> ConnectionInfo {
    let keepalive =
        TcpKeepalive::new().with_time(PROBED_AFTER).with_interval(PROBED_AFTER / 3).with_retries(2);
    // The crate leaves Nagle's algorithm on, which holds small requests back for 40 ms.
    let tcp = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive)
        .set_user_timeout(UNACKNOWLEDGED_MAX);
    // RESP3: the end of a connection is told and not found out, and one that subscribes can publish.
    let redis =
        info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3).set_skip_set_lib_name();
    info.set_tcp_settings(tcp).set_redis_settings(redis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(url: &str) -> Vec<Client> {
        match target(url).expect("a good address").kind {
            Kind::Cluster(nodes) => nodes,
            Kind::Single => panic!("{url} is a single one"),
        }
    }

    #[test]
    fn what_is_not_spoken_is_refused_in_one_line() {
        for url in ["redis+sentinel://a:1,b:2", "http://a", "a", ""] {
            let Err(ReachError::Url(why)) = target(url) else { panic!("{url} was taken") };
            assert_eq!(why.to_string().lines().count(), 1, "{why}");
        }
    }

    #[test]
    fn a_broken_url_is_refused_and_its_password_is_not_shown() {
        for url in ["redis://:hunter2@a:x/", "redis+cluster://:hunter2@a:1,b:x"] {
            let why = target(url).expect_err("a fault").to_string();
            assert!(!why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn good_urls_are_taken() {
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
    fn a_node_that_is_told_of_has_the_credentials_of_the_one_that_told() {
        let nodes = nodes("redis+cluster://u:p%40@a:1");
        let asked = Address::of(&nodes[0]);
        for (told, expected) in [("b:2", "b:2"), (":3", "a:3"), ("fe80::1:4", "fe80::1:4")] {
            let address = Address::read(told, &asked).expect("an address");
            let client = address.client_like(&nodes[0]).expect("a client");
            assert_eq!(Address::of(&client).to_string(), expected);
            assert_eq!(client.get_connection_info().redis_settings().password(), Some("p@"));
        }
    }

    #[tokio::test]
    async fn each_attempt_goes_to_the_next_address() {
        let addresses = target("redis+cluster://a:1,b:2").expect("a good address").addresses;
        for port in [1, 2, 1] {
            let client = addresses.next().await.expect("a client");
            assert_eq!(Address::of(&client).port, port);
        }
        assert_eq!(addresses.last().map(|address| address.port), Some(1));
    }
}
