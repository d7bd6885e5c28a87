//! Compresses the files of the pages once, at build time: the server sends the result as it is.
//!
//! Compressing each response costs a core 15 ms per bundle, and a client needs no token for it (facts:
//! M4). The output is a sorted table for `src/http/compressed_assets.rs`. HTML pages are not in the
//! table, because each response has a new nonce. Without the feature `server` there are no pages, and
//! the script does nothing.

#![allow(clippy::print_stdout, reason = "a build script speaks to cargo on standard output")]

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "server")]
    pages::compress()?;
    Ok(())
}

#[cfg(feature = "server")]
mod pages {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;
    use std::fs;
    use std::hash::Hasher as _;
    use std::io::{self, Write as _};
    use std::path::{Path, PathBuf};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    /// Kinds of files that become smaller.
    const KINDS: [&str; 4] = ["css", "js", "json", "svg"];
    const STATIC: &str = "static";
    /// `/openapi.json`, served beside them: name and source.
    const OPENAPI: (&str, &str) = ("openapi.json", "src/http/openapi.json");

    /// Writes the table and the compressed files.
    pub(super) fn compress() -> io::Result<()> {
        println!("cargo::rerun-if-changed={STATIC}");
        println!("cargo::rerun-if-changed={}", OPENAPI.1);
        let mut files = BTreeMap::from([(OPENAPI.0.to_owned(), PathBuf::from(OPENAPI.1))]);
        gather(Path::new(STATIC), &mut files)?;
        let out = std::env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
        let mut table = String::from("&[\n");
        for (number, (name, path)) in files.iter().enumerate() {
            let whole = fs::read(path)?;
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(&whole)?;
            let packed = encoder.finish()?;
            if whole.len() <= packed.len() {
                continue;
            }
            fs::write(out.join(format!("{number}.gz")), packed)?;
            let mut hasher = std::hash::DefaultHasher::new();
            hasher.write(&whole);
            let (hash, file) = (hasher.finish(), format!("/{number}.gz"));
            let _written = writeln!(
                table,
                "({name:?}, {hash}, include_bytes!(concat!(env!(\"OUT_DIR\"), {file:?}))),"
            );
        }
        table.push(']');
        fs::write(out.join("packed.rs"), table)
    }

    /// Adds every file below `folder` whose kind compresses, keyed by its path in the URL.
    fn gather(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
            if path.is_dir() {
                gather(&path, files)?;
            } else if KINDS.contains(&kind)
                && let Ok(name) = path.strip_prefix(STATIC)
            {
                files.insert(name.to_string_lossy().replace('\\', "/"), path);
            }
        }
        Ok(())
    }
}
