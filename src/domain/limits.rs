//! The limits of the core (G13), and those that several features share. A limit that one feature reads
//! stands beside the code of that feature.
//!
//! An operator changes limits in the settings. This module fixes the limits whose change would break
//! an invariant, each with its reason.

use std::num::NonZeroU32;
use std::time::Duration;

use chrono::TimeDelta;

/// Longest name of a user, in characters: the page has no room for more beside a seat.
pub const NAME_CHARS_MAX: usize = 80;
/// Age up to which a revocation of a user's tokens is stored. One that is older refuses the tokens of every user
/// from before it: a guest's token lives for thirty days, one of a host application for hours.
pub const TOKEN_AGE_MAX: TimeDelta = TimeDelta::days(400);
/// Longest title of a document, in characters.
pub const TITLE_CHARS_MAX: usize = 200;
/// Longest comment or reply, in UTF-8 bytes.
pub const REVIEW_BODY_BYTES_MAX: usize = 16 * 1024;
/// Longest suggestion, in UTF-8 bytes.
pub const SUGGESTION_BYTES_MAX: usize = 64 * 1024;
/// Longest quote of an anchor, in UTF-16 units: a comment on more is a comment on the document.
pub const QUOTE_UTF16_MAX: u32 = 20_000;
/// Characters stored on either side of a quote, so that the server can find the quote again.
pub const CONTEXT_CHARS: usize = 32;
/// Yjs client ids that may write one document. Each page that edits adds one, so this lasts for
/// years of work. The cost: some 400 bytes of memory and an entry in every state vector for each.
pub const CLIENTS_PER_DOCUMENT_MAX: usize = 5_000;
/// Bytes that the server charges a socket for a new client id: a row of the database and the memory
/// above.
pub const NEW_CLIENT_BYTES: usize = 1_024;
/// Structs and deleted ranges of one document. The document order takes up to 200 bytes of memory
/// for each, and every browser an object. A typed page has some hundred; a book of a megabyte, typed
/// in bursts of three words, has some 60,000.
pub const DOCUMENT_ITEMS_MAX: usize = 400_000;
/// Steps, of about a nanosecond each, in which the server resolves the reviews of one list. They
/// suffice to search some 250 MB of text, or to compare 500 quotes that occur everywhere. 2,000 lost
/// quotes in a text of 100 KB take a fifth of them. A review without remaining steps counts as
/// orphaned in that list.
pub const PLACING_STEPS_MAX: usize = 64_000_000;
/// Open suggestions of one share link, and its open comments: as many as one decision may name.
pub const OPEN_PER_LINK_MAX: i64 = 2_000;
/// Parts of all open suggestions of one share link.
pub const OPEN_PARTS_PER_LINK_MAX: i64 = 8_000;
/// Reviews of one share link, with those that are decided or closed.
pub const REVIEWS_PER_LINK_MAX: i64 = 40_000;
/// Parts of one suggestion.
pub const PARTS_PER_SUGGESTION_MAX: usize = 64;
/// Items of one batch of suggestions.
pub const SUGGESTIONS_AT_ONCE_MAX: usize = 200;
/// Remarks on the whole text of one share link by one user: some for each round of a review. Remarks of
/// a former reviewer, which no user may delete, do not count.
pub const SUMMARIES_PER_AUTHOR_MAX: i64 = 20;
/// Reviews of one decision: all suggestions of a share link.
pub const DECIDED_AT_ONCE_MAX: usize = 2_000;
/// Reviews of one decision that the server announces one by one. Beyond it one event names them all,
/// and a client reads the list again: that is faster than as many events.
pub const DECIDED_ONE_BY_ONE_MAX: usize = 20;
/// How long the writer can undo a decision: a day's work on a text.
pub const DECISION_UNDO_WINDOW: Duration = Duration::from_hours(24);
/// Parts of all stored decisions of one share link. Beyond it the server deletes the oldest decisions;
/// their reviews retain their states. Twice each open part of a link within a day.
pub const DECISION_PARTS_PER_LINK_MAX: i64 = 2 * OPEN_PARTS_PER_LINK_MAX;
/// Replies to one review.
pub const REPLIES_PER_REVIEW_MAX: i64 = 200;
/// Bytes of one review: its quotes, comment and texts, and all its replies. Each event about a review
/// carries all of it, so this bounds an event. Escaped as JSON, the first part twice, it takes half of an
/// outbox at most.
pub const REVIEW_BYTES_MAX: i64 = 256 * 1024;
/// Bytes of all reviews of one share link: the comments of both users beside a text of 8 MiB. A
/// client that reads all pages transfers as much.
pub const REVIEWS_BYTES_MAX: i64 = 16 * 1024 * 1024;
/// Reviews of one page of a list, at most.
pub const REVIEW_PAGE_ROWS_MAX: u32 = 200;
/// Bytes of the reviews of one page, at most; a page has at least one review. The server builds each
/// page in memory, as rows, as values and as JSON.
pub const REVIEW_PAGE_BYTES_MAX: i64 = 1024 * 1024;
/// Users whom a link refused, for its owner: the last ones. Each row has some 100 bytes.
pub const ATTEMPTS_PER_LINK_MAX: i64 = 20;
/// Within this time the link stores one attempt of a user, and tells its owner once.
pub const ATTEMPT_AGAIN_AFTER: TimeDelta = TimeDelta::minutes(1);
/// A websocket message longer than this, in bytes, gets its own buffer, which the server frees with
/// the message. An edit has forty bytes, a cursor three hundred.
pub const LONG_MESSAGE_BYTES: u64 = 4 * 1024;
/// Seconds by which a token must be newer than the stored name before the server stores the same
/// name with the new time. New tokens of one user then cost at most one commit a minute.
pub const NAME_TIME_STEP_SECONDS: i64 = 60;
/// Presence of one session, in bytes: a cursor, a selection and a name take about 300.
pub const AWARENESS_BYTES_MAX: usize = 8 * 1024;
/// Deepest nesting that the validator accepts: yrs 0.28.1 overflows a 2 MiB stack at some 6,000
/// levels, and the decoder in the peer's browser recurses too.
pub const NESTING_MAX: u32 = 64;
/// Frames queued in one outbox. Beyond it the server closes the slow socket, and the client
/// reconnects and syncs again.
pub const OUTBOX_FRAMES_MAX: usize = 1_024;
/// Members of one room: two hold seats, the others probe or take over.
pub const SESSIONS_PER_ROOM_MAX: usize = 64;
/// Bytes a second that a socket may send continuously. A user who types and moves the cursor sends
/// some kilobytes; validating a megabyte takes some 20 ms of a core.
pub const SOCKET_BYTES_PER_SECOND: NonZeroU32 = NonZeroU32::MIN.saturating_add(1024 * 1024 - 1);
/// Rates of single sockets that all sockets of one user share: a user with several open documents
/// whose tabs reconnect at the same moment.
pub const SESSIONS_OF_A_BUDGET: NonZeroU32 = NonZeroU32::MIN.saturating_add(7);
/// Bytes a second of review events that one user may cause continuously. The server sends each event
/// to every socket of the document, and a slow connection still drains its outbox faster.
pub const REVIEW_EVENT_BYTES_PER_SECOND: NonZeroU32 =
    NonZeroU32::MIN.saturating_add(128 * 1024 - 1);
/// Bytes of review events that one user may cause at once: eight of the largest reviews, or
/// thousands of usual ones. Far below the limit of an outbox.
pub const REVIEW_EVENT_BURST: NonZeroU32 = NonZeroU32::MIN.saturating_add(2 * 1024 * 1024 - 1);
/// Texts that a server builds at once. A document with the maximum of items takes up to 100 MiB
/// during a build, so this bounds the memory of text requests.
pub const TEXTS_BUILT_MAX: usize = 4;
/// Texts built at once for one address, and for the server's own tasks: one permit remains for
/// others.
pub const TEXTS_PER_ADDRESS_MAX: usize = TEXTS_BUILT_MAX - 1;
/// Queued text requests of one user: some tabs with some requests each. Beyond it, and beyond the
/// two limits below, the server answers 503.
pub const TEXTS_WAITING_PER_USER_MAX: usize = 64;
/// Queued text requests of one address: an office with hundreds of users that reconnects at once.
/// One address leaves capacity for others.
pub const TEXTS_WAITING_PER_ADDRESS_MAX: usize = 1_024;
/// Queued text requests in all: each takes a few kilobytes, and each free permit costs a walk
/// through the queue.
pub const TEXTS_WAITING_MAX: usize = 4 * TEXTS_WAITING_PER_ADDRESS_MAX;
/// Longest label of a version, in characters.
pub const LABEL_CHARS_MAX: usize = 100;
/// Longest title of a section, in characters.
pub const HEADING_CHARS_MAX: usize = 300;
/// Longest line of a heading, in UTF-16 units.
pub const HEADING_LINE_UTF16_MAX: u32 = 1_000;
/// Sections of a document with settings of their own.
pub const SECTIONS_MAX: usize = 100;
/// Largest limit of a section, in its unit.
pub const SECTION_COUNT_MAX: u32 = 1_000_000;
/// Versions of one document. Beyond it the server deletes the oldest automatic ones.
pub const VERSIONS_MAX: usize = 1_000;
/// Compressed bytes of all versions of one document.
pub const VERSION_BYTES_MAX: i64 = 64 * 1024 * 1024;
/// Named versions of one document. The server never deletes them by itself, so their number needs a
/// limit.
pub const NAMED_VERSIONS_MAX: usize = 200;
/// Compressed bytes of the named versions: the rest of [`VERSION_BYTES_MAX`] is for the automatic
/// ones.
pub const NAMED_BYTES_MAX: i64 = VERSION_BYTES_MAX / 2;
/// Largest text that the server unpacks from a stored version, in bytes. A document's own limit is
/// lower.
pub const VERSION_TEXT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Documents in the bin of one user. A further deletion purges the oldest one.
pub const BIN_DOCUMENTS_MAX: u32 = 100;
/// Documents that a server purges in one round. Each is a transaction of its own, so an edit waits
/// for one of them at most.
pub const PURGED_AT_ONCE: u32 = 100;
/// Shortest and longest handle, in characters: the page has room for so many beside a name.
pub const HANDLE_CHARS_MIN: usize = 2;
/// See [`HANDLE_CHARS_MIN`].
pub const HANDLE_CHARS_MAX: usize = 30;
/// Partners of one user: a class or a department. Each row has some 150 bytes.
pub const PARTNERS_MAX: i64 = 500;
/// Time budget of a comparison by words. After it the diff reports the rest by whole paragraphs.
pub const DIFF_TIMEOUT: Duration = Duration::from_millis(400);
/// Hunks in which a restored text may differ from the current one. Beyond it the diff joins
/// neighbouring hunks, because each hunk costs a walk through the document.
pub const RESTORE_HUNKS_MAX: usize = 1_000;
/// Timeout of a liveness probe.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a server waits for the flush of a session's pending edits before it releases the seat or
/// ratifies its next grant. A slow disk needs less. If the edits are on the claimant's own server, the
/// claim fails after this, because storage is unavailable.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the reply to a committed change of a review waits for the review's anchor. The queue of
/// the user's other texts has no bound in time; a text at its limit takes two seconds.
pub const ANCHOR_TIMEOUT: Duration = Duration::from_secs(5);
/// Grants that a server ratifies concurrently after the database lost them: at most half of the PostgreSQL
/// connections that do not write edits. The others serve revocations and joins meanwhile.
pub const GRANTS_RATIFIED_AT_ONCE: usize = 4;
/// Time budget in which a room stores updates again that an older database lacks: two lock waits on
/// a row, over all tries. The room commits no edit of the document meanwhile; afterwards the clients
/// send their updates again.
pub const STORE_AGAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for a peer's acknowledgement of a request. After it the caller treats the peer as dead. A
/// peer acknowledges within a few milliseconds, and within some hundred in a storm of joins. A false
/// alarm costs a living peer: the database rejects its unsaved edits, and its room is reset for both
/// users. A resume after a server's death waits this long. So the timeout is three times the delay
/// in a storm, and below the timeout of a probe.
pub const PEER_ACK_TIMEOUT: Duration = Duration::from_millis(750);
/// Pending peer RPC requests of a server, and peer requests that it serves at once. Each belongs to
/// a socket that probes a seat's holder or takes a seat over.
pub const REQUESTS_MAX: usize = 1_024;
/// Period of the empty presence frame on a quiet socket. The stock client closes after 30 s without
/// a message, and websocket pings do not count.
pub const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(10);

/// Requests to other programs at once. Each holds a connection and some 100 KiB.
pub const OUTGOING_MAX: usize = 64;
/// Webhooks in the database, pending and dead: some 60 MB. Each endpoint has a share of them; beyond it the
/// server drops its new ones, and deletes its oldest dead ones before.
pub const WEBHOOKS_MAX: i64 = 100_000;
/// Reviews that the webhook of one decision names. Beyond it the receiver reads the list.
pub const WEBHOOK_REVIEWS_MAX: usize = 100;
/// The parts of an endpoint's share: a document gets one. One that fills it leaves the rest to others.
pub const WEBHOOK_DOCUMENTS_MIN: i64 = 50;
/// The wait of the webhook of a typed suggestion for its first attempt: one that its author takes back before
/// is none.
pub const WEBHOOK_TYPED_DELAY: Duration = Duration::from_secs(2);
/// How long a webhook waits for further attempts.
pub const WEBHOOK_RETRY_WINDOW: Duration = Duration::from_hours(24);
/// The claim of a webhook: another server repeats the attempt of a dead one after it.
pub const WEBHOOK_LEASE: Duration = Duration::from_secs(15);
/// Seats whose locks one round of the search for departed sessions reads.
pub const WEBHOOK_SEATS_AT_ONCE: u32 = 250;
/// Absent waiters that wait for their commit. A client that waits and leaves again and again adds no more.
pub const ABSENT_WAITERS_QUEUED_MAX: usize = 16;

/// How long a room waits for the updates that it requested from a writer. After it the next edit
/// with a gap triggers a new request.
pub const REQUEST_AGAIN_AFTER: Duration = Duration::from_secs(1);

const _: () = assert!(NAMED_VERSIONS_MAX < VERSIONS_MAX);
const _: () = assert!(SUMMARIES_PER_AUTHOR_MAX < REVIEWS_PER_LINK_MAX);
const _: () = assert!((DECIDED_AT_ONCE_MAX as i64) < DECISION_PARTS_PER_LINK_MAX);
const _: () = assert!(REVIEW_BYTES_MAX < REVIEW_PAGE_BYTES_MAX);
const _: () = assert!(REVIEW_PAGE_BYTES_MAX < REVIEWS_BYTES_MAX);
const _: () = assert!(
    REVIEW_BODY_BYTES_MAX + SUGGESTION_BYTES_MAX + 3 * (QUOTE_UTF16_MAX as usize) < (256 * 1024)
);
const _: () = assert!(CONTEXT_CHARS < QUOTE_UTF16_MAX as usize);
const _: () = assert!(PEER_ACK_TIMEOUT.as_millis() < PROBE_TIMEOUT.as_millis());
const _: () = assert!(KEEP_ALIVE_EVERY.as_secs() * 2 < 30);
