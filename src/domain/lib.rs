//! The product's terms and rules. No IO and no clock: the caller passes the time to every function.
//!
//! # Glossary
//!
//! - **document**: a text with a title, owned by one user.
//! - **bin**: the deleted documents of a user, until their owner restores them or the server purges them.
//!   Elsewhere a document of the bin does not exist.
//! - **share link**: the invitation to work on a document. A document has at most one active link.
//! - **role**: `writer` or `reviewer`.
//! - **seat**: the right to act in one role on one share link. At most one session of the whole
//!   cluster holds it.
//! - **session**: one websocket that holds a seat or claims one. Its id is unguessable and never
//!   reused.
//! - **claim**, **grant**: the request for a seat, and the successful acquisition that answers it.
//! - **holder**: the session that holds a seat, as any server reads it.
//! - **lease**: how long a grant stays valid without renewal.
//! - **resume grace**: time in which a seat stays reserved for its user after its socket broke.
//! - **tick**: one run of a periodic task. That of the seat task, every four seconds by default, sends
//!   heartbeats, ends silent and idle sessions, and compares rooms with the database; a job has its own.
//! - **fence**: the number of a grant. Each later grant of the same seat has a higher fence.
//! - **ratify**: register a grant's fence in the database. The database then rejects writes under
//!   any other fence.
//! - **review**: a comment, with or without a suggestion, anchored to a range of the text.
//! - **suggestion**: a review that changes the text once the writer accepts it.
//! - **part**: one place of a suggestion: a range whose quote it replaces, or a gap at which it inserts.
//! - **section**: the part of a text below a heading, such as the answer to a question of a form.
//! - **decision**, **undo**: one act of the writer on one or more reviews, and its reversal.
//! - **review turn**: the role that has the next step in the talk about a document.
//! - **review request**: a request of one user to another, for a review or with the offer of one.
//! - **invite**: a secret link that makes the user who opens it the reviewer of a share link.
//! - **transfer code**: a short code that signs a guest in on another device.
//! - **partners**: two users of whom one accepted a request or a claim of the other.
//! - **handle**, **personal link**: how other users reach a user: an exact name, or a secret token.
//! - **reminder**: a push to a user about something that waits for them.
//! - **offer**: a number of reviews that a user offers. Each is a place, and a claim takes one.
//! - **webhook**: the report of one event to one endpoint of the host product.
//! - **lane**: the webhooks of one document and endpoint, delivered one after another.
//! - **version**: the text of a document at one point of its update log, stored permanently or until
//!   the retention rules remove it.
//! - **export**, **import**: a file made of a document, and a document made of a file.
//! - **build**: one rendering of an export.
//! - **last edit**: the last change of title or text by a user; it moves `updated_at`.
//! - **room**: an open document in one process, with its sessions as members.
//! - **member**, **peer**: a session in the room, and a session of the same document on another server.
//! - **subscriber**: another server that has a room of the document open.
//! - **update**, **update log**: the bytes of a Yjs edit, and the validated updates of a document in
//!   order.
//! - **gap**: a missing number in a sequence of updates or messages. It triggers a read of the log. In a
//!   text, the empty range between two units.
//! - **replica**: the copy of a document in one room or client.
//! - **durable**, **saved**: committed with fsync, and reported as durable by `document.saved`.
//! - **share**: a part of a whole, for a user, an address or an endpoint; a drop frees it.
//! - **budget**: bytes in memory, or bytes of a period, that one cause may use.
//! - **permit**: one of a fixed number at once.
//! - **quota**: bytes or rows in the database against their limit, such as the size of a document.
//! - **client**, **user**: the program at the other end of a socket, and the person behind it.
//! - **half-open**: of a TCP connection: one end is gone, and the other has not noticed.
//! - **server**: one Galley process. [`NodeId`](ids::NodeId) names it.
//! - **runtime**: the parts of one server, which it starts in order and ends in order.
//! - **critical task**: a task whose end stops the server.
//!
//! `locks/lib.rs` carries the terms of locks.

#[cfg(feature = "product")]
pub mod anchor;
pub mod deletion;
#[cfg(feature = "product")]
pub mod export;
pub mod fence;
#[cfg(feature = "product")]
pub mod handle;
pub mod ids;
pub mod lease;
pub mod limits;
#[cfg(feature = "product")]
pub mod line;
#[cfg(feature = "product")]
pub mod offer;
#[cfg(feature = "product")]
pub mod printable;
pub mod progress;
#[cfg(feature = "product")]
pub mod reminder;
#[cfg(feature = "product")]
pub mod review;
#[cfg(feature = "product")]
pub mod review_request;
#[cfg(feature = "schemas")]
pub mod schemas;
pub mod seat;
#[cfg(feature = "product")]
pub mod section;
#[cfg(feature = "product")]
pub mod suggestion;
#[cfg(feature = "product")]
pub mod text;
pub mod user;
#[cfg(feature = "product")]
pub mod version_policy;
#[cfg(feature = "product")]
pub mod webhook;
#[cfg(feature = "product")]
pub mod word_split;

/// The error of a text that names no variant: each such type has one value.
#[cfg(feature = "product")]
fn invalid<E: Default>(_text: &str) -> E {
    E::default()
}
