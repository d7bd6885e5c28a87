//! `static/vendor/CRATES.txt` lists the crates in the program with their licences, beside the list of the
//! page. The server shows both: a copy of the program must name them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

const FILE: &str = "static/vendor/CRATES.txt";
const HEAD: &str =
    "The Rust crates in Galley for Linux, with all features: version and licence (SPDX).\n\n";

/// The list that the lock file makes.
fn list() -> String {
    // `--offline`: all crates are here, as this test is compiled from them.
    let words = "tree --locked --offline --all-features --edges normal --prefix none \
                 --target x86_64-unknown-linux-gnu --format";
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(words.split_whitespace()).arg("{p}\t{l}");
    let tree = cargo.output().expect("cargo");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8(tree.stdout).expect("text");
    let rows: BTreeSet<_> = text.lines().filter_map(row_of).collect();
    format!("{HEAD}{}\n", Vec::from_iter(rows).join("\n"))
}

/// "name v1.2.3 (proc-macro)\tMIT" as "name 1.2.3: MIT". `None` for Galley itself.
fn row_of(line: &str) -> Option<String> {
    let (package, licence) = line.split_once('\t')?;
    let mut words = package.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    // Cargo marks a row that it has printed before.
    let licence = licence.trim_end_matches(" (*)");
    assert!(!licence.is_empty(), "{name} {version} names no licence");
    (!name.starts_with("galley")).then(|| format!("{name} {version}: {licence}"))
}

/// Run it with `WRITE=1` to write the list anew.
#[test]
fn the_list_of_licences_is_that_of_the_lock_file() {
    let (list, file) = (list(), Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE));
    if env::var_os("WRITE").is_some() {
        fs::write(&file, &list).expect("written");
    }
    let found = fs::read_to_string(file).unwrap_or_default();
    assert!(found == list, "WRITE=1 cargo test --all-features --test tidy licences");
}
