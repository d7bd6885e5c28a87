//! Rules for the content of files: their length, their first lines, and banned words.

use std::env;

use crate::tree::{self, Source, assert_none};

/// Longest file, in lines; authors aim for 400. A longer file has two subjects, and is split and not squeezed.
const LINES_MAX: usize = 500;
/// Extensions of files that people write. The empty one covers scripts.
const WRITTEN: &[&str] = &["", "css", "html", "js", "mjs", "rs", "toml", "ts"];

/// Marks of unfinished work and of skipped tests. Each is split in two, so that this file does not match itself.
const UNFINISHED: &[&str] = &[
    "todo|!(",
    "unimplemented|!(",
    "TO|DO",
    "FIX|ME",
    "#[ign|ore",
    "#[should|_panic",
    ".on|ly(",
    ".sk|ip(\"",
    "test.sk|ip",
    "test.to|do",
    " skip: |true",
    " only: |true",
    " todo: |true",
];

/// Top folders of specific machines.
const MACHINE_FOLDERS: &[&str] = &["farm", "home", "root", "work"];
/// Parts of the names of package hosts. Each machine configures its own host.
const PACKAGE_HOSTS: &[&str] =
    &["artifactory", "crates.io", "mirror", "nexus", "npmjs", "proxy", "registry", "yarnpkg"];
/// The source of crates in every Cargo.lock.
const CRATES_INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[test]
fn files_are_short() {
    let complaints: Vec<_> = tree::of_kind(WRITTEN)
        .iter()
        .map(|source| (source, source.text.lines().count()))
        .filter(|(_, lines)| LINES_MAX < *lines)
        .map(|(source, lines)| source.complaint(lines, "too long"))
        .collect();
    assert_none(&complaints, &format!("split by subject; {LINES_MAX} lines are the most"));
}

#[test]
fn every_file_begins_with_a_comment() {
    let says = |source: &Source| {
        // A shebang or a mark for tools may precede the comment.
        let is_mark = |line: &&str| line.starts_with("#!") || *line == "// @ts-check";
        let first = source.text.lines().find(|line| !is_mark(line)).unwrap_or_default();
        let openings: &[&str] = if source.kind() == "rs" { &["//! "] } else { &["/*", "//", "# "] };
        openings.iter().any(|opening| first.starts_with(opening))
    };
    let complaints: Vec<_> = tree::of_kind(&["css", "js", "mjs", "rs", "toml", "ts", ""])
        .iter()
        .filter(|source| source.kind() != "" || source.text.starts_with("#!"))
        .filter(|source| !matches!(source.name(), "Cargo.toml" | ".rustfmt.toml" | ".clippy.toml"))
        .filter(|source| !says(source))
        .map(|source| source.complaint(1, "does not begin with a comment"))
        .collect();
    assert_none(&complaints, "begin with what the file is and why it is so");
}

/// Unfinished work belongs in an issue, not in a file. A skipped test proves nothing.
#[test]
fn no_file_contains_unfinished_work() {
    let words: Vec<_> = UNFINISHED.iter().map(|mark| mark.replace('|', "")).collect();
    let complaints = in_each_line(|line| words.iter().find(|word| line.contains(*word)).cloned());
    assert_none(&complaints, "finish it, or remove it and write an issue");
}

#[test]
fn no_file_names_a_machine_or_a_package_host() {
    let mut folders: Vec<_> = MACHINE_FOLDERS.iter().map(|name| format!("/{name}/")).collect();
    // The checkout folder itself, unless its path is a common name.
    let here = env!("CARGO_MANIFEST_DIR").to_owned();
    folders.extend(Some(here).filter(|path| path.matches('/').count() > 1));
    let mut complaints = in_each_line(|line| {
        let is_end = |c: char| c.is_whitespace() || "/\"'`)<>,;".contains(c);
        let mut hosts =
            line.split("://").skip(1).map(|it| it.split(is_end).next().unwrap_or_default());
        let host = hosts.find(|host| PACKAGE_HOSTS.iter().any(|part| host.contains(part)));
        let folder = folders.iter().find(|folder| line.contains(*folder)).map(String::as_str);
        Some(format!("names {}", folder.or(host)?))
    });
    for source in tree::all() {
        let is_foreign = |line: &str| match source.name() {
            "Cargo.lock" => line.starts_with("source = ") && !line.contains(CRATES_INDEX),
            "package-lock.json" => line.trim_start().starts_with("\"resolved\""),
            ".npmrc" => line.contains("registry="),
            _ => source.is_in(".cargo"),
        };
        let lines = source.lines().filter(|(_, line)| is_foreign(line));
        complaints.extend(lines.map(|(at, _)| source.complaint(at, "names a place for packages")));
    }
    assert_none(&complaints, "name it from the top of the repository, or leave it to the machine");
}

/// `config/default.toml` is the manual of the settings.
#[test]
fn every_setting_has_a_comment_in_the_manual() {
    let manual = tree::one("config/default.toml");
    let mut complaints = Vec::new();
    let mut is_explained = false;
    for (number, line) in manual.lines() {
        let text = line.strip_prefix("# ").unwrap_or(line);
        let key = text.split_once(" = ").map(|(key, _)| key);
        let is_key =
            key.is_some_and(|key| key.bytes().all(|b| b == b'_' || b.is_ascii_lowercase()));
        if is_key && !is_explained {
            complaints.push(manual.complaint(number, text));
        }
        is_explained = line.starts_with('#') && !is_key;
    }
    assert_none(&complaints, "say above each key what it does, in what unit, between what bounds");
}

/// A promise without a test is not proven.
#[test]
fn every_promise_has_a_test() {
    let sources = tree::of_kind(&["rs"]);
    let page = tree::one("src/ARCHITECTURE.md").text;
    let rows = page.lines().filter_map(|line| line.strip_prefix("| G")?.split(' ').next());
    let has_test = |number: &&str| {
        let name = format!("fn g{number}_");
        sources.iter().any(|source| source.text.contains(&name))
    };
    let without: Vec<_> = rows.filter(|row| !has_test(row)).map(str::to_owned).collect();
    assert_none(&without, "name the test that holds it after it, as in `g1_…`");
}

/// Applies `find` to every line, except in lock files.
fn in_each_line(find: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in tree::all().iter().filter(|source| !source.name().contains("lock")) {
        let found = source.lines().filter_map(|(number, line)| Some((number, find(line)?)));
        complaints.extend(found.map(|(number, what)| source.complaint(number, &what)));
    }
    complaints
}
