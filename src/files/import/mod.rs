//! The text of an imported file: Word, Markdown or plain text.
//!
//! Callers run it on a thread that may block: a file at its bounds takes a second.

pub mod changes;
#[cfg(test)]
mod word_cases_tests;
mod word_elements;
mod word_equations;
mod word_fields;
mod word_formats;
#[cfg(test)]
mod word_lists_tests;
mod word_numerals;
mod word_parts;
mod word_symbols;
pub mod word_text;
#[cfg(test)]
mod word_text_tests;
mod word_xml;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{DecoderResult, EUC_KR, Encoding, UTF_8};

use crate::error::ImportError;
use crate::import::word_text::Imported;
use crate::labels::Labels;
use galley_domain::limits::LABEL_CHARS_MAX;
use galley_domain::line::Line;
use galley_domain::text::{IncomingText, composed};

/// Longest file of an import, in bytes: a Word document with pictures.
pub const IMPORT_BYTES_MAX: usize = 16 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportFormat {
    Docx,
    Text,
}

impl ImportFormat {
    /// The media type decides first, then the extension of the file's name: systems without Word name
    /// other types for its files.
    pub fn of(media_type: Option<&str>, name: Option<&str>) -> Result<Self, ImportError> {
        let essence = media_type.map(|it| it.split(';').next().unwrap_or(it).trim());
        let essence = essence.map(str::to_ascii_lowercase);
        match essence.as_deref() {
            Some("text/markdown" | "text/x-markdown" | "text/plain") => return Ok(Self::Text),
            Some("application/vnd.openxmlformats-officedocument.wordprocessingml.document") => {
                return Ok(Self::Docx);
            }
            _ => {}
        }
        let extension = name.and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension);
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("docx") => Ok(Self::Docx),
            Some("md" | "markdown" | "txt" | "text") => Ok(Self::Text),
            _ => Err(ImportError::Format),
        }
    }
}

/// A small file may hold a long text, so the reader stops beyond `text_max` bytes.
pub fn read(format: ImportFormat, bytes: &[u8], text_max: usize) -> Result<Imported, ImportError> {
    if bytes.len() > IMPORT_BYTES_MAX {
        return Err(ImportError::TooLarge("the file itself"));
    }
    let mut clean = CleanText { text: IncomingText::default(), text_max };
    let mut imported = Imported::default();
    match format {
        ImportFormat::Docx => {
            imported = word_text::read(bytes, text_max)?;
            clean.push(&imported.text)?;
        }
        ImportFormat::Text => decode(bytes, &mut clean)?,
    }
    Ok(Imported { text: clean.finish()?, ..imported })
}

/// A text under construction.
struct CleanText {
    text: IncomingText,
    text_max: usize,
}

impl CleanText {
    fn push(&mut self, part: &str) -> Result<(), ImportError> {
        // The rule drops it from a paste. A file with one is no text.
        if part.contains('\0') {
            return Err(ImportError::Unreadable("it is no text"));
        }
        self.text.push(part);
        let is_bounded = self.text.bytes() <= self.text_max;
        is_bounded.then_some(()).ok_or(ImportError::TextTooLong)
    }

    fn finish(self) -> Result<String, ImportError> {
        let text = self.text.finish();
        if text.len() <= self.text_max { Ok(text) } else { Err(ImportError::TextTooLong) }
    }
}

const DECODED_AT_ONCE: usize = 64 * 1_024;

/// The syllables that make up nine tenths of Korean prose. Bytes of another encoding rarely become them.
const FREQUENT: &str = "가각간개거건검게겠격견결경계고곳공과교국그글금기김까꼼끝나남내너는니님다단달답대더데도동되된됨됩\
    두둘뒤드들때라람래러려례로류른를름리림립링마막만말매면모못무문물미민바반받방배백버번보복본부분브비\
    사삭상새서선성세셋소속수스습시신실싶쓰쓴아안않알았어업없었에여연열영오와요용우운원웠유으은을음의이\
    인일입있자작장저적전절점정제좋주줄중지직진집째차처첨첫청체초최출취크택터토통트특파포하학한할함합항\
    해했화후히";
/// Bytes in which the encoding of a text shows.
const SAMPLE_BYTES: usize = 64 * 1_024;

/// Whether most letters beside ASCII are frequent syllables, once the bytes are read as code page 949.
fn is_korean(bytes: &[u8]) -> bool {
    let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(bytes);
    let (text, _) = EUC_KR.decode_without_bom_handling(sample);
    let letters = text.chars().filter(|c| !c.is_ascii() && c.is_alphanumeric());
    let (frequent, rare): (Vec<_>, Vec<_>) = letters.partition(|c| FREQUENT.contains(*c));
    rare.len() < frequent.len()
}

/// The encoding of a text without a byte order mark. The standard's EUC-KR is code page 949.
fn encoding_of(bytes: &[u8]) -> Result<&'static Encoding, ImportError> {
    // Stateful encodings are ASCII with escapes: ISO-2022-JP, ISO-2022-KR.
    if bytes.windows(2).any(|pair| pair == b"\x1B$") {
        return Err(ImportError::Encoding("ISO-2022"));
    }
    if std::str::from_utf8(bytes).is_ok() {
        return Ok(UTF_8);
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let guess = detector.guess(None, Utf8Detection::Deny);
    let is_korean = guess == EUC_KR || is_korean(bytes);
    is_korean.then_some(EUC_KR).ok_or(ImportError::Encoding(guess.name()))
}

/// Decodes bytes in UTF-8, in UTF-16 with a byte order mark, or in the Korean code page 949, piece by piece.
fn decode(bytes: &[u8], clean: &mut CleanText) -> Result<(), ImportError> {
    let marked = Encoding::for_bom(bytes);
    let (encoding, mut rest) = match marked {
        Some((encoding, mark)) => (encoding, bytes.get(mark..).unwrap_or_default()),
        None => (encoding_of(bytes)?, bytes),
    };
    let fault = match marked {
        Some(_) => "it is not in the encoding of its first bytes",
        None => "it is neither UTF-8 nor a Korean text; save it as UTF-8",
    };
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut part = String::with_capacity(DECODED_AT_ONCE);
    loop {
        let (result, read) = decoder.decode_to_string_without_replacement(rest, &mut part, true);
        clean.push(&part)?;
        part.clear();
        rest = rest.get(read..).unwrap_or_default();
        match result {
            DecoderResult::InputEmpty => return Ok(()),
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => return Err(ImportError::Unreadable(fault)),
        }
    }
}

/// Lines at the start of a text among which [`title_of`] searches the first one with a word.
const TITLE_LINES_MAX: usize = 1_000;

/// The title of a document from its first heading, from the name of its file, or from its first line.
///
/// The name of the file goes before a heading that is a question of several.
#[must_use]
pub fn title_of(Imported { text, heading, .. }: &Imported, name: Option<&str>) -> String {
    let heading = heading.as_deref();
    let whole = heading.filter(|heading| !is_question(heading));
    let stem = name.map(|name| name.rsplit(['/', '\\']).next().unwrap_or(name));
    let stem = stem.map(|name| name.rsplit_once('.').map_or(name, |(stem, _)| stem));
    // A text of empty lines alone has no title.
    let first = text
        .lines()
        .take(TITLE_LINES_MAX)
        .map(|line| line.trim_start_matches(['#', ' ', '\t']).trim());
    let first = first.filter(|line| !line.is_empty()).take(1);
    let titles = whole.into_iter().chain(stem).chain(heading).chain(first).map(|title| {
        composed(title)
            .chars()
            .filter(|c| !c.is_control())
            .take(LABEL_CHARS_MAX)
            .collect::<String>()
    });
    let mut titles = titles.filter_map(|title| Line::Title.parse(&title).ok());
    let is_korean = || Labels::of([text.as_str()]).lang == "ko";
    let untitled = || if is_korean() { "제목 없음" } else { "Untitled" }.to_owned();
    titles.next().unwrap_or_else(untitled)
}

/// Whether a heading has a number of at most two digits, or a limit in brackets at its end: `Q1`, `2. 장점`, `지원동기 (700자)`.
fn is_question(heading: &str) -> bool {
    let number = heading.trim_start_matches(|c: char| c.is_alphabetic() || "# ".contains(c));
    let rest = number.trim_start_matches(char::is_numeric);
    let is_numbered = (1..=2).contains(&number.len().saturating_sub(rest.len()))
        && rest.chars().next().is_none_or(|next| ".): ".contains(next));
    let bracket = heading.strip_suffix([')', ']']).and_then(|it| it.rsplit(['(', '[']).next());
    is_numbered || bracket.is_some_and(|limit| limit.contains(char::is_numeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Result<String, ImportError> {
        read(ImportFormat::Text, bytes, usize::MAX).map(|file| file.text)
    }

    #[test]
    fn a_text_of_any_usual_encoding_is_read() {
        let text_of = |bytes: &[u8]| text(bytes).expect("a text");
        assert_eq!(text_of("나는\r\n글을\r쓴다\u{1}".as_bytes()), "나는\n글을\n쓴다");
        assert_eq!(text_of("\u{FEFF}나는".as_bytes()), "나는");
        let utf16 = |order: fn(u16) -> [u8; 2]| -> Vec<u8> {
            "\u{FEFF}나는 😀".encode_utf16().flat_map(order).collect()
        };
        assert_eq!(text_of(&utf16(u16::to_le_bytes)), "나는 😀");
        assert_eq!(text_of(&utf16(u16::to_be_bytes)), "나는 😀");
        // 뷁 is in code page 949 alone, not in the older standard.
        assert_eq!(text_of(b"\xB3\xAA\xB4\xC2 \x94\xEE\r\n"), "나는 뷁\n");
        assert_eq!(text_of(b""), "");
        assert_eq!(text_of(b"\xB1\xDB"), "글");
        assert_eq!(text_of(b"\xA8\xE7 \xC7\xCF\xB3\xAA\n"), "① 하나\n");
        // The one rule of `domain/text.rs`.
        assert_eq!(text_of("\u{1100}\u{1161}\u{B}\u{2028}".as_bytes()), "가\n\n");
    }

    /// Two bytes of each of them are a syllable or a Chinese character of code page 949.
    #[test]
    fn a_text_of_another_encoding_is_refused_by_its_name() {
        for (bytes, name) in [
            (&b"I\x92m a nurse.\n"[..], "windows-1252"),
            (b"He said \x93hello\x94\x85", "windows-1252"),
            (b"a\xA0b\xA0c", "windows-1252"),
            (b"\x8E\x84\x82\xCD\x8A\xC5\x8C\xEC\x8Et\x82\xC5\x82\xB7\x81B", "Shift_JIS"),
            (b"\xA4\xB3\xA4\xF3\xA4\xCB\xA4\xC1\xA4\xCF", "EUC-JP"),
            (b"\xCE\xD2\xCA\xC7\xBB\xA4\xCA\xBF\xA1\xA3", "GBK"),
            (b"\xCF\xF0\xE8\xE2\xE5\xF2", "windows-1251"),
            (b"\x1B$B;d\x1B(B", "ISO-2022"),
        ] {
            assert_eq!(text(bytes), Err(ImportError::Encoding(name)), "{bytes:?}");
        }
    }

    #[test]
    fn g12_bytes_that_are_no_text_are_refused() {
        for bytes in [&b"\xFF\xFE\x00\xD8"[..], b"a\0b", b"\xEF\xBB\xBF\xFF"] {
            assert!(matches!(text(bytes), Err(ImportError::Unreadable(_))), "{bytes:?}");
        }
        let long = vec![b'a'; IMPORT_BYTES_MAX + 1];
        assert!(matches!(text(&long), Err(ImportError::TooLarge(_))));
    }

    /// The whole file was decoded and copied twice before its text was measured.
    #[test]
    fn g13_a_text_is_decoded_up_to_the_length_of_a_document() {
        let korean = b"\xB3\xAA\r\n".repeat(100_000);
        assert_eq!(
            read(ImportFormat::Text, &korean, 400_000).map(|file| file.text.len()),
            Ok(400_000)
        );
        let mut clean = CleanText { text: IncomingText::default(), text_max: 300_000 };
        assert_eq!(decode(&korean, &mut clean), Err(ImportError::TextTooLong));
        assert!(clean.text.bytes() <= 300_000 + DECODED_AT_ONCE, "{}", clean.text.bytes());
    }

    #[test]
    fn a_line_break_between_two_pieces_is_one() {
        let mut clean = CleanText { text: IncomingText::default(), text_max: 9 };
        ["a\r", "\n\r\r", "\nb"].iter().try_for_each(|part| clean.push(part)).expect("short");
        assert_eq!(clean.finish().as_deref(), Ok("a\n\n\nb"));
    }

    #[test]
    fn the_media_type_or_the_name_decides_the_format() {
        let docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
        for (media_type, name, expected) in [
            (Some(docx), None, Ok(ImportFormat::Docx)),
            (Some("Text/Plain; charset=utf-8"), Some("x.docx"), Ok(ImportFormat::Text)),
            (None, Some("글.DOCX"), Ok(ImportFormat::Docx)),
            (Some("application/octet-stream"), Some("a.b.md"), Ok(ImportFormat::Text)),
            (Some("application/x-zip-compressed"), Some("x.docx"), Ok(ImportFormat::Docx)),
            (Some("application/pdf"), None, Err(ImportError::Format)),
            (None, Some("x.hwp"), Err(ImportError::Format)),
            (None, Some("docx"), Err(ImportError::Format)),
            (None, None, Err(ImportError::Format)),
        ] {
            assert_eq!(ImportFormat::of(media_type, name), expected, "{media_type:?} {name:?}");
        }
    }

    #[test]
    fn a_title_comes_from_the_name_or_the_first_line() {
        for (name, text, title) in [
            (Some("C:\\글\\자기 소개서.최종.docx"), "x", "자기 소개서.최종"),
            (Some("\u{202E}.txt"), "\n# 지원동기\n", "지원동기"),
            (None, " ", "Untitled"),
            (None, "\u{200B}\n가", "제목 없음"),
        ] {
            let file = Imported { text: text.to_owned(), ..Imported::default() };
            assert_eq!(title_of(&file, name), title);
        }
        let heading = Some("가".repeat(500));
        let file = Imported { heading, ..Imported::default() };
        assert_eq!(title_of(&file, Some("이름.docx")), "가".repeat(LABEL_CHARS_MAX));
        for question in ["1. 지원동기", "Q2 Why us?", "지원동기 (700자)", "Essay [150 words]"]
        {
            let file = Imported { heading: Some(question.to_owned()), ..Imported::default() };
            assert_eq!(title_of(&file, Some("지원서.docx")), "지원서");
            assert_eq!(title_of(&file, None), question);
        }
        for title in ["Annual Report 2026", "2026년 상반기 지원서", "3D 인쇄", "계약서 (갑)"]
        {
            let file = Imported { heading: Some(title.to_owned()), ..Imported::default() };
            assert_eq!(title_of(&file, Some("doc1.docx")), title);
        }
    }
}
