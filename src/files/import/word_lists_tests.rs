//! Tests of the labels of lists: numbering state and number formats.

use crate::import::changes::ImportChanges;
use crate::import::word_text_tests::{OPEN, imported, item};

fn level(at: u8, format: &str, text: &str) -> String {
    level_with(at, format, text, 1, "")
}

fn level_with(at: u8, format: &str, text: &str, start: u8, more: &str) -> String {
    format!(
        "<w:lvl w:ilvl=\"{at}\"><w:start w:val=\"{start}\"/><w:numFmt w:val=\"{format}\"/>{more}\
         <w:lvlText w:val=\"{text}\"/></w:lvl>"
    )
}

fn definition(id: u8, content: &str) -> String {
    format!("<w:abstractNum w:abstractNumId=\"{id}\">{content}</w:abstractNum>")
}

fn list(id: u8, definition: u8, overrides: &str) -> String {
    format!("<w:num w:numId=\"{id}\"><w:abstractNumId w:val=\"{definition}\"/>{overrides}</w:num>")
}

fn starts(at: u8, start: u8) -> String {
    format!("<w:lvlOverride w:ilvl=\"{at}\"><w:startOverride w:val=\"{start}\"/></w:lvlOverride>")
}

fn legal() -> String {
    level(0, "decimal", "%1.") + &level(1, "decimal", "%1.%2") + &level(2, "decimal", "%1.%2.%3")
}

/// Items by their levels; a number behind a slash is their list.
fn items(levels: &str) -> String {
    let one = |word: &str| {
        let (level, list) = word.split_once('/').unwrap_or((word, "1"));
        item(
            &format!("<w:numPr><w:ilvl w:val=\"{level}\"/><w:numId w:val=\"{list}\"/></w:numPr>"),
            "x",
        )
    };
    levels.split(' ').map(one).collect()
}

fn labels_of(body: &str, numbering: &str, styles: &str) -> (String, ImportChanges) {
    let whole = |content: &str| format!("{OPEN}{content}</w:body></w:document>");
    let (numbering, styles) = (whole(numbering), whole(styles));
    let parts = [("word/numbering.xml", &*numbering), ("word/styles.xml", &*styles)];
    let file = imported(body, &parts);
    let labels = file.text.lines().map(|line| line.trim().trim_end_matches('x').trim_end());
    (labels.collect::<Vec<_>>().join(" "), file.changes)
}

#[track_caller]
fn assert_labels(levels: &str, numbering: &str, expected: &str) {
    assert_eq!(labels_of(&items(levels), numbering, "").0, expected, "{levels} {numbering}");
}

/// The labels are those of `LibreOffice`.
#[test]
fn lists_of_a_definition_share_their_numbers() {
    let two = |overrides: &str| definition(7, &legal()) + &list(1, 7, "") + &list(2, 7, overrides);
    assert_labels("0 0 0/2 1/2 0", &two(""), "1. 2. 3. 3.1 4.");
    // An override holds for the first item alone, and only where the list has one.
    assert_labels("0 0/2 0 0/2 0/2 0", &two(&starts(0, 1)), "1. 1. 2. 3. 4. 5.");
    assert_labels("0 1 0/2 1/2 1/2 0 1", &two(&starts(0, 1)), "1. 1.1 1. 1.1 1.2 2. 2.1");
    assert_labels("0 1 1 0 1/2 1/2 0/2 1/2", &two(&starts(1, 5)), "1. 1.1 1.2 2. 2.5 2.6 3. 3.1");
    let own = |more: &str| {
        two(&format!(
            "<w:lvlOverride w:ilvl=\"0\">{more}{}</w:lvlOverride>",
            level(0, "upperRoman", "%1)")
        ))
    };
    assert_labels("0 0 0/2 0/2 0", &own(""), "1. 2. III) IV) 5.");
    assert_labels("0 0 0/2 0/2 0", &own("<w:startOverride w:val=\"4\"/>"), "1. 2. IV) V) 6.");
    let apart =
        definition(7, &legal()) + &definition(8, &legal()) + &list(1, 7, "") + &list(2, 8, "");
    assert_labels("0 0 0/2 0 0/2", &apart, "1. 2. 1. 3. 2.");
    // An item before any of the level above it.
    assert_labels("1 1 0 1 0 2 1 2", &two(""), "1.1 1.2 2. 2.1 3. 3.1.1 3.2 3.2.1");
}

#[test]
fn a_level_restarts_where_its_definition_says() {
    let restart = |at: u8, behind: u8| {
        let more = format!("<w:lvlRestart w:val=\"{behind}\"/>");
        let levels =
            [legal(), level_with(at, "decimal", &format!("%{}", at + 1), 1, &more)].concat();
        definition(7, &levels) + &list(1, 7, "")
    };
    assert_labels("0 1 1 0 1", &restart(1, 0), "1. 1 2 2. 3");
    assert_labels("0 1 2 2 1 2 0 1 2", &restart(2, 1), "1. 1.1 1 2 1.2 3 2. 2.1 1");
    let zero = definition(7, &level_with(0, "decimal", "%1.", 0, "")) + &list(1, 7, "");
    assert_labels("0 0", &zero, "0. 1.");
}

#[test]
fn the_text_of_a_level_is_the_label() {
    let one = |levels: &str| definition(7, levels) + &list(1, 7, "");
    let article = level(0, "koreanCounting", "제%1조")
        + &level(1, "ganada", "%2.")
        + &level(2, "decimalEnclosedCircle", "%3");
    assert_labels("0 1 1 2 0", &one(&article), "제일조 가. 나. ① 제이조");
    let legal =
        level(0, "upperRoman", "Art %1.") + &level_with(1, "decimalZero", "%1.%2", 1, "<w:isLgl/>");
    assert_labels("0 1 1", &one(&legal), "Art I. 1.01 1.02");
    let none =
        level(0, "none", "Note:") + &level(1, "decimal", "%1.%2.") + &level(2, "decimal", "");
    assert_labels("0 1 1 2", &one(&none), "Note: 1. 2. ");
    let entity = level(0, "lowerLetter", "&lt;%1&gt; 100%");
    assert_labels("0 0", &one(&entity), "<a> 100% <b> 100%");
    let space = |label: &str, suffix: &str| {
        let more = format!("<w:suff w:val=\"{suffix}\"/>");
        let numbering = one(&level_with(0, "decimal", label, 1, &more));
        let part = format!("{OPEN}{numbering}</w:body></w:document>");
        imported(&items("0"), &[("word/numbering.xml", &part)]).text
    };
    for (label, suffix, text) in [
        ("제%1조", "nothing", "제1조x"),
        ("제%1조", "space", "제1조 x"),
        ("제%1조", "tab", "제1조 x"),
        ("%1)", "nothing", "1) x"),
    ] {
        assert_eq!(space(label, suffix), text);
    }
    let bullet = level_with(0, "bullet", "•", 1, "<w:suff w:val=\"nothing\"/>");
    let part = format!("{OPEN}{}</w:body></w:document>", one(&bullet));
    assert_eq!(imported(&items("0"), &[("word/numbering.xml", &part)]).text, "- x");
    let (labels, changes) = labels_of(&items("0 0"), &one(&level(0, "hindiCounting", "%1.")), "");
    assert_eq!(labels, "1. 2.");
    assert_eq!(changes.number_formats.iter().collect::<Vec<_>>(), ["hindiCounting"]);
    let choice = "<mc:AlternateContent><mc:Choice Requires=\"w14\"><w:numFmt w:val=\"custom\" w:format=\"001, 002, 003, ...\"/>\
                  </mc:Choice><mc:Fallback><w:numFmt w:val=\"decimal\"/></mc:Fallback></mc:AlternateContent>";
    assert_labels("0", &one(&level_with(0, "none", "%1.", 7, choice)), "007.");
}

#[test]
fn styles_give_lists_and_levels() {
    let style = |id: &str, base: &str, format: &str| {
        format!(
            "<w:style w:type=\"paragraph\" w:styleId=\"{id}\"><w:basedOn w:val=\"{base}\"/><w:pPr><w:numPr>{format}\
             </w:numPr></w:pPr></w:style>"
        )
    };
    let linked = |at: u8, text: &str| {
        level_with(at, "decimal", text, 1, &format!("<w:pStyle w:val=\"S{at}\"/>"))
    };
    let levels = linked(0, "%1.") + &linked(1, "%1.%2") + &linked(2, "%1.%2.%3");
    let of = |style: &str, more: &str| item(&format!("<w:pStyle w:val=\"{style}\"/>{more}"), "x");
    let one = "<w:numId w:val=\"1\"/>";
    // The level that names the style, whether the style says so, says another or says none.
    let styles = [
        style("S0", "", one),
        style("S1", "S0", ""),
        style("S2", "S1", &format!("<w:ilvl w:val=\"5\"/>{one}")),
        style("X", "S1", ""),
    ];
    let body = of("S0", "")
        + &of("S1", "")
        + &of("S2", "")
        + &of("X", "")
        + &of("S0", "<w:numPr><w:numId w:val=\"0\"/></w:numPr>")
        + &of("S0", "<w:numPr><w:ilvl w:val=\"1\"/></w:numPr>");
    let numbering = definition(7, &levels) + &list(1, 7, "");
    assert_eq!(labels_of(&body, &numbering, &styles.concat()).0, "1. 1.1 1.1.1 1.2  1.3");
    // A definition without levels has those of a style of lists, and continues its numbers.
    let numbering = definition(3, "<w:numStyleLink w:val=\"L\"/>")
        + &definition(7, &format!("<w:styleLink w:val=\"L\"/>{}", legal()))
        + &list(1, 3, "")
        + &list(2, 7, "");
    let styles = "<w:style w:type=\"numbering\" w:styleId=\"L\"><w:pPr><w:numPr><w:numId w:val=\"2\"/></w:numPr></w:pPr></w:style>\
                  <w:style w:type=\"paragraph\" w:default=\"1\" w:styleId=\"N\"><w:pPr><w:numPr><w:numId w:val=\"2\"/></w:numPr></w:pPr></w:style>";
    assert_eq!(
        labels_of(&(items("0 1 0/2 1/2 0") + &item("", "x")), &numbering, styles).0,
        "1. 1.1 2. 2.1 3. 4."
    );
}

#[test]
fn an_item_without_words_has_its_number() {
    let numbering = definition(7, &legal()) + &list(1, 7, "");
    let of = |text: &str, more: &str| {
        let format =
            format!("<w:numPr><w:ilvl w:val=\"0\"/><w:numId w:val=\"1\"/></w:numPr>{more}");
        item(&format, text).replace("<w:r><w:t></w:t></w:r>", "")
    };
    let deleted = "<w:rPr><w:del/></w:rPr>";
    let part = format!("{OPEN}{numbering}</w:body></w:document>");
    let text = |body: &str| imported(body, &[("word/numbering.xml", &part)]).text;
    assert_eq!(text(&[of("a", ""), of("", ""), of("c", "")].concat()), "1. a\n2.\n3. c");
    // A deleted mark joins two items to one.
    assert_eq!(
        text(&[of("a", deleted), of("b", ""), of("", deleted), of("c", "")].concat()),
        "1. ab\n2. c"
    );
    let cell = |content: &str| format!("<w:tc>{content}</w:tc>");
    let row = |item: &str, text: &str| format!("<w:tr>{}{}</w:tr>", cell(item), cell(text));
    let table =
        format!("<w:tbl>{}{}</w:tbl>", row(&of("", ""), "<w:p/>"), row(&of("", ""), &of("z", "")));
    assert_eq!(text(&table), "1.\t\n2.\t3. z");
}
