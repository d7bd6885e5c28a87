//! Whole runs, small ones.

use crate::costs::{self, Costs};
use crate::plan::{Fault, FirstPause, Plan};
use crate::report::rise;
use crate::world::{State, World};

const FAULTS: [(Fault, f64); 6] = [
    (Fault::None, 0.0),
    (Fault::Server, 10.0),
    (Fault::Rack, 10.0),
    (Fault::Redis, 12.0),
    (Fault::Postgres, 10.0),
    (Fault::Wake, 0.0),
];

fn plan(fault: Fault, fault_for: f64) -> Plan {
    let plan =
        Plan { visits: 60.0, sleeps: 60.0, split: 0.1, fault_at: 8, ..Plan::of(400, 4, 2, 2) };
    plan.with(fault, fault_for, 50)
}

fn figures(world: &World<'_>) -> Vec<u64> {
    let found = &world.found;
    let counts = [found.keys, found.groups, found.stored, found.commands, found.joins.total];
    let waits = [&found.relay, &found.joins, &found.again, &found.saved];
    counts.into_iter().chain(waits.map(|it| it.quantile(0.99).to_bits())).collect()
}

#[test]
fn a_seed_gives_one_run_and_another_seed_another() {
    let costs = costs::made_up();
    let one = plan(Fault::Server, 10.0);
    let other = Plan { seed: 2, ..one.clone() };
    let [first, again, second] =
        [&one, &one, &other].map(|plan| figures(&World::new(plan, &costs).run()));
    assert_eq!(first, again);
    assert_ne!(first, second);
}

/// Each session is in one state, each seat belongs to one server, and each key is somewhere.
#[test]
fn no_fault_loses_a_session_a_seat_or_a_key() {
    let costs = costs::made_up();
    for (fault, fault_for) in FAULTS {
        let plan = plan(fault, fault_for);
        let world = World::new(&plan, &costs).run();
        let of = |state| world.sessions.iter().filter(|it| it.state == state).count();
        let states = [State::Seated, State::Joining, State::Unaware, State::Asleep, State::Left];
        assert_eq!(states.map(of).iter().sum::<usize>(), 2 * plan.pairs, "{fault:?}");
        let seats: u32 = (0..plan.servers as u16).map(|server| world.seats_of(server)).sum();
        assert_eq!(seats as usize, of(State::Seated), "{fault:?}");
        assert!(of(State::Seated) * 10 > plan.pairs * 2 * 8, "{fault:?}: most sit again");
        assert_eq!(of(State::Unaware), 0, "{fault:?}");
        let pending: usize = world.servers.iter().map(|server| server.pending.len()).sum();
        let kept: u32 = world.sessions.iter().map(|session| session.kept).sum();
        let found = &world.found;
        let somewhere = found.stored + found.returned + pending as u64 + u64::from(kept);
        assert_eq!(found.keys, somewhere, "{fault:?}");
        assert!(found.keys > 9_000, "{fault:?}: {}", found.keys);
    }
}

#[test]
fn each_fault_shows_where_it_strikes() {
    let costs = costs::made_up();
    let found = |(fault, fault_for)| World::new(&plan(fault, fault_for), &costs).run().found;
    let [none, server, rack, redis, postgres, wake] = FAULTS.map(found);
    assert_eq!((none.missed_renewals, none.uncertain_seats, none.again.total), (0, 0, 0));
    assert!(none.saved.quantile(0.99) < 0.2, "{}", none.saved.quantile(0.99));
    // A broken socket is noticed at once, a silent one after half a minute.
    assert!((150..250).contains(&server.again.total) && server.again.quantile(0.95) < 1.0);
    assert!(rack.again.total > 0 && rack.again.quantile(0.05) > 28.0);
    // Twelve seconds without the node: each of its seats misses a round or two, and is uncertain.
    assert!(redis.missed_renewals > 300 && redis.uncertain_seats > 150);
    assert_eq!(postgres.missed_renewals, 0);
    assert!(postgres.saved.quantile(1.0) > 9.0 && postgres.relay.quantile(0.99) < 0.1);
    assert!(wake.joins.total > none.joins.total + 50);
}

/// More than the queue of a server: it returns what it cannot hold, and holds no more than that.
#[test]
fn a_server_holds_a_bounded_number_of_edits_while_the_database_is_away() {
    let plan = Plan { typing: 1.0, rate: 50.0, fault_at: 1, ..Plan::of(100, 1, 1, 1) };
    let (plan, costs) = (plan.with(Fault::Postgres, 60.0, 6), costs::made_up());
    let world = World::new(&plan, &costs).run();
    assert!(world.found.returned > 5_000);
    assert_eq!(world.servers[0].pending.len(), crate::plan::PENDING_MAX);
}

#[test]
fn a_spread_pause_lowers_the_peak_of_the_other_servers() {
    let costs = costs::made_up();
    let plan = Plan { visits: 0.0, sleeps: 0.0, rate: 0.05, ..Plan::of(40_000, 10, 1, 20) };
    let plan = plan.with(Fault::Server, 10.0, 25);
    let [together, spread] = [FirstPause::Short, FirstPause::Named].map(|first_pause| {
        let plan = Plan { first_pause, ..plan.clone() };
        let world = World::new(&plan, &costs).run();
        (rise(&world), world.found.again.quantile(0.95))
    });
    assert!(spread.0 < together.0 / 2.0, "{spread:?} {together:?}");
    assert!(together.1 < 1.0 && (3.0..5.0).contains(&spread.1), "{spread:?} {together:?}");
}

/// Rounds in step meet at the node: the last server waits for all others.
#[test]
fn rounds_in_step_take_longer_than_rounds_apart() {
    let costs = Costs { redis_renewal: 50.0, ..costs::made_up() };
    let plan = Plan { typing: 0.0, ..Plan::of(4_000, 20, 1, 1) };
    let [apart, in_step] = [false, true].map(|in_step| {
        let plan = Plan { in_step, ..plan.clone() };
        World::new(&plan, &costs).run().found.rounds.quantile(0.99)
    });
    assert!(apart * 3.0 < in_step, "{apart} {in_step}");
}
