//! The history of one campaign: every observation of a client, every fault, every row that the
//! database wrote. It has one JSON object a line, so that a reader can inspect a violation and run
//! the checker again.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::Utc;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// One observation, with its time in ms since the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) at: u64,
    #[serde(flatten)]
    pub(crate) what: What,
}

/// The kind of a tab's claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum How {
    Plain,
    Wait,
    TakeOver,
    Resume,
}

/// A typed suggestion as a server lists it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) version: i64,
    pub(crate) status: String,
    pub(crate) marks: Vec<String>,
    /// The offset of each part.
    pub(crate) offsets: Vec<i64>,
}

/// An observation. A *mark* is a unique piece of text; a document consists of marks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum What {
    /// The faults of this target begin.
    Fault {
        kind: String,
        target: String,
    },
    /// The fault of that target is over.
    Healed {
        kind: String,
        target: String,
    },
    /// From here on tabs hold their seats; until `CalmEnds` only the named fault happens.
    Calm {
        only: String,
    },
    CalmEnds,
    /// A websocket opens. `brings` are the marks of the tab's document that `document.saved` never
    /// named.
    Claim {
        socket: u32,
        tab: u32,
        document: String,
        link: String,
        role: String,
        how: How,
        brings: Vec<String>,
    },
    Granted {
        socket: u32,
        session: String,
        fence: u64,
    },
    Waiting {
        socket: u32,
        position: u64,
    },
    Typed {
        socket: u32,
        mark: String,
    },
    Saved {
        socket: u32,
        mark: String,
    },
    /// A reviewer's client sends an edit.
    Intruded {
        socket: u32,
        mark: String,
    },
    /// `denied`, with its reason.
    Denied {
        socket: u32,
        reason: String,
    },
    /// A replica contains a mark that this client did not type.
    Seen {
        socket: u32,
        mark: String,
    },
    /// The client closes its socket, or drops it without a close.
    Left {
        socket: u32,
        clean: bool,
    },
    /// The server closes the socket, or the connection ends (1006).
    Closed {
        socket: u32,
        code: u16,
        reason: String,
    },
    /// The owner's request; `status` 0 means no response.
    Request {
        op: String,
        subject: String,
        status: u16,
    },
    /// Every effect of the commit about the subject is due by now.
    Due {
        subject: String,
    },
    /// The database committed a row of the log; with the grant that was ratified at that moment.
    Row {
        document: String,
        seq: i64,
        session: Option<String>,
        fence: Option<i64>,
        marks: Vec<String>,
    },
    /// The database ratified a fence.
    Ratified {
        link: String,
        role: String,
        fence: i64,
        session: String,
    },
    /// The database committed the end of a link.
    Revoked {
        link: String,
    },
    /// The database committed the deletion of a document.
    Deleted {
        document: String,
    },
    /// The database committed the acceptance of a suggestion, which inserts `mark` into the text.
    Accepted {
        document: String,
        mark: String,
    },
    /// The reviewer's page sends a suggestion; `marks` has one for each part.
    Suggested {
        link: String,
        suggestion: String,
        marks: Vec<String>,
    },
    /// A server answers that it stored the suggestion in this version.
    Acknowledged {
        link: String,
        suggestion: String,
        version: i64,
        marks: Vec<String>,
    },
    /// The reviewer's page shows that a server refuses the last words of the suggestion.
    Refused {
        suggestion: String,
        marks: Vec<String>,
    },
    /// The reviewer's page ends, and retains the last words of the suggestion as unsent.
    Unsent {
        suggestion: String,
        marks: Vec<String>,
    },
    /// At rest: the typed suggestions of a link at one server.
    Listed {
        link: String,
        source: String,
        suggestions: Vec<Listed>,
    },
    /// The campaign deletes the last rows of a document. `held` are their marks that a seated
    /// writer has.
    SetBack {
        document: String,
        lost: Vec<String>,
        held: Vec<String>,
    },
    /// After a set-back, the content of the database.
    CameBack {
        document: String,
        marks: Vec<String>,
    },
    /// At rest: the content of one replica of the document, in order.
    Reads {
        document: String,
        source: String,
        marks: Vec<String>,
    },
    /// At rest: a fresh tab acquired a seat and its edit was saved after this time.
    Recovered {
        document: String,
        after_ms: u64,
    },
}

/// Writes events as they happen.
#[derive(Clone)]
pub(crate) struct Recorder {
    began: Instant,
    /// The start in milliseconds of Unix time.
    began_at: i64,
    path: PathBuf,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    events: Vec<Event>,
    file: BufWriter<File>,
}

impl Recorder {
    pub(crate) fn to(path: &Path) -> Self {
        let file = BufWriter::new(File::create(path).expect("a file for the history"));
        let inner = Arc::new(Mutex::new(Inner { events: Vec::new(), file }));
        Self {
            began: Instant::now(),
            began_at: Utc::now().timestamp_millis(),
            path: path.to_owned(),
            inner,
        }
    }

    /// Milliseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).expect("a short campaign")
    }

    pub(crate) fn note(&self, what: What) {
        self.note_at(self.now(), what);
    }

    /// Records an observation of another process of this machine, at a time in ms of Unix time.
    pub(crate) fn note_then(&self, at: i64, what: What) {
        self.note_at(u64::try_from(at - self.began_at).unwrap_or(0), what);
    }

    fn note_at(&self, at: u64, what: What) {
        let event = Event { at, what };
        let line = serde_json::to_string(&event).expect("JSON");
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(inner.file, "{line}").expect("space for the history");
        inner.events.push(event);
    }

    /// All events in the order of their time.
    pub(crate) fn events(&self) -> Vec<Event> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.file.flush().expect("space for the history");
        let mut events = inner.events.clone();
        events.sort_by_key(|event| event.at);
        events
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file of a history without violations.
    pub(crate) fn forget(&self) {
        std::fs::remove_file(&self.path).expect("the file of the history");
    }
}

/// The marks in a text, in order.
pub(crate) fn marks_in(text: &str) -> Vec<String> {
    let parts = text.split('⟦').skip(1);
    parts.filter_map(|part| Some(part.split_once('⟧')?.0.to_owned())).collect()
}

/// A mark as it stands in a text.
pub(crate) fn written(mark: &str) -> String {
    format!("⟦{mark}⟧")
}
