//! The limits of every resource (G13).
//!
//! An operator changes limits in the settings. This module fixes the limits whose change would break
//! an invariant, each with its reason.

use std::num::NonZeroU32;
use std::time::Duration;

use chrono::TimeDelta;

/// Longest name of a user, in characters: the page has no room for more beside a seat.
pub const NAME_CHARS_MAX: usize = 80;
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
/// Longest item of a batch of suggestions as JSON, in bytes.
pub const SUGGESTION_ITEM_BYTES_MAX: usize = 1024 * 1024;
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
/// Lifetime of a code that signs a guest in on another device: time to type eight characters.
pub const TRANSFER_TTL: TimeDelta = TimeDelta::minutes(15);
/// Codes that one address may try, on average and at once. A code has 40 bits: at this rate an address
/// tries 150 of 10¹² within the lifetime of a code.
pub const TRANSFER_TRIES_PER_MINUTE: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
/// Longest request body without a text or a review, in bytes. A title, a name, a label or an invite
/// takes at most 2,400 bytes with each character escaped.
pub const SMALL_REQUEST_BYTES_MAX: usize = 4 * 1024;
/// Longest request body with a message to another user, in bytes: its characters take twelve bytes each
/// if a client escapes them.
pub const MESSAGE_REQUEST_BYTES_MAX: usize = 16 * 1024;
/// Longest request body with a review or a reply, in bytes. Body, suggestion and quote take 140 KiB
/// in UTF-8, and three times as much if a client escapes each character.
pub const REVIEW_REQUEST_BYTES_MAX: usize = 512 * 1024;
/// Bytes of messages that the server stores for a waiter before the grant. A waiting client sends
/// one sync request and cursors; the server requests its edits after the grant.
pub const EARLY_BYTES_MAX: usize = 64 * 1024;
/// Bytes of an unfinished websocket message that the server does not charge to the budget, for each
/// socket. An edit or a cursor stays below it, so the hot path takes no lock.
pub const UNCHARGED_BYTES_MAX: u64 = 16 * 1024;
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
/// Bytes of an exported file: twice the largest text. The server holds one such file in memory for each
/// build, and SQLite writes it in one commit while edits wait. A longer one is a typed problem.
pub const EXPORT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Exported files that the server holds in memory at once, from the rendering until they are stored: 64 MiB.
pub const EXPORTS_HELD_MAX: usize = 4;
/// Exported files held for one address: the memory of one remains for others.
pub const EXPORTS_HELD_PER_ADDRESS_MAX: usize = EXPORTS_HELD_MAX - 1;
/// Pages of a PDF: the longest text of a document, set with notes beside it, takes 3,500. Lines of few
/// characters take more; each page costs 3 KiB of memory besides its text.
pub const PDF_PAGES_MAX: usize = 5_000;
/// Longest font of PDFs, in bytes: all weights of a collection of East Asian faces. A server holds each
/// font in memory.
pub const FONT_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Bytes of all parts of a Word document before compression: eight million lines take 50 MiB.
pub const EXPORT_INFLATED_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of the stored exports of one share link: each format once, and the largest ones twice.
pub const EXPORTS_PER_LINK_BYTES_MAX: i64 = 2 * 16 * 1024 * 1024;
/// Bytes of all stored exports. They are a cache: beyond it the server deletes the oldest ones.
pub const EXPORTS_BYTES_MAX: i64 = 256 * 1024 * 1024;
/// Stored exports. The trim after each build reads the sizes of all.
pub const EXPORTS_MAX: i64 = 10_000;
/// How long the database stores an export: a day's downloads.
pub const EXPORT_AGE_MAX: TimeDelta = TimeDelta::hours(24);
/// Builds of exports and imports that one user starts in a second, on average; ten times as many from one
/// address. Each builds the whole text.
pub const EXPORT_BUILDS_PER_SECOND: NonZeroU32 = at_least_one(1);
/// Burst of those builds: each format of some documents.
pub const EXPORT_BUILDS_BURST: NonZeroU32 = at_least_one(30);
/// Longest file of an import, in bytes: a Word document with pictures.
pub const IMPORT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Parts of an imported Word document. A long one with pictures has some hundred.
pub const IMPORT_ENTRIES_MAX: usize = 2_000;
/// Bytes of an imported part after decompression. The server reads it as a stream.
pub const IMPORT_INFLATED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// An imported part may inflate to a megabyte, and beyond it by this factor. Deflate reaches 1,032 with
/// one repeated byte; prose in XML stays far below this.
pub const IMPORT_RATIO_MAX: u64 = 200;
/// Footnotes and endnotes of an imported Word document. A dissertation has a thousand.
pub const IMPORT_NOTES_MAX: usize = 10_000;
/// Deepest nesting of XML in an import. Tables in tables in text boxes reach some fifty.
pub const IMPORT_DEPTH_MAX: usize = 256;
/// Namespaces of all open elements of an import. Word declares some forty at the root; the reader
/// searches them for each element.
pub const IMPORT_NAMESPACES_MAX: usize = 256;
/// Shortest and longest handle, in characters: the page has room for so many beside a name.
pub const HANDLE_CHARS_MIN: usize = 2;
/// See [`HANDLE_CHARS_MIN`].
pub const HANDLE_CHARS_MAX: usize = 30;
/// How long a handle that its user gave up is reserved for them. Another user with it would receive the
/// requests of those who know the former one.
pub const HANDLE_RESERVED_FOR: TimeDelta = TimeDelta::days(30);
/// Reserved handles of one user, so that changes take no name away from others.
pub const HANDLES_RESERVED_MAX: i64 = 3;
/// Handles, personal links and ids that one user may try in a minute, and at once: people type them.
/// A guess of a handle costs one.
pub const PEOPLE_TRIES_PER_MINUTE: NonZeroU32 = at_least_one(30);
/// Unknown handles, links and ids that one address may name in a minute, and at once: ten users.
/// Guests are free, so a limit by user restricts no guest.
pub const UNKNOWN_PEOPLE_PER_MINUTE: NonZeroU32 = at_least_one(300);
/// Longest message of a request, in characters: a paragraph.
pub const REQUEST_MESSAGE_CHARS_MAX: usize = 1_000;
/// Pending requests that one user has sent: each waits in the list of another user.
pub const REQUESTS_PENDING_MAX: i64 = 20;
/// Pending requests that one user has received. Beyond it that list helps no reader.
pub const REQUESTS_RECEIVED_MAX: i64 = 200;
/// Requests of one user to one other within a day: a receiver who declines is left alone.
pub const REQUESTS_PER_PAIR_AND_DAY: i64 = 3;
/// Requests of one user within a day.
pub const REQUESTS_PER_DAY: i64 = 50;
/// How long a request is pending.
pub const REQUEST_TTL: TimeDelta = TimeDelta::days(30);
/// How long a request stays in the lists of its users. With [`REQUESTS_PER_DAY`] it bounds the rows of a
/// sender to 4,500.
pub const REQUEST_RETENTION: TimeDelta = TimeDelta::days(90);
/// Requests beyond their retention that one new request deletes, at most.
pub const REQUESTS_PURGED_AT_ONCE: i64 = 10;
/// Lease of the lock of a pair: longer than a transaction, whose bound is fifteen seconds. A pair waits
/// that long for a server that died.
pub const REQUEST_LEASE: Duration = Duration::from_secs(20);
/// Partners of one user: a class or a department. Each row has some 150 bytes.
pub const PARTNERS_MAX: i64 = 500;
/// Time budget of a comparison by words. After it the diff reports the rest by whole paragraphs.
pub const DIFF_TIMEOUT: Duration = Duration::from_millis(400);
/// Hunks in which a restored text may differ from the current one. Beyond it the diff joins
/// neighbouring hunks, because each hunk costs a walk through the document.
pub const RESTORE_HUNKS_MAX: usize = 1_000;
/// Places of one review offer: the reviews of a class. Also a page of its claims.
pub const OFFER_CAPACITY_MAX: u32 = 100;
/// Longest message of an offer or a claim, in characters.
pub const OFFER_MESSAGE_CHARS_MAX: usize = 1_000;
/// Open offers of one user. With all places claimed they have 10,000 claims.
pub const OPEN_OFFERS_MAX: i64 = 100;
/// Closed offers of one user. A new offer deletes the oldest ones beyond it, with their claims;
/// partners stay partners.
pub const CLOSED_OFFERS_STORED: i64 = 200;
/// Closed offers that a new one deletes, so that its transaction stays short.
pub const OFFERS_PURGED_AT_ONCE: i64 = 10;
/// Claims of one user within a day, withdrawn ones too: a user who works through many offers, and no
/// program that takes the places of others.
pub const CLAIMS_PER_DAY_MAX: i64 = 50;
/// The day of [`CLAIMS_PER_DAY_MAX`].
pub const CLAIM_DAY: TimeDelta = TimeDelta::hours(24);
/// Ended claims that a withdrawal deletes: all of a day.
pub const CLAIMS_PURGED_AT_ONCE: i64 = CLAIMS_PER_DAY_MAX;
/// Interval at which a waiting claim polls the queue without a message, and its longest wait.
/// 500 waiters send 500 short scripts a second in all. The wait is below the timeout of a request.
pub const CLAIM_WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// Lease of an offer's lock, never renewed: a claim commits within some milliseconds. The waiters of
/// a dead server's claim continue after it, within their own wait.
pub const CLAIM_LEASE: Duration = Duration::from_secs(4);
/// Further attempts of a claim that Redis does not answer in time. Each takes a second and a half at
/// most, so a claim without Redis fails within five seconds.
pub const CLAIM_RETRIES: u32 = 2;
/// Claims of one user that one server handles at once: some tabs.
pub const CLAIMS_WAITING_PER_USER_MAX: u64 = 4;
/// Claims that one server handles at once. Each takes some kilobytes. The wait queue of one offer
/// holds 1,000 claims of all servers.
pub const CLAIMS_WAITING_MAX: u64 = 4_096;
/// Timeout of a liveness probe.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a server waits for the flush of a session's pending edits before it releases the seat or
/// ratifies its next grant. A slow disk needs less. If the edits are on the claimant's own server, the
/// claim fails after this, because storage is unavailable.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the reply to a committed change of a review waits for the review's anchor. The queue of
/// the user's other texts has no bound in time; a text at its limit takes two seconds.
pub const ANCHOR_TIMEOUT: Duration = Duration::from_secs(5);
/// Grants that a server ratifies concurrently after the database lost them: half of the PostgreSQL
/// connections that do not write edits. The others serve revocations and joins meanwhile; SQLite
/// commits them as a group.
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
/// Log lines of one kind of security event per minute, and at once. A flood does not fill the disk,
/// and the log still shows one address's burst line by line.
pub const SECURITY_LINES_PER_MINUTE: NonZeroU32 = at_least_one(60);
/// See [`SECURITY_LINES_PER_MINUTE`].
pub const SECURITY_LINES_BURST: NonZeroU32 = at_least_one(60);
/// Invalid bearer tokens from one address in a second: they may be guesses of the admin token. A
/// backend with a wrong secret stays below it.
pub const REFUSED_BEARERS_PER_SECOND: NonZeroU32 = at_least_one(10);
/// Burst of invalid bearer tokens from one address: all users behind one address whose tokens expire in the same minute.
pub const REFUSED_BEARERS_BURST: NonZeroU32 = at_least_one(1_000);

/// Browsers of one user that receive pushes. A further one replaces the oldest.
pub const PUSH_SUBSCRIPTIONS_MAX: u32 = 10;
/// Longest address of a push service's endpoint, in bytes. The services use some 200 to 800.
pub const PUSH_ENDPOINT_BYTES_MAX: usize = 2 * 1024;
/// Longest payload of a push, in bytes before the encryption. Every push service accepts a body of 4,096
/// bytes (RFC 8030 §7.2), and the encryption adds 103.
pub const PUSH_PAYLOAD_BYTES_MAX: usize = 3_000;
/// Pushes that wait for another attempt, in all: some 5 MB.
pub const PUSH_RETRIES_MAX: u64 = 1_024;
/// Pushes of one user that wait for another attempt: two for each browser.
pub const PUSH_RETRIES_PER_USER_MAX: u64 = 20;
/// Attempts of one push, the first one included.
pub const PUSH_ATTEMPTS_MAX: u32 = 5;
/// How long a push waits for further attempts. A later one would report an old state.
pub const PUSH_RETRY_WINDOW: Duration = Duration::from_hours(1);
/// Pushes that run in the background of the requests that cause them. Beyond it the server drops a push.
pub const BACKGROUND_PUSHES_MAX: u64 = 256;
/// Background pushes of one user, or of one address of guests: a push to a slow host takes seconds.
pub const BACKGROUND_PUSHES_PER_CAUSE_MAX: u64 = 16;
/// Requests to other programs at once. Each holds a connection and some 100 KiB.
pub const OUTGOING_MAX: usize = 64;
/// Requests to one host at once: a slow host leaves most connections to others.
pub const OUTGOING_PER_HOST_MAX: usize = 16;
/// Requests at once to all hosts whose last request failed or that had none: half of the connections
/// remains for hosts that work.
pub const OUTGOING_UNPROVEN_MAX: usize = OUTGOING_MAX / 2;
/// Requests that wait for one of [`OUTGOING_MAX`]. Beyond it a request fails at once.
pub const OUTGOING_WAITING_MAX: usize = 1_024;
/// Look-ups of hosts at once whose last request succeeded, and as many of all others: a name that no
/// server of names resolves takes a thread until the system's resolver gives up.
pub const OUTGOING_LOOKUPS_MAX: usize = 8;
/// Time limit of one request to another program: look-up, connection, TLS and response.
pub const OUTGOING_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of one attempt to connect: a host with several addresses gets three attempts.
pub const OUTGOING_CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest head of a response that the server reads, in bytes.
pub const OUTGOING_HEAD_BYTES_MAX: usize = 32 * 1024;
/// The most that the server reads of a response's body, in bytes. Push services explain a refusal in a
/// few hundred.
pub const OUTGOING_BODY_BYTES_MAX: usize = 32 * 1024;
/// Endpoints of webhooks. Each polls the database every [`WEBHOOK_TICK`].
pub const WEBHOOK_ENDPOINTS_MAX: usize = 20;
/// Shortest secret of an endpoint, in bytes: a guess of 128 bits.
pub const WEBHOOK_SECRET_BYTES_MIN: usize = 16;
/// Longest address of an endpoint, in bytes.
pub const WEBHOOK_URL_BYTES_MAX: usize = 2 * 1024;
/// Webhooks in the database, pending and dead: some 60 MB. Each endpoint has a share of them; beyond it the
/// server drops its new ones, and deletes its oldest dead ones before.
pub const WEBHOOKS_MAX: i64 = 100_000;
/// Reviews that the webhook of one decision names. Beyond it the receiver reads the list.
pub const WEBHOOK_REVIEWS_MAX: usize = 100;
/// How long a webhook waits for further attempts.
pub const WEBHOOK_RETRY_WINDOW: Duration = Duration::from_hours(24);
/// The pause after the first failed attempt; each further one doubles it.
pub const WEBHOOK_DELAY_FIRST: Duration = Duration::from_secs(1);
/// Longest pause between two attempts: 50 attempts in a day.
pub const WEBHOOK_DELAY_MAX: Duration = Duration::from_mins(30);
/// The most of a receiver's `Retry-After` that counts.
pub const WEBHOOK_RETRY_AFTER_MAX: Duration = Duration::from_hours(1);
/// The claim of a webhook: another server repeats the attempt of a dead one after it.
pub const WEBHOOK_LEASE: Duration = Duration::from_secs(15);
/// The most that an attempt takes, with its wait for a connection: it ends before the lease.
pub const WEBHOOK_ATTEMPT_MAX: Duration = Duration::from_secs(12);
/// First attempts of one server for one endpoint at once.
pub const WEBHOOK_FIRST_AT_ONCE: usize = 8;
/// Repeated attempts of one server for one endpoint at once. They have slots of their own: documents whose
/// webhooks fail leave all of [`WEBHOOK_FIRST_AT_ONCE`] to the others.
pub const WEBHOOK_REPEATED_AT_ONCE: usize = 4;
/// A longer attempt gives its slot back. Thirty documents whose first webhooks hang occupy the slots for three
/// times this, so another document waits for a third of a second.
pub const WEBHOOK_SLOT_MAX: Duration = Duration::from_millis(100);
/// Attempts of one server for one endpoint that are longer than that. Each holds a connection; beyond it
/// they hold their slots.
pub const WEBHOOK_SLOW_AT_ONCE: usize = 32;
/// Look-ups of one endpoint's host at once. A name that no server of names resolves takes a thread each.
pub const WEBHOOK_LOOKUPS_MAX: usize = 2;
/// The poll of the database for webhooks of other servers, and for those that are due again.
pub const WEBHOOK_TICK: Duration = Duration::from_secs(2);
/// Dead webhooks that one request makes pending again.
pub const WEBHOOKS_REPLAYED_AT_ONCE: u64 = 10_000;
/// Seats whose locks one round of the search for departed sessions reads.
pub const WEBHOOK_SEATS_AT_ONCE: u32 = 250;

/// Shortest and longest interval of the ticks of jobs.
pub const JOB_TICKS: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(60 * 60));
/// Estimated length of a run before enough runs are known: a sixth of the tick, within these bounds. A
/// server that dies in its first run blocks the job for one and a half of it.
pub const JOB_ESTIMATES: (Duration, Duration) =
    (Duration::from_millis(500), Duration::from_secs(10));
/// Stored runs of a job.
pub const JOB_RUNS_STORED: u32 = 20;
/// Reminders of one page of candidates.
pub const REMINDER_PAGE_ROWS: u32 = 200;
/// Candidates of one kind that a batch looks at. The next batch continues after them.
pub const REMINDER_CANDIDATES_MAX: usize = 1_000;
/// Reminders that a batch sends at once: half of [`OUTGOING_MAX`].
pub const REMINDERS_AT_ONCE: usize = OUTGOING_MAX / 2;
/// How long a batch claims reminders of one kind. A push service without answers takes ten seconds for
/// each, and the other kinds wait meanwhile.
pub const REMINDER_KIND_MAX: Duration = Duration::from_secs(100);
/// How long after it became due a reminder is still sent. It outlasts quiet hours and a weekend without
/// a server; a batch reads no older reviews.
pub const REMINDER_WINDOW: TimeDelta = TimeDelta::hours(72);
/// How long a waiter who left the queue of a seat by a disconnect is remembered.
pub const ABSENT_WAITER_TTL: TimeDelta = TimeDelta::hours(24);
/// Absent waiters that wait for their commit. A client that waits and leaves again and again adds no more.
pub const ABSENT_WAITERS_QUEUED_MAX: usize = 16;
/// Absent waiters that a batch deletes. A seat has one, so there are no more than seats.
pub const ABSENT_WAITERS_TRIMMED_AT_ONCE: u32 = 1_000;

const fn at_least_one(number: u32) -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(number - 1)
}

/// How long a room waits for the updates that it requested from a writer. After it the next edit
/// with a gap triggers a new request.
pub const REQUEST_AGAIN_AFTER: Duration = Duration::from_secs(1);

const _: () = assert!(NAMED_VERSIONS_MAX < VERSIONS_MAX);
const _: () = assert!(REQUEST_MESSAGE_CHARS_MAX * 12 < MESSAGE_REQUEST_BYTES_MAX);
const _: () = assert!((TITLE_CHARS_MAX + OFFER_MESSAGE_CHARS_MAX) * 12 < MESSAGE_REQUEST_BYTES_MAX);
const _: () = assert!(REQUEST_TTL.num_days() < REQUEST_RETENTION.num_days());
const _: () = assert!(SUMMARIES_PER_AUTHOR_MAX < REVIEWS_PER_LINK_MAX);
const _: () = assert!((DECIDED_AT_ONCE_MAX as i64) < DECISION_PARTS_PER_LINK_MAX);
const _: () = assert!(REVIEW_BYTES_MAX < REVIEW_PAGE_BYTES_MAX);
const _: () = assert!(REVIEW_PAGE_BYTES_MAX < REVIEWS_BYTES_MAX);
const _: () = assert!(
    REVIEW_BODY_BYTES_MAX + SUGGESTION_BYTES_MAX + 3 * (QUOTE_UTF16_MAX as usize) < (256 * 1024)
);
const _: () = assert!(2 * (EXPORT_BYTES_MAX as i64) <= EXPORTS_PER_LINK_BYTES_MAX);
const _: () = assert!(EXPORTS_PER_LINK_BYTES_MAX < EXPORTS_BYTES_MAX);
// A waiter outlasts the lease of a dead claimant before it.
const _: () = assert!(CLAIM_LEASE.as_millis() * 2 < CLAIM_WAIT.1.as_millis());
const _: () = assert!(CONTEXT_CHARS < QUOTE_UTF16_MAX as usize);
const _: () = assert!(PEER_ACK_TIMEOUT.as_millis() < PROBE_TIMEOUT.as_millis());
const _: () = assert!(BACKGROUND_PUSHES_PER_CAUSE_MAX * 4 < BACKGROUND_PUSHES_MAX);
const _: () = assert!(PUSH_PAYLOAD_BYTES_MAX + 103 <= 4_096);
const _: () = assert!(OUTGOING_PER_HOST_MAX < OUTGOING_UNPROVEN_MAX);
const _: () = assert!(OUTGOING_HEAD_BYTES_MAX + OUTGOING_BODY_BYTES_MAX <= 64 * 1024);
const _: () = assert!(OUTGOING_CONNECT_TIMEOUT.as_millis() * 3 < OUTGOING_TIMEOUT.as_millis());
const _: () = assert!(OUTGOING_TIMEOUT.as_millis() < WEBHOOK_ATTEMPT_MAX.as_millis());
const _: () = assert!(WEBHOOK_ATTEMPT_MAX.as_millis() + 2_000 < WEBHOOK_LEASE.as_millis());
const _: () = assert!(KEEP_ALIVE_EVERY.as_secs() * 2 < 30);
