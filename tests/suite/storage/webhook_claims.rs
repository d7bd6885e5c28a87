//! Claims of webhooks: repeated attempts, and rows that do not parse.

use crate::storage::database::Desk;
use crate::storage::webhook_fixtures::{
    A, B, SOON, all_to_a, claim, drain, expire, kinds, quiet, replied, rows, set, wake,
};
use galley::domain::limits::WEBHOOK_LEASE;
use galley::domain::webhook::WebhookState;
use galley::storage::pagination::Page;
use galley::storage::webhook_claims::ClaimSize;

crate::storage::on_both_engines! {
    webhook_claims:
    a_lost_claim_changes_no_row
    repeated_attempts_leave_the_claims_of_first_ones
    g16_a_row_that_does_not_parse_is_dead_and_delays_no_other
}

pub(crate) async fn a_lost_claim_changes_no_row(desk: Desk) {
    let storage = &desk.storage;
    all_to_a(storage);
    desk.seated().await;
    let first = claim(storage, A).await.remove(0);
    wake(&desk).await;
    assert_eq!(storage.webhook_due_in(A).await.unwrap(), Some(SOON));
    assert_eq!(storage.webhook_due_in(B).await.unwrap(), None);
    let second = claim(storage, A).await.remove(0);
    assert_eq!((first.claim.id, second.attempts), (second.claim.id, 2));
    assert!(!storage.webhook_delivered(&first.claim).await.unwrap());
    assert_eq!(storage.webhook_failed(&first.claim, "late", SOON).await.unwrap(), None);
    let due_in = storage.webhook_due_in(A).await.unwrap().unwrap();
    assert!(due_in > WEBHOOK_LEASE / 2 && due_in <= WEBHOOK_LEASE, "{due_in:?}");
    assert!(storage.webhook_delivered(&second.claim).await.unwrap());
}

pub(crate) async fn repeated_attempts_leave_the_claims_of_first_ones(desk: Desk) {
    let storage = &desk.storage;
    all_to_a(storage);
    for _ in 0..3 {
        desk.seated().await;
    }
    for webhook in claim(storage, A).await {
        storage.webhook_failed(&webhook.claim, "no", SOON).await.unwrap();
    }
    desk.seated().await;
    let claimed = async |first, repeated| {
        let size = ClaimSize { first, repeated };
        let claimed = storage.claim_webhooks(A, size).await.unwrap();
        claimed.iter().map(|webhook| webhook.attempts).collect::<Vec<_>>()
    };
    let none: [i64; 0] = [];
    assert_eq!(claimed(0, 0).await, none);
    assert_eq!(claimed(0, 1).await, [2]);
    assert_eq!(claimed(8, 0).await, [1]);
    assert_eq!(claimed(8, 9).await, [2, 2]);
}

/// Goal: a row of another program ends alone, and an administrator finds it.
pub(crate) async fn g16_a_row_that_does_not_parse_is_dead_and_delays_no_other(desk: Desk) {
    let storage = &desk.storage;
    all_to_a(storage);
    let (one, two) = (quiet(&desk).await, quiet(&desk).await);
    for seated in [&one, &two] {
        replied(&desk, seated, 1).await;
    }
    let damage = "UPDATE webhooks SET id = 'x' WHERE id = (SELECT MIN(id) FROM webhooks \
                    WHERE type = 'review.created')";
    set(&desk, damage, damage).await;
    let mut delivered = drain(storage, A).await;
    delivered.sort_by(|one, two| one.0.cmp(&two.0));
    assert_eq!(kinds(&delivered), ["review.created", "review.replied", "review.replied"]);
    let dead = storage.webhooks(None, &Page { limit: 9, before: None }).await.unwrap();
    assert_eq!((dead.len(), dead[0].state), (1, WebhookState::Dead));
    assert!(dead[0].last_error.as_ref().unwrap().starts_with("its row x does not parse"));
    // A row does not parse, and no server has its endpoint in its settings.
    replied(&desk, &one, 0).await;
    let damage = "UPDATE webhooks SET document_id = 'x' WHERE state = 'pending'";
    set(&desk, damage, damage).await;
    expire(&desk).await;
    assert_eq!(storage.orphaned_webhooks(&[B.to_owned()], 9).await.unwrap(), []);
    assert_eq!(rows(storage, Some(WebhookState::Dead)).await, 2);
}
