//! Servers that are killed at random moments of deletions: each deletion ends, and nothing names its user.

use tokio::time::{Duration, sleep};

use crate::server::delivery::QUICK;
use crate::server::kill_campaign::{planned, say};
use crate::server::offer_fixtures::Fleet;
use crate::server::person_fixtures::{Whole, done, in_bytes, in_dump};
use crate::support::galley_process::Server;
use crate::support::postgres_server;
use crate::support::rng::Random;

/// Kills of each engine, unless `GALLEY_KILLS` sets the number.
const KILLS: usize = 25;
/// The longest time from the request to the kill: the job begins within its tick.
const KILL_WITHIN_MS: usize = 2_000;

async fn at_a_moment(random: &mut Random) {
    let moment = random.below(KILL_WITHIN_MS);
    // The moment of the kill, not a wait for an event.
    sleep(Duration::from_millis(moment as u64)).await;
}

/// Goal: on SQLite the same server goes on with a deletion after each kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_deletions_leave_no_byte_of_the_user_in_the_file() {
    let (kills, mut random) = planned("persons, SQLite", KILLS);
    let mut server = Server::with(&QUICK).await;
    for kill in 0..kills {
        let with_reviews = kill % 2 == 0;
        let whole = Whole::on(&server).await;
        let receipt =
            whole.delete(&server, if with_reviews { "?reviews=delete" } else { "" }).await;
        at_a_moment(&mut random).await;
        server.kill().await;
        server.start_again().await;
        done(&server, &receipt).await;
        whole.is_nameless(&server, with_reviews).await;
        let found = in_bytes(server.folder(), &whole.needles(with_reviews));
        assert_eq!(found, Vec::new(), "kill {kill}");
        say(&format!("persons, SQLite: kill {kill} is over"));
    }
}

/// Goal: another server goes on with the deletion of a killed one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_deletions_leave_no_row_of_the_user_in_postgresql() {
    let (kills, mut random) = planned("persons, PostgreSQL", KILLS);
    let mut fleet = Fleet::with(2, &QUICK).await;
    for kill in 0..kills {
        let with_reviews = kill % 2 == 0;
        let whole = Whole::on(&fleet.servers[1]).await;
        let query = if with_reviews { "?reviews=delete" } else { "" };
        let receipt = whole.delete(&fleet.servers[0], query).await;
        at_a_moment(&mut random).await;
        fleet.servers[kill % 2].kill().await;
        let other = &fleet.servers[(kill + 1) % 2];
        done(other, &receipt).await;
        whole.is_nameless(other, with_reviews).await;
        let database = fleet.database.as_ref().expect("a database");
        let found = in_dump(&database.dump(), &whole.needles(with_reviews));
        assert_eq!(found, Vec::<String>::new(), "kill {kill}");
        say(&format!("persons, PostgreSQL: kill {kill} is over"));
        fleet.servers[kill % 2].start_again().await;
    }
}

/// Goal: a deletion waits for the database, and goes on when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_goes_on_after_postgresql_was_away() {
    let (_, mut random) = planned("persons, without PostgreSQL", 1);
    let postgres = postgres_server::Server::start();
    let name = postgres.empty().await;
    let url = postgres.url(&name);
    let server = Server::with(&[QUICK[0], QUICK[1], ("DATABASE__URL", &url)]).await;
    let whole = Whole::on(&server).await;
    let receipt = whole.delete(&server, "?reviews=delete").await;
    at_a_moment(&mut random).await;
    postgres.kill();
    postgres.start_again().await;
    done(&server, &receipt).await;
    whole.is_nameless(&server, true).await;
    assert_eq!(in_dump(&postgres.dump(&name), &whole.needles(true)), Vec::<String>::new());
}
