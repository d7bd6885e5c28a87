//! Seats, edits and renewal times of all servers in the last hour.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use serde::Serialize;
use tokio::time::Instant;

use crate::admin::Console;
use crate::domain::ids::NodeId;
use crate::pubsub::{Reply, Request};
use crate::telemetry::last_hour::{self, MINUTES, Minute};

/// How long a server may take for its reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// The last hour of all servers. An entry is `null` where no server answered.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Series {
    /// The start of each minute.
    pub minutes: Vec<DateTime<Utc>>,
    /// Seats held, of all servers.
    pub seats: Vec<Option<u32>>,
    /// Committed updates of documents, of all servers.
    pub edits: Vec<Option<u64>>,
    /// 99th percentile of the renewal rounds in ms, of the slowest server.
    pub renewal_p99_ms: Vec<Option<f64>>,
    /// The servers of the last hour that did not answer. Their minutes are missing in the sums.
    pub missing: Vec<NodeId>,
}

impl Console {
    pub async fn series(&self) -> Series {
        let (running, mut missing) = self.peers.running_and_ended(Instant::now());
        let replies =
            running.iter().map(|node| self.peers.request(*node, Request::Series, REPLY_TIMEOUT));
        let mut hours = vec![last_hour::minutes()];
        for (node, reply) in running.iter().zip(join_all(replies).await) {
            let minutes = match reply {
                Ok(Reply::Series(json)) => serde_json::from_str(&json).ok(),
                _ => None,
            };
            match minutes {
                Some(minutes) => hours.push(minutes),
                None => missing.push(*node),
            }
        }
        missing.sort_unstable();
        merge(&hours.concat(), last_hour::now(), missing)
    }
}

/// Merges the minutes of all servers that end with minute `now`.
fn merge(minutes: &[Minute], now: i64, missing: Vec<NodeId>) -> Series {
    let mut sums: HashMap<i64, Minute> = HashMap::new();
    for minute in minutes {
        let sum = sums.entry(minute.number).or_default();
        sum.seats += minute.seats;
        sum.edits += minute.edits;
        let slower = [sum.renewal_p99_ms, minute.renewal_p99_ms].into_iter().flatten();
        sum.renewal_p99_ms = slower.reduce(f64::max);
    }
    let numbers: Vec<_> = (0..MINUTES as i64).rev().map(|ago| now - ago).collect();
    let sums: Vec<_> = numbers.iter().map(|number| sums.get(number)).collect();
    Series {
        minutes: numbers.iter().filter_map(|it| DateTime::from_timestamp(it * 60, 0)).collect(),
        seats: sums.iter().map(|sum| sum.map(|it| it.seats)).collect(),
        edits: sums.iter().map(|sum| sum.map(|it| it.edits)).collect(),
        renewal_p99_ms: sums.iter().map(|sum| sum.and_then(|it| it.renewal_p99_ms)).collect(),
        missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_of_several_servers_are_summed_and_gaps_stay_null() {
        let minute =
            |number, seats, edits, renewal_p99_ms| Minute { number, seats, edits, renewal_p99_ms };
        let all =
            [minute(99, 2, 5, Some(1.0)), minute(99, 3, 7, Some(4.0)), minute(100, 1, 0, None)];
        let series = merge(&all, 100, Vec::new());
        assert_eq!((series.minutes.len(), series.seats.len()), (MINUTES, MINUTES));
        assert_eq!(series.minutes[59].timestamp(), 6_000);
        assert_eq!(series.seats[57..], [None, Some(5), Some(1)]);
        assert_eq!(series.edits[57..], [None, Some(12), Some(0)]);
        assert_eq!(series.renewal_p99_ms[57..], [None, Some(4.0), None]);
    }
}
