//! Labels of list items in a folder of Word files, beside those of `LibreOffice`.
//!
//! The importer reads each file, and no file may make it panic. `LibreOffice` writes the same files as text.
//! An item is found by its words; a bullet equals every bullet. Items in tables are left out: `LibreOffice`
//! writes a line for each cell.
//!
//! ```text
//! cargo bench --bench word_files -- FOLDER
//! ```

#![allow(clippy::print_stdout, reason = "a measurement prints")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, panic};

use galley_files::import::{ImportFormat, read};

/// Files that one run of `LibreOffice` converts.
const AT_ONCE: usize = 50;
const SECONDS_MAX: &str = "300";
/// Lines ahead in which the importer's line of an item is searched.
const WINDOW: usize = 40;
const DIFFERENCES_SHOWN: usize = 40;

#[derive(Default)]
struct Counts {
    files: usize,
    panics: usize,
    refused: usize,
    labels: usize,
    different: Vec<String>,
}

fn main() {
    let folder = env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let Some(folder) = folder else { return println!("name a folder of .docx files") };
    let mut files = Vec::new();
    collect(Path::new(&folder), &mut files);
    files.sort();
    let work = tempfile::tempdir().expect("a folder");
    let mut counts = Counts { files: files.len(), ..Counts::default() };
    for (at, files) in files.chunks(AT_ONCE).enumerate() {
        compare(files, &work.path().join(at.to_string()), &mut counts);
    }
    let Counts { files, panics, refused, labels, different } = counts;
    println!("{files} files, {panics} panics, {refused} refused");
    let share = 100.0 * different.len() as f64 / labels.max(1) as f64;
    println!("{} of {labels} labels differ ({share:.1} %)", different.len());
    different.iter().take(DIFFERENCES_SHOWN).for_each(|line| println!("  {line}"));
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension() == Some(OsStr::new("docx")) {
            files.push(path);
        }
    }
}

fn compare(files: &[PathBuf], work: &Path, counts: &mut Counts) {
    fs::create_dir_all(work).expect("a folder");
    let mut texts = Vec::new();
    for (at, file) in files.iter().enumerate() {
        let bytes = fs::read(file).expect("a readable file");
        match panic::catch_unwind(|| read(ImportFormat::Docx, &bytes, usize::MAX)) {
            Ok(Ok(imported)) => {
                fs::write(work.join(format!("{at}.docx")), bytes).expect("written");
                texts.push((at, file, imported.text));
            }
            Ok(Err(_)) => counts.refused += 1,
            Err(_) => {
                counts.panics += 1;
                println!("panic: {}", file.display());
            }
        }
    }
    let mut office = Command::new("timeout");
    office.args([SECONDS_MAX, "soffice", "--headless", "--convert-to", "txt:Text (encoded):UTF8"]);
    office.arg(format!("-env:UserInstallation=file://{}", work.join("profile").display()));
    office.arg("--outdir").arg(work);
    office.args(texts.iter().map(|(at, ..)| work.join(format!("{at}.docx"))));
    office.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("LibreOffice");
    for (at, file, text) in texts {
        // LibreOffice cannot read each file.
        let Ok(office) = fs::read_to_string(work.join(format!("{at}.txt"))) else { continue };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        compare_labels(&name, &text, &office, counts);
    }
}

fn compare_labels(name: &str, text: &str, office: &str, counts: &mut Counts) {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let mut from = 0;
    for item in office.lines().filter(|line| line.starts_with("    ")).map(str::trim) {
        // The label of an item is set apart from its words.
        let Some((label, words)) = item.split_once([' ', '\t']) else { continue };
        let words = words.trim();
        let head = words.get(..words.floor_char_boundary(30)).unwrap_or_default();
        let ahead = lines.get(from..).unwrap_or_default().iter().take(WINDOW);
        let found = ahead.enumerate().find_map(|(on, line)| {
            let (before, _) = line.rsplit_once(head)?;
            // A list item whose line begins with another text is none.
            (!head.is_empty() && before.len() <= label.len() + 12).then_some((on, before.trim()))
        });
        let Some((on, own)) = found else { continue };
        from += on + 1;
        if is_number(label) || is_number(own) {
            counts.labels += 1;
            if own != label {
                counts.different.push(format!("{name}: {label:?} here {own:?} before {head:?}"));
            }
        }
    }
}

/// Not a bullet: many bullets are an `o`.
fn is_number(label: &str) -> bool {
    label != "o" && label.contains(char::is_alphanumeric)
}
