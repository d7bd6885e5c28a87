//! `/api/me/reminders`: the caller's settings of reminders.

use axum::http::StatusCode;
use axum::{Extension, Json};
use chrono::Utc;
use serde::{Deserialize, Serialize};

use crate::domain::reminder::{InvalidTimeZone, Quiet, QuietHours, ReminderSettings, TimeOfDay};
use crate::http::auth::caller::Caller;
use crate::http::error::{ApiError, Contract, Failure, Members, STORAGE_FULL, member};
use crate::http::extract::JsonBody;
use crate::http::guest_budgets::Storing;
use crate::http::routes::Routes;
use crate::reminders::{Reminders, RemindersError};

/// Bytes that the settings take: a row and its index entry.
const ROW_BYTES: usize = 256;

pub(crate) fn routes() -> Routes {
    Routes::default().get("/api/me/reminders", show).put("/api/me/reminders", set)
}

/// Every field must be there.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Reminders"))]
pub(crate) struct RemindersBody {
    /// Reviews of the caller's documents that have waited for `jobs.review_unanswered_after`, while the caller
    /// is not connected.
    review_unanswered: bool,
    /// A seat that became free after the caller had left its wait queue by a disconnect, within a day.
    seat_free: bool,
    /// Requests to the caller that have waited for `jobs.request_unanswered_after`.
    request_unanswered: bool,
    /// Hours without reminders, from `from` on and before `to`. They may include midnight.
    #[serde(deserialize_with = "Option::deserialize")]
    quiet: Option<QuietBody>,
    /// A name of the IANA database. `null`: UTC.
    #[serde(deserialize_with = "Option::deserialize")]
    #[cfg_attr(test, schemars(example = &"Asia/Seoul"))]
    time_zone: Option<String>,
}

/// Times of day in the time zone.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
struct QuietBody {
    #[cfg_attr(test, schemars(regex(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$"), example = &"22:00"))]
    from: String,
    #[cfg_attr(test, schemars(regex(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$"), example = &"08:00"))]
    to: String,
}

impl From<ReminderSettings> for RemindersBody {
    fn from(settings: ReminderSettings) -> Self {
        let ReminderSettings { review_unanswered, seat_free, request_unanswered, quiet } = settings;
        let Quiet { hours, time_zone } = quiet;
        let quiet = hours
            .map(|hours| QuietBody { from: hours.from().to_string(), to: hours.to().to_string() });
        let time_zone = time_zone.map(|zone| zone.name().to_owned());
        Self { review_unanswered, seat_free, request_unanswered, quiet, time_zone }
    }
}

impl RemindersBody {
    fn settings(self) -> Result<ReminderSettings, RemindersError> {
        let invalid = |field, fault: String| RemindersError::Invalid { field, fault };
        let time = |field, text: &str| {
            text.parse::<TimeOfDay>().map_err(|error| invalid(field, error.to_string()))
        };
        let hours = match self.quiet {
            None => None,
            Some(QuietBody { from, to }) => {
                let (from, to) = (time("quiet.from", &from)?, time("quiet.to", &to)?);
                let same = || invalid("quiet.to", "it is the same as quiet.from".to_owned());
                Some(QuietHours::new(from, to).ok_or_else(same)?)
            }
        };
        let zone = self.time_zone.map(|name| name.parse());
        let zone = zone.transpose();
        let time_zone =
            zone.map_err(|error: InvalidTimeZone| invalid("time_zone", error.to_string()))?;
        Ok(ReminderSettings {
            review_unanswered: self.review_unanswered,
            seat_free: self.seat_free,
            request_unanswered: self.request_unanswered,
            quiet: Quiet { hours, time_zone },
        })
    }
}

/// `GET /api/me/reminders`
async fn show(
    Extension(reminders): Extension<Reminders>,
    caller: Caller,
) -> Result<Json<RemindersBody>, ApiError> {
    Ok(Json(reminders.settings_of(&caller.user().id).await?.into()))
}

/// `PUT /api/me/reminders`
async fn set(
    Extension(reminders): Extension<Reminders>,
    storing: Storing,
    caller: Caller,
    JsonBody(body): JsonBody<RemindersBody>,
) -> Result<Json<RemindersBody>, ApiError> {
    let settings = body.settings()?;
    storing.charge(ROW_BYTES)?;
    reminders.set(caller.user(), &settings, Utc::now()).await?;
    Ok(Json(settings.into()))
}

impl Failure for RemindersError {
    fn contract(&self) -> Contract {
        match self {
            Self::Invalid { .. } => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid-reminders",
                "The settings are not valid",
            ),
            Self::StorageSpent => STORAGE_FULL,
            Self::Storage(error) => error.contract(),
        }
    }

    fn members(&self) -> Members {
        match self {
            Self::Invalid { field, .. } => member("field", *field),
            Self::StorageSpent | Self::Storage(_) => Members::new(),
        }
    }
}
