//! Documents that cannot be stored now, while others can (G16, P4).
//!
//! Another transaction has locked the row of such a document, or the database rejects one of its
//! rows. Its updates wait here in their order, and later updates queue behind them. The task retries
//! each document after a pause of its own, which doubles. A retry waits for no lock.
//!
//! The bound: a room accepts at most `unsaved_bytes` of unsaved updates.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::{Group, UpdateSource, is_of_some_rows};
use crate::domain::ids::DocumentId;
use crate::outbox::event::NOT_SAVED;
use crate::storage::error::StorageError;
use crate::storage::log::Append;

/// First and longest pause before the task retries a document. A retry costs a few statements.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Aside {
    documents: HashMap<DocumentId, Stuck>,
}

#[derive(Debug)]
struct Stuck {
    updates: VecDeque<(Append, UpdateSource)>,
    why: Why,
    wait: Duration,
    at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Another transaction has locked its row. The task may retry it together with others.
    Locked,
    /// The database rejected a statement with its rows. The task retries it alone.
    Faulty,
}

impl Why {
    pub(super) fn of(error: &StorageError) -> Self {
        if is_of_some_rows(error) { Self::Faulty } else { Self::Locked }
    }
}

impl Aside {
    pub(super) fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Waits until a document is due. Without a document the future stays pending. Cancel safe.
    pub(super) async fn wait_until_due(&self) {
        match self.documents.values().map(|stuck| stuck.at).min() {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Queues the updates of documents already set aside; returns the other updates.
    pub(super) fn queue_behind(&mut self, group: Group) -> Group {
        if self.documents.is_empty() {
            return group;
        }
        let mut free = Group::default();
        for (append, source) in group.updates() {
            match self.documents.get_mut(&append.document) {
                Some(stuck) => {
                    source.room.not_saved(NOT_SAVED);
                    stuck.updates.push_back((append, source));
                }
                None => free.put(append, source),
            }
        }
        free
    }

    /// Sets the documents of a group aside. Its updates go before those already queued.
    pub(super) fn put(&mut self, group: Group, why: Why) {
        let now = Instant::now();
        let mut delayed = Vec::new();
        let updates: Vec<_> = group.updates().collect();
        for (append, source) in updates.into_iter().rev() {
            let document = append.document;
            let stuck = self.documents.entry(document).or_insert_with(|| {
                metrics::counter!("galley_documents_set_aside_total").increment(1);
                Stuck { updates: VecDeque::new(), why, wait: RETRY_FIRST / 2, at: now }
            });
            stuck.updates.push_front((append, source));
            if !delayed.contains(&document) {
                delayed.push(document);
                stuck.why = why;
                stuck.wait = (stuck.wait * 2).min(RETRY_MAX);
                stuck.at = now + stuck.wait;
            }
        }
    }

    /// Takes at most `count` updates of due documents. A faulty document comes alone.
    pub(super) fn take_due(&mut self, now: Instant, count: usize) -> Group {
        let mut due = Group::default();
        // The longest due first: faulty documents, of which each takes a transaction, take turns.
        let mut waiting: Vec<_> =
            self.documents.values_mut().filter(|stuck| stuck.at <= now).collect();
        waiting.sort_by_key(|stuck| stuck.at);
        for stuck in waiting {
            // Drops the updates of a room with a rejected update (P3).
            stuck.updates.retain(|(_, source)| !source.room.takes_no_more());
            if stuck.why == Why::Faulty && !due.is_empty() {
                continue;
            }
            let room = count.saturating_sub(due.len()).min(stuck.updates.len());
            for (append, source) in stuck.updates.drain(..room) {
                due.put_after(append, source);
            }
            if stuck.why == Why::Faulty && !due.is_empty() {
                break;
            }
        }
        due
    }

    pub(super) fn forget_stored(&mut self) {
        self.documents.retain(|_, stuck| !stuck.updates.is_empty());
    }

    pub(super) fn give_up(&self) {
        let updates: usize = self.documents.values().map(|stuck| stuck.updates.len()).sum();
        if updates > 0 {
            tracing::error!(updates, "stopping with unsaved updates of documents set aside");
        }
    }
}
