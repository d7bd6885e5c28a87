//! One judge for each decoder: the properties that hold for every input.

use std::time::{Duration, Instant};

use bytes::Bytes;
use galley::admin::locks::LockCursor;
use galley::domain::anchor::{AnchorOrigin, RelativeRange};
use galley::domain::ids::DocumentId;
use galley::http::auth::tokens::{Identity, Tokens};
use galley::pubsub::Envelope;
use galley::storage::pagination::Cursor;
use galley::yjs::ROOT;
use galley::yjs::awareness::{decode_awareness, encode_awareness};
use galley::yjs::log::{Origin, UpdateLog};
use galley::yjs::protocol::{self, ClientFrame};
use galley::yjs::text::Text;
use yrs::sync::AwarenessUpdate;
use yrs::updates::decoder::Decode as _;
use yrs::{
    ClientID, Doc, GetString as _, OffsetKind, Options, ReadTxn as _, StateVector, Transact as _,
    Update,
};

/// Time limit for a small input. The judge takes the shortest of a few tries, because a test shares
/// its processor. A loop over a number that the input claims is slow in each try.
const TIME_MAX: Duration = Duration::from_millis(5);
/// Factor of an unoptimised build.
const UNOPTIMISED: u32 = if cfg!(debug_assertions) { 10 } else { 1 };
const TRIES: usize = 6;

/// A `yrs` document with the settings of a stock client.
pub(crate) fn document(client: u64) -> Doc {
    let mut options = Options::with_client_id(ClientID::new(client));
    options.offset_kind = OffsetKind::Utf16;
    let document = Doc::with_options(options);
    document.get_or_insert_text(ROOT);
    document
}

pub(crate) fn apply(document: &Doc, update: &[u8]) {
    let update = Update::decode_v1(update).expect("yrs decodes an accepted update");
    document.transact_mut().apply_update(update).expect("yrs applies an accepted update");
    assert!(!document.transact().has_missing_updates(), "no struct waits for a missing one");
}

pub(crate) fn text_of(document: &Doc) -> String {
    document.get_or_insert_text(ROOT).get_string(&document.transact())
}

fn whole(document: &Doc) -> Vec<u8> {
    document.transact().encode_state_as_update_v1(&StateVector::default())
}

/// The sorted characters of a text. If a struct names its two neighbours in the wrong order, its
/// place depends on the order of delivery. This holds for every implementation of Yjs.
fn letters(document: &Doc) -> Vec<char> {
    sorted(&text_of(document))
}

fn sorted(text: &str) -> Vec<char> {
    let mut letters: Vec<char> = text.chars().collect();
    letters.sort_unstable();
    letters
}

/// Runs the work, and repeats it if it was slow.
fn in_time<T>(what: &str, mut work: impl FnMut() -> (Duration, T)) -> T {
    let mut shortest = Duration::MAX;
    for _ in 0..TRIES {
        let (took, done) = work();
        shortest = shortest.min(took);
        if shortest < TIME_MAX * UNOPTIMISED {
            return done;
        }
    }
    panic!("{what} took {shortest:?}");
}

fn timed<T>(what: &str, mut work: impl FnMut() -> T) -> T {
    in_time(what, || {
        let began = Instant::now();
        let done = work();
        (began.elapsed(), done)
    })
}

/// An update for a room with the log `log`.
pub(crate) fn update(log: &UpdateLog, input: &[u8]) -> bool {
    let verdict = timed("the check", || log.check(input, Origin::Client));
    let Ok(checked) = verdict else { return false };
    let mut log = log.clone();
    let (before, vector_before) = (log.merged(), log.state_vector());
    let (is_new, clients) = (checked.is_new, checked.clients.clone());
    let most = log.bytes() + checked.bytes;
    log.append(Bytes::copy_from_slice(input), checked);
    assert!(log.bytes() <= most, "{} bytes where at most {most} were told", log.bytes());
    let after = log.merged();
    assert_eq!(is_new, before != after, "new is what changes the log");
    assert_eq!(
        clients.is_empty(),
        vector_before == log.state_vector(),
        "an update without new structs changes no clock"
    );
    // The work of a peer with the same log: decode, apply, encode.
    let (peer, again) = in_time("yrs", || {
        let peer = document(1);
        apply(&peer, &before);
        let began = Instant::now();
        apply(&peer, input);
        let again = whole(&peer);
        (began.elapsed(), (peer, again))
    });
    let text = letters(&peer);
    let copy = document(2);
    apply(&copy, &again);
    assert_eq!(letters(&copy), text, "encoded again it is the same text");
    let built = Text::build(&after).expect("the log is a whole document");
    assert_eq!(sorted(&built.content()), text, "the log means what the update means");
    let late = document(3);
    apply(&late, &before);
    apply(&late, &log.diff(&vector_before).expect("our own vector"));
    assert_eq!(letters(&late), text, "the diff completes an older replica");
    let reopened = UpdateLog::open(vec![after.clone()]).expect("a merged log opens");
    assert_eq!({ reopened }.merged(), after);
    assert!(!log.check(input, Origin::Client).expect("an accepted update").is_new);
    true
}

/// A state vector, for a room with the log `log` and a client that has all of it.
pub(crate) fn state_vector(log: &UpdateLog, client: &Doc, input: &[u8]) -> bool {
    let Ok(diff) = timed("the difference", || log.diff(input)) else { return false };
    // After the server's check only: `yrs` allocates half a gigabyte for seven bytes that the
    // server rejects.
    let vector = StateVector::decode_v1(input).expect("yrs reads an accepted vector");
    let lower = Update::decode_v1(&diff).expect("yrs reads the reply").state_vector_lower();
    for (client, clock) in lower.iter() {
        assert_eq!(*clock, vector.get(client), "the reply for {client} starts at its clock");
    }
    let text = text_of(client);
    apply(client, &diff);
    assert_eq!(text_of(client), text, "a complete client receives no change");
    true
}

/// A frame of a client.
pub(crate) fn frame(input: &[u8]) -> bool {
    let Ok(parsed) = timed("the frame", || protocol::parse(input)) else { return false };
    let again = match parsed {
        ClientFrame::SyncStep1(body) => protocol::sync_step1(body),
        ClientFrame::SyncStep2(body) => protocol::sync_step2(body),
        ClientFrame::Update(body) => protocol::update(body),
        ClientFrame::Awareness(body) => protocol::awareness(body),
        ClientFrame::QueryAwareness => protocol::query_awareness(),
        ClientFrame::Auth => return true,
    };
    assert!(again.len() <= input.len(), "the parse covers the frame");
    assert_eq!(protocol::parse(&again), Ok(parsed));
    true
}

/// An awareness update.
pub(crate) fn awareness(input: &[u8]) -> bool {
    let read = timed("presence", || decode_awareness(input));
    let Ok(entries) = read else { return false };
    assert_eq!(decode_awareness(&encode_awareness(&entries)).as_ref(), Ok(&entries));
    for state in entries.iter().filter_map(|entry| entry.state.as_deref()) {
        serde_json::from_str::<serde_json::Value>(state).expect("a peer parses it");
    }
    // `yrs` returns an error for a clock beyond its range, and does not panic.
    if let Ok(read) = AwarenessUpdate::decode_v1(input) {
        assert!(read.clients.len() <= entries.len());
    }
    true
}

/// A stored relative position in a text.
pub(crate) fn position(text: &Text, origin: &AnchorOrigin, input: &[u8]) -> bool {
    let units = text.content().encode_utf16().count();
    let nowhere = RelativeRange { start: input.to_vec(), end: input.to_vec() };
    let anchor = timed("the place", || text.resolve(origin, &nowhere)).anchor;
    let (start, end) = (usize::try_from(anchor.start), usize::try_from(anchor.end));
    assert!(anchor.start <= anchor.end && start.is_ok() && end.is_ok_and(|end| end <= units));
    true
}

/// An envelope of another server, after its seal is verified.
pub(crate) fn relay(input: &[u8]) -> bool {
    let frame = Bytes::copy_from_slice(input);
    let Some(envelope) = timed("the envelope", || Envelope::decode(&frame)) else { return false };
    let again = Bytes::from(envelope.encode());
    assert!(again.len() <= input.len(), "the parse covers the frame");
    assert_eq!(Envelope::decode(&again), Some(envelope));
    true
}

/// An access token. `signed` is the identity of the only token that was signed.
pub(crate) fn token(tokens: &Tokens, signed: &Identity, input: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(input) else { return false };
    let Ok(identity) = timed("the token", || tokens.verify(text)) else { return false };
    assert_eq!(&identity, signed, "only the signed token verifies");
    true
}

/// A cursor of a page of a list.
pub(crate) fn cursor(input: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(input) else { return false };
    let document = timed("the cursor", || text.parse::<Cursor<DocumentId>>());
    if let Ok(cursor) = document {
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
    }
    let lock = timed("the cursor", || text.parse::<LockCursor>());
    if let Ok(cursor) = &lock {
        assert_eq!(cursor.to_string().parse().as_ref(), Ok(cursor));
    }
    document.is_ok() || lock.is_ok()
}
