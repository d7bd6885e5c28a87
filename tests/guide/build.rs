//! Writes the Rust example of `src/locks/GUIDE.md` to a file, which `main.rs` includes: the program
//! that runs is the program that readers copy.

use std::path::PathBuf;
use std::{env, fs, io};

const GUIDE: &str = "../../src/locks/GUIDE.md";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={GUIDE}");
    let guide = fs::read_to_string(GUIDE)?;
    let (_, rest) = guide.split_once("\n```rust\n").ok_or(io::ErrorKind::NotFound)?;
    let (example, _) = rest.split_once("\n```\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let out = env::var_os("OUT_DIR").map(PathBuf::from).ok_or(io::ErrorKind::NotFound)?;
    fs::write(out.join("example.rs"), example)
}
