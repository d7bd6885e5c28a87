//! The fields of a Word document: their results are text, their instructions are not.

use quick_xml::events::BytesStart;

use crate::import::word_xml::value;

/// Fields that show nothing: marks for an index or a list, bookmarks, rules of a mail merge.
const SILENT: [&str; 11] =
    ["XE", "TC", "TA", "RD", "SET", "ASK", "FILLIN", "NEXT", "NEXTIF", "SKIPIF", "PRIVATE"];
/// Bytes of an instruction that are read: its name stands first.
const INSTRUCTION_BYTES_MAX: usize = 64;
/// Open fields. Word nests twenty.
const FIELDS_MAX: usize = 64;

/// The open fields, outermost first.
#[derive(Default)]
pub(super) struct Fields(Vec<Field>);

struct Field {
    instruction: String,
    is_instruction: bool,
    has_result: bool,
    /// The length of the text before it.
    from: usize,
}

impl Fields {
    /// A field whose instruction is an attribute.
    pub(super) fn begin(&mut self, field: &BytesStart<'_>, from: usize) {
        self.bound();
        let instruction = value(field, b"instr").unwrap_or_default();
        self.0.push(Field { instruction, is_instruction: false, has_result: false, from });
    }

    /// Fields without ends are forgotten.
    fn bound(&mut self) {
        if FIELDS_MAX <= self.0.len() {
            self.0.clear();
        }
    }

    pub(super) fn instruct(&mut self, text: &str) {
        if let Some(field) =
            self.0.last_mut().filter(|it| it.instruction.len() < INSTRUCTION_BYTES_MAX)
        {
            field.instruction.push_str(text);
        }
    }

    /// The begin, middle or end of a field. True: a field ends for which the file has no result.
    pub(super) fn mark(&mut self, mark: &BytesStart<'_>, at: usize) -> bool {
        match value::<String>(mark, b"fldCharType").as_deref() {
            Some("begin") => {
                self.bound();
                let (instruction, from) = (String::new(), at);
                self.0.push(Field { instruction, is_instruction: true, has_result: false, from });
                false
            }
            Some("separate") => {
                if let Some(field) = self.0.last_mut() {
                    (field.is_instruction, field.has_result) = (false, true);
                }
                false
            }
            Some("end") => self.end(at),
            _ => false,
        }
    }

    pub(super) fn end(&mut self, at: usize) -> bool {
        let Some(field) = self.0.pop() else { return false };
        let name = field.instruction.split_whitespace().next().unwrap_or_default();
        let is_silent = name.is_empty() || SILENT.iter().any(|it| it.eq_ignore_ascii_case(name));
        let is_shown = self.0.iter().all(|outer| !outer.is_instruction);
        is_shown && !field.has_result && field.from == at && !is_silent
    }

    /// Whether the text here is the result of a field inside the instruction of another one.
    pub(super) fn hide(&self) -> bool {
        self.0.iter().rev().skip(1).any(|field| field.is_instruction)
    }

    /// At the end of a paragraph: an instruction without an end hides no further text.
    pub(super) fn show(&mut self) {
        self.0.iter_mut().for_each(|field| field.is_instruction = false);
    }
}
