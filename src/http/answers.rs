//! Large answers on their way out.
//!
//! An answer is in memory until whoever asked has taken it, and that may be slow. So what is under
//! way is counted, for each person and for all together, and no more is begun beyond a bound. It is
//! handed on in pieces, so that it counts until the last of them has gone.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use crate::domain::ids::UserId;
use crate::http::caller::Presented;
use crate::http::error::ApiError;
use crate::http::limit::{Peer, network};

/// From here on an answer is large: what the kernel does not take at once.
const LARGE_BYTES: u64 = 64 * 1_024;
/// A piece of one.
const PIECE_BYTES: usize = 64 * 1_024;
/// What may be under way to one person: four documents of the usual limit.
const EACH_BYTES_MAX: u64 = 32 * 1_024 * 1_024;
/// What may be under way in all.
const ALL_BYTES_MAX: u64 = 512 * 1_024 * 1_024;

/// What is under way. A cheap handle.
#[derive(Clone, Default)]
pub(crate) struct Answers(Arc<Mutex<UnderWay>>);

#[derive(Default)]
struct UnderWay {
    all: u64,
    each: HashMap<Who, u64>,
}

/// To whom it goes.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Who {
    Person(UserId),
    Somebody(IpAddr),
}

/// The place of one answer among those under way; given back on drop.
struct Place {
    answers: Answers,
    who: Who,
    bytes: u64,
}

impl Answers {
    /// A place for an answer. One that is larger than all that one person may have is let through
    /// when that person has nothing else.
    fn place(&self, who: &Who, bytes: u64) -> Option<Place> {
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = under_way.each.get(who).copied().unwrap_or(0);
        let is_too_much = |taken: u64, most| taken != 0 && most < taken.saturating_add(bytes);
        if is_too_much(theirs, EACH_BYTES_MAX) || is_too_much(under_way.all, ALL_BYTES_MAX) {
            return None;
        }
        under_way.all = under_way.all.saturating_add(bytes);
        under_way.each.insert(who.clone(), theirs.saturating_add(bytes));
        drop(under_way);
        Some(Place { answers: self.clone(), who: who.clone(), bytes })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut under_way = self.answers.0.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.all = under_way.all.saturating_sub(self.bytes);
        let theirs = under_way.each.get(&self.who).copied().unwrap_or(0);
        match theirs.saturating_sub(self.bytes) {
            0 => drop(under_way.each.remove(&self.who)),
            left => drop(under_way.each.insert(self.who.clone(), left)),
        }
    }
}

/// Lets an answer out if there is a place for it.
pub(crate) async fn bound(
    State(answers): State<Answers>,
    request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>().copied().unwrap_or_default();
    let who = match request.extensions().get::<Presented>() {
        Some(Presented::Person { identity, .. }) => Who::Person(identity.user.id.clone()),
        _ => Who::Somebody(network(peer.0)),
    };
    let response = next.run(request).await;
    let Some(length) = response.body().size_hint().exact().filter(|all| LARGE_BYTES <= *all) else {
        return response;
    };
    let Some(place) = answers.place(&who, length) else {
        return ApiError::Unavailable("too much is on its way already".to_owned()).into_response();
    };
    let (mut head, body) = response.into_parts();
    // It is in memory already, in one piece.
    let Ok(whole) = to_bytes(body, usize::MAX).await else {
        return ApiError::Internal("an answer could not be read".to_owned()).into_response();
    };
    head.headers.entry(CONTENT_LENGTH).or_insert(length.into());
    Response::from_parts(head, pieces(whole, place))
}

/// The same, piece by piece, and its place with it.
fn pieces(whole: Bytes, place: Place) -> Body {
    let pieces = stream::unfold((whole, place), |(mut rest, place)| async {
        let piece = rest.split_to(PIECE_BYTES.min(rest.len()));
        (!piece.is_empty()).then_some((Ok::<_, Infallible>(piece), (rest, place)))
    });
    // Whoever compresses it asks again after the last one.
    Body::from_stream(pieces.fuse())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1_024 * 1_024;

    fn person() -> Who {
        Who::Person(UserId::generate())
    }

    #[test]
    fn g13_who_takes_nothing_is_sent_no_more_and_others_are() {
        let (answers, kim, lee) = (Answers::default(), person(), person());
        let mut held: Vec<_> = (0..4).map(|_| answers.place(&kim, 8 * MIB)).collect();
        assert!(held.iter().all(Option::is_some));
        assert!(answers.place(&kim, 8 * MIB).is_none());
        assert!(answers.place(&lee, 8 * MIB).is_some());
        held.pop();
        assert!(answers.place(&kim, 8 * MIB).is_some());
        assert!(answers.place(&lee, 200 * MIB).is_some(), "a document may have another limit");
        held.clear();
        let under_way = answers.0.lock().expect("nobody panicked");
        assert_eq!((under_way.all, under_way.each.len()), (0, 0));
    }

    #[test]
    fn g13_all_together_have_an_end_too() {
        let answers = Answers::default();
        let held: Vec<_> = (0..100).filter_map(|_| answers.place(&person(), 30 * MIB)).collect();
        assert_eq!(held.len(), 17);
    }

    #[tokio::test]
    async fn what_comes_in_pieces_is_whole_and_counts_to_the_last() {
        let (answers, kim) = (Answers::default(), person());
        let whole = Bytes::from(vec![7; 200_000]);
        let place = answers.place(&kim, 200_000).expect("a place");
        let body = pieces(whole.clone(), place);
        assert_eq!(answers.0.lock().expect("nobody panicked").all, 200_000);
        let mut body = body.into_data_stream();
        let mut read = Vec::new();
        while let Some(piece) = body.next().await {
            read.extend(piece.expect("a piece"));
        }
        assert_eq!(read, whole);
        assert!(body.next().await.is_none());
        assert_eq!(answers.0.lock().expect("nobody panicked").all, 0);
    }
}
