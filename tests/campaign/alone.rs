//! Acts during which no other fault happens, so that their laws are judged strictly: Redis goes back
//! to an old snapshot, and the database loses its last commits.

use serde_json::json;
use tokio::time::{Duration, Instant, sleep};

use crate::acts::Acts;
use crate::at_rest::{come_back, has_saved, seat};
use crate::desks::Order;
use crate::history::{How, What};
use crate::replica::Replica;

/// The effects of earlier faults and claims end within this.
const AFTERMATH: Duration = Duration::from_secs(6);
/// Two leases: a seat that an old state of Redis costs is lost by then.
const TWO_LEASES: Duration = Duration::from_secs(6);
/// The servers reconcile their rooms with the database at each tick; then clients reconnect.
const SET_BACK: Duration = Duration::from_secs(15);

/// Redis restarts from a snapshot that is older than the current grants.
pub(crate) async fn old_redis(acts: &mut Acts<'_>) {
    acts.world.save_redis().await;
    acts.pause(2_500, 3_500).await;
    acts.order(Order::Hold);
    sleep(AFTERMATH).await;
    acts.desks.recorder.note(What::Calm { only: "redis-old".to_owned() });
    let fault = acts.world.inject_at("redis-old", 0).await;
    acts.pause(100, 900).await;
    acts.world.heal(fault).await;
    sleep(TWO_LEASES).await;
    acts.desks.recorder.note(What::CalmEnds);
    acts.order(Order::Work);
}

/// The database loses the last rows of one document while its writer holds the seat and types on.
pub(crate) async fn set_back(acts: &mut Acts<'_>) {
    acts.order(Order::Hold);
    sleep(AFTERMATH).await;
    let desks = acts.desks;
    let number = acts.random.below(desks.count());
    let desk = desks.desk(number);
    let replica = Replica::of(&desk.document);
    let Ok(mut open) = seat(desks, &desk, "writer", How::TakeOver, replica).await else {
        panic!("no seat for the writer of a set-back");
    };
    for _ in 0..5 {
        open.types(desks, number);
        has_saved(desks, &mut open).await;
    }
    let kind = "set-back".to_owned();
    let target = json!(desk.document).to_string();
    desks.recorder.note(What::Fault { kind: kind.clone(), target: target.clone() });
    let lost = acts.world.database.set_back(&desk.document, 3).await;
    let mine = open.peer.text();
    let held = lost.iter().filter(|mark| mine.contains(mark.as_str())).cloned().collect();
    let document = desk.document.clone();
    desks.recorder.note(What::SetBack { document: document.clone(), lost, held });
    desks.recorder.note(What::Healed { kind, target });
    let until = Instant::now() + SET_BACK;
    for _ in 0..3 {
        open.types(desks, number);
        sleep(Duration::from_millis(200)).await;
    }
    let open = come_back(desks, &desk, open, until).await;
    let marks = acts.world.database.reads(&document).await.unwrap_or_default();
    desks.recorder.note(What::CameBack { document, marks });
    if let Some(mut open) = open {
        open.leave(desks, true, &mut None).await;
    }
    acts.order(Order::Work);
}
