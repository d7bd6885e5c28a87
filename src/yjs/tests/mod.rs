//! Tests of the whole module: against updates of the real Yjs, against hostile bytes, and against
//! random updates with `yrs` as the judge.

pub(crate) mod anchors;
pub(crate) mod cost;
pub(crate) mod hostile;
pub(super) mod mutations;
pub(super) mod real_yjs;
pub(super) mod returned;
pub(super) mod sessions;

use bytes::Bytes;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::Value;
use yrs::updates::decoder::Decode;
use yrs::{
    ClientID, Doc, GetString, OffsetKind, Options, ReadTxn, StateVector, Text as _, Transact,
    Update,
};

use crate::ROOT;
use crate::log::{Origin, UpdateLog};

/// The output of `tests/data/yjs/make.mjs`.
pub(crate) struct Fixture(Value);

impl Fixture {
    pub(crate) fn read(json: &str) -> Self {
        Self(serde_json::from_str(json).unwrap())
    }

    pub(crate) fn bytes(&self, key: &str) -> Bytes {
        unhex(self.0[key].as_str().unwrap())
    }

    pub(crate) fn all(&self, key: &str) -> Vec<Bytes> {
        self.0[key].as_array().unwrap().iter().map(|hex| unhex(hex.as_str().unwrap())).collect()
    }

    pub(crate) fn text(&self) -> &str {
        self.0["text"].as_str().unwrap()
    }

    pub(crate) fn value(&self, key: &str) -> &Value {
        &self.0[key]
    }
}

pub(crate) fn unhex(hex: &str) -> Bytes {
    let pairs = hex.as_bytes().chunks_exact(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// A `yrs` document with the options of a stock client.
pub(crate) fn document(client: u64) -> Doc {
    let mut options = Options::with_client_id(ClientID::new(client));
    options.offset_kind = OffsetKind::Utf16;
    let document = Doc::with_options(options);
    document.get_or_insert_text(ROOT);
    document
}

pub(crate) fn apply(document: &Doc, update: &[u8]) {
    let update = Update::decode_v1(update).expect("yrs decodes what was let through");
    document.transact_mut().apply_update(update).expect("yrs applies what was let through");
    assert!(!document.transact().has_missing_updates(), "nothing waits for what never comes");
}

pub(crate) fn text_of(document: &Doc) -> String {
    let root = document.get_or_insert_text(ROOT);
    root.get_string(&document.transact())
}

/// The text of a whole document as `yrs` builds it.
pub(crate) fn text_by_yrs(merged: &[u8]) -> String {
    let document = document(1);
    apply(&document, merged);
    text_of(&document)
}

pub(crate) fn whole(document: &Doc) -> Bytes {
    document.transact().encode_state_as_update_v1(&StateVector::default()).into()
}

/// Replaces `length` units from `at` on, in one transaction.
pub(crate) fn edit(document: &Doc, at: u32, length: u32, with: &str) -> Bytes {
    let root = document.get_or_insert_text(ROOT);
    let mut transaction = document.transact_mut();
    root.remove_range(&mut transaction, at, length);
    root.insert(&mut transaction, at, with);
    transaction.encode_update_v1().into()
}

/// Types `text` letter by letter at the end.
pub(crate) fn typed(document: &Doc, text: &str) -> Vec<Bytes> {
    let mut end = u32::try_from(text_of(document).encode_utf16().count()).unwrap();
    let mut updates = Vec::new();
    for character in text.chars() {
        updates.push(edit(document, end, 0, &character.to_string()));
        end += u32::try_from(character.len_utf16()).unwrap();
    }
    updates
}

pub(crate) fn append(log: &mut UpdateLog, update: Bytes) {
    let checked = log.check(&update, Origin::Client).unwrap();
    log.append(update, checked);
}

pub(crate) fn append_all(log: &mut UpdateLog, updates: impl IntoIterator<Item = Bytes>) {
    for update in updates {
        append(log, update);
    }
}

/// A test runner that prints its seed; `GALLEY_SEED` replays a failure.
pub(crate) fn runner(cases: u32) -> TestRunner {
    let given = std::env::var("GALLEY_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| getrandom::u64().unwrap());
    #[expect(clippy::print_stderr, reason = "whoever sees this test fail wants to see it again")]
    {
        eprintln!("replay with GALLEY_SEED={seed}");
    }
    TestRunner::new(Config {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    })
}
