//! Typed suggestions over HTTP: `/api/share-links/{id}/suggestions`.

use std::fmt;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::domain::anchor::{PartRequest, Position};
use crate::domain::ids::{ReviewId, ShareLinkId};
use crate::domain::limits::SUGGESTIONS_AT_ONCE_MAX;
use crate::domain::suggestion::{BatchItem, NewPart, NewSuggestion, Refusal};
use crate::http::auth::caller::Caller;
use crate::http::error::ApiError;
use crate::http::extract::{JsonBody, Path};
use crate::http::guest_budgets::Storing;
use crate::reviews::Reviews;
use crate::reviews::suggestions::ItemState;
use crate::sharing::Sharing;

/// Longest item of a batch of suggestions as JSON, in bytes.
const SUGGESTION_ITEM_BYTES_MAX: usize = 1024 * 1024;

#[derive(Deserialize)]
pub(crate) struct SuggestionBatch {
    #[serde(default)]
    put: Items,
    #[serde(default)]
    withdraw: Items,
}

/// The items of a batch as texts, so that a malformed one refuses itself alone. Of a batch beyond the bound
/// the server stores one more than the bound.
#[derive(Default)]
struct Items(Vec<Box<RawValue>>);

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(BoundedItems)
    }
}

struct BoundedItems;

impl<'de> Visitor<'de> for BoundedItems {
    type Value = Items;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of suggestions")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Items, A::Error> {
        let mut texts = Vec::new();
        while texts.len() <= SUGGESTIONS_AT_ONCE_MAX {
            let Some(text) = items.next_element()? else { return Ok(Items(texts)) };
            texts.push(text);
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Items(texts))
    }
}

#[derive(Deserialize)]
struct SuggestionBody {
    id: ReviewId,
    version: Option<i64>,
    parts: Vec<Part>,
    body: Option<String>,
}

#[derive(Deserialize)]
struct Part {
    start: Option<At>,
    end: Option<At>,
    quote: Option<String>,
    at: Option<At>,
    text: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum At {
    Offset(u32),
    Relative(String),
}

#[derive(Deserialize)]
struct Withdrawal {
    id: ReviewId,
    version: i64,
}

/// The id of an item, whatever else it has.
#[derive(Deserialize)]
struct Identified {
    id: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "SuggestionOutcomes"))]
pub(crate) struct Outcomes {
    items: Vec<Outcome>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
struct Outcome {
    /// The id of the item; `null` if it has none.
    id: Option<String>,
    #[cfg_attr(test, schemars(extend("enum" = ["kept", "withdrawn", "refused"])))]
    state: &'static str,
    /// The version of a kept suggestion; of a refused one that of the server, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "i64"))]
    version: Option<i64>,
    /// `quote-changed`: the text there is another. `version`: the suggestion has another version, or is gone.
    /// `decided`: the writer has decided it, or its author has withdrawn it; the id is spent. `overlaps`: a
    /// part meets another part, or another open suggestion of the caller that stands; gaps of one suggestion
    /// may have one position. `full`: the link has 2,000 open suggestions, 8,000 parts, or 16 MiB. `too-long`:
    /// the item has more than 256 KiB of text, a quote more than 20,000 units, a text more than 64 KiB.
    /// `not-yours`: another user has a review of that id. `position`: a position is not in this document.
    /// `malformed`: no item.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "String", extend("enum" = [
        "quote-changed", "version", "decided", "overlaps", "full", "too-long", "not-yours",
        "position", "malformed",
    ])))]
    reason: Option<&'static str>,
}

/// `POST …/suggestions`
pub(crate) async fn suggest(
    State(reviews): State<Reviews>,
    State(sharing): State<Sharing>,
    storing: Storing,
    caller: Caller,
    Path(link): Path<ShareLinkId>,
    JsonBody(batch): JsonBody<SuggestionBatch>,
) -> Result<Response, ApiError> {
    storing.charge(batch.put.0.iter().map(|text| text.get().len()).sum())?;
    let texts = || batch.put.0.iter().chain(&batch.withdraw.0);
    let ids: Vec<_> = texts().map(|text| id_of(text)).collect();
    let puts = batch.put.0.iter().map(|text| read(text).and_then(put));
    let withdrawals = batch.withdraw.0.iter().map(|text| {
        let Withdrawal { id, version } = read(text)?;
        Ok(BatchItem::Withdraw { id, version })
    });
    let items = puts.chain(withdrawals).collect();
    caller.save_name(&sharing).await?;
    let link = reviews.member(caller.user(), caller.requester(), link).await?;
    let states = reviews.suggest(&link, items).await?;
    let items = ids.into_iter().zip(states).map(|(id, state)| outcome(id, state)).collect();
    Ok(Json(Outcomes { items }).into_response())
}

fn id_of(text: &RawValue) -> Option<String> {
    serde_json::from_str(text.get()).ok().map(|Identified { id }| id)
}

fn read<'a, T: Deserialize<'a>>(text: &'a RawValue) -> Result<T, Refusal> {
    if text.get().len() > SUGGESTION_ITEM_BYTES_MAX {
        return Err(Refusal::TooLong);
    }
    serde_json::from_str(text.get()).map_err(|_error| Refusal::Malformed)
}

fn put(body: SuggestionBody) -> Result<BatchItem, Refusal> {
    let parts = body.parts.into_iter().map(|part| {
        let at = match (part.start, part.end, part.quote, part.at) {
            (Some(start), Some(end), Some(quote), None) => {
                PartRequest::Range { start: position(start)?, end: position(end)?, quote }
            }
            (None, None, None, Some(at)) => PartRequest::Gap(position(at)?),
            _ => return Err(Refusal::Malformed),
        };
        Ok(NewPart { at, text: part.text })
    });
    let parts = parts.collect::<Result<_, _>>()?;
    Ok(BatchItem::Put(NewSuggestion { id: body.id, version: body.version, parts, body: body.body }))
}

fn position(at: At) -> Result<Position, Refusal> {
    match at {
        At::Offset(offset) => Ok(Position::Offset(offset)),
        At::Relative(text) => {
            let position = STANDARD.decode(text).map_err(|_error| Refusal::Malformed)?;
            Ok(Position::Relative(position))
        }
    }
}

fn outcome(id: Option<String>, state: ItemState) -> Outcome {
    let (state, version, reason) = match state {
        ItemState::Stored(version) => ("kept", Some(version), None),
        ItemState::Withdrawn => ("withdrawn", None, None),
        ItemState::Refused(reason, version) => ("refused", version, Some(reason.as_str())),
    };
    Outcome { id, state, version, reason }
}
