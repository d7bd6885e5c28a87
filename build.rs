//! Embeds the bundles of the pages, each with its content type and its tag, and compresses them once: the
//! server sends the result as it is. `static/vendor/build.mjs` makes the bundles; a build needs no Node.
//!
//! Compressing each response costs a core 15 ms per bundle, and a client needs no token for it. The output
//! is a sorted table for `src/http/assets.rs`. HTML pages are not compressed, because each response has a
//! new nonce.

#![allow(clippy::print_stdout, reason = "a build script speaks to cargo on standard output")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::Hasher as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

const STATIC: &str = "static";
/// The tags of each page, in one line of its own.
const MANIFEST: &str = "static/vendor/manifest.json";
/// `/openapi.json`, served beside them.
const OPENAPI: &str = "openapi.json";
/// The head of that document, with the schemas that several subjects use.
const OPENAPI_COMMON: &str = "src/http/openapi/common.json";
/// The schemas that Rust types make, by `src/app/openapi_schema_tests.rs`.
const OPENAPI_SCHEMAS: &str = "src/http/openapi/schemas.json";
/// The paths of each subject with the schemas that it alone uses, in the order of the document.
const OPENAPI_SUBJECTS: &[&str] = &[
    "src/http/openapi/auth.json",
    "src/oidc/openapi.json",
    "src/transfer/openapi.json",
    "src/persons/openapi.json",
    "src/reminders/openapi.json",
    "src/http/openapi/documents.json",
    "src/exports/openapi.json",
    "src/versions/openapi.json",
    "src/http/openapi/links.json",
    "src/http/openapi/reviewers.json",
    "src/partners/openapi.json",
    "src/partners/openapi_requests.json",
    "src/offers/openapi.json",
    "src/http/openapi/reviews.json",
    "src/http/openapi/ws.json",
    "src/push/openapi.json",
    "src/admin/openapi.json",
    "src/periodic/openapi.json",
    "src/webhooks/openapi.json",
    "src/http/openapi/health.json",
];

/// Writes the table and the compressed files.
fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={STATIC}");
    let folder = |name| env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let (root, out) = (folder("CARGO_MANIFEST_DIR"), folder("OUT_DIR"));
    let openapi = out.join(OPENAPI);
    fs::write(&openapi, joined_openapi()?)?;
    let mut files = BTreeMap::from([(OPENAPI.to_owned(), openapi)]);
    gather(Path::new(STATIC), &mut files)?;
    let manifest = fs::read_to_string(MANIFEST)?;
    let mut table = String::from("&[\n");
    for (number, (name, path)) in files.iter().enumerate() {
        let mut whole = fs::read(path)?;
        let (kind, is_page) = kind(name);
        let mut path = root.join(path);
        if is_page {
            whole = bundled(name, &String::from_utf8_lossy(&whole), &manifest)?.into_bytes();
            path = out.join(name);
            fs::write(&path, &whole)?;
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&whole)?;
        let mut packed = None;
        let compressed = encoder.finish()?;
        if !is_page && compressed.len() < whole.len() {
            let file = out.join(format!("{number}.gz"));
            fs::write(&file, compressed)?;
            packed = Some(file);
        }
        let packed =
            packed.map_or("None".to_owned(), |file| format!("Some(include_bytes!({file:?}))"));
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write(&whole);
        // A weak tag, because a response carries the same file compressed or not.
        let tag = format!("W/\"{:016x}\"", hasher.finish());
        let _written = writeln!(
            table,
            "File {{ name: {name:?}, kind: {kind:?}, tag: {tag:?}, whole: include_bytes!({path:?}), \
             packed: {packed} }},"
        );
    }
    table.push(']');
    fs::write(out.join("files.rs"), table)
}

/// The `OpenAPI` document of all subjects. The text of each file stays as it is, so the document has the order of
/// the files, and a path or a schema of two files stands in it twice: `src/app/openapi_tests.rs` rejects that.
fn joined_openapi() -> io::Result<String> {
    let between = |text: &str, begin: &str, end: &str| {
        Some(text.split_once(begin)?.1.split_once(end)?.0.to_owned())
    };
    let schemas_of = |text: &str| between(text, "\n    \"schemas\": {\n", "\n    }");
    let (mut paths, mut schemas) = (Vec::new(), Vec::new());
    for path in OPENAPI_SUBJECTS {
        let subject = openapi_part(path)?;
        let of_subject = between(&subject, "{\n  \"paths\": {\n", "\n  }");
        paths.push(of_subject.ok_or_else(|| io::Error::other(format!("{path} has no paths")))?);
        schemas.extend(schemas_of(&subject));
    }
    schemas.extend(schemas_of(&openapi_part(OPENAPI_SCHEMAS)?));
    let common = openapi_part(OPENAPI_COMMON)?;
    let insert = |text: &str, mark, begin, parts: &[String], end| match text.split_once(mark) {
        Some((before, after)) => Ok([before, begin, &parts.join(",\n"), end, after].concat()),
        None => Err(io::Error::other(format!("{OPENAPI_COMMON} has no {mark}"))),
    };
    let head = insert(&common, "\"paths\": {}", "\"paths\": {\n", &paths, "\n  }")?;
    insert(&head, "\"schemas\": {\n", "\"schemas\": {\n", &schemas, ",\n")
}

fn openapi_part(path: &str) -> io::Result<String> {
    println!("cargo::rerun-if-changed={path}");
    fs::read_to_string(path)
}

/// The page with the tags of its bundle instead of those of its sources.
fn bundled(name: &str, page: &str, manifest: &str) -> io::Result<String> {
    // The page of the API has its own bundle.
    let Some((before, sources)) = page.split_once("<script src=\"/js/") else {
        return Ok(page.to_owned());
    };
    let key = format!("\"{name}\": \"");
    let tags = manifest.lines().find_map(|line| line.trim().strip_prefix(&key));
    let tags = tags.and_then(|tags| tags.split('"').next());
    let after = sources.split_once("</head>").map(|(_, after)| after);
    let (Some(tags), Some(after)) = (tags, after) else {
        return Err(io::Error::other(format!("{MANIFEST} has no tags of {name}")));
    };
    Ok(format!("{before}{tags}\n  </head>{after}"))
}

/// The path in the URL of a served file: the sources of the bundles stay outside the program.
fn served_name(path: &Path) -> Option<String> {
    let name = path.strip_prefix(STATIC).ok()?.to_string_lossy().replace('\\', "/");
    let is_served = match name.split_once('/') {
        None => true,
        Some(("client", file)) => file.starts_with("galley."),
        Some(("vendor", file)) => {
            file.contains('-') || file.starts_with("docs.") || file.ends_with(".txt")
        }
        Some(_) => false,
    };
    is_served.then_some(name)
}

/// Adds the served files below `folder`, keyed by their paths in the URL.
fn gather(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, files)?;
        } else if let Some(name) = served_name(&path) {
            files.insert(name, path);
        }
    }
    Ok(())
}

/// The content type of a file, and whether it is a page.
fn kind(name: &str) -> (&'static str, bool) {
    match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "css" => ("text/css; charset=utf-8", false),
        "html" => ("text/html; charset=utf-8", true),
        "js" => ("text/javascript; charset=utf-8", false),
        "json" => ("application/json", false),
        "svg" => ("image/svg+xml; charset=utf-8", false),
        _ => ("text/plain; charset=utf-8", false),
    }
}
