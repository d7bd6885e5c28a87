//! The rules that the compiler does not check.
//!
//! A new rule belongs here, not into a reviewer's head. Each rule states its reason, and its
//! message states the remedy. This file checks imports between modules and the homes of outside crates
//! by the import table of `src/ARCHITECTURE.md`, and that every file is compiled. `tidy/` checks the imports
//! inside a module ([`circles`]), names of types ([`types`]), comments and names ([`prose`]), the content of the files
//! ([`words`]), the map ([`map`]), faults and licences of crates ([`advisories`], [`licences`]); `tests/ui/tidy.test.js` the page.

#[path = "tidy/advisories.rs"]
mod advisories;
#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/licences.rs"]
mod licences;
#[path = "tidy/map.rs"]
mod map;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/prose.rs"]
mod prose;
#[path = "tidy/tree.rs"]
mod tree;
#[path = "tidy/types.rs"]
mod types;
#[path = "tidy/words.rs"]
mod words;

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Source, assert_none};

/// The modules that are crates of their own. The crate `core` has several modules, each with a row.
const CRATES: &[&str] = &["domain", "files", "yjs", "locks", "sql"];

/// A program of its own, with its own manifest; `tests/run` builds and runs it.
const GUIDE: &str = "tests/guide";

/// A row of the import table of `src/ARCHITECTURE.md`.
struct Row {
    module: String,
    may_import: Vec<String>,
    /// The outside crates that live in this module and in no other but those that name them too.
    crates: Vec<String>,
}

/// The table, bottom first. A row names only rows above it, so the graph has no cycle.
fn table() -> Vec<Row> {
    let page = tree::one("src/ARCHITECTURE.md").text;
    let (_, rest) = page.split_once("\n| module | may import |").expect("the table");
    let mut rows: Vec<Row> = Vec::new();
    for line in rest.lines().skip(2).take_while(|line| line.starts_with("| ")) {
        let mut columns = line.split(" | ").map(listed);
        let [modules, may_import, crates] = [(); 3].map(|()| columns.next().expect("a column"));
        let may_import = match &may_import[..] {
            [all] if all == "any row above" => rows.iter().map(|row| row.module.clone()).collect(),
            _ => may_import,
        };
        assert_eq!(modules.len(), 1, "one module a row: {line}");
        rows.push(Row { module: modules.concat(), may_import, crates });
    }
    rows
}

/// The words of a column such as "`a`, `b`" or "a, b", as code has them. A dash stands for an empty column.
fn listed(column: &str) -> Vec<String> {
    let words = column.trim_matches(['|', ' ', '.']).split(", ");
    let words = words.map(|word| word.trim_matches('`').replace('-', "_"));
    words.filter(|word| !word.is_empty() && word != "–").collect()
}

/// Each outside crate with its homes, so that a replacement changes one folder.
fn homes() -> BTreeMap<String, Vec<String>> {
    let mut homes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for Row { module, crates, .. } in table() {
        for name in crates {
            homes.entry(name).or_default().push(module.clone());
        }
    }
    homes
}

#[test]
fn modules_import_only_from_below() {
    let table: BTreeMap<_, _> =
        table().into_iter().map(|row| (row.module, row.may_import)).collect();
    let mut complaints = Vec::new();
    for source in code() {
        let Some(module) = source.module().filter(|module| *module != "lib") else { continue };
        let Some(may_import) = table.get(module) else {
            complaints.push(source.complaint(1, "its module has no row in the table"));
            continue;
        };
        for (number, line) in source.code() {
            // Braces would hide the imported modules from this test.
            let is_crate = CRATES.contains(&module);
            if !is_crate && line.contains("crate::{") || line.contains("galley::{") {
                complaints.push(source.complaint(number, "must import one module per `use`"));
            }
            // In a crate of its own, `crate` is the crate, and the compiler knows what it may import.
            let roots: &[&str] = if is_crate { &["galley::"] } else { &["crate::", "galley::"] };
            let names = roots.iter().flat_map(|root| names_after(line, root));
            let names = names.filter(|name| *name != module && table.contains_key(*name));
            complaints.extend(
                names
                    .filter(|name| !may_import.iter().any(|it| it == name))
                    .map(|name| source.complaint(number, &format!("may not import `{name}`"))),
            );
        }
    }
    assert_none(&complaints, "move what both need a layer down, or let the upper one call");
}

#[test]
fn the_table_of_layers_is_ordered_and_complete() {
    let table = table();
    for (at, row) in table.iter().enumerate() {
        for import in &row.may_import {
            let is_below = table[..at].iter().any(|below| below.module == *import);
            assert!(is_below, "`{}` names `{import}`, which is not below it", row.module);
        }
    }
    let (lib, core) = (tree::one("src/lib.rs"), tree::one("src/core/lib.rs"));
    let declared: BTreeSet<_> = lib
        .lines()
        .chain(core.lines())
        .filter_map(|(_, line)| {
            let line = line.strip_suffix(';')?;
            line.strip_prefix("pub mod ")
                .or_else(|| line.strip_prefix("pub use galley_")?.split(" as ").nth(1))
        })
        .collect();
    let rows = table.iter().map(|row| row.module.as_str()).filter(|module| *module != "main");
    assert_eq!(declared, rows.collect(), "one row for each module of both lib.rs");
}

#[test]
fn outside_crates_are_used_in_their_homes_only() {
    let (homes, mut complaints) = (homes(), Vec::new());
    for source in code() {
        let module = source.module().unwrap_or_default();
        let foreign: Vec<_> =
            homes.iter().filter(|(_, homes)| !homes.iter().any(|home| home == module)).collect();
        for (number, line) in source.code() {
            let strays = foreign.iter().filter(|(name, _)| mentions(line, name));
            let what = strays.map(|(name, homes)| format!("`{name}` lives in {homes:?}"));
            complaints.extend(what.map(|what| source.complaint(number, &what)));
        }
    }
    assert_none(&complaints, "wrap the crate where it lives, and use the wrapper");
}

/// A room is a log of bytes. Building a document from it takes time in proportion to the text, and
/// would block the thread's other tasks.
#[test]
fn a_document_is_built_by_one_call_and_on_a_blocking_thread() {
    let mut outside = code().into_iter().filter(|source| !source.is_in("src/yjs"));
    let built = outside.find(|source| source.code().any(|(_, line)| line.contains("Text::build(")));
    let words: Vec<_> = built.iter().flat_map(|it| it.text.split_whitespace()).collect();
    let text = words.join(" ");
    assert!(
        text.contains(".spawn_blocking(move || { let _permit = permit; Text::build("),
        "{words:?}"
    );
    let other = outside.find(|source| source.code().any(|(_, line)| line.contains("Text::build(")));
    assert!(
        other.is_none(),
        "ask `Texts::read` for it: {}",
        other.map_or(String::new(), |it| it.path)
    );
}

/// An unused crate costs compile time and audits. A new crate needs a home.
#[test]
fn every_outside_crate_has_a_home_and_is_used_there() {
    let (code, homes) = (code(), homes());
    let page = tree::one("src/ARCHITECTURE.md").text;
    let (_, rest) = page.split_once("\nEvery module may use ").expect("the sentence");
    let everywhere = listed(&rest.split("\n\n").next().unwrap_or_default().replace('\n', " "));
    let mut complaints = Vec::new();
    for (folder, name) in dependencies() {
        if !homes.contains_key(&name) && !everywhere.contains(&name) {
            complaints.push(format!("{folder}Cargo.toml: `{name}` has no home"));
        }
        for home in homes.get(&name).into_iter().flatten() {
            let mut files = code.iter().filter(|source| source.module() == Some(home));
            if !files.any(|source| source.code().any(|(_, line)| mentions(line, &name))) {
                complaints.push(format!("src/ARCHITECTURE.md: `{name}` is not used in `{home}`"));
            }
        }
        let is_of = |source: &&Source| match folder.as_str() {
            "" => !source.is_in("src/core") && CRATES.iter().all(|of| source.module() != Some(of)),
            folder => source.path.starts_with(folder),
        };
        let mut files = code.iter().filter(is_of);
        if !files.any(|source| source.code().any(|(_, line)| mentions(line, &name))) {
            complaints.push(format!("{folder}Cargo.toml: `{name}` is not used"));
        }
    }
    assert_none(
        &complaints,
        "say in the import table where the crate lives, and remove what is not used",
    );
}

/// A websocket closes by the error types of `tungstenite`, which axum wraps: those of another version would never
/// match, and the compiler would not say so.
#[test]
fn tungstenite_has_one_version() {
    let lock = tree::one("Cargo.lock").text;
    let of_axum = lock.split("[[package]]").find(|it| it.starts_with("\nname = \"axum\""));
    assert!(of_axum.is_some_and(|it| it.contains("tungstenite")), "axum has another websocket");
    let versions = lock.matches("\nname = \"tungstenite\"\n").count();
    assert_eq!(versions, 1, "name in Cargo.toml the version of tungstenite that axum uses");
}

/// `tests/run` gives files with these names in these folders to node; no other file runs.
#[test]
fn every_test_for_node_is_in_a_suite() {
    let complaints: Vec<_> = tree::of_kind(&["js", "mjs"])
        .iter()
        .filter(|source| source.text.contains("from \"node:test\""))
        .filter(|source| {
            let suites = ["tests/browser", "tests/stock", "tests/ui"];
            let is_test = source.stem().ends_with(".test") || source.stem() == "support";
            let is_runner = source.is_in("tests/runner");
            !is_runner && (!suites.iter().any(|suite| source.is_in(suite)) || !is_test)
        })
        .map(|source| source.complaint(1, "is not run"))
        .collect();
    assert_none(&complaints, "name it *.test.js or *.test.mjs, in a folder that tests/run knows");
}

/// A file without a `mod` is not compiled, so its tests never run. `autotests` is off, so the manifest names each suite.
#[test]
fn every_rust_file_is_reached() {
    let sources = rust();
    let manifest = tree::one("Cargo.toml").text;
    let declared: BTreeSet<_> = sources.iter().flat_map(declared).collect();
    let complaints: Vec<_> = sources
        .iter()
        .filter(|source| source.stem() != "lib" && !source.is_in(GUIDE))
        .filter(|source| !manifest.contains(&source.path) && !declared.contains(&source.path))
        .map(|source| source.complaint(1, "is not compiled"))
        .collect();
    assert_none(&complaints, "declare it with `mod`, or remove it");
}

/// The possible paths of the modules that a file declares.
fn declared(source: &Source) -> Vec<String> {
    let folder = match source.name() {
        "mod.rs" | "main.rs" | "lib.rs" => source.folder().to_owned(),
        _ => format!("{}/{}", source.folder(), source.stem()),
    };
    let modules = source.lines().filter_map(|(_, line)| {
        let (_, name) = line.split_once("mod ")?;
        let name = name.strip_suffix(';')?;
        Some([format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")])
    });
    let by_path = source.lines().filter_map(|(_, line)| {
        let path = line.strip_prefix("#[path = \"")?.strip_suffix("\"]")?;
        let mut path = format!("{}/{path}", source.folder());
        while let Some((before, after)) = path.split_once("/../") {
            path = format!("{}/{after}", before.rsplit_once('/')?.0);
        }
        Some(path)
    });
    modules.flatten().chain(by_path).collect()
}

fn rust() -> Vec<Source> {
    tree::of_kind(&["rs"])
}

/// The library and the program.
fn code() -> Vec<Source> {
    let mut sources = rust();
    sources.retain(|source| source.is_in("src"));
    sources
}

/// The outside crates that a manifest names, each with the folder of its crate.
fn dependencies() -> Vec<(String, String)> {
    let folders =
        CRATES.iter().chain(&["core"]).map(|name| format!("src/{name}/")).chain([String::new()]);
    let names = folders.flat_map(|folder| {
        let manifest = tree::one(&format!("{folder}Cargo.toml")).text;
        let (_, rest) = manifest.split_once("\n[dependencies]\n").expect("the table");
        let table = rest.lines().take_while(|line| !line.starts_with('['));
        let names = table.filter_map(|line| Some(line.split_once(" = ")?.0.replace('-', "_")));
        let outside = names.filter(|name| !name.starts_with("galley_"));
        outside.map(|name| (folder.clone(), name)).collect::<Vec<_>>()
    });
    names.collect()
}

/// Whether `line` names the crate: as the first part of a path, or alone in a `use`.
fn mentions(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        // `::name` names it unambiguously.
        let before = before.strip_suffix("::").unwrap_or(before);
        let is_first = !before.ends_with(|c: char| ":>_".contains(c) || c.is_alphanumeric());
        let is_used =
            before.ends_with("use ") && (after.starts_with(';') || after.starts_with(" as "));
        is_first && (after.starts_with("::") || is_used)
    })
}

/// The identifiers that follow `prefix` in `line`.
fn names_after<'a>(line: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(prefix).map(move |(at, _)| {
        let rest = &line[at + prefix.len()..];
        let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
        &rest[..end]
    })
}
