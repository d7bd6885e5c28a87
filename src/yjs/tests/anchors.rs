//! The position of a review after changes of the text.

use bytes::Bytes;
use yrs::Doc;

use super::{append, apply, document, edit, text_of};
use crate::log::{Origin, SERVER_IDS, UpdateLog};
use crate::text::{Resolved, Text, document_from_text};
use galley_domain::anchor::{
    Anchor, AnchorOrigin, AnchorRequest, AnchorState, RelativeRange, TextRange,
};

/// A writer's document and the server's log of it.
struct Desk {
    writer: Doc,
    log: UpdateLog,
}

impl Desk {
    fn with(text: &str) -> Self {
        let first = document_from_text(text, *SERVER_IDS.start());
        let writer = document(7);
        apply(&writer, &first);
        Self { writer, log: UpdateLog::open(vec![first]).unwrap() }
    }

    fn text(&mut self) -> Text {
        Text::build(&self.log.merged()).unwrap()
    }

    fn replace(&mut self, range: TextRange, with: &str, client: u64) -> Bytes {
        self.text().replace_all(&[(range, with)], client).unwrap().0
    }

    fn review(&mut self, quote: &str) -> (AnchorOrigin, RelativeRange) {
        let text = text_of(&self.writer);
        let (start, end) = range_of(&text, quote);
        self.text().anchor(&AnchorRequest { start, end, quote: quote.to_owned() }).unwrap()
    }

    /// Replaces the first `what` by `with`.
    fn change(&mut self, what: &str, with: &str) {
        let (start, end) = range_of(&text_of(&self.writer), what);
        append(&mut self.log, edit(&self.writer, start, end - start, with));
    }

    fn resolve(&mut self, review: &(AnchorOrigin, RelativeRange)) -> Resolved {
        let resolved = self.text().resolve(&review.0, &review.1);
        assert_eq!(resolved.anchor.quote, review.0.quote);
        let is_stored = resolved.relocated.is_some();
        assert!(!is_stored || resolved.anchor.state == AnchorState::Exact, "no guess is stored");
        resolved
    }

    fn quoted(&self, anchor: &Anchor) -> String {
        let units: Vec<u16> = text_of(&self.writer).encode_utf16().collect();
        let range = usize::try_from(anchor.start).unwrap()..usize::try_from(anchor.end).unwrap();
        String::from_utf16(&units[range]).expect("whole characters")
    }
}

fn units(text: &str) -> u32 {
    u32::try_from(text.encode_utf16().count()).unwrap()
}

fn range_of(text: &str, quote: &str) -> (u32, u32) {
    let start = units(&text[..text.find(quote).unwrap()]);
    (start, start + units(quote))
}

const LETTER: &str = "Dear Ms. Kim,\nI have led a team of five for three years. \
    저는 5년 동안 \u{1112}\u{1161}\u{11AB}\u{1100}\u{116E}\u{11A8}에서 일했습니다. \u{1F469}\u{200D}\u{1F469}\u{200D}\u{1F467} \
    I would like to join your company because of its people.\nYours, e\u{301}mile\n";

#[test]
fn g9_the_context_is_32_characters_on_either_side() {
    let mut desk = Desk::with(LETTER);
    let (origin, _) = desk.review("team of five");
    assert_eq!(origin.prefix, "Dear Ms. Kim,\nI have led a ");
    assert_eq!(origin.suffix.chars().count(), 32);
    assert!(LETTER.contains(&format!("{}{}{}", origin.prefix, origin.quote, origin.suffix)));
    let (origin, _) = desk.review("\u{1F469}\u{200D}\u{1F469}\u{200D}\u{1F467}");
    assert_eq!((origin.prefix.chars().count(), origin.suffix.chars().count()), (32, 32));
}

#[test]
fn g9_an_exact_anchor_moves_with_its_quote() {
    let mut desk = Desk::with(LETTER);
    let review = desk.review("\u{1112}\u{1161}\u{11AB}\u{1100}\u{116E}\u{11A8}");
    desk.change("Dear", "\u{1F600} Hello and welcome,");
    desk.change("에서 ", "");
    desk.change("동안 ", "넘게");
    let resolved = desk.resolve(&review);
    assert_eq!(resolved.anchor.state, AnchorState::Exact);
    assert_eq!(desk.quoted(&resolved.anchor), review.0.quote);
}

#[test]
fn g9_an_anchor_whose_text_changed_a_little_is_edited() {
    let mut desk = Desk::with(LETTER);
    let review = desk.review("a team of five for three years");
    desk.change("five", "six");
    let resolved = desk.resolve(&review);
    assert_eq!(resolved.anchor.state, AnchorState::Edited);
    assert_eq!(desk.quoted(&resolved.anchor), "a team of six for three years");
}

#[test]
fn g9_an_anchor_whose_text_became_another_is_orphaned() {
    let mut desk = Desk::with(LETTER);
    let review = desk.review("a team of five for three years");
    let (start, _) = range_of(LETTER, " team of five for three year");
    append(&mut desk.log, edit(&desk.writer, start, 28, "n orchestra"));
    let resolved = desk.resolve(&review);
    assert_eq!(resolved.anchor.state, AnchorState::Orphaned);
    assert_eq!(resolved.anchor.start, resolved.anchor.end);
}

#[test]
fn g9_after_select_all_and_paste_the_quote_is_found_by_its_context() {
    for quote in [
        "a team of five",
        "years. ",
        "저는 5년 동안",
        "\u{1F469}\u{200D}\u{1F469}\u{200D}\u{1F467}",
    ] {
        let mut desk = Desk::with(LETTER);
        let review = desk.review(quote);
        let pasted = LETTER.replace("Dear Ms. Kim", "Dear Mr. Lee and others");
        desk.change(LETTER, &pasted);
        // After the deletion each position is at 0, and all letters are new.
        let resolved = desk.resolve(&review);
        let has_its_context = !review.0.prefix.contains("Kim");
        let state = if has_its_context { AnchorState::Exact } else { AnchorState::Moved };
        assert_eq!(resolved.anchor.state, state, "{quote}");
        assert_eq!(desk.quoted(&resolved.anchor), quote);
        // The new relative range resolves as well as the old one did.
        let at = resolved.relocated.or(resolved.anchor.relative).unwrap();
        let again = desk.resolve(&(review.0, at));
        assert_eq!(again.anchor.state, AnchorState::Exact);
        assert_eq!(
            (again.anchor.start, again.anchor.end),
            (resolved.anchor.start, resolved.anchor.end)
        );
    }
}

#[test]
fn g9_an_anchor_of_a_cut_and_pasted_sentence_is_moved() {
    let mut desk = Desk::with(LETTER);
    let sentence = "I would like to join your company because of its people.";
    let review = desk.review(sentence);
    desk.change(sentence, "");
    assert_eq!(desk.resolve(&review).anchor.state, AnchorState::Orphaned);
    desk.change("Dear", &format!("{sentence} Dear"));
    let resolved = desk.resolve(&review);
    assert_eq!(resolved.anchor.state, AnchorState::Moved);
    assert_eq!(desk.quoted(&resolved.anchor), sentence);
}

#[test]
fn g9_an_anchor_of_a_deleted_word_does_not_jump_to_an_equal_word() {
    let mut desk = Desk::with("one five two five three five four");
    let (start, end) = (13, 17);
    let request = AnchorRequest { start, end, quote: "five".to_owned() };
    let review = desk.text().anchor(&request).unwrap();
    append(&mut desk.log, edit(&desk.writer, start, 5, ""));
    let resolved = desk.resolve(&review);
    assert_eq!(resolved.anchor.state, AnchorState::Orphaned);
    assert_eq!((resolved.anchor.start, resolved.anchor.end), (13, 13));
    // After a new paste, its context distinguishes it from equal words.
    let all = units(&text_of(&desk.writer));
    append(
        &mut desk.log,
        edit(&desk.writer, 0, all, "zero five one five two five three five four"),
    );
    let resolved = desk.resolve(&review);
    assert_eq!((resolved.anchor.state, resolved.anchor.start), (AnchorState::Moved, 23));
    assert_eq!(resolved.relocated, None);
}

#[test]
fn g9_an_orphan_in_an_empty_document_stands_at_its_start() {
    let mut desk = Desk::with(LETTER);
    let review = desk.review("company");
    desk.change(LETTER, "");
    let anchor = desk.resolve(&review).anchor;
    assert_eq!((anchor.state, anchor.start, anchor.end), (AnchorState::Orphaned, 0, 0));
    // The server ignores malformed positions and continues.
    for bytes in [&[][..], &[0, 99, 5, 0], &[9, 9], &[0xff; 20]] {
        let nowhere = RelativeRange { start: bytes.to_vec(), end: bytes.to_vec() };
        assert_eq!(desk.resolve(&(review.0.clone(), nowhere)).anchor.state, AnchorState::Orphaned);
    }
}

#[test]
fn an_accepted_suggestion_is_in_every_replica() {
    let mut desk = Desk::with(LETTER);
    let review = desk.review("three years");
    let far = desk.review("company");
    let anchor = desk.resolve(&review).anchor;
    let range = TextRange { start: anchor.start, end: anchor.end };
    let update: Bytes = desk.replace(range, "삼 년 \u{1F600}", *SERVER_IDS.end());
    let checked = desk.log.check(&update, Origin::Server).unwrap();
    assert_eq!(checked.clients, [*SERVER_IDS.end()]);
    desk.log.append(update.clone(), checked);
    apply(&desk.writer, &update);
    assert_eq!(text_of(&desk.writer), LETTER.replace("three years", "삼 년 \u{1F600}"));
    assert_eq!(desk.text().content(), text_of(&desk.writer));
    assert_eq!(desk.resolve(&far).anchor.state, AnchorState::Exact);
    let deletion = desk.replace(TextRange { start: 0, end: 4 }, "", 5);
    append(&mut desk.log, deletion);
    assert!(desk.text().content().starts_with(" Ms. Kim"));
}
