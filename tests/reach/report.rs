//! The tables and plots of `RESULTS.md`.

use std::fs;
use std::path::Path;

use crate::costs::Costs;
use crate::day::{Day, Demand, MINUTES};
use crate::measures::Waits;
use crate::plan::{Fault, FirstPause, Plan, RACKS};
use crate::plots::Chart;
use crate::stations::Station;
use crate::world::World;

/// A component is large enough if the busiest minute occupies this share of it.
const FULL: f64 = 0.5;
/// Sockets of one server.
const SOCKETS: f64 = 100_000.0;
const SETTLED: usize = 5;
const SCALES: [usize; 3] = [10_000, 100_000, 1_000_000];

/// The machines for so many pairs, with each component at [`FULL`] in the busiest minute.
fn sized(pairs: usize, costs: &Costs) -> (Plan, Demand) {
    let mut plan = Plan::of(pairs, 2, 1, 1);
    let day = Day::of(&plan);
    // Group commits depend on the number of servers.
    for _ in 0..20 {
        let demand = day.peak(&plan, costs);
        let up = |cores: f64, each: f64| (cores / (each * FULL)).ceil().max(1.0) as usize;
        let by_sockets = (2.0 * pairs as f64 / SOCKETS).ceil() as usize;
        plan.servers = up(demand.servers, plan.cores as f64).max(by_sockets).max(2);
        plan.nodes = up(demand.redis, 1.0);
        plan.partitions = up(demand.postgres, 1.0);
    }
    let demand = day.peak(&plan, costs);
    (plan, demand)
}

pub(crate) fn report(costs: &Costs, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    println!("{SIZES}");
    for pairs in SCALES {
        let (plan, demand) = sized(pairs, costs);
        let Demand { servers, redis, postgres } = demand;
        let Plan { servers: n, nodes, partitions, .. } = plan;
        let busy = [servers / 4.0, redis, postgres].map(|share| 100.0 * share);
        let [a, b, c] = busy;
        println!(
            "| {pairs} | {servers:.2} · {redis:.3} · {postgres:.2} | {n} · {nodes} · {partitions} | {a:.0} · {b:.0} · {c:.0} % |"
        );
    }
    println!("\n{HEAD}");
    for pairs in &SCALES[..2] {
        faults(*pairs, costs);
    }
    plots(costs, folder)
}

const SIZES: &str = "| pairs | busy cores of servers · Redis · PostgreSQL | servers · nodes · partitions | with two servers, one node, one partition |\n|---|---|---|---|";
const HEAD: &str = "| pairs | fault | relay p50, p99 ms | across p99 | saved p99 | join p99 | missed renewals | uncertain seats | seated again p50, p95, most s | others, most |\n|---|---|---|---|---|---|---|---|---|---|";

fn faults(pairs: usize, costs: &Costs) {
    let (plan, _) = sized(pairs, costs);
    let short = Plan { first_pause: FirstPause::Short, ..plan.clone() };
    let step = Plan { in_step: true, ..plan.clone() };
    let runs = [
        ("none", plan.clone().with(Fault::None, 0.0, 20)),
        ("none, ticks in step", step.with(Fault::None, 0.0, 20)),
        ("a server", plan.clone().with(Fault::Server, 30.0, 30)),
        ("a server, all within 0.6 s", short.with(Fault::Server, 30.0, 30)),
        ("a rack", plan.clone().with(Fault::Rack, 60.0, 55)),
        ("a Redis node, 6 s", plan.clone().with(Fault::Redis, 6.0, 30)),
        ("a Redis node, 16 s", plan.clone().with(Fault::Redis, 16.0, 40)),
        ("laptops wake", plan.clone().with(Fault::Wake, 0.0, 45)),
        ("PostgreSQL, a minute", plan.with(Fault::Postgres, 60.0, 110)),
    ];
    for (name, plan) in runs {
        let world = World::new(&plan, costs).run();
        let found = &world.found;
        let ms = |waits: &Waits, share| 1e3 * waits.quantile(share);
        let (p50, p99) = (ms(&found.relay, 0.5), ms(&found.relay, 0.99));
        let [across, saved, join] =
            [&found.across, &found.saved, &found.joins].map(|it| ms(it, 0.99));
        let [half, most, all] = [0.5, 0.95, 1.0].map(|share| found.again.quantile(share));
        let (missed, uncertain) = (found.missed_renewals, found.uncertain_seats);
        let rise = 100.0 * rise(&world);
        println!(
            "| {pairs} | {name} | {p50:.2}, {p99:.2} | {across:.1} | {saved:.0} | {join:.0} | {missed} | {uncertain} | {half:.2}, {most:.2}, {all:.1} | {rise:+.1} % |"
        );
    }
}

/// By how much the busiest second after the fault exceeds the mean before it, on the servers that the fault spares.
pub(crate) fn rise(world: &World<'_>) -> f64 {
    let plan = world.plan;
    let before: f64 = (SETTLED..plan.fault_at).map(|second| others(world, second)).sum();
    let before = before / (plan.fault_at - SETTLED) as f64;
    let most =
        (plan.fault_at..plan.seconds).map(|second| others(world, second)).fold(0.0, f64::max);
    most / before - 1.0
}

/// Busy cores of the servers that the fault spares.
fn others(world: &World<'_>, second: usize) -> f64 {
    let plan = world.plan;
    let is_spared = |server: usize| match plan.fault {
        Fault::Server => server != 0,
        Fault::Rack => !server.is_multiple_of(RACKS),
        Fault::None | Fault::Redis | Fault::Postgres | Fault::Wake => true,
    };
    let servers = world.servers.iter().enumerate().filter(|(number, _)| is_spared(*number));
    servers.map(|(_, server)| server.station.busy_cores(second)).sum()
}

fn plots(costs: &Costs, folder: &Path) -> Result<(), String> {
    let put = |name: &str, chart: &Chart| {
        fs::write(folder.join(name), chart.svg()).map_err(|error| format!("{name}: {error}"))
    };
    let (plan, _) = sized(SCALES[2], costs);
    put("day.svg", &day_chart(&plan, costs))?;
    let lines = [FirstPause::Short, FirstPause::Named].map(|first_pause| {
        let plan = Plan { first_pause, ..plan.clone() }.with(Fault::Server, 30.0, 30);
        let pause = format!("0.3 to {}", plan.longest_first_pause());
        let world = World::new(&plan, costs).run();
        let (rise, again) = (100.0 * rise(&world), world.found.again.quantile(0.95));
        let of = plan.servers;
        println!("One of {of} servers, {pause} s: others {rise:+.1} %, again p95 {again:.2} s");
        let (from, before) = (plan.fault_at - 5, others(&world, plan.fault_at - 2));
        let load = |at| ((at - from) as f64, 100.0 * others(&world, at) / before);
        (format!("first pause {pause} s"), (from..plan.seconds).map(load).collect())
    });
    let chart = Chart {
        title: format!("The loss of one server of {}: processor of the others", plan.servers),
        x: "seconds; the loss is at 5",
        y: "% of before",
        lines: lines.into(),
    };
    put("loss.svg", &chart)
}

fn day_chart(plan: &Plan, costs: &Costs) -> Chart {
    let day = Day::of(plan);
    let demands = day.demands(plan, costs);
    let have = [plan.servers * plan.cores, plan.nodes, plan.partitions].map(|cores| cores as f64);
    let line = |name: &str, of: fn(&Demand) -> f64, have: f64| {
        let hours = (0..MINUTES).map(|minute| minute as f64 / 60.0);
        let points = hours.zip(demands.iter().map(|demand| 100.0 * of(demand) / have));
        (format!("{name}: {have} cores"), points.collect())
    };
    Chart {
        title: "A day: processor of each component in each minute".to_owned(),
        x: "hour",
        y: "% busy",
        lines: vec![
            line("servers", |it| it.servers, have[0]),
            line("Redis", |it| it.redis, have[1]),
            line("PostgreSQL", |it| it.postgres, have[2]),
        ],
    }
}

/// The mean busy cores of all servers, of Redis and of PostgreSQL, between the settling and the fault.
pub(crate) fn cores(world: &World<'_>) -> [f64; 3] {
    let seconds = SETTLED..world.plan.fault_at.min(world.plan.seconds);
    let mean = |stations: &mut dyn Iterator<Item = &Station>| {
        let sums = stations.map(|it| seconds.clone().map(|at| it.busy_cores(at)).sum::<f64>());
        sums.sum::<f64>() / seconds.len() as f64
    };
    [
        mean(&mut world.servers.iter().map(|server| &server.station)),
        mean(&mut world.redis.iter()),
        mean(&mut world.postgres.iter()),
    ]
}
