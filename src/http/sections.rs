//! `/api/documents/{id}/sections`: the settings of the sections of a text.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::ETAG;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::domain::anchor::Position;
use crate::domain::ids::DocumentId;
use crate::domain::limits::HEADING_LINE_UTF16_MAX;
use crate::domain::section::{CountUnit, NewSection, Section, SectionSettings};
use crate::http::auth::caller::Caller;
use crate::http::error::ApiError;
use crate::http::extract::{JsonBody, Path};
use crate::http::guest_budgets::Storing;
use crate::http::reviews::{expected_version, version_tag};
use crate::http::routes::Routes;
use crate::outbox::event::Event;
use crate::rooms::texts::Texts;
use crate::seats::Seats;
use crate::sharing::{Sharing, SharingError};
use crate::yjs::text::Text;

pub(crate) fn routes() -> Routes {
    let path = "/api/documents/{id}/sections";
    Routes::default().get(path, show).put_review(path, set)
}

/// A section in the database, with the longest heading in Hangul.
const SECTION_BYTES: usize = 4 * HEADING_LINE_UTF16_MAX as usize;

/// A field that is missing follows the heading.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "NewSection"))]
#[serde(deny_unknown_fields)]
pub(crate) struct SectionBody {
    /// One line of 1 to 300 characters; trimmed. Without `at` the heading is the first line that equals it.
    title: String,
    /// A UTF-16 offset in the line of the heading, or a Yjs relative position in base64.
    #[serde(default, deserialize_with = "position")]
    #[cfg_attr(test, schemars(with = "Option<String>", extend("type" = ["integer", "string", "null"])))]
    at: Option<Position>,
    /// The largest count.
    #[cfg_attr(test, schemars(range(min = 1, max = 1_000_000)))]
    limit: Option<u32>,
    /// The smallest count; not above `limit`.
    #[cfg_attr(test, schemars(range(min = 1, max = 1_000_000)))]
    floor: Option<u32>,
    unit: Option<CountUnit>,
    /// The count of a line break.
    #[cfg_attr(test, schemars(range(max = 2)))]
    line_break: Option<u8>,
    /// `false`: the line is no heading.
    question: Option<bool>,
}

impl From<SectionBody> for NewSection {
    fn from(body: SectionBody) -> Self {
        let SectionBody { title, at, limit, floor, unit, line_break, question } = body;
        let settings = SectionSettings { limit, floor, unit, line_break, question };
        Self { title, at, settings }
    }
}

/// A UTF-16 offset, or a relative position in base64.
fn position<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Position>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum At {
        Offset(u32),
        Relative(String),
    }
    Ok(match Option::<At>::deserialize(deserializer)? {
        None => None,
        Some(At::Offset(offset)) => Some(Position::Offset(offset)),
        Some(At::Relative(text)) => {
            let position = STANDARD.decode(text);
            let position = position.map_err(|_error| D::Error::custom("`at` is no base64"))?;
            Some(Position::Relative(position))
        }
    })
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "NewSections"))]
pub(crate) struct NewSectionsBody {
    #[cfg_attr(test, schemars(length(max = 100)))]
    sections: Vec<SectionBody>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Sections"))]
pub(crate) struct SectionsBody {
    sections: Vec<Section>,
}

fn tagged(version: i64, sections: Vec<Section>) -> Response {
    ([(ETAG, version_tag(version))], Json(SectionsBody { sections })).into_response()
}

/// `GET /api/documents/{id}/sections`: for the owner, and the reviewer of its share link.
async fn show(
    State(sharing): State<Sharing>,
    State(texts): State<Texts>,
    caller: Caller,
    Path(id): Path<DocumentId>,
) -> Result<Response, ApiError> {
    let (version, stored) = sharing.sections(&caller.user().id, id).await?;
    if stored.is_empty() {
        return Ok(tagged(version, Vec::new()));
    }
    let read = move |text: &Text| text.resolve_sections(stored);
    Ok(tagged(version, texts.read(id, &caller.requester(), read).await?))
}

/// `PUT /api/documents/{id}/sections`: for the owner.
async fn set(
    State(sharing): State<Sharing>,
    (State(texts), State(seats)): (State<Texts>, State<Seats>),
    storing: Storing,
    caller: Caller,
    Path(id): Path<DocumentId>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<NewSectionsBody>,
) -> Result<Response, ApiError> {
    let expected = expected_version(&headers)?;
    sharing.document(&caller.user().id, id).await?;
    storing.charge(body.sections.len() * SECTION_BYTES)?;
    let new = body.sections.into_iter().map(NewSection::from).collect();
    let read = move |text: &Text| {
        let stored = text.anchor_sections(new)?;
        Ok((text.resolve_sections(stored.clone()), stored))
    };
    let read = texts.read(id, &caller.requester(), read).await?;
    let (sections, stored) = read.map_err(SharingError::Section)?;
    let version = sharing.set_sections(id, &stored, expected).await?;
    seats.deliver_change(id, version, &Event::SectionsChanged(&sections)).await;
    Ok(tagged(version, sections))
}
