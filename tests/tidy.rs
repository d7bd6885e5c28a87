//! The rules a compiler does not check.
//!
//! A new rule goes here rather than into a reviewer's head. Each names its reason, and the message
//! it prints says what to do. Here: who may import whom, where an outside crate lives, and that
//! every file is reached. In `tidy/`: what stands in the files ([`words`]) and the page ([`page`]).

#[path = "tidy/page.rs"]
mod page;
#[path = "tidy/tree.rs"]
mod tree;
#[path = "tidy/words.rs"]
mod words;

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Source, assert_none};

/// Each module and the modules it may import, bottom first. A row may name only rows above it, so
/// the graph cannot have a cycle. `src/ARCHITECTURE.md` says what each is.
const LAYERS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("telemetry", &[]),
    ("yjs", &["domain"]),
    ("redis_client", &["domain"]),
    ("locks", &["domain", "redis_client"]),
    ("pubsub", &["domain", "redis_client"]),
    ("storage", &["domain"]),
    ("outbox", &["domain", "yjs"]),
    ("sessions", &["domain", "locks", "outbox"]),
    ("rooms", &["domain", "yjs", "pubsub", "storage", "outbox", "sessions"]),
    ("seats", &["domain", "yjs", "locks", "pubsub", "storage", "outbox", "sessions", "rooms"]),
    ("reviews", &["domain", "yjs", "pubsub", "storage", "outbox", "sessions", "rooms", "seats"]),
    ("versions", &["domain", "yjs", "pubsub", "storage", "outbox", "sessions", "rooms", "seats"]),
    ("admin", &["domain", "locks", "pubsub", "sessions", "seats"]),
    ("sharing", &["domain", "yjs", "storage"]),
    (
        "http",
        &[
            "domain", "storage", "outbox", "sessions", "rooms", "seats", "reviews", "versions",
            "admin", "sharing",
        ],
    ),
    ("config", BELOW),
    ("app", BELOW),
    ("main", BELOW),
];

/// May import every row above its own, in the words of `src/ARCHITECTURE.md`.
const BELOW: &[&str] = &["any row above"];

/// Each outside crate with its home, so that replacing it is one folder's work. A home that has
/// two folders says why.
const HOMES: &[(&str, &[&str])] = &[
    ("anyhow", &["main"]),
    ("axum", &["http"]),
    ("axum_extra", &["http"]),
    ("clap", &["main"]),
    ("config", &["config"]),
    ("dashmap", &["sessions", "rooms"]),
    // Packs the texts of versions, and unpacks a file for a client without gzip.
    ("flate2", &["http", "storage"]),
    // Both bound how often somebody may ask: requests there, messages of one socket here.
    ("governor", &["http", "seats", "sessions"]),
    // What only the service itself can make: invites, and the seal on what its servers say.
    ("hmac", &["pubsub", "sharing"]),
    ("hyper", &["http"]),
    ("hyper_util", &["http"]),
    ("jsonwebtoken", &["http"]),
    ("metrics_exporter_prometheus", &["telemetry"]),
    // The allocator of the program: it returns memory to the system after a peak.
    ("mimalloc", &["main"]),
    // Locks and relay speak to one Redis and know nothing of each other; where it is, both have to.
    ("redis", &["redis_client", "locks", "pubsub"]),
    ("rust_embed", &["http"]),
    // The bound on open files.
    ("rustix", &["app"]),
    // TLS towards that Redis.
    ("rustls", &["redis_client"]),
    // From the settings to the one place that shows a secret to its key.
    ("secrecy", &["config", "app", "main"]),
    // Tags of files, hashes of invites and of secrets to come back by, seals, and which versions have
    // one text.
    ("sha2", &["http", "locks", "pubsub", "sharing", "storage"]),
    ("similar", &["yjs"]),
    ("sqlx", &["storage"]),
    // Wherever a secret is compared.
    ("subtle", &["http", "sharing"]),
    ("tower", &["http"]),
    ("tower_http", &["http"]),
    ("tracing_subscriber", &["telemetry"]),
    ("tungstenite", &["http"]),
    ("unicode_segmentation", &["domain"]),
    ("utoipa_swagger_ui", &["http"]),
    ("uuid", &["domain"]),
    ("yrs", &["yjs"]),
];

/// Crates that are as good as the language's own: at home everywhere.
const EVERYWHERE: &[&str] = &[
    "base64",
    "bytes",
    "chrono",
    "futures_util",
    "getrandom",
    "metrics",
    "serde",
    "serde_json",
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
        // The faults of `tests/broken/run` stand in `locks`.
        let code = source.code().filter(|(_, line)| !line.contains("::broken::"));
        for (number, line) in code {
            // Braces would hide the modules they name from this test.
            if line.contains("crate::{") || line.contains("galley::{") {
                complaints.push(source.complaint(number, "must import one module per `use`"));
            }
            complaints.extend(
                ["crate::", "galley::"]
                    .into_iter()
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
fn the_table_of_layers_is_in_order_and_whole() {
    for (at, (module, imports)) in LAYERS.iter().enumerate() {
        for import in imports.iter().filter(|_| *imports != BELOW) {
            let is_below = LAYERS[..at].iter().any(|(below, _)| below == import);
            assert!(is_below, "`{module}` names `{import}`, which is not below it");
        }
    }
    let lib = tree::one("src/lib.rs");
    let declared: BTreeSet<_> = lib
        .lines()
        .filter_map(|(_, line)| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .collect();
    let rows = LAYERS.iter().map(|(module, _)| *module).filter(|module| *module != "main");
    assert_eq!(declared, rows.collect(), "one row for each module of src/lib.rs");
}

/// People read the page, the tests hold these tables: they must not part.
#[test]
fn the_architecture_page_shows_these_tables() {
    let page = tree::one("src/ARCHITECTURE.md").text;
    let (_, rest) = page.split_once("\n| module | may import |").expect("the table");
    let mut shown = Vec::new();
    for row in rest.lines().skip(2).take_while(|line| line.starts_with("| ")) {
        let columns: Vec<_> = row.split(" | ").map(|column| listed(column)).collect();
        let [modules, imports, crates] = &columns[..] else { panic!("three columns: {row}") };
        for name in crates {
            let homes = HOMES.iter().find(|(known, _)| *known == name.replace('-', "_"));
            let lives = homes.is_some_and(|(_, homes)| modules.iter().any(|m| homes.contains(m)));
            assert!(lives, "`{name}` does not live in {modules:?}");
        }
        shown.extend(modules.iter().map(|module| (*module, imports.clone())));
    }
    let table: Vec<_> = LAYERS.iter().map(|(name, row)| (*name, row.to_vec())).collect();
    assert_eq!(shown, table, "src/ARCHITECTURE.md shows another table than this file holds");
}

/// The words of a column such as "`a`, `b`" or "a, b (with c)"; a dash is an empty one.
fn listed(column: &str) -> Vec<&str> {
    let words = column.trim_matches(['|', ' ']).split(", ");
    let words = words.map(|word| word.split(" (").next().unwrap_or(word).trim_matches('`'));
    words.filter(|word| !matches!(*word, "" | "–")).collect()
}

#[test]
fn outside_crates_stay_home() {
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

/// A room is a log of bytes. To make a document of it takes as long as the text is, and would stop whatever
/// else the thread has to do.
#[test]
fn a_document_is_built_in_one_place_and_on_a_blocking_thread() {
    let mut built = Vec::new();
    for source in code().into_iter().filter(|source| !source.is_in("src/yjs")) {
        let lines = source.code().filter(|(_, line)| line.contains("Text::build("));
        built.extend(lines.map(|(number, line)| source.complaint(number, line.trim())));
    }
    assert_eq!(built.len(), 1, "ask `Rooms::read_text` for it: {built:#?}");
    assert!(built[0].contains(".spawn_blocking(move || work.end(Text::build("), "{built:?}");
}

/// A crate that nobody uses is compiled and audited for nothing; a new one is given a home.
#[test]
fn every_outside_crate_has_a_home_and_is_used_there() {
    let code = code();
    let mut complaints = Vec::new();
    for name in dependencies() {
        let homes = HOMES.iter().find(|(known, _)| *known == name).map(|(_, homes)| *homes);
        if homes.is_none() && !EVERYWHERE.contains(&name.as_str()) {
            complaints.push(format!("Cargo.toml: `{name}` has no home in tests/tidy.rs"));
        }
        let uses = |home: Option<&str>| {
            let files = code.iter().filter(|source| home.is_none() || source.module() == home);
            files.into_iter().any(|source| source.code().any(|(_, line)| mentions(line, &name)))
        };
        for home in homes.unwrap_or_default() {
            if !uses(Some(home)) {
                complaints.push(format!("tests/tidy.rs: `{name}` is not used in `{home}`"));
            }
        }
        if !uses(None) {
            complaints.push(format!("Cargo.toml: `{name}` is not used"));
        }
    }
    assert_none(&complaints, "say where the crate lives, and remove what is not used");
}

/// `autotests` is off, because `tests/` holds more than Rust: what is not named does not run.
#[test]
fn every_suite_and_benchmark_is_named_in_the_manifest() {
    let manifest = tree::one("Cargo.toml").text;
    let is_root = |source: &Source| match source.folder() {
        "tests" | "tests/bench" => true,
        folder => source.path == format!("{folder}/main.rs"),
    };
    let complaints: Vec<_> = rust()
        .iter()
        .filter(|source| source.is_in("tests") && is_root(source))
        .filter(|source| !manifest.contains(&format!("path = \"{}\"", source.path)))
        .map(|source| source.complaint(1, "is in no [[test]] or [[bench]]"))
        .collect();
    assert_none(&complaints, "name it in Cargo.toml, or it never runs");
}

/// A file that no `mod` names is not compiled, so its tests pass by not being there.
#[test]
fn every_rust_file_is_reached() {
    let sources = rust();
    let manifest = tree::one("Cargo.toml").text;
    let declared: BTreeSet<_> = sources.iter().flat_map(declared).collect();
    let complaints: Vec<_> = sources
        .iter()
        .filter(|source| !matches!(source.path.as_str(), "src/lib.rs" | "src/main.rs"))
        .filter(|source| !manifest.contains(&source.path) && !declared.contains(&source.path))
        .map(|source| source.complaint(1, "is not compiled"))
        .collect();
    assert_none(&complaints, "declare it with `mod`, or remove it");
}

/// The paths at which the modules that a file declares may be.
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

/// The names under `[dependencies]`, as code writes them.
fn dependencies() -> Vec<String> {
    let manifest = tree::one("Cargo.toml");
    let (_, rest) = manifest.text.split_once("[dependencies]\n").expect("the table");
    let (table, _) = rest.split_once("\n[").expect("its end");
    let names = table.lines().filter_map(|line| line.split_once(" = "));
    names.map(|(name, _)| name.replace('-', "_")).collect()
}

/// Whether `line` names the crate: as the first part of a path, or alone in a `use`.
fn mentions(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        // `::name` says the same more clearly.
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
