//! The bound of everything (G13).
//!
//! What an operator may want to change stands in the settings; what would break a promise if it
//! were changed stands here, with its reason.

use std::num::NonZeroU32;
use std::time::Duration;

/// Longest name of a person, in characters: longer ones do not fit a chair.
pub const NAME_CHARS_MAX: usize = 80;
/// Longest title of a document, in characters.
pub const TITLE_CHARS_MAX: usize = 200;
/// Longest comment or reply, in UTF-8 bytes.
pub const REVIEW_BODY_BYTES_MAX: usize = 16 * 1024;
/// Longest suggestion, in UTF-8 bytes.
pub const SUGGESTION_BYTES_MAX: usize = 64 * 1024;
/// Longest quote of an anchor, in UTF-16 units: a comment on more is a comment on the document.
pub const QUOTE_UTF16_MAX: u32 = 20_000;
/// Characters kept on either side of a quote, to find it again.
pub const CONTEXT_CHARS: usize = 32;
/// Yjs client ids that may write one document. Each page that edits brings one, so that is years of
/// work; each costs some 400 bytes of memory and a place in every state vector.
pub const CLIENTS_PER_DOCUMENT_MAX: usize = 5_000;
/// What a new client id is charged to its socket, in bytes: a row of the database and the above.
pub const NEW_CLIENT_BYTES: usize = 1_024;
/// Structs and ranges of deletions of one document. What orders a document takes up to 200 bytes of
/// memory for each, and every browser an object. A page typed by a person has some hundred, a book
/// of a megabyte that was typed in bursts of three words some 60,000.
pub const DOCUMENT_ITEMS_MAX: usize = 400_000;
/// Steps, of about a nanosecond each, in which the server finds the places of the reviews of one list:
/// some 250 MB of text searched, or 500 quotes compared that stand everywhere. 2,000 lost quotes in a
/// text of 100 KB take a fifth of them. A review for which no step is left counts as orphaned in that list.
pub const PLACING_STEPS_MAX: usize = 64_000_000;
/// Reviews of one share link.
pub const REVIEWS_PER_LINK_MAX: i64 = 2_000;
/// Replies to one review.
pub const REPLIES_PER_REVIEW_MAX: i64 = 200;
/// Bytes of one review: its quote, comment and suggestion, and all its replies. Each event about a review
/// carries all of it, so this bounds an event: escaped as JSON, a quarter of what an outbox holds.
pub const REVIEW_BYTES_MAX: i64 = 256 * 1024;
/// Bytes of all reviews of one share link: what the two people of a document write beside a text of
/// 8 MiB, and what a reader of all pages transfers.
pub const REVIEWS_BYTES_MAX: i64 = 16 * 1024 * 1024;
/// Reviews of one page of a list, at most.
pub const REVIEW_PAGE_ROWS_MAX: u32 = 200;
/// Bytes of the reviews of one page, at most; a page has one review in any case. A server builds each
/// page in memory, as rows, as values and as JSON.
pub const REVIEW_PAGE_BYTES_MAX: i64 = 1024 * 1024;
/// Longest request body without a text or a review, in bytes: a title, a name, a label or an invite
/// takes at most 2,400 bytes, with each character escaped.
pub const SMALL_REQUEST_BYTES_MAX: usize = 4 * 1024;
/// Longest request body with a review or a reply, in bytes: body, suggestion and quote take 140 KiB in
/// UTF-8, and three times as much if a client escapes each character.
pub const REVIEW_REQUEST_BYTES_MAX: usize = 512 * 1024;
/// What the server keeps of the messages that a waiter sends before it has its seat, in bytes. A client
/// sends one question and cursors; the server asks for its edits when the seat is granted.
pub const EARLY_BYTES_MAX: usize = 64 * 1024;
/// Bytes of an unfinished websocket message that the budget does not see, for each socket. A keystroke or
/// a cursor stays below it, so the hot path takes no lock.
pub const UNCHARGED_BYTES_MAX: u64 = 16 * 1024;
/// Longer websocket messages, in bytes, have a buffer of their own, which is released with them. A
/// keystroke has forty bytes, a cursor three hundred.
pub const LONG_MESSAGE_BYTES: u64 = 4 * 1024;
/// Seconds by which a token must be newer than the stored name's before the same name is written again
/// for its time. New tokens of one user then cost at most one commit a minute.
pub const NAME_TIME_STEP_SECONDS: i64 = 60;
/// Presence of one session, in bytes: a cursor, a selection and a name take about 300.
pub const AWARENESS_BYTES_MAX: usize = 8 * 1024;
/// Deepest nesting the validator lets through. yrs 0.28.1 overflows a 2 MiB stack at some 6,000
/// levels, and the decoder of the other person's browser recurses too.
pub const NESTING_MAX: u32 = 64;
/// Frames waiting for one slow reader. Beyond it the reader is closed and syncs again.
pub const OUTBOX_FRAMES_MAX: usize = 1_024;
/// Sessions that may look at one document in one process: two sit, some knock.
pub const SESSIONS_PER_ROOM_MAX: usize = 64;
/// Bytes a second that a socket may send for long. A person who types and moves sends some
/// kilobytes; a check of a megabyte takes some 20 ms of a core.
pub const SOCKET_BYTES_PER_SECOND: NonZeroU32 = NonZeroU32::MIN.saturating_add(1024 * 1024 - 1);
/// Sockets whose rates all sockets of one user have together: a person with some documents open, each in
/// a tab that reconnects at the same moment.
pub const SESSIONS_OF_A_BUDGET: NonZeroU32 = NonZeroU32::MIN.saturating_add(7);
/// Bytes a second of events about reviews that one user causes for long. Every socket of the document
/// receives each of them, and a slow connection still empties its outbox faster.
pub const REVIEW_EVENT_BYTES_PER_SECOND: NonZeroU32 =
    NonZeroU32::MIN.saturating_add(128 * 1024 - 1);
/// Bytes of them that a user causes at once: eight of the largest reviews, or thousands of usual ones. Far
/// below what an outbox holds.
pub const REVIEW_EVENT_BURST: NonZeroU32 = NonZeroU32::MIN.saturating_add(2 * 1024 * 1024 - 1);
/// Texts built at once. A document of as many items as it may have takes up to 100 MiB while its text is
/// looked at, so this bounds what requests for texts can take.
pub const TEXTS_BUILT_MAX: usize = 4;
/// Texts built at once for one address, and for the server's own work: one place is left for others.
pub const TEXTS_PER_ADDRESS_MAX: usize = TEXTS_BUILT_MAX - 1;
/// Requests of one user that wait for a text: a person has some tabs, each with some requests. Beyond it,
/// and beyond the two bounds below, the server answers 503.
pub const TEXTS_WAITING_PER_USER_MAX: usize = 64;
/// Requests of one address that wait for a text: an office of hundreds that reconnects at once. One
/// address leaves room for others.
pub const TEXTS_WAITING_PER_ADDRESS_MAX: usize = 1_024;
/// Requests of users that wait for a text: each takes a few kilobytes, and each turn costs a walk
/// through those who wait.
pub const TEXTS_WAITING_MAX: usize = 4 * TEXTS_WAITING_PER_ADDRESS_MAX;
/// Longest label of a version, in characters.
pub const LABEL_CHARS_MAX: usize = 100;
/// Versions of one document. Beyond it the oldest automatic ones go.
pub const VERSIONS_MAX: usize = 1_000;
/// What the versions of one document may take, compressed, in bytes.
pub const VERSION_BYTES_MAX: i64 = 64 * 1024 * 1024;
/// Named versions of one document. They never go by themselves, so there is an end to naming.
pub const NAMED_VERSIONS_MAX: usize = 200;
/// What the named ones may take of [`VERSION_BYTES_MAX`]: the rest is for the automatic ones.
pub const NAMED_BYTES_MAX: i64 = VERSION_BYTES_MAX / 2;
/// Largest text that a stored version is unpacked to, in bytes: a document's own limit is below.
pub const VERSION_TEXT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How long two texts are compared by words. What is left then is told by whole paragraphs.
pub const DIFF_PATIENCE: Duration = Duration::from_millis(400);
/// Places at which a restored text may differ from the current one. Beyond it neighbours are
/// joined: each place costs a walk through the document.
pub const RESTORE_PLACES_MAX: usize = 1_000;
/// How long a knock waits for the old socket's sign of life.
pub const KNOCK_PATIENCE: Duration = Duration::from_secs(1);
/// How long a seat that changes hands waits for what was typed in it to be stored. Longer than a
/// slow disk needs; when storage is away, whoever waits is better told so.
pub const SETTLE_PATIENCE: Duration = Duration::from_secs(2);
/// How long the answer to a committed change of a review waits for the review's place in the text. The
/// user's other texts may take as long as they like; a text at its limit takes two seconds.
pub const PLACE_PATIENCE: Duration = Duration::from_secs(5);
/// Grants that a server ratifies at once after a database lost them: half of the connections to PostgreSQL
/// that are not for edits. The others serve revocations and joins meanwhile; SQLite commits them together.
pub const GRANTS_RATIFIED_AT_ONCE: usize = 4;
/// How long a room tries to store again what an older database lacks: two waits for a locked row, over all
/// tries. No edit of the document is stored meanwhile; after it the clients bring what they have.
pub const PUT_BACK_PATIENCE: Duration = Duration::from_secs(10);
/// How long a server has to say that it heard a question, before it counts as dead. A server answers
/// within a few milliseconds, and within some hundred in a storm of joins. The unsaved edits of a
/// living server that counts as dead are refused, and its room is reset for both users; a resume
/// after a server's death waits this long. So it is three times what a storm takes, and below a probe.
pub const HEARING_PATIENCE: Duration = Duration::from_millis(750);
/// Questions to other servers that may be open at once, and theirs that are looked into at once.
/// Each is a socket that knocks at a seat, or takes one over.
pub const QUESTIONS_MAX: usize = 1_024;
/// How often a quiet socket is sent an empty presence frame: the stock client gives up after 30 s
/// without a message, and websocket pings do not count.
pub const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(10);
/// Lines that the log takes of one kind of security event in a minute, and at once: a flood does not
/// fill the disk, and one address's burst is still seen line by line.
pub const SECURITY_LINES_PER_MINUTE: NonZeroU32 = at_least_one(60);
/// See [`SECURITY_LINES_PER_MINUTE`].
pub const SECURITY_LINES_BURST: NonZeroU32 = at_least_one(60);
/// Bearer tokens that are not valid, from one address in a second: they may be guesses of the admin
/// token. A backend with a wrong secret stays below it.
pub const REFUSED_BEARERS_PER_SECOND: NonZeroU32 = at_least_one(10);
/// The same, at once: all users behind one address whose tokens end in the same minute.
pub const REFUSED_BEARERS_BURST: NonZeroU32 = at_least_one(1_000);

const fn at_least_one(number: u32) -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(number - 1)
}

/// How long the server waits for what it asked a writer for, before it asks again upon the next edit
/// that builds on something missing.
pub const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

const _: () = assert!(NAMED_VERSIONS_MAX < VERSIONS_MAX);
const _: () = assert!(REVIEW_BYTES_MAX < REVIEW_PAGE_BYTES_MAX);
const _: () = assert!(REVIEW_PAGE_BYTES_MAX < REVIEWS_BYTES_MAX);
const _: () = assert!(
    REVIEW_BODY_BYTES_MAX + SUGGESTION_BYTES_MAX + 3 * (QUOTE_UTF16_MAX as usize) < (256 * 1024)
);
const _: () = assert!(CONTEXT_CHARS < QUOTE_UTF16_MAX as usize);
const _: () = assert!(HEARING_PATIENCE.as_millis() < KNOCK_PATIENCE.as_millis());
const _: () = assert!(KEEP_ALIVE_EVERY.as_secs() * 2 < 30);
