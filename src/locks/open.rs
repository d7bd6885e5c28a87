//! From `locks.url` to a client of Redis.

use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{Client, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use crate::locks::fault::explain;
use crate::locks::words::LocksError;

/// An idle connection is probed after this long, and each probe repeated after a third of it.
const PROBED_AFTER: Duration = Duration::from_secs(6);
/// The kernel gives a connection up when its peer acknowledged nothing for this long.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);

/// A client for `url`. Opens nothing.
pub(super) fn client(url: &str) -> Result<Client, LocksError> {
    let scheme = url.split("://").next().unwrap_or_default();
    match scheme {
        "redis" => {}
        // The process has one provider of cryptography; somebody else may have named it already.
        "rediss" => drop(rustls::crypto::aws_lc_rs::default_provider().install_default()),
        "redis+sentinel" | "redis+cluster" => {
            return Err(LocksError::Unsupported(format!(
                "`{scheme}://` is not spoken yet: use redis:// or rediss:// and a single primary"
            )));
        }
        _ => {
            return Err(LocksError::Unsupported(
                "`locks.url` must begin with memory:, redis:// or rediss://".to_owned(),
            ));
        }
    }
    let info = url.into_connection_info().map_err(|error| explain(&error))?;
    Client::open(tuned(info)).map_err(|error| explain(&error))
}

fn tuned(info: ConnectionInfo) -> ConnectionInfo {
    let keepalive =
        TcpKeepalive::new().with_time(PROBED_AFTER).with_interval(PROBED_AFTER / 3).with_retries(2);
    // The crate leaves Nagle's algorithm on, which holds small requests back for 40 ms.
    let tcp = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive)
        .set_user_timeout(UNACKNOWLEDGED_MAX);
    // RESP3, for with it the end of a connection is told and not found out.
    let redis =
        info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3).set_skip_set_lib_name();
    info.set_tcp_settings(tcp).set_redis_settings(redis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_spoken_is_refused_in_one_line() {
        for url in ["redis+sentinel://a:1,b:2/main/0", "redis+cluster://a:1", "http://a", "a", ""] {
            let Err(LocksError::Unsupported(why)) = client(url) else { panic!("{url} was taken") };
            assert_eq!(why.lines().count(), 1, "{why}");
        }
    }

    #[test]
    fn a_broken_url_is_a_setting_to_change_and_its_password_is_not_shown() {
        let Err(LocksError::Misconfigured(why)) = client("redis://:hunter2@:x/") else {
            panic!("it was taken");
        };
        assert!(!why.contains("hunter2"), "{why}");
    }

    #[test]
    fn good_urls_are_taken() {
        for url in ["redis://127.0.0.1", "redis://u:p@localhost:7/3", "rediss://cache.example:6380"]
        {
            assert!(client(url).is_ok(), "{url}");
        }
    }
}
