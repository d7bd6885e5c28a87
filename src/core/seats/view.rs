//! The sessions in the seats of a share link, as its members see them.

use std::num::NonZeroUsize;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::domain::ids::ShareLinkId;
use crate::domain::seat::{Role, Seat};
use crate::domain::user::User;
use crate::locks::{Holder, LockName};
use crate::seats::Seats;

// The default is an unknown one.
/// The session of one seat.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SeatView {
    /// Whether a session holds the seat; `null`, like `user` and `since`, when the locks cannot be read.
    pub taken: Option<bool>,
    /// The holder.
    pub user: Option<User>,
    /// The time of the grant.
    pub since: Option<DateTime<Utc>>,
    /// The number of waiters; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "NonZeroUsize"))]
    pub waiting: Option<NonZeroUsize>,
}

/// Both seats of a share link.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(rename = "Seats"))]
pub struct SeatsView {
    /// The seat of the writer.
    pub writer: SeatView,
    /// The seat of the reviewer.
    pub reviewer: SeatView,
}

impl Seats {
    /// The holders of each of these links, in their order; unknown ones if the locks cannot be read. So no
    /// handler that has committed reports a failure of this read. One round trip.
    pub async fn seats_of(&self, links: &[ShareLinkId]) -> Vec<SeatsView> {
        let names: Vec<_> = links
            .iter()
            .flat_map(|link| Role::ALL.iter().map(|role| LockName::seat(Seat::new(*link, *role))))
            .collect();
        let holders = self.shared.locks.holders(&names).await.inspect_err(|error| {
            tracing::warn!(%error, "the occupancy of seats is unknown");
        });
        let mut holders = holders.unwrap_or_default().into_iter();
        let mut next = || holders.next().map(SeatView::from).unwrap_or_default();
        links.iter().map(|_| SeatsView { writer: next(), reviewer: next() }).collect()
    }
}

impl From<Option<Holder>> for SeatView {
    fn from(holder: Option<Holder>) -> Self {
        let taken = Some(holder.is_some());
        holder.map_or(Self { taken, ..Self::default() }, |holder| Self {
            taken,
            since: holder.has_grant().then_some(holder.since),
            waiting: NonZeroUsize::new(holder.waiting),
            user: holder.has_grant().then(|| holder.owner.into()),
        })
    }
}
