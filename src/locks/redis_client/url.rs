//! Parses `locks.url`: one Redis, the Sentinels of a primary, or some nodes of a Cluster.
//!
//! Locks and pub/sub both parse it, and each opens its own connections.

/// The supported schemes, for error messages.
pub const SCHEMES: &str = "memory:, redis://HOST[:PORT][/DB], rediss://…, \
                           redis+sentinel://HOST:PORT,HOST:PORT/NAME[/DB] or \
                           redis+cluster://HOST:PORT,HOST:PORT";

const CLUSTER: &str = "redis+cluster";
const CLUSTER_BY_TLS: &str = "rediss+cluster";
const SENTINEL: &str = "redis+sentinel";
const SENTINEL_BY_TLS: &str = "rediss+sentinel";

/// The parsed address. It may contain a password: it is never logged or shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum RedisUrl {
    /// One primary: `redis://…` or `rediss://…`, unchanged.
    Single(String),
    /// Some nodes of a Cluster, each as a single address. The client queries them for the others.
    Cluster(Vec<String>),
    /// One primary, as Sentinels name it.
    Sentinel {
        /// The addresses of the Sentinels, without credentials.
        sentinels: Vec<String>,
        /// Their name for the primary.
        name: String,
        /// The primary's address with credentials and database; its host is a placeholder.
        primary: String,
    },
}

/// The address names no supported Redis. The error does not repeat it, because it may contain a
/// password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRedisUrl {
    /// An unsupported scheme, or no host.
    #[error("must be {SCHEMES}")]
    Unknown,
    /// Sentinels without the name of the primary.
    #[error("must name the primary after the Sentinels: redis+sentinel://HOST:PORT,HOST:PORT/NAME")]
    Nameless,
    /// More than a database after the host: a query string, which could contain a password, or `#insecure`,
    /// by which the `redis` crate verifies no certificate.
    #[error(
        "takes no parameters; a password stands before the @, and a database, a number, behind the host"
    )]
    Parameters,
    /// A database or an option, which a Cluster does not have.
    #[error("must end after the last node of a Cluster, which has no databases and no options")]
    ClusterTail,
}

impl RedisUrl {
    /// Parses an address. `memory:` is not one.
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidRedisUrl> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidRedisUrl::Unknown)?;
        match scheme {
            "redis" | "rediss" if !has_host(authority(rest)) => Err(InvalidRedisUrl::Unknown),
            "redis" | "rediss" if has_parameters(rest) => Err(InvalidRedisUrl::Parameters),
            "redis" | "rediss" => Ok(Self::Single(text.to_owned())),
            CLUSTER => Ok(Self::Cluster(nodes("redis", rest)?)),
            CLUSTER_BY_TLS => Ok(Self::Cluster(nodes("rediss", rest)?)),
            SENTINEL => by_sentinels("redis", rest),
            SENTINEL_BY_TLS => by_sentinels("rediss", rest),
            _ => Err(InvalidRedisUrl::Unknown),
        }
    }
}

/// One address for each node; all get the credentials before the `@`.
fn nodes(scheme: &str, rest: &str) -> Result<Vec<String>, InvalidRedisUrl> {
    let all = authority(rest);
    if !matches!(rest.strip_prefix(all), Some("" | "/" | "/0")) {
        return Err(InvalidRedisUrl::ClusterTail);
    }
    let (credentials, hosts) = parts(all)?;
    Ok(hosts.map(|host| format!("{scheme}://{credentials}{host}")).collect())
}

/// An address through Sentinels; the credentials are those of the primary.
fn by_sentinels(scheme: &str, rest: &str) -> Result<RedisUrl, InvalidRedisUrl> {
    let all = authority(rest);
    let path = rest.strip_prefix(all).unwrap_or_default().trim_matches('/');
    let (name, database) = path.split_once('/').unwrap_or((path, "0"));
    let is_plain = |text: &str| !text.is_empty() && !text.contains(['/', '?', '#']);
    if !is_plain(name) || database.parse::<u16>().is_err() {
        return Err(InvalidRedisUrl::Nameless);
    }
    let (credentials, hosts) = parts(all)?;
    let sentinels: Vec<_> = hosts.map(|host| format!("{scheme}://{host}")).collect();
    let primary = format!("{scheme}://{credentials}primary/{database}");
    Ok(RedisUrl::Sentinel { sentinels, name: name.to_owned(), primary })
}

/// The text up to and including the `@`, and the hosts after it.
fn parts(all: &str) -> Result<(&str, std::str::Split<'_, char>), InvalidRedisUrl> {
    let (credentials, hosts) = all.split_at(all.rfind('@').map_or(0, |at| at + 1));
    if !hosts.split(',').all(has_host) {
        return Err(InvalidRedisUrl::Unknown);
    }
    Ok((credentials, hosts.split(',')))
}

/// Whether more than `/DATABASE` follows the host.
fn has_parameters(rest: &str) -> bool {
    let tail = rest.strip_prefix(authority(rest)).unwrap_or_default();
    !matches!(tail, "" | "/") && tail.strip_prefix('/').is_none_or(|it| it.parse::<u16>().is_err())
}

fn authority(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

fn has_host(authority: &str) -> bool {
    let host = authority.rsplit('@').next().unwrap_or_default();
    !host.is_empty() && !host.starts_with(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_nodes_of_a_cluster_url_have_the_same_credentials() {
        let read = |text| match RedisUrl::parse(text) {
            Ok(RedisUrl::Cluster(nodes)) => nodes,
            _ => panic!("{text}"),
        };
        assert_eq!(read("redis+cluster://a:1,b:2"), ["redis://a:1", "redis://b:2"]);
        assert_eq!(
            read("redis+cluster://u:p@a,[::1]:2/"),
            ["redis://u:p@a", "redis://u:p@[::1]:2"]
        );
        assert_eq!(read("rediss+cluster://:p@a:1/0"), ["rediss://:p@a:1"]);
    }

    #[test]
    fn sentinels_do_not_get_the_credentials_of_the_primary() {
        let read = RedisUrl::parse("redis+sentinel://u:p@a:1,b:2/main/3");
        let sentinels = vec!["redis://a:1".to_owned(), "redis://b:2".to_owned()];
        let (name, primary) = ("main".to_owned(), "redis://u:p@primary/3".to_owned());
        assert!(read == Ok(RedisUrl::Sentinel { sentinels, name, primary }));
        let read = RedisUrl::parse("rediss+sentinel://a/main");
        let (sentinels, primary) = (vec!["rediss://a".to_owned()], "rediss://primary/0".to_owned());
        assert!(read == Ok(RedisUrl::Sentinel { sentinels, name: "main".to_owned(), primary }));
    }

    #[test]
    fn the_url_of_a_single_redis_is_unchanged() {
        for text in ["redis://127.0.0.1", "redis://u:p@localhost:7/3", "rediss://cache:6380/"] {
            assert!(RedisUrl::parse(text) == Ok(RedisUrl::Single(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn an_invalid_url_is_rejected_and_not_repeated() {
        for text in [
            "",
            "a",
            "memory:",
            "http://a",
            "redis://",
            "redis://u:secret@:1",
            "redis://a/0?password=secret",
            "redis://a/secret",
            "redis://a/0/1",
            "rediss://secret@a/#insecure",
            "rediss://secret@a#insecure",
            "redis+cluster://",
            "redis+cluster://a:1,",
            "redis+cluster://secret@,b:2",
            "redis+cluster://a:1/3",
            "redis+cluster://a:1?x=secret",
            "redis+sentinel://secret@a:1,b:2",
            "redis+sentinel://secret@a:1/main/x",
            "redis+sentinel://a:1,/main",
        ] {
            let why = RedisUrl::parse(text).err().expect("a fault").to_string();
            assert!(why.lines().count() == 1 && !why.contains("secret"), "{text}: {why}");
        }
    }
}
