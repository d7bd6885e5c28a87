//! Galley's reach: servers, Redis and PostgreSQL under a million pairs, as discrete events in virtual time.
//!
//! ```text
//! cargo run --release --manifest-path tests/reach/Cargo.toml --target-dir target/reach -- report FOLDER
//! cargo run --release --manifest-path tests/reach/Cargo.toml --target-dir target/reach -- calibrate
//! ```
//! `measure.mjs` measures the costs of each act, and real servers for `calibrate`; `measured.json` has the figures in
//! force. A run depends on its plan and its seed alone. `RESULTS.md` has the method, its assumptions and the results.

#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a program for the desk: it prints, and ends at a fault of its own"
)]

mod calibration;
mod costs;
mod day;
mod faults;
mod json;
mod measures;
mod plan;
mod plots;
mod queue;
mod random;
mod renewals;
mod report;
mod seats;
mod stations;
mod typing;
mod world;
#[cfg(test)]
mod world_tests;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// The figures in force.
const MEASURED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/measured.json");

fn main() -> Result<ExitCode, String> {
    let text = fs::read_to_string(MEASURED).map_err(|error| format!("{MEASURED}: {error}"))?;
    let measured = json::Json::parse(&text)?;
    let costs = costs::Costs::read(measured.field("costs")?)?;
    let words: Vec<_> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["calibrate"] if calibration::compare(&measured, &costs)? => Ok(ExitCode::SUCCESS),
        ["calibrate"] => Ok(ExitCode::from(2)),
        ["report", folder] => report::report(&costs, Path::new(folder)).map(|()| ExitCode::SUCCESS),
        _ => Err("report FOLDER, or calibrate".to_owned()),
    }
}
