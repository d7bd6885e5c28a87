//! No circle of files inside a module: a reader reads the files of a module in one order.
//!
//! A file and its child modules may import each other: a child serves the type that its parent
//! defines.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;

use crate::tree::{self, Source, assert_none};

/// A module's path, such as `locks::redis::call`, and those that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn files_of_a_module_import_without_a_circle() {
    let stray = |(path, of): (String, BTreeSet<String>)| {
        format!("{path} imports {}", Vec::from_iter(of).join(", "))
    };
    let complaints: Vec<_> = circles(imports()).into_iter().map(stray).collect();
    assert_none(&complaints, "these form a circle: move what both need into a file below them");
}

#[test]
fn the_client_and_the_memory_of_the_locks_import_nothing_of_redis() {
    let is_above =
        |path: &str| ["locks::client", "locks::memory"].iter().any(|it| path.starts_with(it));
    let is_of_redis = |path: &String| format!("{path}::").starts_with("locks::redis::");
    let strays =
        imports().into_iter().filter(|(path, of)| is_above(path) && of.iter().any(is_of_redis));
    let complaints: Vec<_> = strays.map(|(path, _)| path).collect();
    assert_none(&complaints, "the wait queue and the types stand above both backends");
}

#[test]
fn a_circle_is_found_without_the_files_around_it() {
    let paths = ["m", "m::top", "m::one", "m::two", "m::low"];
    let paths: BTreeSet<_> = paths.map(str::to_owned).into();
    let files = [
        ("src/m/top.rs", "use crate::m::{\n    one::{self, One},\n};\n"),
        ("src/m/one.rs", "use crate::m::{low, two::Two};\n"),
        ("src/m/two.rs", "use super::one;\n// use crate::m::top;\n"),
        ("src/m/low.rs", "#[cfg(test)]\nmod tests {\n    use crate::m::top;\n}\n"),
    ];
    let source = |(path, text): (&str, &str)| Source { path: path.into(), text: text.into() };
    let imports = files.map(source).iter().map(|it| (path_of(it), imported(it, &paths))).collect();
    assert_eq!(circles(imports).into_keys().collect::<Vec<_>>(), ["m::one", "m::two"]);
}

/// The modules on a circle, and those between two circles.
fn circles(mut imports: Imports) -> Imports {
    loop {
        let imported: BTreeSet<_> = imports.values().flatten().cloned().collect();
        let before = imports.len();
        imports.retain(|path, of| !of.is_empty() && imported.contains(path));
        let left: BTreeSet<_> = imports.keys().cloned().collect();
        imports.values_mut().for_each(|of| of.retain(|path| left.contains(path)));
        if imports.len() == before {
            return imports;
        }
    }
}

/// The imports of the files of the product, without those that only tests compile.
fn imports() -> Imports {
    let of_tests = ["/tests/", "/locks/model/", "/stored_document.", "/shuttle_"];
    let mut sources = tree::of_kind(&["rs"]);
    sources.retain(|source| {
        source.is_in("src")
            && !source.stem().ends_with("tests")
            && !of_tests.iter().any(|part| source.path.contains(part))
    });
    let paths = sources.iter().map(path_of).collect();
    sources.iter().map(|source| (path_of(source), imported(source, &paths))).collect()
}

fn path_of(source: &Source) -> String {
    let path = tree::inside_src(&source.path).unwrap_or_default().trim_end_matches(".rs");
    path.trim_end_matches("/mod").trim_end_matches("/lib").replace('/', "::")
}

/// The modules of the same top-level module that a file imports, except for its ancestors and its
/// children.
fn imported(source: &Source, paths: &BTreeSet<String>) -> BTreeSet<String> {
    let own = path_of(source);
    let is_below = |path: &str, of: &str| path.starts_with(&format!("{of}::"));
    let code: Vec<_> = source.code().map(|(_, line)| line).collect();
    let modules = named(&code.join("\n"), &own).into_iter();
    let modules = modules.filter_map(|path| longest(&path, paths)).filter(|module| {
        module.split("::").next() == own.split("::").next()
            && *module != own
            && !is_below(module, &own)
            && !is_below(&own, module)
    });
    modules.collect()
}

/// The paths from `crate::` and `super::` in the code of the module `own`.
fn named(code: &str, own: &str) -> Vec<String> {
    // In a crate of its own, `crate` is the module of that name.
    let first = own.split("::").next().unwrap_or_default();
    let root_of = if crate::CRATES.contains(&first) { format!("{first}::") } else { String::new() };
    let full = code.match_indices("crate::").flat_map(|(at, root)| {
        let paths = expanded(&code[at + root.len()..]).into_iter();
        paths.map(|path| root_of.clone() + &path).collect::<Vec<_>>()
    });
    let parent = own.rsplit_once("::").map_or("", |(parent, _)| parent);
    let siblings = code.match_indices("super::").flat_map(|(at, _)| expanded(&code[at..]));
    let siblings = siblings.map(|path| path.replacen("super", parent, 1));
    full.chain(siblings).collect()
}

/// The paths that begin at the head of `code`: `a::{b, c::D}` has `a::b` and `a::c::D`.
fn expanded(code: &str) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let (path, rest) = code.split_at(code.find(|c| !is_name(c)).unwrap_or(code.len()));
    let Some(group) = rest.strip_prefix('{').filter(|_| path.ends_with("::")) else {
        return vec![path.to_owned()];
    };
    let (mut depth, mut items) = (0, vec![String::new()]);
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(String::new());
                continue;
            }
            _ => {}
        }
        items.last_mut().expect("an item").push(c);
    }
    let inner = items.iter().flat_map(|item| expanded(item.trim()));
    inner.map(|inner| format!("{path}{inner}")).collect()
}

/// The longest beginning of `path` that is a module.
fn longest(path: &str, paths: &BTreeSet<String>) -> Option<String> {
    let mut beginnings = successors(Some(path), |path| Some(path.rsplit_once("::")?.0));
    beginnings.find(|path| paths.contains(*path)).map(str::to_owned)
}
