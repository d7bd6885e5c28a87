//! Presence: the Yjs awareness states (cursor, selection) of one room.
//!
//! The server is the authority on the user of a state: it overwrites `user` with the authenticated
//! user. It ignores a state under a client id that another user owns, by a socket on any server or by
//! an edit. The ownership outlives the state for a while. Otherwise another user could claim the id
//! with the highest clock, and its owner could announce no higher one.
//!
//! A removed state keeps its clock (y-protocols does not raise it: y-websocket issue 122). A client
//! that reconnects under the same id therefore announces a clock that its peers ignore. The server
//! sends it its own tombstone, and the client announces a higher clock at once. Without the tombstone
//! it would be invisible for half a minute.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::domain::ids::{NodeId, SessionId, UserId};
use crate::domain::seat::Role;
use crate::sessions::session::SessionIdentity;
use crate::yjs::ROOT;
use crate::yjs::awareness::AwarenessEntry;

/// Clients renew every 15 s and drop each other after 30 s (y-protocols `outdatedTimeout`). The seat
/// tick checks this limit. It is shorter by more than a tick, so that the states of a dead server are
/// also gone within 30 s.
const OUTDATED_AFTER: Duration = Duration::from_secs(25);
/// States and tombstones of one room. Two users and a few reloads need ten.
const ENTRIES_MAX: usize = 256;
/// Highest accepted clock. An honest client never reaches it. A JavaScript client that received a
/// clock near 2^53 could announce no higher one.
const CLOCK_MAX: u64 = 1 << 48;
/// Client ids per socket: one, or a few when the page creates a new Yjs document.
const CLIENTS_PER_SESSION_MAX: usize = 8;

/// The field of a relative position (Yjs) that names a root type.
const ROOT_FIELD: &str = "tname";

#[derive(Debug, Default)]
pub struct Presence {
    entries: HashMap<u64, PeerPresence>,
}

#[derive(Debug)]
struct PeerPresence {
    clock: u64,
    state: Option<String>,
    /// The owner of the client id, if known.
    owner: Option<UserId>,
    from: Source,
    at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Session(SessionId),
    Node(NodeId),
}

#[derive(Debug, Default)]
pub struct Received {
    /// For the other members and servers.
    pub news: Vec<AwarenessEntry>,
    /// For the client itself.
    pub echo: Vec<AwarenessEntry>,
    /// Whether a state changed. A mere renewal by the client is no activity.
    pub moved: bool,
}

/// A state that is not a JSON object, or whose cursor names a root type other than the text.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidState;

impl Presence {
    /// `writers` maps Yjs client ids to the users that edit under them.
    pub fn receive(
        &mut self,
        identity: &SessionIdentity,
        entries: Vec<AwarenessEntry>,
        writers: &HashMap<u64, UserId>,
        now: Instant,
    ) -> Result<Received, InvalidState> {
        let from = Source::Session(identity.session);
        let user = &identity.user.id;
        let mut received = Received::default();
        for entry in entries {
            let stored = self.entries.get(&entry.client);
            let shown = stored.and_then(|stored| stored.owner.as_ref());
            let owner = writers.get(&entry.client).or(shown);
            if owner.is_some_and(|owner| owner != user)
                || entry.clock > CLOCK_MAX
                || (stored.is_none() && self.is_full_for(from))
            {
                continue;
            }
            let state = entry.state.map(|state| signed(&state, identity)).transpose()?;
            if let Some(stored) = stored
                && stored.is_ahead_of(entry.clock, state.as_ref())
            {
                let thought_gone = stored.state.is_none() && state.is_some();
                received.echo.extend(thought_gone.then(|| stored.tombstone(entry.client)));
                continue;
            }
            received.moved |= stored.is_none_or(|stored| stored.state != state);
            let owner = Some(user.clone());
            let stored = PeerPresence { clock: entry.clock, state, owner, from, at: now };
            received.news.push(stored.entry(entry.client));
            self.entries.insert(entry.client, stored);
        }
        Ok(received)
    }

    /// Applies the states that another server published; returns those that changed.
    pub fn merge(
        &mut self,
        node: NodeId,
        entries: Vec<AwarenessEntry>,
        now: Instant,
    ) -> Vec<AwarenessEntry> {
        let mut news = Vec::new();
        for entry in entries {
            let is_news = match self.entries.get(&entry.client) {
                Some(stored) => {
                    stored.clock < entry.clock
                        || (stored.clock == entry.clock
                            && entry.state.is_none()
                            && stored.state.is_some())
                }
                None => self.entries.len() < ENTRIES_MAX,
            };
            if is_news {
                let before =
                    self.entries.get(&entry.client).and_then(|stored| stored.owner.clone());
                let owner = before.or_else(|| signer(entry.state.as_deref()?));
                let (state, from) = (entry.state.clone(), Source::Node(node));
                let stored = PeerPresence { clock: entry.clock, state, owner, from, at: now };
                self.entries.insert(entry.client, stored);
                news.push(entry);
            }
        }
        news
    }

    /// The session's socket closed; returns the tombstones to broadcast.
    pub fn leave(&mut self, session: SessionId, now: Instant) -> Vec<AwarenessEntry> {
        self.drop_presence(now, |stored| stored.from == Source::Session(session))
    }

    /// The last peer of a server left the room; returns the tombstones to broadcast.
    pub fn leave_node(&mut self, node: NodeId, now: Instant) -> Vec<AwarenessEntry> {
        self.drop_presence(now, |stored| stored.from == Source::Node(node))
    }

    /// Removes states without a recent renewal, and tombstones of that age; returns the new tombstones
    /// to broadcast.
    pub fn expire(&mut self, now: Instant) -> Vec<AwarenessEntry> {
        let outdated =
            |stored: &PeerPresence| now.saturating_duration_since(stored.at) >= OUTDATED_AFTER;
        self.entries.retain(|_, stored| stored.state.is_some() || !outdated(stored));
        self.drop_presence(now, outdated)
    }

    #[must_use]
    pub fn living(&self) -> Vec<AwarenessEntry> {
        self.select(|_| true)
    }

    #[must_use]
    pub fn local(&self) -> Vec<AwarenessEntry> {
        self.select(|stored| matches!(stored.from, Source::Session(..)))
    }

    fn select(&self, wanted: impl Fn(&PeerPresence) -> bool) -> Vec<AwarenessEntry> {
        let living = self.entries.iter().filter(|(_, stored)| stored.state.is_some());
        living.filter(|(_, stored)| wanted(stored)).map(|(id, stored)| stored.entry(*id)).collect()
    }

    /// Turns states into tombstones. A tombstone reserves its client id for its owner from `now` on.
    fn drop_presence(
        &mut self,
        now: Instant,
        dead: impl Fn(&PeerPresence) -> bool,
    ) -> Vec<AwarenessEntry> {
        let mut tombstones = Vec::new();
        for (client, stored) in &mut self.entries {
            if stored.state.is_some() && dead(stored) {
                (stored.state, stored.at) = (None, now);
                tombstones.push(stored.tombstone(*client));
            }
        }
        tombstones
    }

    fn is_full_for(&self, from: Source) -> bool {
        let own = self.entries.values().filter(|stored| stored.from == from).count();
        own >= CLIENTS_PER_SESSION_MAX || self.entries.len() >= ENTRIES_MAX
    }
}

impl PeerPresence {
    /// Whether the known state supersedes this one: its clock is higher, or equal. Only the removal of
    /// a living state may repeat a clock.
    fn is_ahead_of(&self, clock: u64, state: Option<&String>) -> bool {
        clock < self.clock || (clock == self.clock && (state.is_some() || self.state.is_none()))
    }

    fn entry(&self, client: u64) -> AwarenessEntry {
        AwarenessEntry { client, clock: self.clock, state: self.state.clone() }
    }

    fn tombstone(&self, client: u64) -> AwarenessEntry {
        AwarenessEntry { client, clock: self.clock, state: None }
    }
}

fn signed(state: &str, identity: &SessionIdentity) -> Result<String, InvalidState> {
    let Ok(Value::Object(mut state)) = serde_json::from_str::<Value>(state) else {
        return Err(InvalidState);
    };
    if state.values().any(names_other_root) {
        return Err(InvalidState);
    }
    let SessionIdentity { user, seat, .. } = identity;
    // Ink and red pen, for clients that read the colour from the state.
    let color = match seat.role {
        Role::Writer => "#1f4e8c",
        Role::Reviewer => "#b3261e",
    };
    state.insert(
        "user".to_owned(),
        json!({ "id": user.id, "name": user.name, "role": seat.role,
                "color": color, "colorLight": format!("{color}33") }),
    );
    Ok(Value::Object(state).to_string())
}

/// Whether a relative position in it names a root type that is not the document's text. A client
/// that resolves such a position creates a root type for each name and never drops it.
fn names_other_root(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| match name.as_str() {
            ROOT_FIELD => !value.is_null() && value != ROOT,
            _ => names_other_root(value),
        }),
        Value::Array(values) => values.iter().any(names_other_root),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The user of a state, as the publishing server signed it.
fn signer(state: &str) -> Option<UserId> {
    let state: Value = serde_json::from_str(state).ok()?;
    state.get("user")?.get("id")?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::{DocumentId, ShareLinkId};
    use crate::domain::seat::Seat;
    use crate::domain::user::User;

    fn identity(user: &str) -> SessionIdentity {
        SessionIdentity {
            session: SessionId::generate(),
            seat: Seat::new(ShareLinkId::generate(), Role::Reviewer),
            document: DocumentId::generate(),
            user: User { id: user.parse().expect("an id"), name: user.to_owned() },
            resume: String::new(),
            wants_events: false,
            store_budget: None,
        }
    }

    fn no_writers() -> HashMap<u64, UserId> {
        HashMap::new()
    }

    fn entry(client: u64, clock: u64, state: Option<&str>) -> AwarenessEntry {
        AwarenessEntry { client, clock, state: state.map(str::to_owned) }
    }

    #[tokio::test]
    async fn the_server_overwrites_the_user_of_a_state() {
        let mut presence = Presence::default();
        let claim = entry(1, 1, Some(r#"{"user":{"name":"the boss"},"cursor":4}"#));
        let received = presence
            .receive(&identity("kim"), vec![claim], &no_writers(), Instant::now())
            .expect("an object");
        let state: Value =
            serde_json::from_str(received.news[0].state.as_deref().expect("living")).expect("JSON");
        assert_eq!(state["user"]["name"], "kim");
        assert_eq!(state["user"]["role"], "reviewer");
        assert_eq!(state["cursor"], 4);
    }

    #[tokio::test]
    async fn g17_a_cursor_that_names_another_root_type_is_rejected() {
        let now = Instant::now();
        let receive = |cursor: &str| {
            let state = format!(r#"{{"cursor":{cursor}}}"#);
            let entries = vec![entry(1, 1, Some(&state))];
            Presence::default().receive(&identity("kim"), entries, &no_writers(), now).map(|_| ())
        };
        let position =
            |root: &str| format!(r#"{{"type":null,"tname":"{root}","item":null,"assoc":0}}"#);
        let cursors = ["x", "content ", "Content", ""].map(position).into_iter().flat_map(|at| {
            let escaped = at.replace("tname", "tn\\u0061me");
            [
                format!(r#"{{"anchor":{at},"head":null}}"#),
                format!(r#"{{"ranges":[[{at}]]}}"#),
                format!(r#"{{"anchor":{escaped}}}"#),
            ]
        });
        for cursor in cursors {
            assert_eq!(receive(&cursor), Err(InvalidState), "{cursor}");
        }
        for root in ["null", r#""content""#] {
            let item = r#"{"client":7,"clock":3}"#;
            let position = format!(r#"{{"type":null,"tname":{root},"item":{item},"assoc":0}}"#);
            let cursor = format!(r#"{{"anchor":{position},"head":{position}}}"#);
            assert_eq!(receive(&cursor), Ok(()), "{cursor}");
        }
    }

    #[tokio::test]
    async fn a_state_under_another_users_client_id_is_ignored() {
        let (mut presence, now) = (Presence::default(), Instant::now());
        let first =
            presence.receive(&identity("kim"), vec![entry(1, 1, Some("{}"))], &no_writers(), now);
        assert_eq!(first.expect("an object").news.len(), 1);
        let forged =
            presence.receive(&identity("lee"), vec![entry(1, 9, None)], &no_writers(), now);
        assert!(forged.expect("well-formed").news.is_empty());
        assert_eq!(presence.living().len(), 1);
    }

    /// Goal: a client id belongs to its owner while its session is away, and on every server.
    #[tokio::test]
    async fn g10_a_client_id_stays_its_owners_after_a_leave_and_on_other_servers() {
        let (now, last) = (Instant::now(), (1 << 53) - 1);
        let mut here = Presence::default();
        let (before, after) = (identity("kim"), identity("kim"));
        let first = here.receive(&before, vec![entry(1, 5, Some("{}"))], &no_writers(), now);
        let first = first.expect("an object").news;
        here.leave(before.session, now);
        let mut elsewhere = Presence::default();
        assert_eq!(elsewhere.merge(NodeId::generate(), first, now).len(), 1);
        for presence in [&mut here, &mut elsewhere] {
            let forged = vec![entry(1, last, Some("{}")), entry(1, last, None)];
            let forged = presence.receive(&identity("lee"), forged, &no_writers(), now);
            assert!(forged.expect("well-formed").news.is_empty());
            let back = vec![entry(1, 6, Some("{}"))];
            let back = presence.receive(&after, back, &no_writers(), now).expect("an object");
            assert_eq!((back.news.len(), back.echo.len()), (1, 0));
        }
        // A user owns the ids of its edits, even without a cursor.
        let writers = HashMap::from([(2, "kim".parse().expect("an id"))]);
        let forged = vec![entry(2, last, Some("{}"))];
        let forged = here.receive(&identity("lee"), forged, &writers, now).expect("an object");
        assert!(forged.news.is_empty());
    }

    #[tokio::test]
    async fn a_reconnected_client_gets_its_tombstone_and_may_announce_a_higher_clock() {
        let (mut presence, now) = (Presence::default(), Instant::now());
        let (before, after) = (identity("kim"), identity("kim"));
        let _ = presence
            .receive(&before, vec![entry(1, 5, Some("{}"))], &no_writers(), now)
            .expect("an object");
        assert_eq!(presence.leave(before.session, now), vec![entry(1, 5, None)]);
        let back = presence
            .receive(&after, vec![entry(1, 5, Some("{}"))], &no_writers(), now)
            .expect("an object");
        assert_eq!(back.echo, vec![entry(1, 5, None)]);
        assert!(back.news.is_empty());
        let again = presence.receive(&after, vec![entry(1, 6, Some("{}"))], &no_writers(), now);
        assert_eq!(again.expect("an object").news.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_without_renewal_expires_within_thirty_seconds() {
        let mut presence = Presence::default();
        presence.merge(NodeId::generate(), vec![entry(1, 1, Some("{}"))], Instant::now());
        let later = Instant::now() + OUTDATED_AFTER;
        assert_eq!(presence.expire(later), vec![entry(1, 1, None)]);
        assert!(presence.living().is_empty());
    }

    #[tokio::test]
    async fn g10_the_tombstone_of_an_expired_state_reserves_its_client_id_for_its_owner() {
        let (mut presence, now) = (Presence::default(), Instant::now());
        let claims = |presence: &mut Presence, user: &str, at| {
            let claim = vec![entry(1, 9, Some("{}"))];
            let received = presence.receive(&identity(user), claim, &no_writers(), at);
            received.expect("an object").news.len() == 1
        };
        let first =
            presence.receive(&identity("kim"), vec![entry(1, 5, Some("{}"))], &no_writers(), now);
        assert_eq!(first.expect("an object").news.len(), 1);
        let expired = now + OUTDATED_AFTER;
        assert_eq!(presence.expire(expired).len(), 1);
        let last_tick = expired + OUTDATED_AFTER - Duration::from_secs(1);
        assert!(presence.expire(last_tick).is_empty());
        assert!(!claims(&mut presence, "lee", last_tick));
        assert!(presence.expire(expired + OUTDATED_AFTER).is_empty());
        assert!(
            claims(&mut presence, "lee", expired + OUTDATED_AFTER),
            "the reservation has an end"
        );
    }

    #[tokio::test]
    async fn g13_one_socket_cannot_fill_a_room_with_presence_states() {
        let (mut presence, now, kim) = (Presence::default(), Instant::now(), identity("kim"));
        let crowd = (0..10_000).map(|client| entry(client, 1, Some("{}"))).collect();
        let received = presence.receive(&kim, crowd, &no_writers(), now).expect("objects");
        assert_eq!(received.news.len(), CLIENTS_PER_SESSION_MAX);
    }
}
