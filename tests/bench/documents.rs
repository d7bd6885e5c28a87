//! The cost of many documents, and of large ones.
//!
//! - `idle`: the memory of an idle connection ([`idle`]).
//! - `storm`: two thousand clients that connect at once ([`storm`]).
//! - `open`: the time to open a document of a megabyte ([`open`]).
//! - `replay`: a real editing trace, edit by edit ([`replay`]).
//!
//! The first, the second and the last also run against a relay that only copies bytes ([`copy`]),
//! in the same run. Galley stores everything durably on this disk. It has its default settings
//! except for the rate limits.
//!
//! ```text
//! cargo bench --bench documents            # all of them
//! cargo bench --bench documents -- storm   # one
//! ```

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that fails panics, and one that does not prints"
)]

#[allow(dead_code, reason = "shared with the other benchmarks, which use more of it")]
#[path = "relay/client.rs"]
mod client;
#[allow(dead_code, reason = "shared with the other benchmarks, which use more of it")]
#[path = "relay/contender.rs"]
mod contender;
#[path = "relay/copy.rs"]
mod copy;
#[path = "documents/idle.rs"]
mod idle;
#[allow(dead_code, reason = "shared with the other benchmarks, which use more of it")]
#[path = "shared/measure.rs"]
mod measure;
#[path = "documents/open.rs"]
mod open;
#[path = "documents/replay.rs"]
mod replay;
#[path = "documents/storm.rs"]
mod storm;
#[path = "../support/mod.rs"]
mod support;
#[path = "documents/typing.rs"]
mod typing;

use std::process::Command;

use tokio::runtime::Runtime;

use crate::measure::Table;

/// Sockets for both ends of two thousand connections, with a margin.
const FILES: &str = "8192";

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == contender::COPY) {
        runtime.block_on(copy::serve());
        return;
    }
    raise_the_limit_of_files();
    let is_selected = |name: &str| {
        let mut names = arguments.iter().filter(|argument| !argument.starts_with('-')).peekable();
        names.peek().is_none() || names.any(|argument| argument == name)
    };
    let mut table = Table::new("Documents");
    if is_selected("idle") {
        runtime.block_on(idle::measure(&mut table));
    }
    if is_selected("storm") {
        runtime.block_on(storm::measure(&mut table));
    }
    if is_selected("open") {
        runtime.block_on(open::measure(&mut table));
    }
    if is_selected("replay") {
        runtime.block_on(replay::measure(&mut table));
    }
    table.print();
}

/// Raises the limit for this process and its children. Where that is not permitted, connecting
/// fails with a message.
fn raise_the_limit_of_files() {
    let (id, files) = (std::process::id().to_string(), format!("--nofile={FILES}:"));
    let raised = Command::new("prlimit").args(["--pid", &id, &files]).status();
    assert!(raised.expect("prlimit is installed").success(), "{FILES} open files are not allowed");
}
