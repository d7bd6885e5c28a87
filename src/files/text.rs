//! Plain text: the text as it is, with its reviews as footnotes.

use crate::bounded_text::BoundedText;
use crate::labels::Labels;
use crate::render_model::{Location, Note, RenderModel};
use galley_domain::export::ExportFailure;

const RULE: &str = "────────────────────";

pub fn render(model: &RenderModel) -> Result<Vec<u8>, ExportFailure> {
    let mut output = BoundedText::default();
    output.push_text(model, |number| format!("[{number}]"))?;
    if model.notes.is_empty() {
        return Ok(output.into_bytes());
    }
    let line_break = if output.ends_with('\n') { "" } else { "\n" };
    output.push(&format!("{line_break}\n{RULE}\n{}\n", model.labels.reviews))?;
    let ranges = model.notes.iter().filter(|note| matches!(note.location, Location::Range(_)));
    for note in ranges {
        write_note(&mut output, note, &model.labels)?;
    }
    for (heading, notes) in model.sections() {
        output.push(&format!("\n{RULE}\n{heading}\n"))?;
        for note in notes {
            write_note(&mut output, note, &model.labels)?;
        }
    }
    Ok(output.into_bytes())
}

fn write_note(output: &mut BoundedText, note: &Note, labels: &Labels) -> Result<(), ExportFailure> {
    let status = labels.status(note.status).map(|it| format!(" ({it})")).unwrap_or_default();
    output.push(&format!(
        "\n[{}] {}, {}{status}\n",
        note.number,
        note.author,
        labels.time(note.at)
    ))?;
    if !note.quote.is_empty() && !note.is_deletion() {
        output.push(&indented(&format!("“{}”", note.quote)))?;
    }
    if let Some(suggestion) = note.suggestion(labels) {
        output.push(&indented(&suggestion))?;
    }
    if !note.body.is_empty() {
        output.push(&indented(&note.body))?;
    }
    for reply in &note.replies {
        let head = format!("↳ {}, {}", reply.author.name, labels.time(reply.created_at));
        output.push(&indented(&head))?;
        output.push(&indented(&reply.body))?;
    }
    Ok(())
}

fn indented(text: &str) -> String {
    text.split('\n').map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render_model::tests::{model, reply, review, suggestion};
    use galley_domain::review::ReviewStatus;

    fn rendered(model: &RenderModel) -> String {
        String::from_utf8(render(model).expect("a file")).expect("UTF-8")
    }

    #[test]
    fn a_text_without_reviews_is_exported_byte_for_byte() {
        for text in ["", "나는\n글을 쓴다", "a\n\n", "\t[1] \u{1F469}"] {
            assert_eq!(rendered(&model(text, vec![])), text);
        }
    }

    #[test]
    fn reviews_are_footnotes_and_lost_ones_stand_at_the_end() {
        let text = "나는 글을 쓴다";
        let mut decided = suggestion(text, "쓴다", "적는다");
        decided.status = ReviewStatus::Rejected;
        let mut first = review(text, Some("나는"), "왜?\n정말?");
        first.replies.push(reply("그냥"));
        let lost = suggestion(text, "없다", "");
        let all = vec![first, decided, review(text, None, "좋다"), lost];
        let file = rendered(&model(text, all));
        assert!(file.starts_with("나는[1] 글을 쓴다[2]\n\n"), "{file}");
        for part in [
            "\n[1] 이검토, 2026-09-21 14:13 UTC\n    “나는”\n    왜?\n    정말?\n    ↳ 김작가",
            "\n[2] 이검토, 2026-09-21 14:13 UTC (거절됨)\n    “쓴다”\n    제안: 적는다\n",
            "총평\n\n[3] ",
            "문장이 지워진 의견\n\n[4] 이검토, 2026-09-21 14:13 UTC\n    삭제 제안: “없다”\n",
        ] {
            assert!(file.contains(part), "{part}\n---\n{file}");
        }
    }
}
