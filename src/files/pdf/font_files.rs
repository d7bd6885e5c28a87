//! The files of fonts: each is read once.
//!
//! A damaged font may make a library fail anywhere, so each file is tried before it is used.

use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use krilla::text::{Font, Tag};
use parley::fontique::{Blob, FontInfo};

use crate::pdf::fonts::{Face, Fonts, empty_context};
use crate::pdf::rich::{Rich, Role};
use crate::pdf::typeset::{Measure, Typesetter};
use galley_domain::export::ExportFailure;

/// Longest font of PDFs, in bytes: all weights of a collection of East Asian faces. A server holds each
/// font in memory.
const FONT_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// The face that a collection of East Asian faces is used with.
const KOREAN_FACE: &str = "KR";
const WEIGHT: f32 = 400.0;
const SAMPLE: &str = "Ag 1 가힣";

/// Skips a missing file, and a damaged one with a warning. The error is a sentence for the operator: no
/// file can be used.
pub fn load(paths: &[PathBuf]) -> Result<Fonts, String> {
    let mut faces = Vec::new();
    let mut faults = Vec::new();
    for path in paths {
        match face(path) {
            Ok(face) => faces.push(face),
            Err(Fault::Missing) => {}
            Err(Fault::Unusable(why)) => {
                let fault = format!("{} {why}", path.display());
                tracing::warn!("exports.fonts: {fault}");
                faults.push(fault);
            }
        }
    }
    if !faces.is_empty() {
        return Ok(Fonts::of(&faces));
    }
    Err(if faults.is_empty() {
        "exports.fonts: no file is there".to_owned()
    } else {
        faults.join("; ")
    })
}

enum Fault {
    Missing,
    Unusable(String),
}

/// Whether a file begins as a font does. It may be damaged beyond.
pub fn is_font(path: &Path) -> bool {
    let mut magic = [0; 4];
    if !path.is_file() {
        // A pipe would wait for its writer.
        return false;
    }
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && matches!(&magic, b"\0\x01\0\0" | b"OTTO" | b"true" | b"ttcf")
}

fn face(path: &Path) -> Result<Face, Fault> {
    let unusable = |why: &str| Fault::Unusable(why.to_owned());
    let Ok(metadata) = std::fs::metadata(path) else { return Err(Fault::Missing) };
    if metadata.len() > FONT_BYTES_MAX {
        return Err(unusable("is larger than 128 MiB"));
    }
    if !is_font(path) {
        return Err(unusable("cannot be read, or is no TrueType or OpenType font"));
    }
    let bytes =
        std::fs::read(path).map_err(|error| Fault::Unusable(format!("cannot be read: {error}")))?;
    // The libraries promise no behaviour for damaged fonts.
    let tried = catch_unwind(AssertUnwindSafe(|| korean_or_first(bytes).filter(sets_a_sample)));
    tried.ok().flatten().ok_or_else(|| unusable("is damaged, or has no Unicode text"))
}

fn korean_or_first(bytes: Vec<u8>) -> Option<Face> {
    let data = Blob::new(Arc::new(bytes));
    let mut collection = empty_context().collection;
    let mut found: Vec<(String, FontInfo)> = Vec::new();
    for (family, fonts) in collection.register_fonts(data.clone(), None) {
        let name = collection.family_name(family)?.to_owned();
        found.extend(fonts.into_iter().map(|font| (name.clone(), font)));
    }
    let (family, info) = found.into_iter().min_by_key(|(name, info)| {
        let is_korean = name.split(' ').any(|word| word == KOREAN_FACE);
        (!is_korean, name.contains("Mono"), info.index())
    })?;
    let index = info.index();
    let axes = info.has_weight_axis().then_some((Tag::new(b"wght"), WEIGHT));
    let (bytes, _id) = data.clone().into_raw_parts();
    let font = Font::new_variable(bytes.into(), index, axes.as_slice())?;
    Some(Face { data, index, family, font })
}

fn sets_a_sample(face: &Face) -> bool {
    let fonts = Fonts::of(std::slice::from_ref(face));
    let mut typesetter = Typesetter::new(&fonts, "ko");
    let measure = Measure { size: 10.0, leading: 14.0, width: 400.0, indent: 0.0 };
    let mut has_glyphs = false;
    let set = typesetter.lines(&Rich::of(SAMPLE, Role::Text), measure, &mut |line| {
        has_glyphs |= line.has_glyphs();
        let mut document = krilla::Document::new();
        let mut page = document.start_page();
        let mut surface = page.surface();
        line.draw(&mut surface, 0.0, 100.0);
        surface.finish();
        page.finish();
        document.finish().map(drop).map_err(|_| ExportFailure::Unavailable)
    });
    set.is_ok() && has_glyphs
}
