//! The update log of a room.
//!
//! The log is no list of updates. An append takes an update apart: it adds the structs to those of
//! the same client and joins the deletions with the others. So the log is always merged, and an
//! append costs time in proportion to the update. A sync reply copies the end of each client log.
//! The log needs no CRDT, because the validator accepts no gap (Y2).

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use bytes::Bytes;

use crate::client_log::{Run, SECTION_HEADER_MAX};
use crate::delete_set::Deletes;
use crate::error::{Rejected, SyncError};
use crate::lib0::{Malformed, Reader, put_length, put_number};
use crate::structs::Struct;
use crate::validator::{self, StoredUnits};

pub use crate::validator::{Checked, Origin, SERVER_IDS};

/// The merged updates of a document.
#[derive(Clone, Debug, Default)]
pub struct UpdateLog {
    runs: BTreeMap<u64, Run>,
    deletes: Deletes,
    struct_bytes: usize,
    structs: usize,
    /// The cached state vector, until the next append.
    vector: OnceLock<Bytes>,
    /// Whether the client logs still hold text of deleted units.
    remembers: bool,
}

/// A client and a clock take at least a byte each.
const STATE_BYTES_MIN: usize = 2;

impl UpdateLog {
    /// The log of an empty document.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// The log of a stored document: its snapshot and the later updates, in order. Fails with
    /// [`SyncError::Refused`] when a part is no update or does not follow from the parts before it.
    pub fn open(parts: Vec<Bytes>) -> Result<Self, SyncError> {
        match Self::open_up_to(parts) {
            (log, None) => Ok(log),
            (_, Some((_, error))) => Err(error.into()),
        }
    }

    /// Reads a stored document as far as possible. Returns the log, and the index and error of the
    /// first unreadable part.
    #[must_use]
    pub fn open_up_to(parts: Vec<Bytes>) -> (Self, Option<(usize, Rejected)>) {
        let mut log = Self::empty();
        for (at, part) in parts.into_iter().enumerate() {
            match log.check(&part, Origin::Server) {
                Ok(checked) => log.append(part, checked),
                Err(error) => return (log, Some((at, error))),
            }
        }
        (log, None)
    }

    /// Validates an update before the room stores or relays it (Y1). After an error the caller must use
    /// no part of the update (G10).
    pub fn check(&self, update: &[u8], from: Origin) -> Result<Checked, Rejected> {
        let stored = StoredUnits { runs: &self.runs, deletes: &self.deletes };
        validator::check(update, stored, from)
    }

    /// Appends an update. `checked` is this log's verdict on it, with no append in between.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "an update is appended once, as is its check"
    )]
    pub fn append(&mut self, update: Bytes, checked: Checked) {
        if !checked.is_new {
            return;
        }
        self.vector.take();
        let taken = self.take(&update);
        debug_assert!(taken.is_ok(), "what was checked can be read: {taken:?}");
    }

    fn take(&mut self, update: &[u8]) -> Result<(), Rejected> {
        let mut reader = Reader::new(update);
        for _ in 0..reader.number()? {
            let count = reader.number()?;
            let client = reader.number()?;
            let mut clock = reader.clock()?;
            let run = self.runs.entry(client).or_default();
            let (before, structs) = (run.len(), run.count());
            for _ in 0..count {
                let found = Struct::read(&mut reader, clock)?;
                run.push(&found, client);
                clock = clock.saturating_add(found.length);
            }
            self.struct_bytes = self.struct_bytes.saturating_add(run.len()).saturating_sub(before);
            self.structs = self.structs.saturating_add(run.count()).saturating_sub(structs);
        }
        for _ in 0..reader.number()? {
            let client = reader.number()?;
            for _ in 0..reader.number()? {
                let start = reader.clock()?;
                self.deletes.insert(client, start, start.saturating_add(reader.clock()?));
                self.remembers = true;
            }
        }
        Ok(())
    }

    /// The state vector of the log, encoded as in sync step 1.
    #[must_use]
    pub fn state_vector(&self) -> Bytes {
        let encoded = || {
            let mut out = Vec::new();
            put_length(&mut out, self.runs.len());
            for (client, run) in self.by_client() {
                put_number(&mut out, client);
                put_number(&mut out, run.end());
            }
            Bytes::from(out)
        };
        self.vector.get_or_init(encoded).clone()
    }

    /// The updates that a client with that state vector lacks, as one update. It contains all
    /// deletions, because a state vector does not cover deletions. Fails with
    /// [`SyncError::StateVector`] when the state vector is malformed.
    pub fn diff(&self, state_vector: &[u8]) -> Result<Bytes, SyncError> {
        self.answer(state_vector).map(|(diff, _)| diff)
    }

    /// The [`diff`](Self::diff) and its cost: the bytes read to find its start, and the bytes of the
    /// reply. Fails with [`SyncError::StateVector`] when the state vector is malformed.
    pub fn answer(&self, state_vector: &[u8]) -> Result<(Bytes, usize), SyncError> {
        let stored = self
            .read_state_vector(state_vector)
            .map_err(|Malformed(reason)| SyncError::StateVector(reason))?;
        let mut cuts = Vec::new();
        let mut cost = 0_usize;
        for (client, run) in self.by_client() {
            let clock = stored.get(&client).copied().unwrap_or(0);
            if let Some(cut) = run.cut(clock, client)? {
                cost = cost.saturating_add(cut.walked);
                cuts.push((client, cut));
            }
        }
        let mut out = Vec::new();
        put_length(&mut out, cuts.len());
        for (client, cut) in cuts {
            put_length(&mut out, cut.count);
            put_number(&mut out, client);
            put_number(&mut out, cut.clock());
            cut.write(&mut out);
        }
        self.deletes.write(&mut out);
        cost = cost.saturating_add(out.len());
        Ok((Bytes::from(out), cost))
    }

    /// The whole document as one update, without deleted text.
    #[must_use]
    pub fn merged(&mut self) -> Bytes {
        self.tidy();
        let mut out = Vec::with_capacity(self.bytes());
        put_length(&mut out, self.runs.len());
        for (client, run) in self.by_client() {
            run.write(client, &mut out);
        }
        self.deletes.write(&mut out);
        Bytes::from(out)
    }

    /// Collects garbage: drops the text of deleted units, if there were deletions since the last
    /// call. The cost: a walk through the whole log.
    pub fn tidy(&mut self) {
        let forgotten = self.gc();
        debug_assert!(forgotten.is_ok(), "what was appended can be read: {forgotten:?}");
    }

    /// Frees the spare capacity that appends have reserved, up to as much as the log itself.
    pub fn shrink(&mut self) {
        self.runs.values_mut().for_each(Run::shrink);
    }

    /// Whether [`tidy`](Self::tidy) has garbage to collect.
    #[must_use]
    pub fn is_untidy(&self) -> bool {
        self.remembers
    }

    fn gc(&mut self) -> Result<(), Rejected> {
        if !self.remembers {
            return Ok(());
        }
        self.remembers = false;
        (self.struct_bytes, self.structs) = (0, 0);
        for (client, run) in &mut self.runs {
            run.gc(*client, self.deletes.of(*client))?;
            self.struct_bytes = self.struct_bytes.saturating_add(run.len());
            self.structs = self.structs.saturating_add(run.count());
        }
        Ok(())
    }

    /// The approximate size of [`merged`](Self::merged), including garbage. Call
    /// [`tidy`](Self::tidy) before you reject a document as too large.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.struct_bytes
            .saturating_add(self.deletes.bytes())
            .saturating_add(self.runs.len().saturating_mul(SECTION_HEADER_MAX))
    }

    /// The number of clients that wrote the document.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.runs.len()
    }

    /// The number of structs and deleted ranges, which bounds the cost of ordering the document.
    #[must_use]
    pub fn items(&self) -> usize {
        self.structs.saturating_add(self.deletes.ranges())
    }

    /// The clock of the next unit of `client`.
    #[must_use]
    pub fn clock_of(&self, client: u64) -> u64 {
        self.runs.get(&client).map_or(0, Run::end).into()
    }

    /// Reads a state vector. It stores no entry for a client outside the log: a message has room for
    /// a million of them.
    fn read_state_vector(&self, bytes: &[u8]) -> Result<HashMap<u64, u32>, Malformed> {
        let mut reader = Reader::new(bytes);
        let mut stored = HashMap::new();
        for _ in 0..reader.count(STATE_BYTES_MIN)? {
            let (client, clock) = (reader.number()?, reader.clock()?);
            if self.runs.contains_key(&client) {
                stored.insert(client, clock);
            }
        }
        reader.finish()?;
        Ok(stored)
    }

    /// The client logs, highest id first, as Yjs writes them: the newest neighbours of a struct then
    /// tend to come before it.
    fn by_client(&self) -> impl Iterator<Item = (u64, &Run)> {
        self.runs.iter().rev().map(|(client, run)| (*client, run))
    }
}

/// A new id for a server's write: random, in [`SERVER_IDS`], and unused in the log.
#[must_use]
pub fn server_client_id(log: &UpdateLog) -> u64 {
    // Without a random source the search starts at 0 and returns the first unused id.
    let offset = getrandom::u32().unwrap_or_default();
    let id = SERVER_IDS.start().saturating_add(offset.into());
    (id..=*SERVER_IDS.end()).chain(SERVER_IDS).find(|id| !log.runs.contains_key(id)).unwrap_or(id)
}

/// The update that writes `text` into an empty document.
pub(crate) fn first_update(text: &str, client: u64) -> Vec<u8> {
    let mut log = UpdateLog::empty();
    log.runs.entry(client).or_default().push(&Struct::first(text), client);
    log.runs.retain(|_, run| run.end() != 0);
    log.merged().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{append_all, apply, document, edit, text_of, typed, whole};

    #[test]
    fn a_text_typed_letter_by_letter_is_stored_as_a_text() {
        let text = "cover letter, 자기소개서, 👩‍👩‍👧, e\u{301}. ".repeat(50);
        let mut log = UpdateLog::empty();
        append_all(&mut log, typed(&document(7), &text));
        let merged = log.merged();
        let reader = document(1);
        apply(&reader, &merged);
        assert_eq!(text_of(&reader), text);
        assert!(merged.len() < text.len() + 64, "{} for {}", merged.len(), text.len());
        assert_eq!(log.clock_of(7), text.encode_utf16().count() as u64);
        let reopened = UpdateLog::open(vec![merged.clone()]).unwrap().merged();
        assert_eq!(reopened, merged);
    }

    #[test]
    fn the_diff_completes_the_log_of_any_client() {
        let text = "ab한국👩‍👧x".repeat(700);
        let mut log = UpdateLog::empty();
        append_all(&mut log, typed(&document(7), &text));
        let units = log.clock_of(7);
        for clock in [0, 1, 2, 5, 1_000, 4_097, units - 1, units] {
            let mut stored = Vec::new();
            for number in [1, 7, clock] {
                put_number(&mut stored, number);
            }
            let diff = log.diff(&stored).unwrap();
            let missing = usize::try_from(units - clock).unwrap();
            assert!(diff.len() < missing * 3 + 64, "{} for {missing} units", diff.len());
        }
        assert_eq!(log.diff(&log.state_vector()).unwrap()[..], [0, 0]);
    }

    #[test]
    fn a_resend_is_not_new() {
        let document = document(7);
        let mut log = UpdateLog::empty();
        append_all(&mut log, typed(&document, "known"));
        let whole = whole(&document);
        let before = log.merged();
        let checked = log.check(&whole, Origin::Client).unwrap();
        assert!(!checked.is_new && checked.clients.is_empty());
        log.append(whole, checked);
        assert_eq!(log.merged(), before);
    }

    #[test]
    fn g13_a_page_pasted_over_again_and_again_stays_a_page() {
        let page = "Ein Absatz, 한 문단, \u{1F469}\u{200D}\u{1F467}. ".repeat(200);
        let units = u32::try_from(page.encode_utf16().count()).unwrap();
        let writer = document(7);
        let mut log = UpdateLog::empty();
        append_all(&mut log, [edit(&writer, 0, 0, &page)]);
        for _ in 0..50 {
            append_all(&mut log, [edit(&writer, 0, units, &page)]);
        }
        assert!(50 * page.len() < log.bytes(), "until somebody asks for the whole");
        let merged = log.merged();
        assert!(merged.len() < page.len() + 2_048, "{}", merged.len());
        assert!(log.bytes() < page.len() + 2_048, "{}", log.bytes());
        let reader = document(1);
        apply(&reader, &merged);
        assert_eq!(text_of(&reader), page);
        // A resend restores no collected text.
        assert!(!log.check(&whole(&writer), Origin::Client).unwrap().is_new);
        append_all(&mut log, [edit(&writer, 3, 5, "x")]);
        apply(&reader, &log.diff(&UpdateLog::open(vec![merged]).unwrap().state_vector()).unwrap());
        assert_eq!(text_of(&reader), text_of(&writer));
    }

    #[test]
    fn half_a_surrogate_pair_is_encoded_as_yjs_encodes_it() {
        let mut log = UpdateLog::empty();
        append_all(&mut log, [edit(&document(7), 0, 0, "a\u{1F600}b")]);
        let diff = log.diff(&[1, 7, 2]).unwrap();
        // Text right of unit 1 of client 7, from clock 2 on: U+FFFD and "b".
        assert_eq!(diff[..], [1, 1, 7, 2, 0x84, 7, 1, 4, 0xEF, 0xBF, 0xBD, b'b', 0]);
        let mut late = UpdateLog::empty();
        append_all(&mut late, [edit(&document(7), 0, 0, "a\u{1F600}")]);
        append_all(&mut late, [log.merged()]);
        assert_eq!(late.clock_of(7), 4);
    }
}
