//! Facts for administrators: the sessions and locks of the cluster, and why a seat is held. The
//! JSON bodies of `/api/admin` are built from them.

pub mod explain;
pub(crate) mod http;
pub mod locks;
pub mod series;
pub mod sessions;

use crate::seats::SeatService;

#[derive(Clone)]
pub struct Console {
    seats: SeatService,
}

impl Console {
    #[must_use]
    pub fn new(seats: SeatService) -> Self {
        Self { seats }
    }
}
