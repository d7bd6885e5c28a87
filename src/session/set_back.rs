//! Grants that a database has lost: a failover or a restore took them back.
//!
//! The seat's lock and the server still have the grant, and its fence is the highest that was ever
//! ratified. The database refuses every write of the seat until it is ratified again. So at each tick
//! one statement compares the fences of all held seats with the ratified ones.

use std::collections::HashMap;

use chrono::Utc;
use tokio::time::Instant;

use crate::domain::fence::Fence;
use crate::domain::seat::Seat;
use crate::session::Sessions;
use crate::session::holding::Phase;
use crate::storage::seats::Ratified;

impl Sessions {
    /// Ratifies the grants of this server's sessions that the database has lost. A grant is ratified
    /// before its session counts as seated, so a lower fence means an older database.
    pub(super) async fn ratify_again(&self) {
        let held = |phase| matches!(phase, Phase::Held | Phase::Uncertain | Phase::Away);
        let mut seated = self.shared.registry.seated();
        seated.retain(|holding| held(holding.phase()));
        if seated.is_empty() {
            return;
        }
        let seats: Vec<_> = seated.iter().map(|holding| holding.sitter.seat).collect();
        let fences: HashMap<Seat, Fence> = match self.shared.storage.fences(&seats).await {
            Ok(fences) => fences.into_iter().collect(),
            // The next tick comes.
            Err(error) => return tracing::debug!(%error, "the ratified fences cannot be read"),
        };
        for holding in seated {
            let (sitter, fence) = (&holding.sitter, holding.fence());
            let is_lost = fences.get(&sitter.seat).is_some_and(|ratified| *ratified < fence);
            if !is_lost || !holding.may_write(Instant::now()) {
                continue;
            }
            let (seat, session, user) = (sitter.seat, sitter.session, &sitter.user.id);
            match self.shared.storage.ratify(seat, fence, session, user, Utc::now()).await {
                Ok(Ratified::Accepted) => {
                    tracing::error!(%seat, %fence, "the database had lost a grant; ratified again");
                }
                Ok(Ratified::Refused { .. } | Ratified::Gone) => {}
                Err(error) => tracing::warn!(%seat, %error, "a lost grant cannot be ratified"),
            }
        }
    }
}
