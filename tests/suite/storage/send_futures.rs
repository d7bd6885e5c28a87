//! Futures of storage are `Send`, so tasks may move between threads. Compilation proves it.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use galley::domain::anchor::RelativeRange;
use galley::domain::export::ExportFormat;
use galley::domain::fence::Fence;
use galley::domain::ids::{DecisionId, SessionId};
use galley::domain::reminder::TimeZone;
use galley::domain::review::Verdict;
use galley::domain::seat::Role;
use galley::exports;
use galley::exports::store::{
    ExportBounds, ExportBuild, ExportKey, ExportMark, NewExport, StoredExport,
};
use galley::partners::store::requests;
use galley::storage::decisions::{NewDecision, UndoneDecision};
use galley::storage::pagination::Page;
use galley::storage::replies::OwnReply;
use galley::storage::reviews::ReviewChange;
use galley::transfer;

use crate::storage::database::{
    ALL, Desk, at, edit, new_invite, new_link, new_reply, new_review, user,
};

crate::storage::on_both_engines! {
    send_futures:
    every_future_of_storage_is_send
    every_future_of_exports_and_partners_is_send
}

const BOUNDS: ExportBounds =
    ExportBounds { rows: 0, bytes: 0, link_bytes: 0, built_after: DateTime::<Utc>::MIN_UTC };

fn export(key: ExportKey) -> (ExportBuild, NewExport) {
    let build = ExportBuild { fence: Fence(1), progress: 0, failure: None, changed_at: at(0) };
    let [title, names, zone] = [(); 3].map(|()| String::new());
    let mark = ExportMark { seq: 0, change: 0, title, names, zone };
    let (hash, built_at) = ([0; 32], at(0));
    let export = StoredExport { mark, hash, length: 0, took_ms: 0, built_at };
    (build, NewExport { key, export, bytes: Bytes::new() })
}

/// Accepts only futures that are `Send`.
fn movable(future: impl Future + Send) {
    drop(future);
}

pub(crate) async fn every_future_of_storage_is_send(desk: Desk) {
    let seated = desk.seated().await;
    let (s, id, link, guard) = (&desk.storage, seated.document, seated.link, seated.writer);
    let kim = user("kim");
    movable(s.check());
    movable(s.close());
    movable(s.save_user(&kim, at(0)));
    movable(s.document(id));
    movable(s.documents_of(&kim.id, &Page { limit: 1, before: None }));
    movable(s.rename_document(id, "", at(0)));
    movable(s.delete_document(id));
    movable(s.set_characters(id, 0));
    movable(s.log(id));
    movable(s.log_from(id, 0));
    movable(s.append(&[edit(id, "x")]));
    movable(s.compact(id, 0, &Bytes::new(), ALL));
    movable(s.find_or_create_link(&new_link(id)));
    movable(s.link(link));
    movable(s.links_of(&kim.id, &Page { limit: 1, before: None }));
    movable(s.join_link(link, &kim, at(0)));
    movable(s.revoke_link(link, at(0)));
    let invite = new_invite([0; 32], at(0));
    movable(s.invite_state(link));
    movable(s.renew_invite(link, &invite));
    movable(s.remove_reviewer(link, &invite));
    movable(s.replace_reviewer(link, &kim.id, at(0)));
    movable(s.not_reviewing_among(&[]));
    movable(s.rename_user(&kim, at(0)));
    movable(s.profile_of(&kim.id));
    movable(s.set_guest_requests(&kim, true));
    movable(requests::decline_requests(s, &kim.id, at(0)));
    movable(transfer::store::put_transfer(s, &kim, [0; 32], at(0), at(1)));
    movable(transfer::store::take_transfer(s, [0; 32], at(0)));
    movable(s.seat_lookup(guard.seat));
    movable(s.ratify(guard.seat, guard.fence, SessionId::generate(), &kim.id, at(0)));
    movable(s.vacate(guard.seat, guard.fence));
    let review = new_review(link);
    movable(s.create_review(&review, guard));
    movable(s.reviews(link, None, 1));
    movable(s.reviews_for(link, &kim.id, None, 1));
    movable(s.review(link, &kim.id, review.id));
    movable(s.change_review(link, review.id, &ReviewChange::default(), None, guard, at(0)));
    movable(s.delete_review(link, review.id, None, guard));
    movable(s.add_reply(link, review.id, &new_reply(""), guard, at(0)));
    let author = kim.id.clone();
    let reply = OwnReply { link, review: review.id, id: new_reply("").id, author };
    movable(s.edit_reply(&reply, "", None, guard, at(0)));
    movable(s.delete_reply(&reply, None, guard, at(0)));
    movable(s.mark_seen(link, &kim.id, 0));
    movable(s.progress_of(&kim.id, &[link]));
    movable(s.pass_turn(link, Role::Writer, &kim, guard, at(0)));
    let range = RelativeRange { start: vec![], end: vec![] };
    movable(s.relocate(review.id, 0, &range, &range));
    movable(s.reviews_among(link, &[review.id]));
    let decision = DecisionId::generate();
    movable(s.decision(link, decision));
    let (by, at_zero) = (kim.clone(), at(0));
    let undone =
        UndoneDecision { id: decision, document: id, link, by, at: at_zero, parts: vec![] };
    movable(s.undo_decision(&undone, guard, Some(&edit(id, "x"))));
    let verdict = Verdict::Accept;
    let UndoneDecision { at, parts, .. } = undone;
    let new = NewDecision { id: decision, document: id, link, verdict, by: kim, at, parts };
    movable(s.decide(&new, guard, Some(&edit(id, "x"))));
}

pub(crate) async fn every_future_of_exports_and_partners_is_send(desk: Desk) {
    let link = desk.seated().await.link;
    let (s, kim) = (&desk.storage, user("kim").id);
    let (format, zone) = (ExportFormat::Text, TimeZone::UTC);
    let key = ExportKey { link, format, has_reviews: true, zone };
    let (build, new) = export(key);
    movable(exports::store::export_state(s, key));
    movable(exports::store::export_bytes(s, key, [0; 32]));
    movable(exports::store::begin_export(s, key, build.fence, at(0)));
    movable(exports::store::note_export(s, key, &build));
    movable(exports::store::store_export(s, build.fence, &new));
    movable(exports::store::trim_exports(s, BOUNDS, Some(key)));
    movable(s.make_partners(&kim, &kim, at(0)));
    movable(s.remove_partners(&kim, &kim, at(0)));
    movable(s.are_partners(&kim, &kim));
    movable(s.partners_of(&kim, &Page { limit: 1, before: None }));
}
