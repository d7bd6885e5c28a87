//! Formats of a Word document, as far as a text shows them: headings, and the marks of lists.

use std::collections::HashMap;

use quick_xml::events::BytesStart;

use crate::error::ImportError;
use crate::word_xml::{elements, value};
use crate::zip::Inflated;

/// Most styles that a style is based on: they may form a circle.
const STYLES_MAX: usize = 16;
const LEVELS: usize = 9;

#[derive(Debug, Default)]
pub(super) struct Format {
    /// The style that it is based on.
    style: Option<String>,
    pub(super) is_heading: Option<bool>,
    list: Option<i64>,
    level: Option<usize>,
}

impl Format {
    pub(super) fn take(&mut self, element: &BytesStart<'_>) {
        match element.local_name().as_ref() {
            b"pStyle" | b"basedOn" => self.style = value(element, b"val"),
            b"name" => {
                let name: Option<String> = value(element, b"val");
                self.is_heading = name.filter(|name| is_heading(name)).map(|_| true);
            }
            // The tenth level is that of the text.
            b"outlineLvl" => self.is_heading = value(element, b"val").map(|level: u8| level < 9),
            b"numId" => self.list = value(element, b"val"),
            b"ilvl" => self.level = value(element, b"val"),
            _ => {}
        }
    }
}

/// Whether a style is one of Word's own headings: their names are English in every language.
fn is_heading(style: &str) -> bool {
    let name = style.to_ascii_lowercase();
    let level = name.strip_prefix("heading").map(|level| level.trim().parse::<u8>());
    name == "title" || matches!(level, Some(Ok(_)))
}

fn mark_of(format: &str) -> &'static str {
    match format {
        "bullet" => "- ",
        "none" => "",
        _ => "#",
    }
}

/// A definition that lists share (false), or a list's own part of it (true), with its number.
type Owner = (bool, i64);

/// A level of a list. The mark is empty, a bullet, or `#` for a number.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    start: Option<u32>,
    mark: Option<&'static str>,
}

/// The styles and lists, and the numbers that items have reached.
#[derive(Debug, Default)]
pub(super) struct Formats {
    styles: HashMap<String, Format>,
    /// The shared definition of each list, and whether the list has a part of its own: then it does not
    /// go on with the numbers of others.
    lists: HashMap<i64, (i64, bool)>,
    levels: HashMap<(Owner, usize), Level>,
    reached: HashMap<Owner, [Option<u32>; LEVELS]>,
}

impl Formats {
    pub(super) fn read(
        styles: Option<Inflated<'_>>,
        lists: Option<Inflated<'_>>,
    ) -> Result<Self, ImportError> {
        let mut formats = Self::default();
        let mut style = None;
        elements(styles, |element| match (element.local_name().as_ref(), &style) {
            (b"style", _) => style = value::<String>(element, b"styleId"),
            (_, Some(id)) => formats.styles.entry(id.clone()).or_default().take(element),
            _ => {}
        })?;
        let (mut owner, mut at) = ((false, 0), 0);
        elements(lists, |element| {
            let number = |name: &[u8]| value(element, name).unwrap_or_default();
            let level = formats.levels.entry((owner, at));
            match element.local_name().as_ref() {
                b"abstractNum" => owner = (false, number(b"abstractNumId")),
                b"num" => owner = (true, number(b"numId")),
                b"abstractNumId" => {
                    formats.lists.insert(owner.1, (number(b"val"), false));
                }
                name @ (b"lvl" | b"lvlOverride") => {
                    at = value(element, b"ilvl").unwrap_or_default();
                    let is_override = name != b"lvl";
                    formats.lists.entry(owner.1).and_modify(|list| list.1 |= is_override);
                }
                b"start" | b"startOverride" => level.or_default().start = value(element, b"val"),
                b"numFmt" => {
                    let mark: Option<String> = value(element, b"val");
                    level.or_default().mark = mark.as_deref().map(mark_of);
                }
                _ => {}
            }
        })?;
        Ok(formats)
    }

    /// Fills a format with what its styles say.
    pub(super) fn complete(&self, format: &mut Format) {
        let mut next = format.style.as_deref();
        let (mut heading, mut list, mut level) = (format.is_heading, format.list, format.level);
        for _ in 0..STYLES_MAX {
            let Some(id) = next else { break };
            let style = self.styles.get(id);
            heading = heading.or(style.map_or(Some(is_heading(id)), |style| style.is_heading));
            list = list.or(style.and_then(|style| style.list));
            level = level.or(style.and_then(|style| style.level));
            next = style.and_then(|style| style.style.as_deref());
        }
        (format.is_heading, format.list, format.level) = (heading, list, level);
    }

    /// The mark of the next item with this format, behind two spaces for each level.
    pub(super) fn mark(&mut self, format: &Format) -> String {
        let list = format.list.and_then(|list| Some((list, *self.lists.get(&list)?)));
        let Some((list, (definition, is_own))) = list else { return String::new() };
        let at = format.level.unwrap_or_default().min(LEVELS - 1);
        let owners = [(true, list), (false, definition)];
        let [own, shared] =
            owners.map(|owner| self.levels.get(&(owner, at)).copied().unwrap_or_default());
        let reached = self.reached.entry((is_own, if is_own { list } else { definition }));
        let mut below = reached.or_default().iter_mut().skip(at);
        let start = own.start.or(shared.start).unwrap_or(1);
        let number = below.next().map_or(start, |reached| {
            *reached.insert(reached.map_or(start, |number| number.saturating_add(1)))
        });
        below.for_each(|reached| *reached = None);
        match own.mark.or(shared.mark) {
            Some("") => String::new(),
            Some("- ") => "  ".repeat(at) + "- ",
            _ => format!("{}{number}. ", "  ".repeat(at)),
        }
    }
}
