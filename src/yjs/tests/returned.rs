//! Passages whose letters are deleted, in texts of repeated clauses.

use proptest::prelude::*;

use super::{append, apply, document, edit, runner, text_of};
use crate::log::{SERVER_IDS, UpdateLog};
use crate::text::{Resolved, Text, document_from_text};
use galley_domain::anchor::{AnchorOrigin, AnchorState, PartRequest, Position, RelativeRange};

const ALPHA: &str = "Team Alpha reported that the new deployment reduced latency by twelve percent across all regions.\n";
const BETA: &str = "Team Beta reported that the new deployment reduced latency by twelve percent across all regions.\n";

/// A writer's document, the server's log of it, and an anchor.
struct Desk {
    writer: yrs::Doc,
    log: UpdateLog,
    anchor: (AnchorOrigin, RelativeRange),
}

fn units(text: &str) -> u32 {
    u32::try_from(text.encode_utf16().count()).unwrap()
}

fn at(text: &str, words: &str) -> u32 {
    units(&text[..text.find(words).unwrap()])
}

impl Desk {
    /// An anchor at a quote, or at the gap before `words` if `is_gap`.
    fn new(text: &str, words: &str, is_gap: bool) -> Self {
        let first = document_from_text(text, *SERVER_IDS.start());
        let writer = document(7);
        apply(&writer, &first);
        let log = UpdateLog::open(vec![first.clone()]).unwrap();
        let start = at(text, words);
        let part = match is_gap {
            true => PartRequest::Gap(Position::Offset(start)),
            false => PartRequest::Range {
                start: Position::Offset(start),
                end: Position::Offset(start + units(words)),
                quote: words.to_owned(),
            },
        };
        let anchor = Text::build(&first).unwrap().anchor_part(&part).unwrap();
        Self { writer, log, anchor }
    }

    fn edit(&mut self, at: u32, length: u32, with: &str) {
        append(&mut self.log, edit(&self.writer, at, length, with));
    }

    /// Deletes the first `words`, and inserts `with` in their place.
    fn change(&mut self, words: &str, with: &str) {
        self.edit(at(&text_of(&self.writer), words), units(words), with);
    }

    /// Inserts `new` before the first `words`.
    fn insert(&mut self, words: &str, new: &str) {
        self.edit(at(&text_of(&self.writer), words), 0, new);
    }

    /// Resolves the anchor as a read does, which stores a place that came back.
    fn read(&mut self) -> Resolved {
        let text = Text::build(&self.log.merged()).unwrap();
        let resolved = text.resolve(&self.anchor.0, &self.anchor.1);
        if let Some(relocated) = &resolved.relocated {
            assert_eq!(resolved.anchor.state, AnchorState::Exact, "no guess is stored");
            self.anchor.1 = relocated.clone();
        }
        resolved
    }

    fn state(&mut self) -> (AnchorState, u32) {
        let anchor = self.read().anchor;
        (anchor.state, anchor.start)
    }
}

#[test]
fn g9_an_anchor_in_a_deleted_line_is_orphaned_beside_a_twin_of_it() {
    let text = format!("Report\n{ALPHA}{BETA}End\n");
    let line = ALPHA.trim_end();
    let quotes =
        ["twelve percent", "reported that the new deployment reduced latency", "regions", line];
    let cases = quotes.map(|quote| (quote, false));
    for (words, is_gap) in cases.into_iter().chain([("latency by", true), ("twelve", true)]) {
        let mut desk = Desk::new(&text, words, is_gap);
        assert_eq!(desk.state(), (AnchorState::Exact, at(&text, words)));
        desk.change(ALPHA, "");
        for _ in 0..3 {
            assert_eq!(desk.state().0, AnchorState::Orphaned, "{words}");
        }
        // The writer takes the deletion back.
        desk.insert(BETA, ALPHA);
        assert_eq!(desk.state(), (AnchorState::Exact, at(&text, words)), "{words}");
        // The new letters carry it on.
        desk.change("Report", "The report");
        assert_eq!(desk.state(), (AnchorState::Exact, at(&text, words) + 4), "{words}");
        desk.change(ALPHA, "");
        assert_eq!(desk.state().0, AnchorState::Orphaned, "{words}");
    }
}

#[test]
fn g9_an_anchor_in_one_of_two_equal_lines_does_not_jump_to_the_other() {
    for lines in [[ALPHA, ALPHA], [ALPHA, "\n"]] {
        let text = format!("{}{}{ALPHA}Between\n{ALPHA}{ALPHA}", lines[0], lines[1]);
        for (words, is_gap) in [("twelve percent", false), ("new deployment", true)] {
            let mut desk = Desk::new(&text, words, is_gap);
            desk.edit(0, units(ALPHA), "");
            assert_eq!(desk.state().0, AnchorState::Orphaned, "{words}");
        }
    }
}

/// Goal: a phrase that stands once is found where it was dragged, as a guess that no read stores.
#[test]
fn g9_a_dragged_or_pasted_passage_is_found_as_a_guess() {
    let text =
        "나는 물류를 배웠습니다. 그리고 현장에서 일했습니다.\n다음 문단은 여기에서 시작합니다.\n";
    for (words, carried) in [
        ("현장에서 일했습니다", "그리고 현장에서 일했습니다."),
        ("현장에서 일했습니다", "현장에서 일했습니다"),
        ("물류를", "나는 물류를 배웠습니다. "),
    ] {
        let mut desk = Desk::new(text, words, false);
        desk.change(carried, "");
        assert_eq!(desk.state().0, AnchorState::Orphaned, "{carried}");
        desk.insert("문단은", carried);
        let there = at(&text_of(&desk.writer), words);
        for _ in 0..2 {
            assert_eq!(desk.state(), (AnchorState::Moved, there), "{carried}");
        }
        // A second copy leaves no clear place.
        desk.insert("시작합니다", carried);
        assert_eq!(desk.state().0, AnchorState::Orphaned, "{carried}");
    }
}

#[test]
fn g9_a_word_that_is_typed_in_another_context_is_not_the_deleted_one() {
    let text = "We value our customers most of all.\nThe rest of the letter.\n";
    let mut desk = Desk::new(text, "customers", false);
    desk.change("We value our customers most of all.", "");
    desk.change("The rest", "Other customers like the rest");
    assert_eq!(desk.state().0, AnchorState::Orphaned);
}

#[test]
fn g9_a_quote_whose_edge_is_typed_again_is_exact() {
    for (gone, typed) in [("물류를 ", "물류를 "), ("를 배", "를 배"), ("웠습니다", "웠습니다")]
    {
        let mut desk = Desk::new("저는 물류를 배웠습니다.", "물류를 배웠", false);
        let start = at("저는 물류를 배웠습니다.", gone);
        desk.edit(start, units(gone), "");
        desk.edit(start, 0, typed);
        assert_eq!(desk.state(), (AnchorState::Exact, 3), "{gone}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Deletes a stretch, which the clipboard has then.
    Cut {
        at: u16,
        length: u8,
    },
    Paste {
        at: u16,
    },
    /// Inserts the stretch that was cut last where it stood.
    Undo,
    Type {
        at: u16,
        clause: usize,
    },
    Drag {
        at: u16,
        length: u8,
        to: u16,
    },
}

const CLAUSES: [&str; 3] =
    ["갑은 을에게 대금을 지급한다.\n", "을은 갑에게 대금을 지급한다.\n", "ab "];

fn step() -> impl Strategy<Value = Step> {
    let (at, length) = (any::<u16>(), 1..40_u8);
    prop_oneof![
        3 => (at, length.clone()).prop_map(|(at, length)| Step::Cut { at, length }),
        2 => at.prop_map(|at| Step::Paste { at }),
        2 => Just(Step::Undo),
        1 => (at, 0..CLAUSES.len()).prop_map(|(at, clause)| Step::Type { at, clause }),
        2 => (at, length, any::<u16>()).prop_map(|(at, length, to)| Step::Drag { at, length, to }),
    ]
}

/// The units of the writer's text, each with the step of its insertion.
struct Twins {
    desk: Desk,
    births: Vec<usize>,
    now: usize,
    clipboard: (u32, String),
}

impl Twins {
    fn replace(&mut self, at: usize, length: usize, with: &str) {
        let (first, gone) = (u32::try_from(at).unwrap(), u32::try_from(length).unwrap());
        self.desk.edit(first, gone, with);
        let born = std::iter::repeat_n(self.now, with.encode_utf16().count());
        self.births.splice(at..at + length, born);
    }

    fn cut(&mut self, at: u16, length: u8) {
        let at = usize::from(at) % (self.births.len() + 1);
        let end = (at + usize::from(length)).min(self.births.len());
        let all: Vec<u16> = text_of(&self.desk.writer).encode_utf16().collect();
        let text = String::from_utf16(&all[at..end]).unwrap();
        self.clipboard = (u32::try_from(at).unwrap(), text);
        self.replace(at, end - at, "");
    }

    fn take(&mut self, step: &Step) {
        self.now += 1;
        let position = |at: u16, births: &[usize]| usize::from(at) % (births.len() + 1);
        match *step {
            Step::Cut { at, length } => self.cut(at, length),
            Step::Paste { at } => {
                let text = self.clipboard.1.clone();
                self.replace(position(at, &self.births), 0, &text);
            }
            Step::Undo => {
                let (at, text) = self.clipboard.clone();
                self.replace(usize::try_from(at).unwrap().min(self.births.len()), 0, &text);
            }
            Step::Type { at, clause } => {
                self.replace(position(at, &self.births), 0, CLAUSES[clause]);
            }
            Step::Drag { at, length, to } => {
                self.cut(at, length);
                let text = self.clipboard.1.clone();
                self.replace(position(to, &self.births), 0, &text);
            }
        }
    }
}

/// Goal: an anchor is at its own letters, or at letters that came after it was last known: never at a twin
/// that stood there before.
#[test]
fn g9_an_anchor_among_twins_is_at_no_letter_that_stood_elsewhere() {
    let text: String = [0, 1, 2, 2, 0, 1, 0].map(|clause| CLAUSES[clause]).concat();
    let all: Vec<u16> = text.encode_utf16().collect();
    let steps = prop::collection::vec(step(), 1..12);
    let ranges = (0..all.len(), 1..12_usize);
    runner(300)
        .run(&(ranges, steps), |((start, length), steps)| {
            let end = (start + length).min(all.len());
            let quote = String::from_utf16(&all[start..end]).unwrap();
            let mut desk = Desk::new(&text, &text[..0], true);
            let part = PartRequest::Range {
                start: Position::Offset(u32::try_from(start).unwrap()),
                end: Position::Offset(u32::try_from(end).unwrap()),
                quote: quote.clone(),
            };
            let first = Text::build(&desk.log.merged()).unwrap();
            desk.anchor = first.anchor_part(&part).unwrap();
            // The own letters have births of their own: none is that of another letter of the first text.
            let mut births = vec![0; all.len()];
            births[start..end].fill(1);
            let clipboard = (0, String::new());
            let mut twins = Twins { desk, births, now: 1, clipboard };
            let (mut last, mut own) = (1, 1..=1);
            for step in &steps {
                twins.take(step);
                let Resolved { anchor, relocated } = twins.desk.read();
                let range =
                    usize::try_from(anchor.start).unwrap()..usize::try_from(anchor.end).unwrap();
                let births = &twins.births[range.clone()];
                let now: Vec<u16> = text_of(&twins.desk.writer).encode_utf16().collect();
                let is_quote = String::from_utf16(&now[range]).unwrap() == quote;
                let is_new = |born: &usize| own.contains(born) || last < *born;
                match anchor.state {
                    AnchorState::Exact | AnchorState::Moved => {
                        prop_assert!(
                            is_quote && births.iter().all(is_new),
                            "{anchor:?} {births:?}"
                        );
                    }
                    AnchorState::Edited => prop_assert!(births.iter().any(is_new), "{anchor:?}"),
                    AnchorState::Orphaned => prop_assert_eq!(anchor.start, anchor.end),
                }
                if relocated.is_some() {
                    let first = births.iter().min().copied().unwrap_or_default();
                    (last, own) = (twins.now, first..=twins.now);
                }
            }
            Ok(())
        })
        .unwrap();
}
