//! Predictions beside measurements of real servers.

use crate::costs::Costs;
use crate::json::Json;
use crate::plan::{Fault, Plan};
use crate::report::cores;
use crate::world::World;

/// The largest deviation of a prediction.
const WITHIN: f64 = 0.25;

/// Prints each run of the file; true if all predictions are within the bound.
pub(crate) fn compare(json: &Json, costs: &Costs) -> Result<bool, String> {
    let mut all_within = true;
    println!("| run | what | predicted | measured | ratio |\n|---|---|---|---|---|");
    for run in json.list("runs")? {
        let (name, measured) = (run.text("name")?, run.field("measured")?);
        // The disk of the run is given; what the servers make of it is predicted.
        let commit_wait = (1e3 * run.number("commit_ms")? - costs.postgres_group).max(0.0);
        let costs = Costs { commit_wait, ..costs.clone() };
        for (what, predicted) in predictions(&plan_of(run)?, &costs) {
            let Ok(found) = measured.number(what) else { continue };
            let ratio = predicted / found;
            let is_within = (1.0 / (1.0 + WITHIN)..=1.0 + WITHIN).contains(&ratio);
            all_within &= is_within;
            let ratio = if is_within { format!("{ratio:.2}") } else { format!("**{ratio:.2}**") };
            println!("| {name} | {what} | {predicted:.3} | {found:.3} | {ratio} |");
        }
    }
    Ok(all_within)
}

fn plan_of(run: &Json) -> Result<Plan, String> {
    let whole = |name: &str| run.number(name).map(|number| number as usize);
    let plan = Plan::of(whole("pairs")?, whole("servers")?, 1, 1);
    let down = run.number("down")?;
    let fault = if 0.0 < down { Fault::Server } else { Fault::None };
    Ok(Plan {
        typing: 1.0,
        rate: run.number("rate")?,
        reviews: 0.0,
        visits: run.number("visits")?,
        sleeps: 0.0,
        split: run.number("split")?,
        fault_at: whole("fault_at")?,
        ..plan.with(fault, down, whole("seconds")?)
    })
}

fn predictions(plan: &Plan, costs: &Costs) -> Vec<(&'static str, f64)> {
    let world = World::new(plan, costs).run();
    let [servers, redis, postgres] = cores(&world);
    let found = &world.found;
    let edits = if plan.split < 1.0 { &found.relay } else { &found.across };
    let mut predicted = vec![
        ("server cores", servers),
        ("Redis cores", redis),
        ("PostgreSQL cores", postgres),
        ("Redis commands a second", found.commands as f64 / plan.seconds as f64),
        ("groups a second", found.groups as f64 / plan.seconds as f64),
        ("edit p50 ms", 1e3 * edits.quantile(0.5)),
        ("edit p99 ms", 1e3 * edits.quantile(0.99)),
    ];
    if plan.fault == Fault::Server {
        let again = |share| found.again.quantile(share);
        predicted.extend([("seated again p50 s", again(0.5)), ("seated again p95 s", again(0.95))]);
    }
    predicted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs;

    fn run(measured: f64) -> Json {
        let text = format!(
            r#"{{"runs": [{{"name": "n", "pairs": 40, "servers": 2, "rate": 2, "visits": 0, "split": 0,
               "down": 0, "commit_ms": 1, "fault_at": 8, "seconds": 8, "measured": {{"groups a second": {measured}}}}}]}}"#
        );
        Json::parse(&text).expect("JSON")
    }

    #[test]
    fn a_prediction_far_from_its_measurement_is_told() {
        let costs = costs::made_up();
        let plan = plan_of(&run(1.0).list("runs").expect("runs")[0]).expect("a plan");
        let found = predictions(&plan, &costs);
        let (_, groups) = found.iter().find(|(what, _)| *what == "groups a second").expect("it");
        assert_eq!(compare(&run(groups * 1.2), &costs), Ok(true));
        assert_eq!(compare(&run(groups * 1.4), &costs), Ok(false));
        assert_eq!(compare(&run(groups / 1.4), &costs), Ok(false));
    }
}
