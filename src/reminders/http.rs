//! `/api/me/reminders`: the caller's settings of reminders.

use axum::extract::State;
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
use crate::seats::SeatService;

/// Bytes that the settings take: a row and its index entry.
const ROW_BYTES: usize = 256;

pub(crate) fn routes() -> Routes {
    Routes::default().get("/api/me/reminders", show).put("/api/me/reminders", set)
}

/// Every field must be there.
#[derive(Serialize, Deserialize)]
struct RemindersBody {
    review_unanswered: bool,
    seat_free: bool,
    request_unanswered: bool,
    #[serde(deserialize_with = "Option::deserialize")]
    quiet: Option<QuietBody>,
    #[serde(deserialize_with = "Option::deserialize")]
    time_zone: Option<String>,
}

/// Times of day in the time zone.
#[derive(Serialize, Deserialize)]
struct QuietBody {
    from: String,
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
    State(seats): State<SeatService>,
    storing: Storing,
    caller: Caller,
    JsonBody(body): JsonBody<RemindersBody>,
) -> Result<Json<RemindersBody>, ApiError> {
    let settings = body.settings()?;
    storing.charge(ROW_BYTES)?;
    let user = caller.user().clone();
    let storing = async move { reminders.set(&user, &settings, Utc::now()).await };
    seats.complete(storing).await?;
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
