//! `sql!`: a statement whose text names its arguments.
//!
//! ```text
//! sql!("UPDATE documents SET title = {new.title} WHERE id = {id}")
//! sql!([COLUMNS, " FROM reviews WHERE id = {id} AND ", READABLE], reader)
//! sql!(sqlite: ["…"], postgres: ["…"], title = title.trim())
//! ```
//!
//! `{expression}` is an argument; equal ones are one. After the text, `name = expression` names a long one, or one
//! that a constant of the text has; `name` alone is short for `name = name`. `{@mark}` and `{@mark:text}` have a form
//! for each engine, and `{{` is a brace. The macro reads texts, and a test of `storage::statements` those of constants;
//! `storage::statement` renders both at the first call.

use proc_macro::{TokenStream, TokenTree};

const STATEMENT: &str = "::galley_core::storage::statement";

/// Makes a `Statement` of its text and arguments.
#[proc_macro]
pub fn sql(input: TokenStream) -> TokenStream {
    let source = statement(input).and_then(|it| it.parse().map_err(|fault| format!("{fault}")));
    let fault = |fault| format!("::core::compile_error!({fault:?})").parse().unwrap_or_default();
    source.unwrap_or_else(fault)
}

fn statement(input: TokenStream) -> Result<String, String> {
    let mut texts = split(input);
    let of = if texts.first().is_some_and(|text| text.len() == 3) { "pair" } else { "of" };
    let named = texts.split_off(texts.len().min(if of == "pair" { 2 } else { 1 }));
    let mut arguments = named.iter().map(|it| argument(it)).collect::<Result<Vec<_>, _>>()?;
    let (mut marks, mut lists, mut has_constant) = (String::new(), String::new(), false);
    for text in texts {
        let parts = match text.last() {
            Some(TokenTree::Group(list)) => split(list.stream()),
            _ => vec![text],
        };
        let parts: Vec<_> = parts.into_iter().map(source).collect();
        let is_literal = |part: &&String| part.starts_with('"');
        has_constant |= !parts.iter().all(|part| is_literal(&part));
        let found = parts.iter().filter(is_literal).map(|part| words(part));
        for word in found.collect::<Result<Vec<_>, _>>()?.concat() {
            if let Some(mark) = word.strip_prefix('@') {
                let is_known = format!("{STATEMENT}::forms({mark:?}.as_bytes()).is_some()");
                marks += &format!("const _: () = assert!({is_known}, \"no mark {mark}\");");
            } else if arguments.iter().all(|(name, _)| name != word) {
                arguments.push((word.to_owned(), word.to_owned()));
            }
        }
        lists += &format!(", &[{}]", parts.join(", "));
    }
    let (mut names, mut values) = (String::new(), String::new());
    for (name, value) in &arguments {
        if !has_constant && !lists.contains(&format!("{{{name}}}")) {
            return Err(format!("the text has no {{{name}}}"));
        }
        names += &format!("{name:?}, ");
        values += &format!("{STATEMENT}::Store::store(&({value})), ");
    }
    let sql = format!("{STATEMENT}::Sql::{of}(&[{names}]{lists})");
    let new = format!("{STATEMENT}::Statement::new(&SQL, ::std::vec![{values}])");
    Ok(format!("{{ {marks} static SQL: {STATEMENT}::Sql = {sql}; {new} }}"))
}

/// The expressions of a text, and its marks with their `@`.
fn words(text: &str) -> Result<Vec<&str>, String> {
    let (mut found, mut open, mut rest) = (Vec::new(), 0, text);
    while let Some((_, from)) = rest.find(['{', '}']).and_then(|at| rest.split_at_checked(at)) {
        let escaped = from.strip_prefix("{{");
        let escaped = escaped.or_else(|| from.strip_prefix("}}").filter(|_| open == 0));
        rest = if let Some(after) = escaped {
            after
        } else if from.starts_with("{@") {
            let (_, mark) = from.split_at(1);
            let (mark, after) = mark.split_at(mark.find([':', '}']).unwrap_or(mark.len()));
            found.push(mark);
            open += 1;
            after
        } else if let Some(after) = from.strip_prefix('{') {
            let (word, after) = after.split_once('}').ok_or("`{` without `}`; text is `{{`")?;
            if word.trim().is_empty() || word.contains(['\\', '\n', '{']) {
                return Err(format!("no argument: `{word}`; a long one has a name after the text"));
            }
            found.push(word);
            after
        } else {
            let closed = from.strip_prefix('}').filter(|_| open > 0);
            open -= 1;
            closed.ok_or("`}` without `{`; text is `}}`")?
        };
    }
    if open == 0 { Ok(found) } else { Err("a mark without its `}`".to_owned()) }
}

/// The name and the expression of an argument after the text.
fn argument(tokens: &[TokenTree]) -> Result<(String, String), String> {
    match tokens {
        [TokenTree::Ident(name)] => Ok((name.to_string(), name.to_string())),
        [TokenTree::Ident(name), TokenTree::Punct(mark), value @ ..] if mark.as_char() == '=' => {
            Ok((name.to_string(), source(value.to_vec())))
        }
        other => Err(format!(
            "not `name` or `name = expression` after the text: {}",
            source(other.to_vec())
        )),
    }
}

fn source(tokens: Vec<TokenTree>) -> String {
    TokenStream::from_iter(tokens).to_string()
}

/// The parts of a list between its commas.
fn split(list: TokenStream) -> Vec<Vec<TokenTree>> {
    let all: Vec<_> = list.into_iter().collect();
    let is_comma = |it: &TokenTree| matches!(it, TokenTree::Punct(mark) if mark.as_char() == ',');
    all.split(is_comma).filter(|part| !part.is_empty()).map(<[_]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_text_names_its_arguments_and_marks() {
        let text =
            "SELECT '{{}}', {a.b} FROM {@list:{json(c)?}} WHERE {@hex:d} = {f(|_| 1)} {@now}";
        let all = vec!["a.b", "@list", "json(c)?", "@hex", "f(|_| 1)", "@now"];
        assert_eq!(words(text), Ok(all));
        assert_eq!(words("SELECT '{{' || '}}', {{a}}"), Ok(Vec::new()));
        let faults =
            ["{", "}", "{a", "a}", "{}", "{ }", "{@a:{a}", "{@a:{}}", "{a\\\n}", "{f({})}"];
        for fault in faults {
            assert!(words(fault).is_err(), "{fault}");
        }
    }
}
