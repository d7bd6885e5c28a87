//! The sections of a text: the anchors of their headings.

use std::collections::HashSet;

use crate::text::{Effort, Text};
use crate::utf16;
use galley_domain::anchor::{AnchorRequest, AnchorState, Position};
use galley_domain::limits::{HEADING_LINE_UTF16_MAX, SECTIONS_MAX};
use galley_domain::section::{NewSection, Section, SectionFault, StoredSection};
use galley_domain::text::composed;

/// Anchors the sections of a new document, whose only update is `update`. Builds its text, which blocks.
pub fn anchor_first_sections(
    update: &[u8],
    new: Vec<NewSection>,
) -> Result<Vec<StoredSection>, SectionFault> {
    let Some(first) = new.first() else { return Ok(Vec::new()) };
    let text = Text::build(update).map_err(|_empty| SectionFault::NotFound(first.title.clone()))?;
    text.anchor_sections(new)
}

impl Text {
    /// Checks new sections and anchors them to the lines of their headings. Fails with the [`SectionFault`]
    /// of the first one that has none, or breaks another rule.
    pub fn anchor_sections(
        &self,
        new: Vec<NewSection>,
    ) -> Result<Vec<StoredSection>, SectionFault> {
        if new.len() > SECTIONS_MAX {
            return Err(SectionFault::TooMany);
        }
        let mut lines = HashSet::new();
        let anchored = new.into_iter().map(|section| {
            let NewSection { title, at, settings } = section.check()?;
            let line = match at {
                Some(Position::Offset(offset)) => self.line_at(offset),
                Some(Position::Relative(position)) => {
                    self.offset(&position).and_then(|offset| self.line_at(offset))
                }
                None => self.line_of(&title),
            };
            let anchor = line.and_then(|line| self.anchor(&line).ok());
            let Some((origin, current)) = anchor else { return Err(SectionFault::NotFound(title)) };
            if !lines.insert(origin.range.start) {
                return Err(SectionFault::Twice(title));
            }
            Ok(StoredSection { title, settings, origin, current })
        });
        anchored.collect()
    }

    /// The sections at the current offsets of their headings.
    #[must_use]
    pub fn resolve_sections(&self, stored: Vec<StoredSection>) -> Vec<Section> {
        let mut effort = Effort::default();
        let placed =
            stored.into_iter().map(|StoredSection { title, settings, origin, current }| {
                let anchor = self.resolve_within(&origin, &current, &mut effort).anchor;
                let is_there = anchor.state != AnchorState::Orphaned;
                Section { title, at: is_there.then_some(anchor.start), settings }
            });
        placed.collect()
    }

    /// The line that contains a unit.
    fn line_at(&self, offset: u32) -> Option<AnchorRequest> {
        let content = self.content_str();
        let byte = self.byte(offset).ok()?;
        let (before, after) = content.split_at_checked(byte)?;
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let end = after.find('\n').map_or(content.len(), |length| byte + length);
        self.heading(start, end)
    }

    /// The first line that equals `title`, which is composed, without the white space at its ends.
    fn line_of(&self, title: &str) -> Option<AnchorRequest> {
        let mut start = 0;
        for line in self.content_str().split('\n') {
            let end = start + line.len();
            if composed(line.trim()) == title {
                return self.heading(start, end);
            }
            start = end + 1;
        }
        None
    }

    /// A line without the white space at its ends. `None`: it is blank, or too long for a heading.
    fn heading(&self, start: usize, end: usize) -> Option<AnchorRequest> {
        let line = self.content_str().get(start..end)?;
        let quote = line.trim();
        let indent = line.len() - line.trim_start().len();
        let (start, length) = (self.units_before(start + indent), utf16::length(quote));
        let is_heading = !quote.is_empty() && length <= HEADING_LINE_UTF16_MAX;
        is_heading.then(|| AnchorRequest { start, end: start + length, quote: quote.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{SERVER_IDS, UpdateLog};
    use crate::text::document_from_text;
    use galley_domain::anchor::TextRange;
    use galley_domain::section::SectionSettings;

    const FORM: &str = "자기소개서\n  1. 지원동기 (500자)  \n나는 👩‍👩‍👧 쓴다\n\n2. 성격\n끝";

    fn new(title: &str, at: Option<Position>) -> NewSection {
        let settings = SectionSettings { limit: Some(500), ..SectionSettings::default() };
        NewSection { title: title.to_owned(), at, settings }
    }

    fn at(words: &str) -> u32 {
        utf16::length(&FORM[..FORM.find(words).unwrap()])
    }

    #[test]
    fn a_section_is_anchored_by_its_title_an_offset_or_a_position() {
        let text = Text::build(&document_from_text(FORM, 9)).unwrap();
        let offsets = |new| -> Vec<_> {
            let stored = text.anchor_sections(new).unwrap();
            text.resolve_sections(stored).into_iter().map(|it| it.at.unwrap()).collect()
        };
        assert_eq!(offsets(vec![new("1. 지원동기 (500자)", None)]), [at("1.")]);
        let inside = Position::Offset(at("성격"));
        assert_eq!(
            offsets(vec![new("성격", Some(inside)), new("자기소개서", None)]),
            [at("2."), 0]
        );
        let range = TextRange { start: at("성격"), end: at("성격") + 1 };
        let position = text.relative(range).unwrap().start;
        assert_eq!(offsets(vec![new("x", Some(Position::Relative(position)))]), [at("2.")]);
    }

    #[test]
    fn a_section_without_a_heading_or_twice_is_rejected() {
        let text = Text::build(&document_from_text(FORM, 9)).unwrap();
        let fault = |new| text.anchor_sections(new).unwrap_err();
        let offset = |offset| Some(Position::Offset(offset));
        let beyond = utf16::length(FORM) + 1;
        for position in [None, offset(beyond), offset(at("\n2.")), offset(at("👩") + 1)] {
            assert_eq!(fault(vec![new("3.", position)]), SectionFault::NotFound("3.".to_owned()));
        }
        let foreign = Some(Position::Relative(vec![0, 77, 3, 0]));
        assert_eq!(fault(vec![new("3.", foreign)]), SectionFault::NotFound("3.".to_owned()));
        let twice = vec![new("2. 성격", None), new("again", offset(at("성격")))];
        assert_eq!(fault(twice), SectionFault::Twice("again".to_owned()));
        assert_eq!(fault(vec![new("2. 성격", None); SECTIONS_MAX + 1]), SectionFault::TooMany);
        let settings = |limit, floor, line_break| {
            let settings = SectionSettings { limit, floor, line_break, ..Default::default() };
            fault(vec![NewSection { settings, ..new("2. 성격", None) }])
        };
        assert_eq!(settings(Some(0), None, None), SectionFault::Count);
        assert_eq!(settings(Some(10), Some(11), None), SectionFault::Count);
        assert_eq!(settings(None, None, Some(3)), SectionFault::LineBreak);
        assert!(matches!(fault(vec![new(" ", None)]), SectionFault::Title(_)));
    }

    #[test]
    fn a_section_follows_its_heading_and_ends_with_it() {
        let written = document_from_text(FORM, 9);
        let text = Text::build(&written).unwrap();
        let stored = text.anchor_sections(vec![new("2. 성격", None)]).unwrap();
        let after = |wanted: &str| {
            let client = *SERVER_IDS.end();
            let update = text.become_text(wanted, client).unwrap().unwrap();
            let merged = UpdateLog::open(vec![written.clone(), update]).unwrap().merged();
            let [section] = &Text::build(&merged).unwrap().resolve_sections(stored.clone())[..]
            else {
                panic!("one section")
            };
            section.at
        };
        let longer = FORM.replace("쓴다", "오늘도 쓴다");
        assert_eq!(after(&longer), Some(at("2.") + 4));
        assert_eq!(after(&FORM.replace("2. 성격", "2. 성격의 장점")), Some(at("2.")));
        assert_eq!(after("끝"), None);
    }
}
