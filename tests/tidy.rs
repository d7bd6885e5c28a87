//! The rules that the compiler does not check.
//!
//! A new rule belongs here, not into a reviewer's head. Each rule states its reason, and its
//! message states the remedy. This file checks imports between modules, the homes of outside
//! crates, and that every file is compiled. `tidy/` checks the imports inside a module ([`circles`]),
//! identifiers ([`identifiers`]), names of types ([`types`]), comments ([`prose`]), the content of the files
//! ([`words`]), the map of the files ([`map`]), and known faults and licences of crates ([`advisories`], [`licences`]).
//! `tests/ui/tidy.test.js` checks the page.

#[path = "tidy/advisories.rs"]
mod advisories;
#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/identifiers.rs"]
mod identifiers;
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

/// Each module and the modules that it may import, bottom first. A row may name only rows above it,
/// so the graph has no cycle. `src/ARCHITECTURE.md` describes each module.
const LAYERS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("telemetry", &[]),
    ("files", &["domain"]),
    ("yjs", &["domain"]),
    ("locks", &["domain"]),
    ("pubsub", &["domain", "locks"]),
    ("storage", &["domain", "telemetry"]),
    ("outbox", &["domain", "yjs"]),
    ("bounds", &["domain"]),
    ("sessions", &["domain", "bounds", "locks", "outbox"]),
    ("rooms", &["domain", "bounds", "yjs", "pubsub", "storage", "outbox", "sessions"]),
    (
        "seats",
        &[
            "domain",
            "bounds",
            "telemetry",
            "yjs",
            "locks",
            "pubsub",
            "storage",
            "outbox",
            "sessions",
            "rooms",
        ],
    ),
    (
        "reviews",
        &["domain", "bounds", "yjs", "pubsub", "storage", "outbox", "sessions", "rooms", "seats"],
    ),
    ("sharing", &["domain", "bounds", "yjs", "storage"]),
    ("accounts", &["domain", "storage"]),
    (
        "http",
        &[
            "domain", "bounds", "storage", "outbox", "sessions", "rooms", "seats", "reviews",
            "sharing", "accounts", "yjs",
        ],
    ),
    ("setting", &[]),
    ("outgoing", &["domain"]),
    ("periodic", &["domain", "locks", "storage", "http"]),
    ("webhooks", &["domain", "storage", "seats", "http", "setting", "outgoing"]),
    ("push", &["domain", "bounds", "storage", "sharing", "http", "setting", "outgoing"]),
    ("reminders", &["domain", "locks", "storage", "seats", "http", "setting", "periodic", "push"]),
    (
        "partners",
        &["domain", "bounds", "locks", "storage", "outbox", "seats", "sharing", "http", "push"],
    ),
    ("offers", &["domain", "bounds", "locks", "storage", "seats", "sharing", "http"]),
    ("versions", &["domain", "bounds", "yjs", "storage", "rooms", "seats", "sharing", "http"]),
    (
        "exports",
        &[
            "domain", "bounds", "files", "yjs", "locks", "storage", "rooms", "seats", "reviews",
            "sharing", "http", "setting", "periodic",
        ],
    ),
    ("transfer", &["domain", "storage", "sharing", "accounts", "http"]),
    (
        "admin",
        &[
            "domain",
            "telemetry",
            "locks",
            "pubsub",
            "storage",
            "sessions",
            "seats",
            "sharing",
            "accounts",
            "http",
        ],
    ),
    ("config", BELOW),
    ("app", BELOW),
    ("main", BELOW),
];

/// The module may import every row above its own, in the words of `src/ARCHITECTURE.md`.
const BELOW: &[&str] = &["any row above"];

/// Each outside crate with its home, so that a replacement changes one folder. A crate with two
/// homes has a comment with the reason.
const HOMES: &[(&str, &[&str])] = &[
    ("anyhow", &["main"]),
    // The router, and the routes of each feature.
    (
        "axum",
        &[
            "http",
            "periodic",
            "webhooks",
            "push",
            "reminders",
            "partners",
            "offers",
            "versions",
            "exports",
            "transfer",
            "admin",
        ],
    ),
    // Quiet hours.
    ("chrono_tz", &["domain"]),
    ("clap", &["main"]),
    ("dashmap", &["sessions", "rooms"]),
    // The code page of Korean text files.
    ("chardetng", &["files"]),
    ("encoding_rs", &["files"]),
    // Compresses the texts of versions and Word files.
    ("flate2", &["files", "storage"]),
    // Both bound rates: `http` of requests, the others of messages of one socket.
    ("governor", &["http", "seats", "sessions"]),
    ("http_body_util", &["outgoing"]),
    ("humantime", &["setting"]),
    // The server, and requests to other programs.
    ("hyper", &["http", "outgoing"]),
    ("hyper_util", &["http", "outgoing"]),
    ("icu_normalizer", &["domain"]),
    ("ipnet", &["http"]),
    // Tokens of users, and the server's own for push services.
    ("jsonwebtoken", &["http", "push"]),
    // These two make PDFs: one writes the file, `parley` sets its lines.
    ("krilla", &["files"]),
    ("metrics_exporter_prometheus", &["telemetry"]),
    // The allocator of the program: it returns memory to the system after a peak.
    ("mimalloc", &["main"]),
    ("parley", &["files"]),
    ("quick_xml", &["files"]),
    // Pub/sub imports the client of the locks, and nothing else of them.
    ("redis", &["locks", "pubsub"]),
    // The bound on open files.
    ("rustix", &["app"]),
    // TLS to that Redis, and to other programs.
    ("rustls", &["locks", "outgoing"]),
    ("rustls_native_certs", &["outgoing"]),
    // From the settings to the code that passes a secret to its key.
    ("secrecy", &["webhooks", "config", "app"]),
    // The path of an invalid field, in settings and bodies.
    ("serde_path_to_error", &["config", "http"]),
    // The hash of a reclaim secret: the locks alone build no C.
    ("sha2", &["locks"]),
    ("similar", &["yjs"]),
    ("sqlx", &["storage"]),
    ("tokio_rustls", &["outgoing"]),
    ("toml", &["config"]),
    ("tower", &["http"]),
    ("tower_http", &["http"]),
    ("tracing_subscriber", &["telemetry"]),
    ("tungstenite", &["http"]),
    ("unicode_segmentation", &["domain"]),
    // Origins, and the addresses of other programs.
    ("url", &["http", "outgoing"]),
    ("uuid", &["domain"]),
];

/// The modules that are crates of their own. The crate `core` has several modules, each with a row.
const CRATES: &[&str] = &["domain", "files", "yjs", "locks"];

/// A program of its own, with its own manifest; `tests/run` builds and runs it.
const GUIDE: &str = "tests/guide";

/// Crates that every module may use.
const EVERYWHERE: &[&str] = &[
    // Digests, HMAC, random bytes and comparisons of secrets. `rustls` and `jsonwebtoken` bring it.
    "aws_lc_rs",
    "base64",
    "bytes",
    "chrono",
    "futures_util",
    // Jitter of the locks, which alone have no `aws_lc_rs`, and seeds of tests.
    "getrandom",
    "metrics",
    "serde",
    "serde_json",
    // Texts of enums.
    "strum",
    "thiserror",
    "tokio",
    "tokio_util",
    "tracing",
];

#[test]
fn modules_import_only_from_below() {
    let table: BTreeMap<_, _> = LAYERS.iter().copied().collect();
    let mut complaints = Vec::new();
    for source in code() {
        let Some(module) = source.module().filter(|module| *module != "lib") else { continue };
        let Some(row) = table.get(module) else {
            complaints.push(source.complaint(1, "its module has no row in the table"));
            continue;
        };
        let may_import: Vec<_> = if *row == BELOW {
            LAYERS.iter().map(|(name, _)| *name).take_while(|name| *name != module).collect()
        } else {
            row.to_vec()
        };
        for (number, line) in source.code() {
            // Braces would hide the imported modules from this test.
            let is_crate = CRATES.contains(&module);
            if !is_crate && line.contains("crate::{") || line.contains("galley::{") {
                complaints.push(source.complaint(number, "must import one module per `use`"));
            }
            // In a crate of its own, `crate` is the crate, and the compiler knows what it may import.
            let roots: &[&str] = if is_crate { &["galley::"] } else { &["crate::", "galley::"] };
            complaints.extend(
                roots
                    .iter()
                    .flat_map(|root| names_after(line, root))
                    .filter(|name| *name != module && table.contains_key(name))
                    .filter(|name| !may_import.contains(name))
                    .map(|name| source.complaint(number, &format!("may not import `{name}`"))),
            );
        }
    }
    assert_none(&complaints, "move what both need a layer down, or let the upper one call");
}

#[test]
fn the_table_of_layers_is_ordered_and_complete() {
    for (at, (module, imports)) in LAYERS.iter().enumerate() {
        for import in imports.iter().filter(|_| *imports != BELOW) {
            let is_below = LAYERS[..at].iter().any(|(below, _)| below == import);
            assert!(is_below, "`{module}` names `{import}`, which is not below it");
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
    let rows = LAYERS.iter().map(|(module, _)| *module).filter(|module| *module != "main");
    assert_eq!(
        declared,
        rows.collect(),
        "one row for each module of src/lib.rs and src/core/lib.rs"
    );
}

/// Readers use the page, and the tests use these tables: they must be equal.
#[test]
fn the_architecture_page_contains_these_tables() {
    let page = tree::one("src/ARCHITECTURE.md").text;
    let (_, rest) = page.split_once("\n| module | may import |").expect("the table");
    let mut shown = Vec::new();
    for row in rest.lines().skip(2).take_while(|line| line.starts_with("| ")) {
        let columns: Vec<_> = row.split(" | ").map(|column| listed(column)).collect();
        let [modules, imports, crates] = &columns[..] else { panic!("three columns: {row}") };
        for name in crates {
            let homes = HOMES.iter().find(|(name_of, _)| *name_of == name.replace('-', "_"));
            let lives = homes.is_some_and(|(_, homes)| modules.iter().any(|m| homes.contains(m)));
            assert!(lives, "`{name}` does not live in {modules:?}");
        }
        shown.extend(modules.iter().map(|module| (*module, imports.clone())));
    }
    let table: Vec<_> = LAYERS.iter().map(|(name, row)| (*name, row.to_vec())).collect();
    assert_eq!(shown, table, "src/ARCHITECTURE.md shows another table than this file holds");
}

/// The words of a column such as "`a`, `b`" or "a, b (with c)". A dash stands for an empty column.
fn listed(column: &str) -> Vec<&str> {
    let words = column.trim_matches(['|', ' ']).split(", ");
    let words = words.map(|word| word.split(" (").next().unwrap_or(word).trim_matches('`'));
    words.filter(|word| !matches!(*word, "" | "–")).collect()
}

#[test]
fn outside_crates_are_used_in_their_homes_only() {
    let mut complaints = Vec::new();
    for source in code() {
        let module = source.module().unwrap_or_default();
        for (number, line) in source.code() {
            let strays = HOMES
                .iter()
                .filter(|(name, homes)| !homes.contains(&module) && mentions(line, name))
                .map(|(name, homes)| format!("`{name}` lives in {homes:?}"));
            complaints.extend(strays.map(|what| source.complaint(number, &what)));
        }
    }
    assert_none(&complaints, "wrap the crate where it lives, and use the wrapper");
}

/// A room is a log of bytes. Building a document from it takes time in proportion to the text, and
/// would block the thread's other tasks.
#[test]
fn a_document_is_built_by_one_call_and_on_a_blocking_thread() {
    let mut built = Vec::new();
    for source in code().into_iter().filter(|source| !source.is_in("src/yjs")) {
        let lines: Vec<_> = source.code().map(|(number, line)| (number, line.trim())).collect();
        for around in lines.windows(3).filter(|around| around[2].1.contains("Text::build(")) {
            let closure = around.iter().map(|(_, line)| *line).collect::<String>();
            built.push(source.complaint(around[2].0, &closure));
        }
    }
    assert_eq!(built.len(), 1, "ask `Rooms::read_text` for it: {built:#?}");
    assert!(
        built[0].contains(".spawn_blocking(move || {let _permit = permit;Text::build("),
        "{built:?}"
    );
}

/// An unused crate costs compile time and audits. A new crate needs a home.
#[test]
fn every_outside_crate_has_a_home_and_is_used_there() {
    let code = code();
    let mut complaints = Vec::new();
    for (folder, name) in dependencies() {
        let homes = HOMES.iter().find(|(name_of, _)| *name_of == name).map(|(_, homes)| *homes);
        if homes.is_none() && !EVERYWHERE.contains(&name.as_str()) {
            complaints.push(format!("{folder}Cargo.toml: `{name}` has no home in tests/tidy.rs"));
        }
        for home in homes.unwrap_or_default() {
            let mut files = code.iter().filter(|source| source.module() == Some(home));
            if !files.any(|source| source.code().any(|(_, line)| mentions(line, &name))) {
                complaints.push(format!("tests/tidy.rs: `{name}` is not used in `{home}`"));
            }
        }
        let is_of = |source: &&Source| match folder.as_str() {
            "" => {
                let is_crate = CRATES.iter().any(|of| source.module() == Some(of));
                !is_crate && !source.is_in("src/core")
            }
            folder => source.path.starts_with(folder),
        };
        let mut files = code.iter().filter(is_of);
        if !files.any(|source| source.code().any(|(_, line)| mentions(line, &name))) {
            complaints.push(format!("{folder}Cargo.toml: `{name}` is not used"));
        }
    }
    assert_none(&complaints, "say where the crate lives, and remove what is not used");
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

/// `autotests` is off, because `tests/` contains more than Rust: an unnamed suite does not run.
#[test]
fn every_suite_and_benchmark_is_named_in_the_manifest() {
    let manifest = tree::one("Cargo.toml").text;
    let is_root = |source: &Source| match source.folder() {
        "tests" | "tests/bench" => true,
        folder => source.path == format!("{folder}/main.rs"),
    };
    let complaints: Vec<_> = rust()
        .iter()
        .filter(|source| source.is_in("tests") && !source.is_in(GUIDE) && is_root(source))
        .filter(|source| !manifest.contains(&format!("path = \"{}\"", source.path)))
        .map(|source| source.complaint(1, "is in no [[test]] or [[bench]]"))
        .collect();
    assert_none(&complaints, "name it in Cargo.toml, or it never runs");
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

/// A file without a `mod` is not compiled, so its tests never run.
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
        Some(tree::resolve(source.folder(), path))
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
