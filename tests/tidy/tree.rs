//! The files of the repository, and the report of a broken rule.

use std::fs;
use std::path::Path;

/// Files of tools, or of a running server. The rules do not apply to them.
const FOREIGN: &[&str] = &["data", "static/vendor/LICENSES.txt", "target"];
/// Names that are foreign in any folder. In a worktree `.git` is a file.
const FOREIGN_ANYWHERE: &[&str] = &[".git", "node_modules"];
/// Output of `build.mjs`, besides bundles whose names contain their hashes.
const BUNDLES: &[&str] = &[
    "static/client/galley.",
    "static/js/lib/openapi.d.ts",
    "static/vendor/docs.",
    "static/vendor/editor.",
];

/// One text file.
pub(crate) struct Source {
    /// The path from the root of the repository, with `/` as the separator.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn is_in(&self, folder: &str) -> bool {
        self.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }

    pub(crate) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    pub(crate) fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(&self.path, |(_, name)| name)
    }

    /// The file name without its extension.
    pub(crate) fn stem(&self) -> &str {
        self.name().rsplit_once('.').map_or(self.name(), |(stem, _)| stem)
    }

    /// The file extension.
    pub(crate) fn kind(&self) -> &str {
        self.name().rsplit_once('.').map_or("", |(_, kind)| kind)
    }

    /// The top-level module of a file under `src`, or under `src/core`, whose modules are named as if they
    /// stood beside the others.
    pub(crate) fn module(&self) -> Option<&str> {
        let inside = inside_src(&self.path)?;
        let first = inside.split_once('/').map_or(inside, |(first, _)| first);
        Some(first.trim_end_matches(".rs"))
    }

    /// The lines with their numbers.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// Lines of Rust code, without comments and top-level test items.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        // A test item is a line, or ends with a closing brace at the start of a line, as rustfmt writes it.
        let (mut is_item, mut is_block) = (false, false);
        self.lines().filter(move |(_, line)| {
            if is_block || is_item {
                is_item = is_item && line.starts_with("#[");
                let opens = !is_block && !is_item && line.ends_with('{');
                is_block = opens || is_block && *line != "}";
                return false;
            }
            is_item = *line == "#[cfg(test)]";
            !is_item && !line.trim_start().starts_with("//")
        })
    }

    pub(crate) fn complaint(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// The rest of a path below `src` or `src/core`.
pub(crate) fn inside_src(path: &str) -> Option<&str> {
    path.strip_prefix("src/core/").or_else(|| path.strip_prefix("src/"))
}

/// Every text file of the repository that the rules cover.
pub(crate) fn all() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a readable folder") {
            let path = entry.expect("an entry").path();
            let inside = inside(root, &path);
            if is_foreign(&inside) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                sources.push(Source { path: inside, text });
            }
        }
    }
    assert!(sources.iter().any(|source| source.path == "src/main.rs"), "the walk is broken");
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

/// The files with these extensions.
pub(crate) fn of_kind(kinds: &[&str]) -> Vec<Source> {
    let mut sources = all();
    sources.retain(|source| kinds.contains(&source.kind()));
    sources
}

pub(crate) fn one(path: &str) -> Source {
    all().into_iter().find(|source| source.path == path).expect("it is there")
}

/// Fails with the advice and the places of the complaints.
#[track_caller]
pub(crate) fn assert_none(complaints: &[String], advice: &str) {
    assert!(complaints.is_empty(), "{advice}:\n{}\n", complaints.join("\n"));
}

fn is_foreign(path: &str) -> bool {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    FOREIGN.contains(&path)
        || FOREIGN_ANYWHERE.contains(&name)
        || BUNDLES.iter().any(|bundle| path.starts_with(bundle))
        || path.starts_with("static/vendor/") && name.contains('-')
}

fn inside(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/")
}
