//! Rules of the page: no import cycles, no HTML in strings, no test file outside the suites.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{self, Source, assert_none};

/// Calls that turn text into markup or code.
const MARKUP: &[&str] =
    &[".innerHTML", ".outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function("];
/// Folders of the tests that `tests/run` gives to node.
const NODE_SUITES: &[&str] = &["tests/browser", "tests/stock", "tests/ui"];

/// The order of execution in an import cycle is arbitrary.
#[test]
fn the_pages_modules_import_without_a_cycle() {
    let scripts = scripts();
    let mut imports: BTreeMap<_, BTreeSet<_>> =
        scripts.iter().map(|source| (source.path.as_str(), imports(source))).collect();
    assert!(imports.values().any(|names| !names.is_empty()), "no import found: the test is broken");
    // A module without remaining imports is in no cycle.
    loop {
        let free: BTreeSet<_> =
            imports.iter().filter(|(_, names)| names.is_empty()).map(|(path, _)| *path).collect();
        if free.is_empty() {
            break;
        }
        imports.retain(|path, _| !free.contains(path));
        for names in imports.values_mut() {
            names.retain(|name| !free.contains(name.as_str()));
        }
    }
    let complaints: Vec<_> =
        imports.iter().map(|(path, names)| format!("{path}: imports {names:?}")).collect();
    assert_none(&complaints, "in or above a cycle: let a third module have what both need");
}

/// User text must stay text, so scripts never parse it as markup.
#[test]
fn text_never_becomes_markup() {
    let mut complaints = Vec::new();
    for source in scripts() {
        for (number, line) in source.lines() {
            let found = MARKUP.iter().find(|way| line.contains(**way));
            complaints.extend(found.map(|way| source.complaint(number, way)));
        }
    }
    assert_none(&complaints, "make elements, and set their `textContent`");
}

/// The content security policy blocks both.
#[test]
fn no_page_contains_inline_code_or_style() {
    let mut complaints = Vec::new();
    for page in tree::of_kind(&["html"]) {
        for (number, line) in page.lines() {
            let is_inline = line.contains("<script") && !line.contains("src=")
                || line.contains("<style")
                || line.contains(" style=")
                || ["onclick=", "onload=", "onerror=", "onsubmit=", "javascript:"]
                    .iter()
                    .any(|handler| line.contains(handler));
            if is_inline {
                complaints.push(page.complaint(number, line.trim()));
            }
        }
    }
    assert_none(&complaints, "put it into a file under static/js or static/css");
}

/// `tests/run` runs files with these names in the folders of [`NODE_SUITES`].
#[test]
fn every_test_for_node_is_in_a_suite() {
    let complaints: Vec<_> = tree::of_kind(&["js", "mjs"])
        .iter()
        .filter(|source| source.text.contains("from \"node:test\""))
        .filter(|source| {
            let is_in_suite = NODE_SUITES.iter().any(|suite| source.is_in(suite));
            let is_test = source.stem().ends_with(".test") || source.stem() == "support";
            !is_in_suite || !is_test
        })
        .map(|source| source.complaint(1, "is not run"))
        .collect();
    assert_none(&complaints, "name it *.test.js or *.test.mjs, in a folder that tests/run knows");
}

fn scripts() -> Vec<Source> {
    let mut scripts = tree::of_kind(&["js"]);
    scripts.retain(|source| source.is_in("static/js"));
    scripts
}

/// The page's modules that this module imports, by path. Imports in type comments do not count.
fn imports(source: &Source) -> BTreeSet<String> {
    let names = source.lines().filter_map(|(_, line)| {
        let (_, name) = line.split_once(" from \"").or_else(|| line.split_once("import \""))?;
        (!line.trim_start().starts_with('*')).then_some(name.split('"').next()?)
    });
    let ours = names.filter(|name| name.starts_with('.'));
    let paths = ours.map(|name| tree::resolve(source.folder(), name));
    paths.filter(|path| path.starts_with("static/js/")).collect()
}
