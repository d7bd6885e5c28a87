//! Decides how a new version is stored, from the document's other versions.

use std::collections::HashSet;

use chrono::{DateTime, Utc};

use crate::domain::ids::{DocumentId, VersionId};
use crate::domain::user::User;
use crate::domain::version_policy::{VersionKind, VersionMark, may_name, surplus};
use crate::storage::packed::Packed;

/// A version to store.
#[derive(Clone, Debug)]
pub struct NewVersion {
    /// Its id; never used before.
    pub id: VersionId,
    /// The document.
    pub document: DocumentId,
    /// Why the version is due.
    pub kind: VersionKind,
    /// The name that a user gave it.
    pub label: Option<String>,
    /// The authors of the text and of the version.
    pub authors: Vec<User>,
    /// The number of the version that was restored.
    pub restored_from: Option<i64>,
    /// The number of the last update in it. The database must have that update.
    pub seq: i64,
    /// The text.
    pub text: Packed,
    /// The time of the version.
    pub now: DateTime<Utc>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A version of a later point exists, or, for an automatic one, the newest has this text.
    NotNew,
    /// The document has no room for another named version.
    Full,
}

#[derive(Clone, Debug)]
pub(super) struct VersionRow {
    pub(super) mark: VersionMark,
    pub(super) seq: i64,
    pub(super) hash: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VersionPlan {
    pub(super) number: i64,
    pub(super) versions: Vec<i64>,
    /// The texts that no remaining version has.
    pub(super) texts: Vec<Vec<u8>>,
}

/// Decides. `rows`: all versions of the document, oldest first.
pub(super) fn plan(
    new: &NewVersion,
    seq: i64,
    mut rows: Vec<VersionRow>,
) -> Result<VersionPlan, Refusal> {
    let newest = rows.last();
    let last_seq = rows.iter().map(|one| one.seq).max();
    let is_new = if new.kind.is_automatic() {
        newest.map_or(new.text.characters > 0, |newest| newest.hash != new.text.hash)
            && last_seq.is_none_or(|last| last < seq)
    } else {
        last_seq.is_none_or(|last| last <= seq)
    };
    if !is_new {
        return Err(Refusal::NotNew);
    }
    let bytes = new.text.length();
    let marks: Vec<_> = rows.iter().map(|one| one.mark).collect();
    if new.kind == VersionKind::Named && !may_name(&marks, bytes) {
        return Err(Refusal::Full);
    }
    let number = newest.map_or(0, |newest| newest.mark.number) + 1;
    let mark = VersionMark { number, kind: new.kind, created_at: new.now, bytes };
    rows.push(VersionRow { mark, seq, hash: new.text.hash.to_vec() });
    let marks: Vec<_> = rows.iter().map(|one| one.mark).collect();
    let versions = surplus(&marks, new.now);
    let gone: HashSet<_> = versions.iter().copied().collect();
    let (gone, left): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|one| gone.contains(&one.mark.number));
    let in_use: HashSet<_> = left.into_iter().map(|one| one.hash).collect();
    let unused: HashSet<_> = gone.into_iter().map(|one| one.hash).collect();
    let texts = unused.difference(&in_use).cloned().collect();
    Ok(VersionPlan { number, versions, texts })
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta, Utc};

    use super::*;
    use crate::domain::ids::{DocumentId, VersionId};
    use crate::storage::packed::Packed;

    fn at(days: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap() + TimeDelta::days(days)
    }

    fn new(kind: VersionKind, text: &str) -> NewVersion {
        NewVersion {
            id: VersionId::generate(),
            document: DocumentId::generate(),
            kind,
            label: None,
            authors: Vec::new(),
            restored_from: None,
            seq: 0,
            text: Packed::of(text),
            now: at(0),
        }
    }

    fn row(number: i64, seq: i64, text: &str, days: i64) -> VersionRow {
        let kind = VersionKind::Pause;
        let mark = VersionMark { number, kind, created_at: at(days), bytes: 10 };
        VersionRow { mark, seq, hash: Packed::of(text).hash.to_vec() }
    }

    #[test]
    fn d8_an_automatic_version_is_of_a_later_point_and_of_another_text() {
        let one = || vec![row(4, 7, "a", 0)];
        let outcome = |kind, text, seq| plan(&new(kind, text), seq, one()).map(|plan| plan.number);
        for kind in [VersionKind::Pause, VersionKind::Seat, VersionKind::Decision] {
            assert_eq!(outcome(kind, "b", 8), Ok(5));
            assert_eq!(outcome(kind, "a", 8), Err(Refusal::NotNew));
            assert_eq!(outcome(kind, "b", 7), Err(Refusal::NotNew));
            assert_eq!(outcome(kind, "b", 3), Err(Refusal::NotNew));
        }
        assert_eq!(outcome(VersionKind::Named, "a", 7), Ok(5));
        assert_eq!(outcome(VersionKind::Named, "b", 6), Err(Refusal::NotNew));
        assert_eq!(outcome(VersionKind::Restore, "a", 9), Ok(5));
    }

    #[test]
    fn an_empty_text_is_no_first_automatic_version() {
        assert_eq!(plan(&new(VersionKind::Seat, ""), 1, Vec::new()), Err(Refusal::NotNew));
        assert_eq!(plan(&new(VersionKind::Seat, "a"), 1, Vec::new()).unwrap().number, 1);
        assert_eq!(plan(&new(VersionKind::Named, ""), 0, Vec::new()).unwrap().number, 1);
    }

    #[test]
    fn a_text_is_deleted_with_the_last_version_that_has_it() {
        // Three of one hour, long ago; the policy deletes the first two.
        let old = vec![
            row(1, 1, "only here", -9),
            row(2, 2, "again later", -9),
            row(3, 3, "last of the hour", -9),
            row(4, 4, "again later", -1),
        ];
        let plan = plan(&new(VersionKind::Pause, "new"), 5, old).unwrap();
        assert_eq!(plan.number, 5);
        assert_eq!(plan.versions, [1, 2]);
        assert_eq!(plan.texts, [Packed::of("only here").hash.to_vec()]);
    }
}
