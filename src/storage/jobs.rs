//! Jobs: the fence of each job's lock, and its last runs.
//!
//! The lock of a job decides which server runs it; the database decides whose reminders count.
//! [`begin_job`](crate::storage::Storage::begin_job) ratifies the fence of a grant. From then on the
//! database refuses every claim of
//! a reminder under an older one, so a batch that lost its lock sends nothing more.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::domain::fence::Fence;
use crate::domain::ids::NodeId;

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// It has not ended, or its server died and no later run has begun.
    Running,
    /// It did its work.
    Done,
    /// It ended early, because its server stopped.
    Stopped,
    /// It ended early, because it lost its lock.
    LockLost,
    /// A dependency failed, or its server died.
    Failed,
}

impl JobOutcome {
    /// Every outcome.
    pub const ALL: [Self; 5] =
        [Self::Running, Self::Done, Self::Stopped, Self::LockLost, Self::Failed];

    /// The name in JSON, in metrics and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Stopped => "stopped",
            Self::LockLost => "lock-lost",
            Self::Failed => "failed",
        }
    }

    /// Parses the outcome from its name. A later version may store others: they read as failures.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|it| it.as_str() == name).unwrap_or(Self::Failed)
    }
}

/// A run of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRun {
    /// The fence of its lock.
    pub fence: Fence,
    /// The server.
    pub node: NodeId,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended. `None`: it has not, or its server died.
    pub ended_at: Option<DateTime<Utc>>,
    /// The outcome.
    pub outcome: JobOutcome,
    /// The candidates by their outcome.
    pub counts: BTreeMap<String, u64>,
}

/// Where a bounded batch continues, by the name of its part.
pub type JobCursors = BTreeMap<String, String>;
