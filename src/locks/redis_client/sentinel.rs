//! Redis Sentinel: the lookup of the primary.
//!
//! Sentinels agree on each failover and number it. A partitioned Sentinel still names the old
//! primary, under a lower number than the highest that this process received. The client rejects
//! its reply.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError, RedisResult};

use crate::redis_client::address::Address;

const REPLY_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Sentinels {
    all: Vec<Client>,
    name: String,
    /// A client with the primary's settings; its address is a placeholder.
    primary: Client,
    /// The Sentinel to query first: the last one that replied.
    first: AtomicUsize,
    /// The number of the latest known failover.
    epoch: AtomicU64,
}

impl Sentinels {
    pub(crate) fn new(all: Vec<Client>, name: String, primary: Client) -> Self {
        Self { all, name, primary, first: AtomicUsize::new(0), epoch: AtomicU64::new(0) }
    }

    /// A client for the primary, from the first Sentinel that knows it.
    pub(crate) async fn client(&self) -> RedisResult<Client> {
        let first = self.first.load(Ordering::Relaxed);
        let mut fault = RedisError::from((ErrorKind::Io, "no Sentinel is known"));
        for (at, sentinel) in self.all.iter().enumerate().cycle().skip(first).take(self.all.len()) {
            match self.query(sentinel).await {
                Ok(address) => {
                    self.first.store(at, Ordering::Relaxed);
                    return address.client_like(&self.primary);
                }
                Err(error) => fault = error,
            }
        }
        Err(fault)
    }

    async fn query(&self, sentinel: &Client) -> RedisResult<Address> {
        let reply = match self.query_as(sentinel).await {
            Err(error) if wants_password(&error) => {
                // The Sentinel then takes the credentials of the primary.
                let ours = self.primary.get_connection_info().redis_settings().clone();
                let info = sentinel.get_connection_info().clone();
                self.query_as(&Client::open(info.set_redis_settings(ours.set_db(0)))?).await?
            }
            reply => reply?,
        };
        let field = |name: &str| reply.get(name).map(String::as_str);
        let number = |name: &str| field(name).and_then(|text| text.parse::<u64>().ok());
        let unexpected = || RedisError::from((ErrorKind::Parse, "unexpected reply of a Sentinel"));
        let epoch = number("config-epoch").ok_or_else(unexpected)?;
        if epoch < self.epoch.fetch_max(epoch, Ordering::Relaxed) {
            return Err((ErrorKind::Io, "the Sentinel missed a failover").into());
        }
        let port =
            number("port").and_then(|port| u16::try_from(port).ok()).ok_or_else(unexpected)?;
        Ok(Address { host: field("ip").ok_or_else(unexpected)?.to_owned(), port })
    }

    async fn query_as(&self, sentinel: &Client) -> RedisResult<HashMap<String, String>> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(REPLY_TIMEOUT))
            .set_response_timeout(Some(REPLY_TIMEOUT));
        let mut connection = sentinel.get_multiplexed_async_connection_with_config(&config).await?;
        let reply =
            redis::cmd("SENTINEL").arg("MASTER").arg(&self.name).query_async(&mut connection).await;
        reply.map_err(|error| {
            if error.to_string().contains("No such master") {
                let what = "the Sentinels know no primary of that name";
                RedisError::from((ErrorKind::InvalidClientConfig, what))
            } else {
                error
            }
        })
    }
}

fn wants_password(error: &RedisError) -> bool {
    error.code() == Some("NOAUTH") || error.kind() == ErrorKind::AuthenticationFailed
}
