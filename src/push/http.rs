//! `/api/push-key` and `/api/push-subscriptions`: the browsers that receive pushes for the caller.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use chrono::{DateTime, SubsecRound as _, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::ids::PushSubscriptionId;
use crate::http::auth::caller::Caller;
use crate::http::error::{ApiError, Contract, Failure, STORAGE_FULL};
use crate::http::extract::{JsonBody, Path};
use crate::http::guest_budgets::Storing;
use crate::http::routes::Routes;
use crate::outgoing::destination::{Destination, HostScope};
use crate::push::store::{PushAddress, PushLanguage, PushSubscription};
use crate::push::{Notify, NotifyError};
use crate::sharing::Sharing;

/// Bytes that a subscription takes beside its endpoint: a row, its index entries and its keys.
const ROW_BYTES: usize = 512;

pub(crate) fn routes() -> Routes {
    const ALL: &str = "/api/push-subscriptions";
    Routes::default()
        .get("/api/push-key", key)
        .post(ALL, create)
        .get(ALL, list)
        .delete("/api/push-subscriptions/{id}", delete)
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "PushKey"))]
pub(crate) struct KeyBody {
    /// An uncompressed point of P-256 in base64url.
    key: String,
}

/// The browser's `PushSubscription` as JSON, with the language of the page.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "NewPushSubscription"))]
pub(crate) struct NewSubscriptionBody {
    #[cfg_attr(test, schemars(extend("format" = "uri", "maxLength" = 2048)))]
    endpoint: String,
    /// Milliseconds since 1970.
    #[serde(default, rename = "expirationTime")]
    expiration_time: Option<f64>,
    keys: KeysBody,
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("enum" = ["ko", "en", null])))]
    lang: Option<String>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
struct KeysBody {
    /// An uncompressed point of P-256 in base64url.
    p256dh: String,
    /// 16 bytes in base64url.
    auth: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "NewPushSubscriptionId"))]
pub(crate) struct CreatedBody {
    id: PushSubscriptionId,
    created_at: DateTime<Utc>,
}

/// A subscription in a list. Its endpoint stays on the server.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
struct SubscriptionBody {
    id: PushSubscriptionId,
    /// The host of the push service.
    service: String,
    #[cfg_attr(test, schemars(extend("enum" = ["ko", "en", null])))]
    lang: Option<&'static str>,
    expires_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PushSubscriptions {
    subscriptions: Vec<SubscriptionBody>,
}

impl From<PushSubscription> for SubscriptionBody {
    fn from(subscription: PushSubscription) -> Self {
        let PushSubscription { id, address, created_at } = subscription;
        let service = Destination::parse(&address.endpoint, HostScope::Anywhere);
        let service = service.map_or_else(|_error| String::new(), |to| to.host().to_owned());
        let lang = address.lang.map(PushLanguage::as_str);
        Self { id, service, lang, expires_at: address.expires_at, created_at }
    }
}

/// `GET /api/push-key`
async fn key(
    Extension(notify): Extension<Notify>,
    _caller: Caller,
) -> Result<Json<KeyBody>, ApiError> {
    Ok(Json(KeyBody { key: notify.push_key()?.to_owned() }))
}

/// `POST /api/push-subscriptions`: 201, or 200 for a known endpoint, which becomes the caller's.
async fn create(
    Extension(notify): Extension<Notify>,
    State(sharing): State<Sharing>,
    storing: Storing,
    caller: Caller,
    JsonBody(body): JsonBody<NewSubscriptionBody>,
) -> Result<Response, ApiError> {
    let address = address_of(body)?;
    storing.charge(address.endpoint.len() + ROW_BYTES)?;
    caller.save_name(&sharing).await?;
    let now = Utc::now().trunc_subsecs(3);
    let stored = notify.subscribe(caller.user(), &address, now).await?;
    let status = if stored.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let body = CreatedBody { id: stored.id, created_at: stored.created_at };
    Ok((status, Json(body)).into_response())
}

/// `GET /api/push-subscriptions`
async fn list(
    Extension(notify): Extension<Notify>,
    caller: Caller,
) -> Result<Json<PushSubscriptions>, ApiError> {
    let found = notify.subscriptions_of(&caller.user().id).await?;
    Ok(Json(PushSubscriptions { subscriptions: found.into_iter().map(Into::into).collect() }))
}

/// `DELETE /api/push-subscriptions/{id}`
async fn delete(
    Extension(notify): Extension<Notify>,
    caller: Caller,
    Path(id): Path<PushSubscriptionId>,
) -> Result<StatusCode, ApiError> {
    let deleted = notify.unsubscribe(&caller.user().id, id).await?;
    deleted.then_some(StatusCode::NO_CONTENT).ok_or(ApiError::NotFound("push subscription"))
}

fn address_of(body: NewSubscriptionBody) -> Result<PushAddress, NotifyError> {
    let invalid = |field, fault| NotifyError::Invalid { field, fault };
    let lang = body.lang.as_deref().map(|tag| {
        PushLanguage::parse(tag).ok_or_else(|| invalid("lang", "it is neither ko nor en"))
    });
    let end = body.expiration_time.map(|end| {
        time_of(end).ok_or_else(|| invalid("expirationTime", "it is no time in milliseconds"))
    });
    Ok(PushAddress {
        p256dh: bytes_of(&body.keys.p256dh)
            .ok_or_else(|| invalid("keys.p256dh", "it is no point of P-256 in base64url"))?,
        auth: bytes_of(&body.keys.auth)
            .ok_or_else(|| invalid("keys.auth", "it is not 16 bytes in base64url"))?,
        endpoint: body.endpoint,
        lang: lang.transpose()?,
        expires_at: end.transpose()?,
    })
}

/// The bytes of a key. Some browsers' libraries write it in the other alphabet of base64.
fn bytes_of<const LENGTH: usize>(text: &str) -> Option<[u8; LENGTH]> {
    let text = text.trim_end_matches('=');
    let decoded = URL_SAFE_NO_PAD.decode(text).or_else(|_error| STANDARD_NO_PAD.decode(text));
    decoded.ok()?.try_into().ok()
}

/// A time of JavaScript, which may have a fraction.
fn time_of(milliseconds: f64) -> Option<DateTime<Utc>> {
    /// The last millisecond of the year 9999.
    const LAST: f64 = 253_402_300_799_999.0;
    if !(0.0..=LAST).contains(&milliseconds) {
        return None;
    }
    let since = std::time::Duration::from_secs_f64(milliseconds / 1_000.0);
    DateTime::from_timestamp_millis(i64::try_from(since.as_millis()).ok()?)
}

impl Failure for NotifyError {
    fn contract(&self) -> Contract {
        use StatusCode as Is;
        match self {
            Self::Off => (Is::NOT_FOUND, "push-off", "No pushes"),
            Self::Invalid { .. } => {
                (Is::UNPROCESSABLE_ENTITY, "invalid-subscription", "The subscription is not valid")
            }
            Self::StorageSpent => STORAGE_FULL,
            Self::Storage(error) => error.contract(),
        }
    }
}
