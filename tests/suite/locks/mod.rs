//! Locks and relay, against real `redis-server` processes, one for each test.

mod backend_contract;
mod bad_network;
mod cancel_safety;
mod cluster;
mod cluster_failures;
mod guards;
mod guards_redis;
mod handover;
mod health;
mod lease_holders;
mod lost_replies;
mod memory_vs_redis;
mod metrics;
mod older;
mod paused_time;
mod pubsub;
mod reassert_grace;
mod reclaim;
mod redis_commands;
mod redis_outage;
mod redis_restart;
mod renewal;
mod renewal_redis;
mod sentinel;
mod wait_queue;
mod wait_queue_redis;

/// One suite for both backends: a test is a function of the place of the locks.
macro_rules! on_both_keepers {
    ($suite:ident, and on a cluster: $($name:ident)+) => {
        on_both_keepers! { $suite: $($name)+ }
        mod redis_cluster {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::locks::$suite::$name(crate::support::backends::Place::cluster().await).await;
            })+
        }
    };
    ($suite:ident: $($name:ident)+) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::locks::$suite::$name(crate::support::backends::Place::memory().await).await;
            })+
        }
        mod redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::locks::$suite::$name(crate::support::backends::Place::redis().await).await;
            })+
        }
    };
}

on_both_keepers! {
    backend_contract, and on a cluster:
    a_held_lock_reports_holder_grant_time_and_remaining_lease
    a_repeated_claim_is_the_same_grant_with_a_fresh_lease
    g6_a_release_never_frees_a_later_grant
    g2_the_fence_rises_through_release_expiry_and_takeover
    g2_the_fence_rises_above_what_the_database_ratified
    g2_a_fence_that_the_database_rejected_is_minted_again_above_its_floor
    a_takeover_by_value_requires_the_named_holder
    a_takeover_by_user_requires_the_same_user
    each_renewal_has_its_verdict_by_position
    g6_a_late_renewal_does_not_restore_a_released_lock
    g6_a_lock_released_after_its_expiry_is_not_reasserted
    g6_a_lock_with_another_holder_in_between_is_not_reasserted
    a_late_holder_reasserts_its_lock_without_another_holder_in_between
    g1_of_a_hundred_claimants_on_two_servers_one_wins
    g4_a_lease_without_renewal_expires_at_its_end_and_never_before
    holders_are_listed_by_position_and_seats_contain_seats_only
    a_released_value_is_spent
    an_empty_renewal_round_returns_at_once
}

mod resumed {
    on_both_keepers! {
        reclaim:
        only_the_previous_holder_reclaims_with_its_secret
        without_a_reclaim_token_no_claim_reclaims
        a_released_or_handed_over_lock_cannot_be_reclaimed
        g5_a_reclaim_overtakes_the_wait_queue_and_leaves_it_unchanged
        a_reasserted_lock_can_be_reclaimed
    }
}

mod dropped {
    on_both_keepers! {
        cancel_safety:
        every_acquisition_of_a_free_lock_is_cancel_safe_at_every_step
        every_acquisition_of_a_held_lock_is_cancel_safe_at_every_step
        a_claim_is_cancel_safe_at_every_step
        a_release_dropped_at_any_step_still_completes
        dropped_queries_change_nothing
    }
}

mod in_line {
    on_both_keepers! {
        wait_queue, and on a cluster:
        g5_a_release_hands_the_lock_to_the_first_waiter
        g5_a_hundred_waiters_on_two_servers_are_served_in_order
        g5_no_claim_overtakes_the_wait_queue
        g5_an_expired_lease_goes_to_the_first_waiter_without_a_message
        g5_a_dead_waiter_delays_the_next_by_its_queue_deadline_at_most
        g5_a_dead_waiter_is_out_of_the_queue_after_its_deadline
        g5_a_first_waiter_that_leaves_lets_the_next_be_first
        g5_a_waiter_that_leaves_after_a_hand_over_passes_it_on
        a_wait_times_out_and_leaves_the_queue
        a_poll_that_is_dropped_retains_the_queue_position
        a_takeover_overtakes_the_wait_queue_and_leaves_it_unchanged
        held_locks_are_listed_with_their_wait_queues
    }
}

mod handed_over {
    on_both_keepers! {
        handover:
        g5_a_notified_waiter_holds_the_lock_and_extends_its_lease_at_once
        g3_a_handed_over_lease_is_valid_longer_once_it_is_extended
        g6_extending_a_handed_over_lease_does_not_restore_a_released_lock
    }
}

mod guarded {
    on_both_keepers! {
        guards:
        a_busy_lock_reports_holder_age_lease_and_queue_position
        a_release_reports_whether_the_lock_was_held_and_a_drop_releases_too
        g6_a_guard_that_lost_its_lock_is_notified_and_releases_no_later_grant
        g3_the_deadline_of_a_fixed_lease_is_before_its_end
        back_off_tries_again_and_gives_up_by_number_and_by_time
        a_queue_policy_is_notified_and_times_out
        g1_of_a_thousand_tasks_one_runs_a_job_that_outlives_its_first_lease
        an_estimated_lease_outlives_its_estimate_and_learns_from_it
        a_short_job_does_not_run_again_before_its_minimum_hold
        g6_a_late_renewal_does_not_extend_a_minimum_hold
        a_live_holder_loses_the_lock_at_its_maximum_hold
        work_under_a_lock_is_dropped_when_the_lock_is_lost
        work_that_ends_after_its_lock_was_lost_is_an_error
        several_locks_are_acquired_all_or_none_and_never_deadlock
        a_drop_at_any_step_leaves_nothing
        closing_the_locks_releases_the_guards_and_notifies_them
    }
}

mod kept_alive {
    on_both_keepers! {
        renewal:
        a_registered_lock_outlives_its_lease_and_expires_after_a_drop
        a_tenant_that_is_not_renewable_is_skipped
        the_lock_of_an_ended_tenant_is_released_before_its_lease_ends
        g6_a_lock_that_another_claim_took_over_is_lost_and_reported_once
        closing_the_locks_releases_registered_locks_and_notifies_tenants
    }
}
