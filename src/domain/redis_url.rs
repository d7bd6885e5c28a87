//! What `locks.url` names: one Redis, or the nodes of a Cluster by any of which it is found.
//!
//! Locks and relay both read it, and each makes connections of its own from it.

/// The schemes that are spoken, for a message that says so.
pub const SCHEMES: &str = "memory:, redis://HOST[:PORT][/DB], rediss://… or \
                           redis+cluster://HOST:PORT,HOST:PORT";

const CLUSTER: &str = "redis+cluster";
const CLUSTER_BY_TLS: &str = "rediss+cluster";

/// Where Redis is. The addresses may hold a password: they are not to be shown.
#[derive(Clone, PartialEq, Eq)]
pub enum RedisUrl {
    /// One primary: `redis://…` or `rediss://…`, as it was written.
    Single(String),
    /// Some nodes of a Cluster, each by an address of the same kind. The others are asked for.
    Cluster(Vec<String>),
}

/// The text names no Redis that is spoken to. It is not repeated, for it may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRedisUrl {
    /// Another scheme, or no host.
    #[error("must be {SCHEMES}")]
    Unknown,
    /// Sentinels are not asked.
    #[error("redis+sentinel:// is not in this version; use redis:// or rediss:// at one primary")]
    Sentinel,
    /// What a Cluster has not.
    #[error("a Cluster has no databases and no options: end the address after the last node")]
    ClusterTail,
}

impl RedisUrl {
    /// Reads an address. `memory:` is none.
    ///
    /// # Errors
    ///
    /// [`InvalidRedisUrl`] says what is wrong.
    pub fn parse(text: &str) -> Result<Self, InvalidRedisUrl> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidRedisUrl::Unknown)?;
        match scheme {
            "redis" | "rediss" if has_host(authority(rest)) => Ok(Self::Single(text.to_owned())),
            CLUSTER => Ok(Self::Cluster(nodes("redis", rest)?)),
            CLUSTER_BY_TLS => Ok(Self::Cluster(nodes("rediss", rest)?)),
            "redis+sentinel" | "rediss+sentinel" => Err(InvalidRedisUrl::Sentinel),
            _ => Err(InvalidRedisUrl::Unknown),
        }
    }
}

/// One address for each node: what stands before the `@` is said to all of them.
fn nodes(scheme: &str, rest: &str) -> Result<Vec<String>, InvalidRedisUrl> {
    let all = authority(rest);
    if !matches!(&rest[all.len()..], "" | "/" | "/0") {
        return Err(InvalidRedisUrl::ClusterTail);
    }
    let (credentials, hosts) = match all.rsplit_once('@') {
        Some((credentials, hosts)) => (format!("{credentials}@"), hosts),
        None => (String::new(), all),
    };
    if !hosts.split(',').all(has_host) {
        return Err(InvalidRedisUrl::Unknown);
    }
    Ok(hosts.split(',').map(|host| format!("{scheme}://{credentials}{host}")).collect())
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
    fn a_cluster_is_some_nodes_with_the_same_credentials() {
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
    fn a_single_one_stays_as_it_was_written() {
        for text in
            ["redis://127.0.0.1", "redis://u:p@localhost:7/3", "rediss://cache:6380/#insecure"]
        {
            assert!(RedisUrl::parse(text) == Ok(RedisUrl::Single(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn what_names_no_redis_is_refused_and_not_repeated() {
        for text in [
            "",
            "a",
            "memory:",
            "http://a",
            "redis://",
            "redis://u:secret@:1",
            "redis+cluster://",
            "redis+cluster://a:1,",
            "redis+cluster://secret@,b:2",
            "redis+cluster://a:1/3",
            "redis+cluster://a:1?x=secret",
            "redis+sentinel://a:1,b:2/main/0",
        ] {
            let why = RedisUrl::parse(text).err().expect("a fault").to_string();
            assert!(why.lines().count() == 1 && !why.contains("secret"), "{text}: {why}");
        }
    }
}
