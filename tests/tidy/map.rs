//! The map of `src/ARCHITECTURE.md` and the files of `src`: a reader finds each file there, with its subject.

use std::collections::BTreeSet;

use crate::tree::{self, Source, assert_none};

/// A module and a file or folder of it, such as (`locks`, `redis/`).
type Entry = (String, String);

#[test]
fn every_file_stands_in_the_map() {
    let map = map();
    let files = files();
    let complaints: Vec<_> = files
        .iter()
        .filter(|path| !map.iter().any(|entry| covers(entry, path)))
        .map(|path| format!("{path} has no entry"))
        .collect();
    assert_none(
        &complaints,
        "name it in the Map of src/ARCHITECTURE.md, in the row of its subject",
    );
}

#[test]
fn every_entry_of_the_map_exists() {
    let paths: Vec<_> = tree::all().into_iter().map(|source| source.path).collect();
    let complaints: Vec<_> = map()
        .iter()
        .filter(|entry| !paths.iter().any(|path| covers(entry, path)))
        .map(|(module, name)| format!("src/{module}/{name} does not exist"))
        .collect();
    assert_none(&complaints, "correct the Map of src/ARCHITECTURE.md");
}

#[test]
fn an_entry_covers_its_file_or_the_files_of_its_folder() {
    let entry = |module: &str, name: &str| (module.to_owned(), name.to_owned());
    assert!(covers(&entry("locks", "redis/"), "src/locks/redis/lua/claim.lua"));
    assert!(covers(&entry("locks", "name"), "src/locks/name.rs"));
    assert!(covers(&entry("locks", "GUIDE.md"), "src/locks/GUIDE.md"));
    assert!(!covers(&entry("locks", "name"), "src/locks/name/other.rs"));
    assert!(!covers(&entry("locks", "name"), "src/rooms/name.rs"));
}

fn covers((module, name): &Entry, path: &str) -> bool {
    let inside = tree::inside_src(path).and_then(|path| path.strip_prefix(module.as_str()));
    let Some(inside) = inside.and_then(|path| path.strip_prefix('/')) else { return false };
    if name.ends_with('/') {
        return inside.starts_with(name.as_str());
    }
    inside == name || inside.rsplit_once('.').is_some_and(|(stem, _)| stem == name)
}

/// The entries in the rows of the map; a row without a module continues the one above.
fn map() -> BTreeSet<Entry> {
    let page = tree::one("src/ARCHITECTURE.md").text;
    let (_, rest) = page.split_once("\n| module | files |").expect("the map");
    let mut module = "";
    let mut entries = BTreeSet::new();
    for row in rest.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let mut columns = row.trim_matches('|').split('|');
        let mut words = || columns.next().unwrap_or_default().split('`').skip(1).step_by(2);
        module = words().next().unwrap_or(module);
        entries.extend(words().map(|name| (module.to_owned(), name.to_owned())));
    }
    assert!(entries.len() > 100, "the map is not read");
    entries
}

/// The files of the modules. A row names its module, so it covers the root of the module; the file of a
/// test stands beside the code that it tests.
fn files() -> Vec<String> {
    let is_root = |source: &Source| ["mod", "lib"].contains(&source.stem());
    let is_of_tests =
        |source: &Source| source.stem().ends_with("tests") || source.path.contains("/tests/");
    let is_of_module = |source: &Source| source.path.matches('/').count() > 1;
    let sources = tree::of_kind(&["json", "lua", "rs", "sql"]);
    let files = sources.into_iter().filter(|source| source.is_in("src") && is_of_module(source));
    let files = files.filter(|source| !is_root(source) && !is_of_tests(source));
    files.map(|source| source.path).collect()
}
