//! Versions of the text before and after a decision.

use bytes::Bytes;

use crate::domain::user::User;
use crate::domain::version_policy::VersionKind;
use crate::reviews::Reviews;
use crate::reviews::member::MemberLink;
use crate::rooms::room::Checkpoint;
use crate::rooms::snapshot::Snapshot;
use crate::storage::review_rows::StoredReview;
use crate::yjs::log::UpdateLog;

/// The writer and the authors of these reviews, each once.
pub(crate) fn authors_of<'a>(
    writer: &User,
    decided: impl IntoIterator<Item = &'a StoredReview>,
) -> Vec<User> {
    let mut authors = vec![writer.clone()];
    for review in decided {
        if !authors.iter().any(|author| author.id == review.author.id) {
            authors.push(review.author.clone());
        }
    }
    authors
}

impl Reviews {
    /// Stores a version of the text in which the writer rejected suggestions, or undid that.
    pub(crate) async fn record_rejection(&self, link: &MemberLink, authors: Vec<User>) {
        // During an edit there is no settled text; the version of the next pause contains it.
        if let Ok(Some(text)) = self.texts.durable_snapshot(link.document, &link.requester).await {
            self.record_decision(link, authors, text, None).await;
        }
    }

    /// Stores a version of the text before a decision and of the text after it. A failure costs the
    /// versions and not the edit.
    pub(crate) async fn record_decision(
        &self,
        link: &MemberLink,
        authors: Vec<User>,
        before: Snapshot,
        edit: Option<(i64, Bytes)>,
    ) {
        let document = link.document;
        let point = |kind, authors, snapshot| Checkpoint { document, kind, authors, snapshot };
        // The task that builds the texts acquires a permit for each. The permit of this snapshot is
        // released first, so that the task never waits for it.
        let mut before = before;
        before.permit = None;
        let Some((seq, update)) = edit else {
            let only = point(VersionKind::Decision, authors, before);
            return self.texts.history().record(vec![only]).await;
        };
        let parts = vec![before.merged.clone(), update];
        let writer = vec![link.user.clone()];
        let mut points = vec![point(VersionKind::Pause, writer, before.clone())];
        if let Ok(mut log) = UpdateLog::open(parts) {
            let after = Snapshot { merged: log.merged(), seq, ..before };
            points.push(point(VersionKind::Decision, authors, after));
        }
        self.texts.history().record(points).await;
        self.texts.version_stored(document, seq);
    }
}
