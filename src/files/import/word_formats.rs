//! Formats of a Word document, as far as a text shows them: headings, and the marks of lists.

use std::collections::{BTreeSet, HashMap, HashSet};

use quick_xml::events::BytesStart;

use crate::error::ImportError;
use crate::import::word_numerals::numeral;
use crate::import::word_xml::{elements, is_on, value};
use crate::zip::Inflated;
use galley_domain::limits::LABEL_CHARS_MAX;

/// Most styles that a style is based on: they may form a circle.
const STYLES_MAX: usize = 16;
const LEVELS: usize = 9;
/// Names of number formats in an answer.
const NAMED_FORMATS_MAX: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Format {
    /// The style that it is based on.
    style: Option<String>,
    pub(super) is_heading: Option<bool>,
    pub(super) is_hidden: Option<bool>,
    list: Option<i64>,
    level: Option<usize>,
}

impl Format {
    pub(super) fn take(&mut self, element: &BytesStart<'_>) {
        match element.local_name().as_ref() {
            b"pStyle" | b"rStyle" | b"basedOn" => self.style = value(element, b"val"),
            b"name" => {
                let name: Option<String> = value(element, b"val");
                self.is_heading = name.filter(|name| is_heading(name)).map(|_| true);
            }
            // The tenth level is that of the text.
            b"outlineLvl" => self.is_heading = value(element, b"val").map(|level: u8| level < 9),
            b"vanish" => self.is_hidden = Some(is_on(element)),
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

/// A definition that lists share (false), or a list's own part of it (true), with its number.
type Owner = (bool, i64);

#[derive(Debug)]
struct Level {
    start: u32,
    format: String,
    /// The label, with `%1` for the number of the first level. Empty: the level has none.
    text: String,
    /// Stands between label and text.
    space: &'static str,
    /// All numbers of the label are decimal.
    is_legal: bool,
    /// The number restarts behind an item of a level below this one. 0: it never restarts.
    restart: Option<usize>,
    /// The paragraph style of the level.
    style: Option<String>,
}

impl Default for Level {
    fn default() -> Self {
        let format = "decimal".to_owned();
        let (text, style) = (String::new(), None);
        Self { start: 0, format, text, space: " ", is_legal: false, restart: None, style }
    }
}

impl Level {
    fn take(&mut self, element: &BytesStart<'_>) {
        let number = value(element, b"val");
        let text: Option<String> = value(element, b"val");
        match (element.local_name().as_ref(), text) {
            (b"start", _) => self.start = number.unwrap_or_default(),
            (b"numFmt", Some(format)) => {
                self.format = value(element, b"format").unwrap_or(format);
            }
            (b"lvlText", text) => {
                self.text = text.unwrap_or_default().chars().take(LABEL_CHARS_MAX).collect();
            }
            (b"suff", Some(suffix)) if suffix == "nothing" => self.space = "",
            (b"isLgl", _) => self.is_legal = is_on(element),
            (b"lvlRestart", _) => self.restart = value(element, b"val"),
            (b"pStyle", style) => self.style = style,
            _ => {}
        }
    }
}

/// The styles and lists, and the numbers that items have reached.
#[derive(Debug, Default)]
pub(super) struct Formats {
    styles: HashMap<String, Format>,
    /// The style of paragraphs that name none.
    default_style: Option<String>,
    /// The definition of each list.
    lists: HashMap<i64, i64>,
    /// The style of lists that has the levels of a definition without own ones.
    links: HashMap<i64, String>,
    levels: HashMap<(Owner, usize), Level>,
    /// The number of the first item that a list has on a level.
    starts: HashMap<(i64, usize), u32>,
    started: HashSet<(i64, usize)>,
    /// The lists of a definition continue each other's numbers.
    reached: HashMap<i64, [Option<u32>; LEVELS]>,
    /// The formats whose numbers the labels write in digits.
    pub(super) replaced: BTreeSet<String>,
}

impl Formats {
    pub(super) fn read(
        styles: Option<Inflated<'_>>,
        lists: Option<Inflated<'_>>,
    ) -> Result<Self, ImportError> {
        let mut formats = Self::default();
        let mut style = None;
        elements(styles, |element| match (element.local_name().as_ref(), &style) {
            (b"style", _) => {
                style = value::<String>(element, b"styleId");
                let is = |name: &[u8], values: &[&str]| {
                    value::<String>(element, name).is_some_and(|it| values.contains(&&*it))
                };
                if is(b"type", &["paragraph"]) && is(b"default", &["1", "true", "on"]) {
                    formats.default_style.clone_from(&style);
                }
            }
            (_, Some(id)) => formats.styles.entry(id.clone()).or_default().take(element),
            _ => {}
        })?;
        let (mut owner, mut at) = ((false, 0), 0);
        elements(lists, |element| {
            let number = |name: &[u8]| value(element, name).unwrap_or_default();
            match element.local_name().as_ref() {
                b"abstractNum" => owner = (false, number(b"abstractNumId")),
                b"num" => owner = (true, number(b"numId")),
                b"abstractNumId" => {
                    formats.lists.insert(owner.1, number(b"val"));
                }
                b"numStyleLink" => {
                    formats.links.extend(value(element, b"val").map(|style| (owner.1, style)));
                }
                b"lvlOverride" => at = value(element, b"ilvl").unwrap_or_default(),
                b"startOverride" => {
                    let start = value(element, b"val").unwrap_or_default();
                    formats.starts.insert((owner.1, at), start);
                }
                b"lvl" => {
                    at = value(element, b"ilvl").unwrap_or_default();
                    formats.levels.insert((owner, at), Level::default());
                }
                _ => drop(formats.levels.get_mut(&(owner, at)).map(|level| level.take(element))),
            }
        })?;
        Ok(formats)
    }

    /// Fills a format with what its styles say. A list of a style has the level that names the style.
    pub(super) fn complete(&self, format: &mut Format) {
        let first = format.style.take().or_else(|| self.default_style.clone());
        let styles = self.chain(first.as_deref());
        for (id, style) in &styles {
            let heading = style.map_or(Some(is_heading(id)), |style| style.is_heading);
            format.is_heading = format.is_heading.or(heading);
            format.is_hidden = format.is_hidden.or(style.and_then(|style| style.is_hidden));
            format.list = format.list.or(style.and_then(|style| style.list));
        }
        let definition = format.list.and_then(|list| self.definition_of(list));
        let level_of = |(id, style): &(&str, Option<&Format>)| {
            let names_it = |at: &usize| {
                let level = self.levels.get(&((false, definition?), *at))?;
                (level.style.as_deref()? == *id).then_some(())
            };
            let linked = (0..LEVELS).find(|at| names_it(at).is_some());
            linked.or(style.and_then(|style| style.level))
        };
        format.level = format.level.or_else(|| styles.iter().find_map(level_of));
    }

    /// A style and those that it is based on.
    fn chain<'a>(&'a self, first: Option<&'a str>) -> Vec<(&'a str, Option<&'a Format>)> {
        let of = |id: &'a str| (id, self.styles.get(id));
        let base =
            |(_, style): &(_, Option<&'a Format>)| Some(of(style.as_ref()?.style.as_deref()?));
        std::iter::successors(first.map(of), base).take(STYLES_MAX).collect()
    }

    /// Whether a style of characters hides its text.
    pub(super) fn hides(&self, style: &str) -> bool {
        let mut styles = self.chain(Some(style)).into_iter();
        styles.find_map(|(_, style)| style?.is_hidden) == Some(true)
    }

    fn definition_of(&self, list: i64) -> Option<i64> {
        let mut definition = *self.lists.get(&list)?;
        for _ in 0..STYLES_MAX {
            let Some(style) = self.links.get(&definition) else { break };
            let linked = self.styles.get(style).and_then(|style| style.list);
            definition = *self.lists.get(&linked?)?;
        }
        Some(definition)
    }

    /// The label of the next item with this format, behind two spaces for each level.
    pub(super) fn label(&mut self, format: &Format) -> String {
        let list = format.list.and_then(|list| Some((list, self.definition_of(list)?)));
        let Some((list, definition)) = list else { return String::new() };
        let at = format.level.unwrap_or_default().min(LEVELS - 1);
        let levels: [_; LEVELS] = std::array::from_fn(|at| {
            let own = self.levels.get(&((true, list), at));
            own.or_else(|| self.levels.get(&((false, definition), at)))
        });
        let numbers = self.reached.entry(definition).or_default();
        for (on, (number, level)) in numbers.iter_mut().zip(&levels).enumerate() {
            let start = level.map_or(1, |level| level.start);
            if on < at {
                // An item that comes before any of the level above it counts as one of its first.
                number.get_or_insert(start);
            } else if on == at {
                let first = self.starts.get(&(list, at)).copied();
                let first = first.filter(|_| self.started.insert((list, at)));
                let next = number.map_or(start, |number| number.saturating_add(1));
                *number = Some(first.unwrap_or(next));
            } else if level.and_then(|level| level.restart).is_none_or(|restart| at < restart) {
                *number = None;
            }
        }
        let Some(level) = levels.get(at).copied().flatten() else { return String::new() };
        let (label, space) = match &*level.format {
            "bullet" if level.text.is_empty() => return String::new(),
            "bullet" => ("-".to_owned(), " "),
            _ => (level.write(at, &levels, numbers, &mut self.replaced), level.space),
        };
        match label.trim() {
            "" => String::new(),
            // LibreOffice writes the indent alone, which sets such a label apart.
            label if label.ends_with(['.', ')']) => format!("{}{label} ", "  ".repeat(at)),
            label => format!("{}{label}{space}", "  ".repeat(at)),
        }
    }
}

impl Level {
    /// The text of the label on the level `at`. A level without numbers hides the signs behind its own.
    fn write(
        &self,
        at: usize,
        levels: &[Option<&Self>; LEVELS],
        numbers: &[Option<u32>; LEVELS],
        replaced: &mut BTreeSet<String>,
    ) -> String {
        let mut parts = self.text.split('%');
        let mut label = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let on = part.chars().next().and_then(|c| c.to_digit(10)).map(|on| on as usize);
            let Some(on) = on.filter(|on| (1..=at + 1).contains(on)).map(|on| on - 1) else {
                label.extend(["%", part]);
                continue;
            };
            let format = levels.get(on).copied().flatten().map_or("decimal", |it| &it.format);
            let number = numbers.get(on).copied().flatten().unwrap_or_default();
            let rest = part.get(1..).unwrap_or_default();
            let format = match format {
                "none" if on < at => continue,
                "decimalZero" | "none" | "bullet" => format,
                _ if self.is_legal => "decimal",
                format => format,
            };
            let written = match format {
                "none" | "bullet" => String::new(),
                format => numeral(format, number).unwrap_or_else(|| {
                    let name = format.chars().take(LABEL_CHARS_MAX).collect();
                    replaced.extend(
                        (number != 0 && replaced.len() < NAMED_FORMATS_MAX).then_some(name),
                    );
                    number.to_string()
                }),
            };
            label.extend([&written, rest]);
        }
        label
    }
}
