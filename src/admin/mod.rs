//! Facts for administrators: the sessions and locks of the cluster, and why a seat is held. The
//! JSON bodies of `/api/admin` are built from them.

pub mod explain;
pub(crate) mod http;
pub mod locks;
pub mod series;
pub mod sessions;

use crate::seats::SeatService;

/// The console: sessions, locks and series of every server, for administrators. A cheap handle.
#[derive(Clone)]
pub struct Console {
    seats: SeatService,
}

impl Console {
    /// The console of these seats.
    #[must_use]
    pub fn new(seats: SeatService) -> Self {
        Self { seats }
    }
}
