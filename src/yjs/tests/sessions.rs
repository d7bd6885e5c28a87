//! Random sessions whose clients edit, disconnect and reconnect, while the server merges, restarts
//! and applies suggestions. At rest all replicas have the same text.

use bytes::Bytes;
use proptest::prelude::*;
use yrs::types::Attrs;
use yrs::{Any, Doc, ReadTxn, StateVector, Text as _, Transact, updates::decoder::Decode};

use super::{append, apply, document, edit, runner, text_by_yrs, text_of};
use crate::ROOT;
use crate::log::{Origin, UpdateLog, server_client_id};
use crate::text::Text;
use galley_domain::anchor::{AnchorOrigin, AnchorRequest, AnchorState, RelativeRange, TextRange};

const CLIENTS: [u64; 3] = [5, 4_000_000_000, 77];
const PIECES: [&str; 7] = [
    "a",
    "word ",
    "한국",
    "\u{1112}\u{1161}\u{11AB}",
    "\u{1F469}\u{200D}\u{1F467}",
    "e\u{301}\n",
    // Long enough for garbage collection after a deletion.
    "한 문단이 지워지면 그 글은 남지 않는다. \u{1F600} A paragraph that is deleted is not kept. \u{1F469}\u{200D}\u{1F467}",
];

#[derive(Clone, Debug)]
enum Step {
    /// A client replaces a few characters.
    Edit { who: usize, at: u16, length: u8, piece: usize },
    /// A client makes a few characters bold.
    Format { who: usize, at: u16, length: u8 },
    /// A client sends its updates and receives those of the others.
    Meet { who: usize },
    /// The server merges the document and reads it back.
    Restart,
    /// The server replaces a few characters.
    Suggest { at: u16, length: u8, piece: usize },
    /// A reviewer comments on a few characters.
    Review { at: u16, length: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![6 => 0..6_u8, 1 => 0..=255_u8];
    let (who, piece) = (0..CLIENTS.len(), 0..PIECES.len());
    prop_oneof![
        8 => (who.clone(), any::<u16>(), length.clone(), piece.clone())
            .prop_map(|(who, at, length, piece)| Step::Edit { who, at, length, piece }),
        1 => (who.clone(), any::<u16>(), length.clone())
            .prop_map(|(who, at, length)| Step::Format { who, at, length }),
        4 => who.prop_map(|who| Step::Meet { who }),
        1 => Just(Step::Restart),
        1 => (any::<u16>(), length.clone(), piece)
            .prop_map(|(at, length, piece)| Step::Suggest { at, length, piece }),
        1 => (any::<u16>(), length).prop_map(|(at, length)| Step::Review { at, length }),
    ]
}

/// A range of whole characters somewhere in `text`.
fn range(text: &str, at: u16, length: u8) -> TextRange {
    let mut ends = vec![0_u32];
    for character in text.chars() {
        ends.push(ends[ends.len() - 1] + u32::try_from(character.len_utf16()).unwrap());
    }
    let start = usize::from(at) % ends.len();
    let end = (start + usize::from(length)).min(ends.len() - 1);
    TextRange { start: ends[start], end: ends[end] }
}

struct World {
    people: Vec<Doc>,
    log: UpdateLog,
    reviews: Vec<(AnchorOrigin, RelativeRange)>,
}

impl World {
    fn new() -> Self {
        let people = CLIENTS.map(document).into();
        Self { people, log: UpdateLog::empty(), reviews: Vec::new() }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Edit { who, at, length, piece } => {
                let TextRange { start, end } = range(&text_of(&self.people[who]), at, length);
                edit(&self.people[who], start, end - start, PIECES[piece]);
            }
            Step::Format { who, at, length } => {
                let TextRange { start, end } = range(&text_of(&self.people[who]), at, length);
                let root = self.people[who].get_or_insert_text(ROOT);
                let bold = Attrs::from([("b".into(), Any::Bool(at % 2 == 0))]);
                root.format(&mut self.people[who].transact_mut(), start, end - start, bold);
            }
            Step::Meet { who } => self.meet(who),
            Step::Restart => {
                self.log = UpdateLog::open(vec![self.log.merged()]).unwrap();
            }
            Step::Suggest { at, length, piece } => self.suggest(at, length, PIECES[piece]),
            Step::Review { at, length } => self.review(at, length),
        }
    }

    /// Client and server sync in both directions, as at the start of a session.
    fn meet(&mut self, who: usize) {
        let person = &self.people[who];
        let requested = StateVector::decode_v1(&self.log.state_vector()).unwrap();
        let step2: Bytes = person.transact().encode_state_as_update_v1(&requested).into();
        append(&mut self.log, step2);
        let theirs = yrs::updates::encoder::Encode::encode_v1(&person.transact().state_vector());
        apply(person, &self.log.diff(&theirs).unwrap());
    }

    fn suggest(&mut self, at: u16, length: u8, piece: &str) {
        let text = Text::build(&self.log.merged()).unwrap();
        let client = server_client_id(&self.log);
        let range = range(&text.content(), at, length);
        let (update, _) = text.replace_all(&[(range, piece)], client).unwrap();
        let checked = self.log.check(&update, Origin::Server).unwrap();
        self.log.append(update, checked);
    }

    fn review(&mut self, at: u16, length: u8) {
        let text = Text::build(&self.log.merged()).unwrap();
        let TextRange { start, end } = range(&text.content(), at, length);
        let quote = quoted(&text.content(), start, end);
        match text.anchor(&AnchorRequest { start, end, quote }) {
            Ok(review) => self.reviews.push(review),
            Err(mismatch) => assert_eq!(start, end, "{mismatch}"),
        }
    }

    fn check_reviews(&mut self) {
        let text = Text::build(&self.log.merged()).unwrap();
        for (origin, current) in &mut self.reviews {
            let resolved = text.resolve(origin, current);
            let anchor = resolved.anchor;
            let stands = quoted(&text.content(), anchor.start, anchor.end);
            let is_quote = stands == origin.quote;
            match anchor.state {
                AnchorState::Exact | AnchorState::Moved => assert!(is_quote, "{anchor:?}"),
                AnchorState::Edited => assert!(!is_quote && !stands.is_empty(), "{anchor:?}"),
                AnchorState::Orphaned => assert_eq!(anchor.start, anchor.end),
            }
            *current = resolved.relocated.unwrap_or_else(|| current.clone());
        }
    }
}

/// The text of a range; panics when a bound splits a character.
fn quoted(text: &str, start: u32, end: u32) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    String::from_utf16(&units[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()])
        .unwrap()
}

#[test]
fn g9_at_rest_replicas_converge_and_an_exact_anchor_covers_its_quote() {
    runner(60)
        .run(&prop::collection::vec(step(), 1..60), |steps| {
            let mut world = World::new();
            for step in &steps {
                world.take(step);
                world.check_reviews();
            }
            for who in [0, 1, 2, 0, 1] {
                world.meet(who);
            }
            let text = Text::build(&world.log.merged()).unwrap().content();
            for person in &world.people {
                prop_assert_eq!(&text_of(person), &text);
            }
            prop_assert_eq!(&text_by_yrs(&world.log.merged()), &text);
            let stored = world.log.state_vector();
            prop_assert_eq!(&world.log.diff(&stored).unwrap()[..1], &[0]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_log_and_a_text_are_send() {
    fn goes<T: Send + 'static>() {}
    goes::<UpdateLog>();
    goes::<Text>();
}
