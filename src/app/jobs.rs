//! Prepares the jobs from the settings.

use crate::config::Settings;
use crate::domain::ids::NodeId;
use crate::jobs::{JobTerms, Jobs};
use crate::locks::Locks;
use crate::notify::Notify;
use crate::storage::Storage;

pub(super) fn prepare(
    settings: &Settings,
    storage: &Storage,
    locks: &Locks,
    notify: &Notify,
    node: NodeId,
) -> Jobs {
    let jobs = &settings.jobs;
    let (reviews, requests) = (*jobs.review_unanswered_after, *jobs.request_unanswered_after);
    let terms = JobTerms::new(*jobs.tick, reviews, requests);
    Jobs::new(storage.clone(), locks.clone(), notify.clone(), node, terms)
}
