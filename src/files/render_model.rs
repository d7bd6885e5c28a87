//! A document as every format renders it: the text, and its reviews as numbered notes on byte ranges.

use std::ops::Range;

use chrono::{DateTime, Utc};

use crate::labels::Labels;
use galley_domain::anchor::{Anchor, AnchorState};
use galley_domain::reminder::TimeZone;
use galley_domain::review::{Reply, Review, ReviewStatus};

#[derive(Debug)]
pub struct RenderModel {
    pub title: String,
    pub writer: String,
    pub text: String,
    /// The notes on ranges by position, then those on the whole text, then those without a place.
    pub notes: Vec<Note>,
    pub labels: Labels,
    pub built_at: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    Range(Range<usize>),
    Whole,
    /// None: the text does not contain the quote any more.
    Lost,
}

#[derive(Debug)]
pub struct Note {
    /// Its number, from 1.
    pub number: usize,
    pub location: Location,
    pub author: String,
    pub at: DateTime<Utc>,
    pub quote: String,
    pub body: String,
    pub suggestion: Option<String>,
    /// The range stands as deleted, with the suggestion after it. Such ranges do not overlap.
    pub is_change: bool,
    pub status: ReviewStatus,
    pub replies: Vec<Reply>,
}

impl Note {
    /// Whether it suggests to delete its quote, which then stands in the suggestion.
    pub fn is_deletion(&self) -> bool {
        self.suggestion.as_deref() == Some("")
    }

    pub fn suggestion(&self, labels: &Labels) -> Option<String> {
        let new = self.suggestion.as_deref()?;
        let quote = format!("“{}”", self.quote);
        Some(format!("{}: {}", labels.suggested(new), if new.is_empty() { &quote } else { new }))
    }
}

/// The begin or the end of a note's range or change.
///
/// The order is that of the edges of one position. A range that ends here ends before another begins;
/// the edges of an empty range stand last, its begin before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    ChangeEnds(usize),
    NoteEnds(usize),
    NoteBegins(usize),
    ChangeBegins(usize),
    /// An empty range: all edges at once.
    Point(usize),
}

#[derive(Clone, Debug)]
pub struct Heading {
    pub title: String,
    pub writer: String,
    pub built_at: DateTime<Utc>,
    /// The zone of all times in the file.
    pub zone: TimeZone,
}

impl RenderModel {
    pub fn new(heading: Heading, text: String, reviews: Vec<Review>) -> Self {
        let Heading { title, writer, built_at, zone } = heading;
        let reviews: Vec<_> = reviews.into_iter().flat_map(by_part).collect();
        let locations = locations(&text, &reviews);
        let mut notes: Vec<_> = reviews
            .into_iter()
            .zip(locations)
            .map(|(review, location)| note(review, location))
            .collect();
        notes.sort_by_key(|note| (order(&note.location), note.at));
        let mut changed_up_to = 0;
        for (note, number) in notes.iter_mut().zip(1..) {
            note.number = number;
            let Location::Range(range) = &note.location else {
                note.is_change = false;
                continue;
            };
            let stands = text.get(range.clone()) == Some(note.quote.as_str());
            if note.is_change && stands && changed_up_to <= range.start {
                changed_up_to = range.end;
            } else {
                note.is_change = false;
            }
        }
        let mut labels = Labels::of(
            [title.as_str(), &text].into_iter().chain(notes.iter().map(|note| note.body.as_str())),
        );
        labels.zone = zone;
        for note in &mut notes {
            let authors = note.replies.iter_mut().map(|reply| &mut reply.author.name);
            // A deleted user has no name.
            for name in authors.chain([&mut note.author]).filter(|name| name.is_empty()) {
                labels.deleted.clone_into(name);
            }
        }
        Self { title, writer, text, notes, labels, built_at }
    }

    /// The edges of all ranges with their positions, in order. The number of an edge is the index of
    /// its note.
    pub fn edges(&self) -> Vec<(usize, Edge)> {
        let mut edges = Vec::with_capacity(self.notes.len().saturating_mul(2));
        for (index, note) in self.notes.iter().enumerate() {
            let Location::Range(range) = &note.location else { continue };
            if range.is_empty() {
                edges.push((range.start, Edge::Point(index)));
                continue;
            }
            edges.push((range.start, Edge::NoteBegins(index)));
            edges.push((range.end, Edge::NoteEnds(index)));
            if note.is_change {
                edges.push((range.start, Edge::ChangeBegins(index)));
                edges.push((range.end, Edge::ChangeEnds(index)));
            }
        }
        edges.sort_unstable();
        edges
    }

    /// The notes without a range, with their headings.
    pub fn sections(&self) -> impl Iterator<Item = (&'static str, Vec<&Note>)> {
        let all = [(Location::Whole, self.labels.whole), (Location::Lost, self.labels.lost)];
        let sections = all.into_iter().map(|(location, heading)| {
            (heading, self.notes.iter().filter(|note| note.location == location).collect())
        });
        sections.filter(|(_, notes): &(_, Vec<_>)| !notes.is_empty())
    }
}

fn order(location: &Location) -> (u8, usize, usize) {
    match location {
        Location::Range(range) => (0, range.start, range.end),
        Location::Whole => (1, 0, 0),
        Location::Lost => (2, 0, 0),
    }
}

/// A review for each part of a suggestion; the first has the remark and the replies.
fn by_part(review: Review) -> Vec<Review> {
    let mut parts = review.parts.clone().into_iter().skip(1).peekable();
    if parts.peek().is_none() {
        return vec![review];
    }
    let rest = Review { body: String::new(), replies: Vec::new(), ..review.clone() };
    let more = parts.map(|part| {
        let (anchor, suggestion) = (Some(part.anchor), Some(part.text));
        Review { anchor, suggestion, ..rest.clone() }
    });
    std::iter::once(review).chain(more).collect()
}

fn note(review: Review, location: Location) -> Note {
    // A suggestion is accepted whole, so no part is a change unless all stand.
    let is_whole = review.parts.iter().all(|part| part.anchor.state == AnchorState::Exact);
    Note {
        number: 0,
        location,
        author: review.author.name,
        at: review.created_at,
        quote: review.anchor.map(|anchor| anchor.quote).unwrap_or_default(),
        body: review.body,
        is_change: is_whole && review.status == ReviewStatus::Open && review.suggestion.is_some(),
        suggestion: review.suggestion,
        status: review.status,
        replies: review.replies,
    }
}

/// The place of each review, in one walk through the text.
fn locations(text: &str, reviews: &[Review]) -> Vec<Location> {
    let placed = |review: &Review| review.anchor.clone().filter(is_placed);
    let mut units: Vec<u32> =
        reviews.iter().filter_map(placed).flat_map(|anchor| [anchor.start, anchor.end]).collect();
    units.sort_unstable();
    units.dedup();
    let bytes = bytes_of(text, &units);
    let byte = |unit: u32| units.binary_search(&unit).ok().and_then(|at| bytes.get(at).copied());
    let location = |review: &Review| {
        let Some(anchor) = &review.anchor else { return Location::Whole };
        match (byte(anchor.start), byte(anchor.end)) {
            (Some(start), Some(end)) if is_placed(anchor) && start <= end => {
                Location::Range(start..end)
            }
            _ => Location::Lost,
        }
    };
    reviews.iter().map(location).collect()
}

fn is_placed(anchor: &Anchor) -> bool {
    anchor.state != AnchorState::Orphaned
}

/// The byte of each of these UTF-16 units, which are sorted. A unit inside a character or beyond the
/// text counts as the next boundary.
fn bytes_of(text: &str, units: &[u32]) -> Vec<usize> {
    let mut bytes = Vec::with_capacity(units.len());
    let mut wanted = units.iter().copied().peekable();
    let mut passed = 0_u32;
    for (byte, c) in text.char_indices() {
        while wanted.next_if(|unit| *unit <= passed).is_some() {
            bytes.push(byte);
        }
        if wanted.peek().is_none() {
            return bytes;
        }
        passed = passed.saturating_add(if u32::from(c) < 0x1_0000 { 1 } else { 2 });
    }
    bytes.resize(units.len(), text.len());
    bytes
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use galley_domain::ids::{ReplyId, ReviewId, ShareLinkId, UserId};
    use galley_domain::review::{ReviewKind, ReviewOrigin, ReviewPart};
    use galley_domain::user::User;

    pub(crate) fn user(name: &str) -> User {
        User { id: UserId::generate(), name: name.to_owned() }
    }

    pub(crate) fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_790_000_000 + second, 0).expect("a time")
    }

    /// A review of the first `quote` in `text`; `None`: of the whole text.
    pub(crate) fn review(text: &str, quote: Option<&str>, body: &str) -> Review {
        let anchor = quote.map(|quote| {
            let found = text.find(quote);
            let units = |bytes: usize| {
                u32::try_from(text[..bytes].encode_utf16().count()).expect("a short text")
            };
            let (start, end) = found.map_or((0, 0), |at| (units(at), units(at + quote.len())));
            let state = if found.is_some() { AnchorState::Exact } else { AnchorState::Orphaned };
            let quote = quote.to_owned();
            Anchor {
                state,
                start,
                end,
                quote,
                prefix: String::new(),
                suffix: String::new(),
                relative: None,
            }
        });
        Review {
            id: ReviewId::generate(),
            share_link_id: ShareLinkId::generate(),
            author: user("이검토"),
            kind: ReviewKind::Comment,
            origin: ReviewOrigin::Form,
            anchor,
            body: body.to_owned(),
            suggestion: None,
            parts: Vec::new(),
            status: ReviewStatus::Open,
            outcome: None,
            decision: None,
            version: 1,
            change: 1,
            changed_by: None,
            replies: Vec::new(),
            created_at: at(0),
            updated_at: at(0),
        }
    }

    pub(crate) fn suggestion(text: &str, quote: &str, put_in: &str) -> Review {
        let suggestion = Some(put_in.to_owned());
        let review = review(text, Some(quote), "");
        let anchor = review.anchor.clone().expect("an anchor");
        let parts = vec![ReviewPart { anchor, text: put_in.to_owned() }];
        Review { suggestion, parts, kind: ReviewKind::Suggestion, ..review }
    }

    pub(crate) fn reply(body: &str) -> Reply {
        let (id, author, body) = (ReplyId::generate(), user("김작가"), body.to_owned());
        Reply { id, author, body, created_at: at(60), edited_at: None }
    }

    pub(crate) fn model(text: &str, reviews: Vec<Review>) -> RenderModel {
        let (title, writer) = ("자기소개서".to_owned(), "김작가".to_owned());
        let heading = Heading { title, writer, built_at: at(0), zone: TimeZone::UTC };
        RenderModel::new(heading, text.to_owned(), reviews)
    }

    #[test]
    fn notes_are_numbered_by_position_and_lost_ones_come_last() {
        let text = "😀나는 글을 쓴다";
        let model = model(
            text,
            vec![
                review(text, Some("없다"), "lost"),
                review(text, None, "whole"),
                review(text, Some("쓴다"), "late"),
                review(text, Some("나는"), "early"),
            ],
        );
        let found: Vec<_> = model.notes.iter().map(|note| (note.number, &*note.body)).collect();
        assert_eq!(found, [(1, "early"), (2, "late"), (3, "whole"), (4, "lost")]);
        let Location::Range(range) = model.notes[0].location.clone() else { panic!("a range") };
        assert_eq!(&text[range], "나는");
        assert_eq!(model.labels.lang, "ko");
    }

    #[test]
    fn each_part_of_a_suggestion_is_a_change_if_all_parts_stand() {
        let text = "one two three";
        let gap = |at| {
            let (start, end, quote) = (at, at, String::new());
            let (prefix, suffix, state) = (String::new(), String::new(), AnchorState::Exact);
            ReviewPart {
                anchor: Anchor { state, start, end, quote, prefix, suffix, relative: None },
                text: "new ".to_owned(),
            }
        };
        let mut moved = suggestion(text, "one ", "");
        moved.body = "why".to_owned();
        moved.parts.push(gap(8));
        let changes = |review: &Review| {
            let model = model(text, vec![review.clone()]);
            let notes = model.notes.iter();
            notes.map(|note| (note.body.clone(), note.is_change)).collect::<Vec<_>>()
        };
        assert_eq!(changes(&moved), [("why".to_owned(), true), (String::new(), true)]);
        moved.parts[1].anchor.state = AnchorState::Orphaned;
        assert_eq!(changes(&moved), [("why".to_owned(), false), (String::new(), false)]);
    }

    #[test]
    fn changes_do_not_overlap_and_stand_on_their_quote() {
        let text = "one two three";
        let mut decided = suggestion(text, "three", "3");
        decided.status = ReviewStatus::Rejected;
        let mut edited = suggestion(text, "three", "III");
        edited.anchor.as_mut().expect("an anchor").quote = "four".to_owned();
        let reviews = vec![
            suggestion(text, "one two", "1 2"),
            suggestion(text, "two three", "2 3"),
            decided,
            edited,
        ];
        let model = model(text, reviews);
        let changes: Vec<_> =
            model.notes.iter().filter(|note| note.is_change).map(|note| &*note.quote).collect();
        assert_eq!(changes, ["one two"]);
    }

    #[test]
    fn g12_any_offsets_become_boundaries_of_the_text() {
        let text = "가😀";
        for (start, end) in [(0, 0), (1, 2), (2, 3), (3, 3), (0, 99), (99, 4_000_000_000), (3, 1)] {
            let mut one = review(text, Some("가"), "");
            let anchor = one.anchor.as_mut().expect("an anchor");
            (anchor.start, anchor.end) = (start, end);
            let model = model(text, vec![one]);
            match model.notes[0].location.clone() {
                Location::Range(range) => assert!(text.get(range).is_some(), "{start} {end}"),
                location => assert_eq!(location, Location::Lost),
            }
        }
    }

    #[test]
    fn edges_of_one_position_end_before_others_begin() {
        let text = "ab";
        let model = model(text, vec![suggestion(text, "a", "x"), review(text, Some("b"), "!")]);
        let expected = [
            (0, Edge::NoteBegins(0)),
            (0, Edge::ChangeBegins(0)),
            (1, Edge::ChangeEnds(0)),
            (1, Edge::NoteEnds(0)),
            (1, Edge::NoteBegins(1)),
            (2, Edge::NoteEnds(1)),
        ];
        assert_eq!(model.edges(), expected);
    }
}
