//! Revocations of tokens: one row of a subject, read since a moment, and purged after the tokens.

use std::borrow::Borrow as _;

use crate::storage::database::{Desk, Stranger, at, user};
use chrono::{SubsecRound as _, TimeDelta, Utc};
use galley::domain::limits::TOKEN_AGE_MAX;
use galley::storage::audit::{Actor, AuditEntry, AuditQuery};
use galley::storage::revocations::{Revocation, TokenSubject};
use galley::transfer::store;

crate::storage::on_both_engines! {
    revocations:
    a_later_revocation_moves_the_moment_and_an_earlier_one_does_not
    g14_a_sign_out_everywhere_ends_codes_and_has_its_row
    g13_a_purged_revocation_refuses_the_tokens_from_before_it
}

fn entry() -> AuditEntry {
    AuditEntry {
        by: Actor::User(user("kim").id),
        user: None,
        action: "DELETE /api/me/sessions".to_owned(),
        target: String::new(),
        status: None,
        request_id: String::new(),
        peer: String::new(),
    }
}

pub(crate) async fn a_later_revocation_moves_the_moment_and_an_earlier_one_does_not(desk: Desk) {
    let (storage, kim) = (&desk.storage, user("kim").id);
    for moment in [5, 9, 7] {
        storage.sign_out_everywhere(&kim, at(moment), &entry()).await.unwrap();
    }
    let of_token =
        Revocation { subject: TokenSubject::token("seven"), before: at(60), until: at(60) };
    storage.revoke(&of_token).await.unwrap();
    storage.revoke(&of_token).await.unwrap();
    let of_kim = Revocation {
        subject: TokenSubject::user(&kim),
        before: at(9),
        until: at(9) + TOKEN_AGE_MAX,
    };
    let another = desk.another().await;
    let (mut rows, now) = another.revocations(None).await.unwrap();
    rows.sort_by_key(|row| row.until);
    assert_eq!(rows, [of_token, of_kim]);
    // A tick reads the rows whose commits it may have missed, and no older ones.
    assert_eq!(another.revocations(now).await.unwrap().0.len(), 2);
    let mut stranger = desk.location.stranger().await;
    let long_ago = match stranger {
        Stranger::Sqlite(_) => "made_at - 120000",
        Stranger::Postgres(_) => "made_at - interval '120 seconds'",
    };
    stranger.run(format!("UPDATE revocations SET made_at = {long_ago}")).await;
    assert_eq!(another.revocations(now).await.unwrap(), (vec![], now));
    // The clock of the database was set back: all of them count.
    let ahead = now.map(|now| now + TimeDelta::hours(1));
    assert_eq!(another.revocations(ahead).await.unwrap().0.len(), 2);
    for (issued, token, refused) in
        [(9, "zero", true), (10, "zero", false), (10, "seven", true), (61, "seven", false)]
    {
        let found =
            storage.is_revoked(&kim, &TokenSubject::token(token), at(issued)).await.unwrap();
        assert_eq!(found, refused, "{issued} {token}");
    }
    let other = TokenSubject::token("zero");
    assert!(!storage.is_revoked(&user("lee").id, &other, at(0)).await.unwrap());
}

pub(crate) async fn g14_a_sign_out_everywhere_ends_codes_and_has_its_row(desk: Desk) {
    let (storage, kim, now) = (&desk.storage, user("kim"), Utc::now());
    let later = now + TimeDelta::minutes(9);
    store::put_transfer(storage, &kim, [1; 32], now, later).await.unwrap();
    store::put_transfer(storage, &user("lee"), [2; 32], now, later).await.unwrap();
    storage.sign_out_everywhere(&kim.id, now, &entry()).await.unwrap();
    assert_eq!(store::take_transfer(storage, [1; 32], now).await.unwrap(), None);
    assert_eq!(store::take_transfer(storage, [2; 32], now).await.unwrap(), Some(user("lee")));
    let query = AuditQuery { limit: 9, ..AuditQuery::default() };
    let rows = storage.audit(&query).await.unwrap();
    assert_eq!(rows.into_iter().map(|row| row.entry).collect::<Vec<_>>(), [entry()]);
}

pub(crate) async fn g13_a_purged_revocation_refuses_the_tokens_from_before_it(desk: Desk) {
    let storage = &desk.storage;
    let now = Utc::now().trunc_subsecs(3);
    let [kim, lee] = ["kim", "lee"].map(|name| user(name).id);
    let (old, new) = (now - TOKEN_AGE_MAX - TimeDelta::days(1), now - TimeDelta::days(1));
    storage.sign_out_everywhere(&kim, old, &entry()).await.unwrap();
    storage.sign_out_everywhere(&lee, new, &entry()).await.unwrap();
    let token =
        |hash, until| Revocation { subject: TokenSubject::token(hash), before: until, until };
    storage.revoke(&token("one", now - TimeDelta::days(1))).await.unwrap();
    storage.revoke(&token("two", now + TimeDelta::days(1))).await.unwrap();
    assert_eq!(storage.purge_revocations(now).await.unwrap(), 2);
    assert_eq!(storage.purge_revocations(now).await.unwrap(), 0);
    let (rows, _) = storage.revocations(None).await.unwrap();
    let mut subjects: Vec<&str> = rows.iter().map(|row| row.subject.borrow()).collect();
    subjects.sort_unstable();
    assert_eq!(subjects, ["*", "lee", "token:two"]);
    let all = rows.iter().find(|row| row.subject == TokenSubject::all()).expect("a row");
    assert_eq!(all.before, old);
    // A token that outlives the row stays refused.
    let none = TokenSubject::token("none");
    assert!(storage.is_revoked(&kim, &none, old - TimeDelta::days(1)).await.unwrap());
    assert!(!storage.is_revoked(&kim, &none, old + TimeDelta::days(1)).await.unwrap());
}
