// @ts-check
/**
 * The Rust tests that a run without `--all` leaves out. A test with a shorter form reads the variables of `SHORT`.
 */

/** Tests of more than ten seconds in a run without `--all`, with the reason. @type {Readonly<Record<string, string>>} */
export const SLOW = {
  "an hour of editing with stock clients ends with the same text everywhere": "a quarter of an hour there: clients type, and a server dies",
}

export const SHORT = { GALLEY_SHORT: "1", GALLEY_KILLS: "2", GALLEY_CRASHES: "2", GALLEY_FUZZ_SECONDS: "3", GALLEY_FUZZ_ACTS: "40", GALLEY_STEPS: "4000" }

/** Tests of the suite that wait for leases, and leave the processor idle. */
export const WAITING = /^locks::/

/** By binary: names, or patterns of names. @type {Readonly<Record<string, readonly (string | RegExp)[]>>} */
export const LONG = {
  // Models and parsers under random schedules and inputs: no machine changes their outcome.
  // Models, parsers and bounds under random or huge inputs: no machine changes their outcome.
  galley_core: [/^sessions::(model|shuttle)_tests::/],
  galley_files: [/::g13_/],
  galley_locks: [/^model::tests::/, /^redis::reply_tests::g12_/],
  galley_yjs: [/::g13_/, /^tests::mutations::/, /^json::tests::the_check_accepts/, /^tests::cost::/],
  suite: [
    // The second engine and further backends, where their code does not differ by more than the statements.
    /^locks::\w+::(redis_cluster|valkey_single|valkey_cluster)::/,
    /^storage::(?!log|seats|open|documents|crash|stuck)\w+::postgres::/,
    /^server::(decisions|suggestions)::postgres::/,
    // Ten seconds or more on two cores, without a shorter form.
    /^server::(memory_use|statements|costly_texts)::/,
    "fuzz::fragmented_text::g12_g13_the_cost_of_an_edit_stays_constant_over_a_million_structs",
    "locks::cluster::a_slot_migration_moves_its_locks",
    "locks::cluster_failures::a_dead_cluster_primary_affects_only_its_own_locks",
    "locks::cluster_failures::g6_a_failover_to_a_replica_loses_no_seat",
    "locks::guards_redis::a_hundred_locks_are_renewed_by_one_task_in_one_pipeline_a_round",
    "locks::guards_redis::g6_a_failed_renewal_round_loses_no_lock",
    "locks::memory_vs_redis::memory_and_redis_agree_in_random_histories",
    "locks::reassert_grace::g1_the_holder_reasserts_before_new_claims_after_an_empty_node_restart",
    "locks::sentinel::g6_seats_survive_a_sentinel_failover_and_a_late_old_primary",
    "notify::webhooks::g16_thirty_documents_that_hang_delay_no_other_document",
    "server::admin_series::the_series_of_three_servers_are_summed_and_name_those_that_do_not_answer",
    "server::budgets::g17_a_full_database_accepts_edits_and_no_new_document_until_there_is_room",
    "server::budgets::g17_edits_are_rejected_an_eighth_above_the_size_bound_until_there_is_room",
    "server::charges::g13_a_body_that_never_ends_is_given_up_with_its_request",
    "server::charges::g17_bodies_under_way_are_charged_to_their_user_and_others_are_served",
    "server::charges::g17_early_messages_of_a_waiter_are_bounded",
    "server::charges::g17_the_memory_of_freed_bodies_is_returned_to_the_system",
    "server::charges::g17_unfinished_messages_are_charged_to_their_user_and_others_are_served",
    "server::crash_points::g15_a_request_whose_client_disconnects_at_any_step_delivers_what_it_commits",
    "server::crash_points::g15_a_server_killed_while_its_writer_leaves_holds_no_seat_and_leaves_no_stale_peer",
    "server::decisions::sqlite::g13_a_decision_names_up_to_two_thousand_suggestions_and_is_announced_as_one",
    "server::dropped_handlers::g15_a_handler_dropped_at_any_await_delivers_what_it_commits_on_postgresql",
    "server::edge_rules::failed_probes_log_the_change_of_state_and_no_failed_request",
    "server::export_kills::g11_builders_killed_at_random_moments_are_replaced_and_no_file_is_stored_twice",
    "server::exports::g11_a_build_frozen_beyond_its_lease_stores_nothing",
    "server::exports::g11_a_hundred_requests_for_an_export_make_one_build_on_three_servers",
    "server::exports::g11_builds_of_a_killed_server_are_replaced_and_none_is_stored_twice",
    "server::exports::g13_few_rendered_files_wait_for_a_slow_database",
    "server::exports_docx::a_word_export_has_its_comments_and_changes_in_libreoffice",
    "server::http_edge::g13_a_partial_request_is_closed_by_a_timeout",
    "server::imports::g12_a_hostile_file_is_a_typed_problem_and_nothing_is_stored",
    "server::malformed_frames::g13_a_million_fragments_of_one_byte_are_one_message",
    "server::malformed_frames::g13_a_slow_reader_is_closed_and_costs_its_peer_nothing",
    "server::malformed_frames::g13_large_responses_to_a_slow_reader_are_bounded",
    "server::many_servers::g1_of_a_hundred_claims_on_two_servers_one_is_granted_in_each_of_fifty_rounds",
    "server::many_servers::g4_sessions_of_a_killed_server_leave_their_peers_on_another_server",
    "server::many_servers::reviewing_at_any_server_resets_the_idle_timeout",
    "server::metrics::each_event_of_a_seat_and_its_renewal_is_counted_once",
    "server::offer_races::g11_after_a_kill_at_a_random_moment_there_are_never_six_claims_for_five_slots",
    "server::offer_races::g11_closes_withdrawals_and_acceptances_among_claims_give_no_slot_twice_on_three_servers",
    "server::offer_races::g11_five_hundred_claims_for_five_slots_give_five_on_three_servers",
    "server::offer_races::g16_a_held_lock_gives_lock_wait_timeout_and_a_client_that_disconnects_leaves_the_queue",
    "server::peer_events::no_peer_leaves_because_redis_returned_empty",
    "server::redis_cluster::seats_and_texts_survive_the_failover_of_a_redis_cluster_primary",
    "server::redis_commands::a_renewal_round_is_one_pipeline_for_any_number_of_seats",
    "server::redis_outage::g3_without_redis_writes_stop_before_the_key_could_expire_and_go_on_after",
    "server::redis_outage::g6_two_hundred_sessions_are_reasserted_after_an_empty_redis_restart",
    "server::redis_outage::typing_while_redis_is_away_resets_the_idle_timeout",
    "server::reminder_races::g11_one_server_with_a_stepping_clock_sends_each_reminder_once",
    "server::reminder_races::g11_three_servers_on_one_tick_with_stepping_clocks_send_each_reminder_once",
    "server::reminders::a_long_batch_raises_the_alarm_of_its_class",
    "server::reminders::a_waiter_whose_half_open_connection_got_the_seat_is_reminded",
    "server::review_requests::g11_two_users_who_request_each_other_at_once_have_one_pending_request",
    "server::review_requests::g11_two_users_who_request_each_other_at_once_on_three_servers_have_one_pending_request",
    "server::set_back::g16_a_room_of_a_locked_older_database_closes_within_a_bound",
    "server::storage_outage::g7_an_edit_rejected_by_the_full_queue_of_all_rooms_is_requested_again",
    "server::storage_outage::g7_edits_beyond_the_limit_while_postgresql_is_stopped_are_refused_and_then_stored",
    "server::storage_outage::g7_edits_beyond_the_limit_while_sqlite_is_locked_are_refused_and_then_stored",
    "server::storage_outage::g7_one_edit_above_the_bound_of_pending_edits_is_accepted_when_none_is_pending",
    "server::stuck::g16_a_flood_of_edits_pauses_its_own_socket_only",
    "server::stuck::g16_a_stop_with_a_full_queue_and_storage_away_ends_within_its_bound",
    "server::suggestion_batches::g17_a_batch_passes_when_its_retry_after_is_over",
    "server::webhooks::g16_thirty_documents_that_hang_on_three_servers_delay_no_other_document",
    "server::webhooks::g7_no_webhook_is_lost_when_three_servers_are_killed_in_turn",
    "storage::crash::g7_acknowledged_commits_survive_kill_9_of_postgresql",
    "storage::postgres::the_next_call_reconnects_to_a_restarted_server",
    "storage::reviews::sqlite::g13_a_link_rejects_reviews_beyond_its_limit",
    "storage::versions::sqlite::g13_versions_are_bounded_and_named_ones_stay",
  ],
}
