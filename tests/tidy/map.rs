//! The map of `src/ARCHITECTURE.md` and the files of `src`: a reader finds each file there, with its subject.

use std::collections::BTreeSet;

use crate::tree::{self, Source, assert_none};

/// A module and a file or folder of it, such as (`locks`, `redis/`).
type Entry = (String, String);

/// A row names its module, so it covers the root of the module; the file of a test stands beside the code that
/// it tests.
#[test]
fn the_map_has_each_file_and_no_other() {
    let (map, all) = (map(), tree::all());
    let is_of_tests =
        |source: &Source| source.stem().ends_with("tests") || source.path.contains("/tests/");
    let files =
        all.iter().filter(|source| source.is_in("src") && source.path.matches('/').count() > 1);
    let files = files.filter(|it| ["json", "lua", "rs", "sql"].contains(&it.kind()));
    let files = files.filter(|it| !["mod", "lib"].contains(&it.stem()) && !is_of_tests(it));
    let missing = files.filter(|file| !map.iter().any(|entry| covers(entry, &file.path)));
    let gone = map.iter().filter(|entry| !all.iter().any(|source| covers(entry, &source.path)));
    let mut complaints: Vec<_> =
        missing.map(|file| format!("{} has no entry", file.path)).collect();
    complaints.extend(gone.map(|(module, name)| format!("src/{module}/{name} does not exist")));
    assert_none(&complaints, "correct the Map of src/ARCHITECTURE.md, in the row of the subject");
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
