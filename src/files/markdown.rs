//! Markdown: the text as it is, with its reviews as footnotes.
//!
//! The text may be Markdown, so it is not escaped. The words of the notes are: a note is no heading,
//! link or HTML of the file.

use crate::bounded_text::BoundedText;
use crate::labels::Labels;
use crate::render_model::{Location, Note, RenderModel};
use galley_domain::export::ExportFailure;

/// Prefixes of the footnotes' labels, by preference. A text may have footnotes of its own.
const LABELS: [&str; 3] = ["r", "review-", "galley-review-"];

pub fn render(model: &RenderModel) -> Result<Vec<u8>, ExportFailure> {
    let is_free = |label: &&str| !model.text.contains(&format!("[^{label}"));
    let label = LABELS.into_iter().find(is_free).unwrap_or("note-of-galley-");
    let mut output = BoundedText::default();
    output.push_text(model, |number| format!("[^{label}{number}]"))?;
    if model.notes.is_empty() {
        return Ok(output.into_bytes());
    }
    output.push(if output.ends_with('\n') { "" } else { "\n" })?;
    for note in model.notes.iter().filter(|note| matches!(note.location, Location::Range(_))) {
        let (first, rest) = lines(note, &model.labels);
        output.push(&format!("\n[^{label}{}]: {first}\n", note.number))?;
        push_block(&mut output, "    ", &rest)?;
    }
    for (heading, notes) in model.sections() {
        output.push(&format!("\n---\n\n## {heading}\n"))?;
        for note in notes {
            let (first, rest) = lines(note, &model.labels);
            // The text has no mark of it, so a number would name nothing.
            output.push(&format!("\n- {first}\n"))?;
            push_block(&mut output, "  ", &rest)?;
        }
    }
    Ok(output.into_bytes())
}

fn push_block(
    output: &mut BoundedText,
    indent: &str,
    lines: &[String],
) -> Result<(), ExportFailure> {
    for line in lines {
        let indent = if line.is_empty() { "" } else { indent };
        output.push(&format!("{indent}{line}\n"))?;
    }
    Ok(())
}

fn lines(note: &Note, labels: &Labels) -> (String, Vec<String>) {
    let status = labels.status(note.status).map(|it| format!(" ({it})")).unwrap_or_default();
    let first = format!("**{}**, {}{status}", escaped(&note.author), labels.time(note.at));
    let mut lines = Vec::new();
    let mut block = |prefix: &str, text: &str| {
        lines.push(String::new());
        // Two spaces before the end of a line break it.
        lines.extend(text.split('\n').map(|line| format!("{prefix}{}  ", escaped(line))));
    };
    if !note.quote.is_empty() && !note.is_deletion() {
        block("> ", &note.quote);
    }
    if let Some(suggestion) = note.suggestion(labels) {
        block("", &suggestion);
    }
    if !note.body.is_empty() {
        block("", &note.body);
    }
    for reply in &note.replies {
        block(
            "",
            &format!("↳ {}, {}\n{}", reply.author.name, labels.time(reply.created_at), reply.body),
        );
    }
    (first, lines)
}

fn escaped(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len());
    for c in line.trim_start().chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '!' | '&')
        {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    // The beginning of a list, a rule or a heading.
    let digits = escaped.bytes().take_while(u8::is_ascii_digit).count();
    match escaped.as_bytes().get(digits) {
        Some(b'.' | b')') if digits > 0 => escaped.insert(digits, '\\'),
        Some(b'-' | b'+' | b'=') if digits == 0 => escaped.insert(0, '\\'),
        _ => {}
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render_model::tests::{model, reply, review, suggestion};

    fn rendered(model: &RenderModel) -> String {
        String::from_utf8(render(model).expect("a file")).expect("UTF-8")
    }

    #[test]
    fn a_text_without_reviews_is_exported_byte_for_byte() {
        for text in ["", "# 제목\n\n* 하나", "a\n\n"] {
            assert_eq!(rendered(&model(text, vec![])), text);
        }
    }

    #[test]
    fn reviews_are_footnotes_whose_words_have_no_meaning_in_markdown() {
        let text = "# 나는\n글을 쓴다";
        let mut first = review(text, Some("나는"), "# <b>왜</b>?\n- 정말\n1. [링크](x)");
        first.replies.push(reply("*그냥*"));
        let file = rendered(&model(text, vec![first, suggestion(text, "쓴다", "적는다")]));
        assert!(file.starts_with("# 나는[^r1]\n글을 쓴다[^r2]\n\n[^r1]: **이검토**, "), "{file}");
        for part in [
            "\n\n    > 나는  \n\n    \\# \\<b\\>왜\\</b\\>?  \n    \\- 정말  \n    1\\. \\[링크\\](x)  \n",
            "    \\*그냥\\*  \n",
            "\n    제안: 적는다  \n",
        ] {
            assert!(file.contains(part), "{part}\n---\n{file}");
        }
    }

    #[test]
    fn a_mark_stands_before_the_line_feed_of_its_passage() {
        let text = "하나\n\n# 제목";
        let reviews = vec![review(text, Some("하나\n"), "?"), suggestion(text, "하나\n\n", "")];
        let file = rendered(&model(text, reviews));
        assert!(file.starts_with("하나[^r1][^r2]\n\n# 제목\n\n[^r1]: "), "{file}");
    }

    #[test]
    fn footnotes_of_the_text_keep_their_labels() {
        let text = "글[^r1]\n\n[^r1]: 내 각주";
        let file = rendered(&model(text, vec![review(text, Some("글"), "?")]));
        assert!(
            file.starts_with("글[^review-1][^r1]\n\n[^r1]: 내 각주\n\n[^review-1]: "),
            "{file}"
        );
    }

    #[test]
    fn reviews_without_a_passage_stand_at_the_end_and_have_no_number() {
        let reviews = vec![
            review("글", Some("없다"), "?"),
            review("글", None, "좋다\n1. 정말"),
            suggestion("글", "글", ""),
        ];
        let file = rendered(&model("글", reviews));
        let head = "**이검토**, 2026-09-21 14:13 UTC";
        let expected = format!(
            "글[^r1]\n\n[^r1]: {head}\n\n    삭제 제안: “글”  \n\n---\n\n## 총평\n\n- {head}\n\n  좋다  \n  \
             1\\. 정말  \n\n---\n\n## 문장이 지워진 의견\n\n- {head}\n\n  > 없다  \n\n  ?  \n"
        );
        assert_eq!(file, expected);
    }
}
