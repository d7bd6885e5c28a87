//! A reader of the tracked changes of a Word document, which shares no code with their writer.

use std::io::Read as _;

/// The two texts of a document, with a line for each paragraph.
#[derive(Debug, Default)]
pub(crate) struct TrackedTexts {
    pub(crate) accepted: String,
    pub(crate) rejected: String,
}

/// Reads a `.docx` file.
pub(crate) fn read(file: &[u8]) -> TrackedTexts {
    texts_of(&unpacked(file, b"word/document.xml"))
}

/// An entry of a ZIP file, by its central directory.
fn unpacked(file: &[u8], name: &[u8]) -> String {
    let number = |at: usize, length: usize| {
        file[at..at + length].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    let entries = (0..file.len() - 46).filter(|at| file[*at..].starts_with(b"PK\x01\x02"));
    let named = entries.map(|at| (at, &file[at + 46..at + 46 + number(at + 28, 2)]));
    let (entry, _) = named.into_iter().find(|(_, it)| *it == name).expect("an entry of that name");
    let (packed, header) = (number(entry + 20, 4), number(entry + 42, 4));
    let start = header + 30 + number(header + 26, 2) + number(header + 28, 2);
    let mut text = String::new();
    let mut decoder = flate2::read::DeflateDecoder::new(&file[start..start + packed]);
    decoder.read_to_string(&mut text).expect("deflated UTF-8");
    text
}

fn texts_of(xml: &str) -> TrackedTexts {
    let mut texts = TrackedTexts::default();
    let (mut is_inserted, mut is_deleted, mut in_mark) = (false, false, false);
    // Whether the mark at the end of the paragraph is tracked.
    let mut mark = (false, false);
    for piece in xml.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("a tag ends");
        let name = tag.split([' ', '/']).find(|part| !part.is_empty()).unwrap_or_default();
        match (tag.starts_with('/'), name) {
            (false, "w:pPr") => in_mark = true,
            (true, "w:pPr") => in_mark = false,
            (false, "w:ins") if in_mark => mark.0 = true,
            (false, "w:del") if in_mark => mark.1 = true,
            (ends, "w:ins") => is_inserted = !ends,
            (ends, "w:del") => is_deleted = !ends,
            (false, "w:tab") if !in_mark => push(&mut texts, "\t", is_inserted, is_deleted),
            (false, "w:t" | "w:delText") => {
                push(&mut texts, &unescaped(text), is_inserted, is_deleted);
            }
            // An empty paragraph is a tag of its own.
            (false, "w:p") if tag.ends_with('/') => push(&mut texts, "\n", false, false),
            (true, "w:p") => {
                push(&mut texts, "\n", mark.0, mark.1);
                mark = (false, false);
            }
            _other => {}
        }
    }
    texts
}

fn push(texts: &mut TrackedTexts, text: &str, is_inserted: bool, is_deleted: bool) {
    if !is_deleted {
        texts.accepted.push_str(text);
    }
    if !is_inserted {
        texts.rejected.push_str(text);
    }
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&apos;", "'").replace("&amp;", "&")
}
