//! A type that other files see has a name of its own in its crate: a reader who searches for it finds one.

use std::collections::BTreeMap;

use crate::tree::{self, Source, assert_none};

#[test]
fn a_type_name_is_unique_in_its_crate() {
    let types = types();
    let shared = types.iter().filter(|(_, files)| 1 < files.len());
    let complaints: Vec<_> = shared
        .map(|((_, name), files)| format!("`{name}` stands in {}", files.join(", ")))
        .collect();
    assert_none(&complaints, "give one of the types a second word");
}

/// Crate and name of each type with its files.
fn types() -> BTreeMap<(String, String), Vec<String>> {
    let mut types: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut sources = tree::of_kind(&["rs"]);
    let is_of_tests = |it: &Source| it.stem().ends_with("tests") || it.path.contains("/tests/");
    sources.retain(|it| it.is_in("src") && !is_of_tests(it) && !it.is_in("src/locks/model"));
    for source in sources {
        let module = source.module().unwrap_or_default();
        let of = match module {
            _ if source.is_in("src/core") => "core",
            module if crate::CRATES.contains(&module) => module,
            _ => "galley",
        };
        for name in source.code().filter_map(|(_, line)| declared(line)) {
            types.entry((of.to_owned(), name.to_owned())).or_default().push(source.path.clone());
        }
    }
    types
}

/// The type that a line without indentation declares for other files.
fn declared(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let (kind, rest) = rest.strip_prefix(' ')?.split_once(' ')?;
    let is_type = ["struct", "enum", "union", "trait", "type"].contains(&kind);
    let name = rest.split(|c: char| !c.is_alphanumeric()).next();
    name.filter(|name| is_type && !name.is_empty())
}
