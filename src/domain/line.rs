//! Names, titles and labels: a trimmed text of one line with a bounded length.

use std::fmt;

use crate::limits::{HEADING_CHARS_MAX, LABEL_CHARS_MAX, NAME_CHARS_MAX, TITLE_CHARS_MAX};
use crate::printable::{LineFault, check_line};
use crate::text::composed;

/// A text that the page shows on one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The display name of a user.
    Name,
    /// The title of a document.
    Title,
    /// The label of a named version.
    Label,
    /// The title of a section.
    Heading,
}

/// The text cannot be such a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a {line} {}", self.rule())]
pub struct InvalidLine {
    line: Line,
    fault: LineFault,
}

impl Line {
    /// Trims, composes and checks a text. A control character is an error: a name may not lose a letter.
    ///
    /// # Errors
    ///
    /// [`InvalidLine`] when it is empty, too long, more than one line, or has characters that a page
    /// draws as nothing.
    pub fn parse(self, text: &str) -> Result<String, InvalidLine> {
        let text = composed(text.trim());
        let is_too_long = self.chars_max() < text.chars().count();
        let checked = if is_too_long { Err(LineFault::TooLong) } else { check_line(&text) };
        checked.map(|()| text.into_owned()).map_err(|fault| InvalidLine { line: self, fault })
    }

    fn chars_max(self) -> usize {
        match self {
            Self::Name => NAME_CHARS_MAX,
            Self::Title => TITLE_CHARS_MAX,
            Self::Label => LABEL_CHARS_MAX,
            Self::Heading => HEADING_CHARS_MAX,
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "name",
            Self::Title => "title",
            Self::Label => "label",
            Self::Heading => "heading",
        })
    }
}

impl InvalidLine {
    fn rule(self) -> String {
        match (self.fault, self.line) {
            (LineFault::Blank, _) => "needs a visible character".to_owned(),
            (LineFault::TooLong, line) => format!("has at most {} characters", line.chars_max()),
            (LineFault::Control, Line::Name) => "may not contain control characters".to_owned(),
            (LineFault::Control, Line::Title | Line::Label | Line::Heading) => {
                "is one line without control characters".to_owned()
            }
            (LineFault::Invisible, _) => {
                "may not contain invisible characters or marks of writing direction".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_trimmed_and_accepted_in_any_script() {
        for (line, most) in [(Line::Name, 80), (Line::Title, 200), (Line::Label, 100)] {
            assert_eq!(line.parse("  김민수 "), Ok("김민수".to_owned()));
            assert_eq!(line.parse("👩‍👩‍👧"), Ok("👩‍👩‍👧".to_owned()));
            assert_eq!(line.parse("\u{1100}\u{1161}\u{11a8} e\u{301}"), Ok("각 é".to_owned()));
            assert!(line.parse(&format!(" {} ", "가".repeat(most))).is_ok());
        }
    }

    #[test]
    fn a_line_that_would_disturb_the_page_is_rejected() {
        let invisible = "may not contain invisible characters or marks of writing direction";
        let one_line = "is one line without control characters";
        for (line, what, most, control) in [
            (Line::Name, "name", 80, "may not contain control characters"),
            (Line::Title, "title", 200, one_line),
            (Line::Label, "label", 100, one_line),
        ] {
            let too_long = format!("has at most {most} characters");
            for (text, rule) in [
                (" \n ", "needs a visible character"),
                ("\u{2800}", "needs a visible character"),
                ("a\u{0}b", control),
                ("a\nb", control),
                ("a\u{202E}b", invisible),
                ("\u{3164}", invisible),
                (&"가".repeat(most + 1), &too_long),
            ] {
                let error = line.parse(text).expect_err("invalid");
                assert_eq!(error.to_string(), format!("a {what} {rule}"), "{text:?}");
            }
        }
    }
}
