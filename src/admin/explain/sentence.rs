//! One sentence that says why a seat is held.
//!
//! It serves logs and scripts. The page makes its own sentences, in the reader's language, from the
//! fields beside this one.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::admin::explain::{FactsSource, SessionDetails};
use crate::sessions::options::SeatTerms;
use crate::sessions::session::SessionState;

pub(crate) fn why(of: &SessionDetails, terms: &SeatTerms) -> String {
    let name = of.session.user.as_ref().map_or("somebody unknown", |user| user.name.as_str());
    let ago = |moment: Option<DateTime<Utc>>| moment.map(|moment| ago(of.as_of, moment));
    let unknown = || "at an unknown time".to_owned();
    let heard = ago(of.last_heard).unwrap_or_else(unknown);
    let renewed = ago(of.last_renewal).unwrap_or_else(unknown);
    let expiry = of.kept_until.map_or_else(
        || "Redis has no such key at the moment".to_owned(),
        |until| format!("kept until {} unless renewed", clock(until)),
    );
    let mut said = match (of.told_by, of.session.state) {
        (FactsSource::Redis, _) => format!(
            "{name}'s server ({node}) did not answer within a second; by Redis the lease was \
             renewed {renewed}, which that server does only for a client it has heard from within \
             {timeout}; {expiry}",
            node = of.session.node.map_or_else(|| "unknown".to_owned(), |node| node.to_string()),
            timeout = length(terms.client_timeout),
        ),
        (_, SessionState::Held) => {
            format!("{name}'s client was heard {heard}; renewed {renewed}; {expiry}")
        }
        (_, SessionState::Uncertain) => format!(
            "{name}'s client was heard {heard}, but the lease could not be renewed in time (last \
             {renewed}), so edits are refused until it is; {expiry}"
        ),
        (_, SessionState::Away) => format!(
            "{name}'s connection broke (last heard {heard}); the seat waits for their return until \
             {until}, and then goes to whoever is next",
            until = of.grace_until.map_or_else(unknown, clock),
        ),
        (_, SessionState::Claiming) => {
            format!(
                "the seat was given to {name} just now, whose session has not sat down yet; {expiry}"
            )
        }
        (_, SessionState::Ended) => format!("{name}'s session is ending; {expiry}"),
    };
    if let Some(edited) = ago(of.last_edit) {
        said += &format!("; last edit {edited}");
    }
    if let Some(at) = of.idle_release_at {
        said += &format!("; given back at {} if nothing is done", clock(at));
    }
    match of.waiting {
        0 => said + ". Nobody waits.",
        1 => said + ". One person waits.",
        many => said + &format!(". {many} people wait."),
    }
}

fn ago(now: DateTime<Utc>, moment: DateTime<Utc>) -> String {
    format!("{} ago", length((now - moment).to_std().unwrap_or_default()))
}

fn length(long: Duration) -> String {
    match long.as_secs() {
        0 if !long.is_zero() => format!("{} ms", long.as_millis()),
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

fn clock(moment: DateTime<Utc>) -> String {
    moment.format("%H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::admin::sessions::SessionInfo;
    use crate::domain::fence::Fence;
    use crate::domain::ids::{NodeId, ShareLinkId};
    use crate::domain::seat::Role;
    use crate::domain::user::User;

    fn held() -> SessionDetails {
        let as_of = DateTime::from_timestamp(1_000_000_000, 0).expect("a time");
        let ago = |seconds| as_of - TimeDelta::seconds(seconds);
        let session = SessionInfo {
            lock_key: String::new(),
            share_link_id: ShareLinkId::generate(),
            title: None,
            role: Role::Reviewer,
            session_id: None,
            user: Some(User { id: "u1".parse().expect("an id"), name: "Lee".to_owned() }),
            node: Some(NodeId::generate()),
            since: Some(ago(60)),
            fence: Some(Fence(1)),
            ttl_ms: Some(11_000),
            last_seen: ago(2),
            state: SessionState::Held,
        };
        SessionDetails {
            session,
            why: String::new(),
            told_by: FactsSource::ThisServer,
            as_of,
            last_heard: Some(ago(2)),
            last_active: Some(ago(2)),
            last_edit: None,
            last_renewal: Some(ago(1)),
            trusted_until: Some(ago(-9)),
            kept_until: Some(ago(-11)),
            grace_until: None,
            idle_release_at: None,
            waiting: 0,
            line: Vec::new(),
        }
    }

    #[test]
    fn a_held_seats_sentence_names_user_last_heartbeat_and_lease() {
        let terms = SeatTerms::default();
        assert_eq!(
            why(&held(), &terms),
            "Lee's client was heard 2 s ago; renewed 1 s ago; kept until 01:46:51 UTC unless \
             renewed. Nobody waits."
        );
        let mut edited = held();
        edited.last_edit = Some(edited.as_of - TimeDelta::minutes(3));
        edited.idle_release_at = Some(edited.as_of + TimeDelta::minutes(27));
        edited.waiting = 2;
        let said = why(&edited, &terms);
        assert!(said.contains("last edit 3 min ago; given back at 02:13:40 UTC"), "{said}");
        assert!(said.ends_with("2 people wait."), "{said}");
    }

    #[test]
    fn each_state_has_its_sentence_and_a_silent_server_is_named() {
        let terms = SeatTerms::default();
        let in_state = |state| {
            let mut details = held();
            details.session.state = state;
            details.grace_until = Some(details.as_of);
            why(&details, &terms)
        };
        assert!(in_state(SessionState::Uncertain).contains("edits are refused"));
        assert!(in_state(SessionState::Away).contains("waits for their return until 01:46:40 UTC"));
        assert!(in_state(SessionState::Claiming).contains("given to Lee just now"));
        let mut silent = held();
        (silent.told_by, silent.last_heard) = (FactsSource::Redis, None);
        let said = why(&silent, &terms);
        let node = silent.session.node.expect("a server").to_string();
        assert!(said.contains(&node), "{said}");
        assert!(said.contains("did not answer within a second"), "{said}");
        assert!(said.contains("heard from within 10 s"), "{said}");
    }
}
