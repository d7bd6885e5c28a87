//! The costs of each act, measured by `measure.mjs`, read from `measured.json`.

use crate::json::Json;

macro_rules! costs {
    ($($(#[$about:meta])* $name:ident,)*) => {
        /// Processor time in µs, unless the field says otherwise.
        #[derive(Clone, Debug)]
        pub(crate) struct Costs {
            $($(#[$about])* pub(crate) $name: f64,)*
        }

        impl Costs {
            /// The costs of this object. Fails with the name of a missing one.
            pub(crate) fn read(json: &Json) -> Result<Self, String> {
                Ok(Self { $($name: json.number(stringify!($name))?,)* })
            }
        }
    };
}

costs! {
    /// The server, for an edit: validation, broadcast, its share of the queue.
    server_edit,
    /// The server, for a group commit, whatever its size.
    server_group,
    server_join,
    server_review,
    /// The server, for a seated session and second: pings, ticks, renewals.
    server_idle,
    /// The server of the receiver, for an edit of another server.
    server_received,
    /// Redis, for a claim with its release.
    redis_claim,
    /// Redis, for one lock of a renewal round.
    redis_renewal,
    /// Redis, for a message between two servers.
    redis_message,
    /// PostgreSQL, for a group commit with one row.
    postgres_group,
    /// PostgreSQL, for each further row of a group.
    postgres_row,
    postgres_join,
    postgres_review,
    /// PostgreSQL, for a seated session and second: the comparisons of the ticks.
    postgres_idle,
    /// From a server to another and back; the disk of a commit: waits without work.
    round_trip,
    commit_wait,
    /// Commands of a join, of a message and of a leave at Redis, and of a server's tick beside its calls of 250 locks.
    commands_join,
    commands_leave,
    commands_tick,
    /// An edit from one client to the other without a queue, median and 99th percentile.
    relay_p50,
    relay_p99,
    /// A join without a queue, from the open of the socket to `seat.granted`, median and 99th percentile.
    join_p50,
    join_p99,
}

/// Costs of tests, which no measurement changes.
#[cfg(test)]
pub(crate) fn made_up() -> Costs {
    let json = r#"{"server_edit": 50, "server_group": 100, "server_join": 600, "server_review": 1500,
        "server_idle": 8, "server_received": 25, "redis_claim": 30, "redis_renewal": 2, "redis_message": 8,
        "postgres_group": 400, "postgres_row": 35, "postgres_join": 600, "postgres_review": 1500,
        "postgres_idle": 2, "round_trip": 100, "commit_wait": 500, "commands_join": 1, "commands_leave": 1,
        "commands_tick": 2, "relay_p50": 150, "relay_p99": 800, "join_p50": 3000, "join_p99": 9000}"#;
    Costs::read(&Json::parse(json).expect("JSON")).expect("each cost")
}

#[test]
fn the_measured_costs_are_whole() {
    let measured = Json::parse(include_str!("measured.json")).expect("JSON");
    Costs::read(measured.field("costs").expect("costs")).expect("each cost");
}
