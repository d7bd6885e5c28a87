//! No circle of files inside a module: a reader reads the files of a module in one order.
//!
//! A child may import what its parents define: it serves their types.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{self, Source, assert_none};

/// A module's path, such as `locks::redis::call`, and those that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn files_of_a_module_import_without_a_circle() {
    let stray = |(path, of): (String, BTreeSet<String>)| {
        format!("{path} imports {}", Vec::from_iter(of).join(", "))
    };
    let complaints: Vec<_> = circles(&imports()).into_iter().map(stray).collect();
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
    let files = [
        ("src/m/mod.rs", ""),
        ("src/m/top.rs", "use crate::m::{\n    one::{self, One},\n};\n"),
        ("src/m/one.rs", "use crate::m::{low, two::Two as Other};\nfn f() { low::g() }\n"),
        ("src/m/two.rs", "use super::one;\n// use crate::m::top;\n"),
        ("src/m/low.rs", "#[cfg(test)]\nmod tests {\n    use crate::m::top;\n}\n"),
    ];
    assert_eq!(on_circles(&files), ["m::one", "m::two"]);
}

#[test]
fn every_kind_of_path_is_resolved() {
    let files = [
        // A module by its short name, by a name of its own, and by a re-export of a parent.
        ("src/m/mod.rs", "pub mod engine;\npub use self::above::Above as Renamed;\n"),
        ("src/m/tx.rs", "use crate::m::{engine, Storage};\nfn f() { engine::seats::ratify() }\n"),
        ("src/m/engine/mod.rs", "pub mod seats;\npub struct Engine(self::pool::Pool);\n"),
        ("src/m/engine/seats.rs", "use super::super::tx as begun;\nfn f(_: begun::Tx) {}\n"),
        ("src/m/engine/pool.rs", "use super::Engine;\nuse crate::m::Renamed;\n"),
        ("src/m/above.rs", "fn f() { $crate::m::engine::pool::open() }\n"),
        // A child of a child, below a parent that imports it and that others import.
        ("src/m/low/mod.rs", "mod rows;\npub use self::rows::*;\nfn f() { rows::read() }\n"),
        ("src/m/low/rows.rs", "use super::super::high::High;\n"),
        ("src/m/high.rs", "use crate::m::low::read;\n"),
    ];
    let circles = [
        "m::above",
        "m::engine::pool",
        "m::engine::seats",
        "m::high",
        "m::low",
        "m::low::rows",
        "m::tx",
    ];
    assert_eq!(on_circles(&files), circles);
}

#[cfg(test)]
fn on_circles(files: &[(&str, &str)]) -> Vec<String> {
    let source =
        |(path, text): &(&str, &str)| Source { path: (*path).into(), text: (*text).into() };
    circles(&imports_of(&files.iter().map(source).collect::<Vec<_>>())).into_keys().collect()
}

/// The modules on a circle, each with those of its circle that it imports.
fn circles(imports: &Imports) -> Imports {
    let on_circle = |path: &String, of: &BTreeSet<String>| {
        let of = of.iter().filter(|other| reached(imports, other).contains(path));
        of.cloned().collect::<BTreeSet<_>>()
    };
    let circles = imports.iter().map(|(path, of)| (path.clone(), on_circle(path, of)));
    circles.filter(|(_, of)| !of.is_empty()).collect()
}

fn reached<'a>(imports: &'a Imports, from: &'a String) -> BTreeSet<&'a String> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(path) = next.pop() {
        let of = imports.get(path).into_iter().flatten();
        next.extend(of.filter(|path| reached.insert(*path)));
    }
    reached
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
    imports_of(&sources)
}

/// The modules of the same top-level module that each file imports, except for its ancestors.
fn imports_of(sources: &[Source]) -> Imports {
    let names = Names(sources.iter().map(|it| (path_of(it), Module::of(it))).collect());
    let of = |(own, module): (&String, &Module)| {
        let found =
            module.paths.iter().flat_map(|path| names.modules(own, path, 0).0).filter(|it| {
                it != own
                    && it.split("::").next() == own.split("::").next()
                    && !own.starts_with(&format!("{it}::"))
            });
        (own.clone(), found.collect())
    };
    names.0.iter().map(of).collect()
}

fn path_of(source: &Source) -> String {
    let path = tree::inside_src(&source.path).unwrap_or_default().trim_end_matches(".rs");
    path.trim_end_matches("/mod").trim_end_matches("/lib").replace('/', "::")
}

/// A file: the paths in its code, and the names that its `use`s give to some of them.
struct Module {
    paths: BTreeSet<String>,
    names: BTreeMap<String, String>,
}

/// All files by their paths.
struct Names(BTreeMap<String, Module>);

/// The paths that the `use` items of a code import.
fn uses(code: &str) -> Vec<String> {
    let is_item = |at: usize| {
        let line = code[..at].rsplit('\n').next().unwrap_or_default().trim();
        line.is_empty() || line.starts_with("pub")
    };
    let items = code.match_indices("use ").map(|(at, _)| at).filter(|&at| is_item(at));
    items.flat_map(|at| expanded(&code[at + 4..])).collect()
}

impl Module {
    fn of(source: &Source) -> Self {
        let code = source.code().map(|(_, line)| line).collect::<Vec<_>>().join("\n");
        let (mut paths, mut names) = (BTreeSet::new(), BTreeMap::new());
        for used in uses(&code) {
            let (path, name) = used.split_once(" as ").unwrap_or((&used, ""));
            let path = path.trim_end_matches("::self");
            let name =
                if name.is_empty() { path.rsplit("::").next().unwrap_or_default() } else { name };
            // `use run;` after `macro_rules! run` names itself.
            if name != path {
                names.insert(name.to_owned(), path.to_owned());
            }
            paths.insert(path.to_owned());
        }
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let words = code.split(|c| !is_part(c)).filter(|word| word.contains("::"));
        paths.extend(words.map(|word| word.trim_matches(':').to_owned()));
        Self { paths, names }
    }
}

impl Names {
    /// The module to which a path of the module `own` leads, after those that re-export a part of it. True: the path
    /// is that module, and no item of it.
    fn modules(&self, own: &str, path: &str, depth: usize) -> (Vec<String>, bool) {
        let (first, rest) = path.split_once("::").unwrap_or((path, ""));
        let parent = own.rsplit_once("::").map_or("", |(parent, _)| parent);
        let top = own.split("::").next().unwrap_or_default();
        let (start, names) = match first {
            // In a crate of its own, `crate` is the module of that name.
            "crate" if crate::CRATES.contains(&top) => (top, rest),
            "crate" => ("", rest),
            "self" => (own, rest),
            "super" if rest.starts_with("super") => return self.modules(parent, rest, depth),
            "super" => (parent, rest),
            _ => (own, path),
        };
        let (mut found, mut last) = (Vec::new(), start.to_owned());
        for name in names.split("::").filter(|name| !name.is_empty()) {
            let child = format!("{last}::{name}").trim_start_matches(':').to_owned();
            if self.0.contains_key(&child) {
                last = child;
                continue;
            }
            let used = self.0.get(&last).and_then(|module| module.names.get(name));
            // A `use` may name itself.
            let used = used.filter(|_| depth < 8);
            let (mut more, is_module) =
                used.map_or((Vec::new(), false), |path| self.modules(&last, path, depth + 1));
            found.push(last);
            if !is_module {
                found.append(&mut more);
                return (found, false);
            }
            last = more.pop().unwrap_or_default();
            found.append(&mut more);
        }
        found.push(last);
        (found, true)
    }
}

/// The paths that begin at the head of `code`: `a::{b, c::D as E}` has `a::b` and `a::c::D as E`.
fn expanded(code: &str) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == ' ';
    let (path, rest) = code.split_at(code.find(|c| !is_name(c)).unwrap_or(code.len()));
    let Some(group) = rest.strip_prefix('{').filter(|_| path.ends_with("::")) else {
        return vec![path.trim().to_owned()];
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
