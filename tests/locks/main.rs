//! Locks and relay, against real `redis-server` processes, one for each test.

#![allow(clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

mod alike;
mod cancelled;
mod cluster;
mod cluster_failures;
mod cluster_server;
mod coming_back;
mod contract;
mod cost;
mod figures;
mod guards;
mod guards_in_redis;
mod health;
mod kept;
mod kept_in_redis;
mod line;
mod line_in_redis;
mod lost;
mod newcomers;
mod older;
mod outage;
mod path;
mod paused;
mod people;
mod place;
mod proxy;
mod relay;
mod resp;
mod restart;
mod sentinel;
mod server;
mod side;
mod tenants;
mod told;

/// One suite for both keepers: a test is a function of the place where the locks are.
macro_rules! on_both_keepers {
    ($suite:ident, and on a cluster: $($name:ident)+) => {
        on_both_keepers! { $suite: $($name)+ }
        mod redis_cluster {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::$suite::$name(crate::place::Place::cluster().await).await;
            })+
        }
    };
    ($suite:ident: $($name:ident)+) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::$suite::$name(crate::place::Place::memory().await).await;
            })+
        }
        mod redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::$suite::$name(crate::place::Place::redis().await).await;
            })+
        }
    };
}

on_both_keepers! {
    contract, and on a cluster:
    a_taken_lock_says_who_has_it_since_when_and_for_how_long
    a_claim_asked_again_is_the_same_grant_with_a_lease_that_runs_anew
    g6_a_release_never_frees_a_later_grant
    g2_the_fence_rises_through_release_expiry_and_take_over
    g2_the_fence_rises_above_what_the_database_ratified
    g2_a_fence_that_the_database_refused_is_minted_again_above_it
    a_lock_is_taken_over_from_exactly_the_named_holder
    a_lock_is_taken_over_by_the_same_user_only
    each_renewal_has_its_verdict_by_position
    g6_what_was_released_is_not_raised_by_a_late_renewal
    g6_what_expired_and_was_then_released_is_not_raised_either
    g6_what_another_had_in_between_is_not_raised
    a_late_holder_gets_its_lock_back_if_nobody_had_it
    g1_of_a_hundred_claimants_on_two_servers_one_wins
    g4_what_is_not_renewed_is_free_at_its_end_and_never_before
    holders_come_by_position_and_seats_are_seats_only
    a_value_that_was_released_is_spent
    a_round_of_nothing_is_answered_at_once
}

mod resumed {
    on_both_keepers! {
        coming_back:
        who_held_it_comes_back_with_its_secret_and_nobody_else
        without_a_pass_nobody_comes_back
        what_was_released_or_handed_on_is_not_come_back_to
        g5_who_comes_back_goes_before_the_line_and_leaves_it_as_it_is
        a_lock_that_was_put_back_is_come_back_to
    }
}

mod dropped {
    on_both_keepers! {
        cancelled:
        every_way_to_a_free_lock_may_be_dropped_at_every_step
        every_way_to_a_lock_that_is_taken_may_be_dropped_at_every_step
        a_claim_may_be_dropped_at_every_step
        a_release_that_is_dropped_at_any_step_is_made_all_the_same
        questions_that_are_dropped_change_nothing
    }
}

mod in_line {
    on_both_keepers! {
        line, and on a cluster:
        g5_a_release_hands_the_lock_to_the_first_in_the_line
        g5_a_hundred_waiters_on_two_servers_are_served_in_order
        g5_nobody_comes_in_past_the_line
        g5_a_lease_that_ends_is_the_turn_of_the_first_without_a_word
        g5_a_dead_waiter_holds_nobody_up_for_longer_than_its_deadline
        g5_a_waiter_that_died_in_the_line_is_out_of_it_after_its_deadline
        g5_who_leaves_while_first_lets_the_next_be_first
        g5_who_leaves_when_it_is_their_turn_passes_it_on
        a_wait_ends_in_time_and_leaves_the_line
        a_question_that_is_dropped_keeps_the_place
        a_take_over_goes_before_the_line_and_leaves_it_as_it_is
        what_is_held_is_listed_with_its_line
    }
}

mod handed_over {
    on_both_keepers! {
        told:
        g5_who_is_told_has_the_lock_and_its_lease_is_made_whole_at_once
        g3_a_lease_that_was_handed_over_is_trusted_beyond_that_once_it_is_whole
        g6_who_gives_back_at_once_is_not_given_it_again_by_making_it_whole
    }
}

mod guarded {
    on_both_keepers! {
        guards:
        busy_is_an_answer_with_holder_age_lease_and_place
        a_release_says_whether_it_was_held_and_a_drop_frees_too
        g6_a_guard_that_lost_its_lock_is_told_and_frees_nobody_elses
        g3_a_fixed_lease_is_not_trusted_until_its_end
        back_off_tries_again_and_gives_up_by_number_and_by_time
        who_waits_to_be_told_is_told_and_has_an_end
        g1_of_a_thousand_tasks_one_runs_a_job_that_outlives_its_first_lease
        an_estimated_lease_outlives_its_estimate_and_is_learnt
        a_quick_job_is_not_run_again_before_its_minimum_hold
        g6_a_minimum_hold_is_not_prolonged_by_a_late_renewal
        who_holds_for_too_long_loses_it_however_alive
        work_under_a_lock_is_ended_when_the_lock_is_lost
        work_that_ends_when_its_lock_is_gone_is_not_called_done
        several_locks_are_had_all_or_none_and_never_crosswise
        whatever_is_dropped_on_the_way_leaves_nothing
        closed_locks_free_what_was_held_and_tell
    }
}

mod kept_alive {
    on_both_keepers! {
        kept:
        what_is_kept_outlives_its_lease_and_ends_with_it_when_dropped
        a_tenant_that_does_not_live_is_not_renewed
        a_tenant_that_lives_no_more_is_released_before_its_lease_ends
        g6_what_another_took_is_lost_and_told_once
        closed_locks_free_what_was_kept_and_tell
    }
}
