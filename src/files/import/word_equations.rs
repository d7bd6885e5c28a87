//! An equation as a line of text, like `x=(-b±√(b^2-4ac))/(2a)`: the notation of Word's own line form.

use quick_xml::events::BytesStart;

use crate::import::word_xml::value;

/// The open parts of an equation, outermost first.
#[derive(Default)]
pub(super) struct EquationParts(Vec<Part>);

#[derive(Default)]
struct Part {
    name: Vec<u8>,
    /// The length of the text before it.
    from: usize,
    /// The parts inside it so far that have text.
    parts: usize,
    /// The signs of an operator, an accent or of brackets, where it names them.
    sign: Option<String>,
    between: Option<String>,
    end: Option<String>,
}

impl EquationParts {
    pub(super) fn begins(&mut self, part: &BytesStart<'_>, from: usize) {
        let name = part.local_name().as_ref().to_vec();
        // A sign stands in the properties of its part.
        let owner = self.0.len().checked_sub(2).and_then(|at| self.0.get_mut(at));
        if let Some(owner) = owner {
            let sign = Some(value(part, b"val").unwrap_or_default());
            match &*name {
                b"chr" | b"begChr" => owner.sign = sign,
                b"sepChr" => owner.between = sign,
                b"endChr" => owner.end = sign,
                _ => {}
            }
        }
        self.0.push(Part { name, from, ..Part::default() });
    }

    /// Sets the text of the part that ends apart from the text before it.
    pub(super) fn ends(&mut self, text: &mut String) {
        let Some(Part { name, from, sign, end, .. }) = self.0.pop() else { return };
        if text.len() <= from {
            return;
        }
        let part = text.split_off(from);
        let (mut owner, mut before) = (&b""[..], String::new());
        if let Some(outer) = self.0.last_mut() {
            owner = &outer.name;
            if 0 < outer.parts {
                before = outer.between.clone().unwrap_or_else(|| "|".to_owned());
            }
            outer.parts += 1;
        }
        let written = match (&*name, owner) {
            (b"num", _) | (b"e", b"rad") => grouped(&part),
            (b"den", _) => format!("/{}", grouped(&part)),
            (b"sup", _) => format!("^{}", grouped(&part)),
            (b"sub" | b"lim", _) => format!("_{}", grouped(&part)),
            (b"deg", _) => format!("[{part}]"),
            (b"rad", _) => format!("√{part}"),
            (b"fName", _) => format!("{part} "),
            (b"nary", _) => format!("{}{part}", sign.as_deref().unwrap_or("∫")),
            (b"acc", _) => format!("{part}{}", sign.as_deref().unwrap_or("\u{302}")),
            (b"d", _) => {
                let (begin, end) = (sign.as_deref().unwrap_or("("), end.as_deref().unwrap_or(")"));
                format!("{begin}{part}{end}")
            }
            (b"e", b"d") => format!("{before}{part}"),
            (b"e", b"nary") => format!(" {part}"),
            (b"e", b"mr") if !before.is_empty() => format!(" {part}"),
            (b"mr", b"m") | (b"e", b"eqArr") if !before.is_empty() => format!("; {part}"),
            _ => part,
        };
        text.push_str(&written);
    }
}

/// In brackets, if it is more than a word or a number.
fn grouped(part: &str) -> String {
    let inner = part.strip_prefix('(').and_then(|part| part.strip_suffix(')'));
    let is_group = inner.is_some_and(|inner| !inner.contains(['(', ')']));
    let is_one = part.chars().all(char::is_alphanumeric) || part.chars().nth(1).is_none();
    if is_group || is_one { part.to_owned() } else { format!("({part})") }
}
