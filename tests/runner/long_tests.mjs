// @ts-check
/**
 * The Rust tests that a run without `--all` leaves out. A test with a shorter form reads the variables of `SHORT`.
 */

/** Tests of more than ten seconds in a run without `--all`, with the reason. @type {Readonly<Record<string, string>>} */
export const SLOW = {
  "tokens of five seconds are renewed: an editor of app.galley.localhost, and the desk in its frame": "three renewals of such tokens",
  "tokens of five seconds are renewed: an editor of product.localhost, and the desk in its frame": "three renewals of such tokens",
  "an hour of editing with stock clients ends with the same text everywhere": "a quarter of an hour there: clients type, and a server dies",
  "3.1.0: beside a reviewer who types suggestions a client receives nothing but the text": "the reviewer types as fast as a user; beside the Rust tests",
  "at each rest of a random writer and a random reviewer, both pages and the server have one text and one acceptance": "two hundred acts of two users",
  "a pause stores a version, its changes read well, and restoring is undone by restoring again": "the server records a version after a pause",
  "haproxy routes both sessions of each pair to one of three servers, and all stay": "fifty documents one after the other; beside the Rust tests",
  "haproxy: two people work on through restarts, a kill and absent stores, and nothing saved is lost": "four probes, one a second; beside the Rust tests",
  "nginx: two people work on through restarts, a kill and absent stores, and nothing saved is lost": "PostgreSQL recovers; beside the Rust tests",
  "Alt Enter accepts the suggestion at the caret and goes on, Ctrl Z takes it back": "thirty keys, each after the one before is drawn",
}

export const SHORT = { GALLEY_SHORT: "1", GALLEY_KILLS: "2", GALLEY_CRASHES: "2", GALLEY_FUZZ_SECONDS: "3", GALLEY_FUZZ_ACTS: "40", GALLEY_STEPS: "4000" }

/** Tests of the suite that wait for leases, and leave the processor idle. */
export const WAITING = /^locks::/

/** By binary. @type {Readonly<Record<string, readonly RegExp[]>>} */
export const LONG = {
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
    /^server::(authorization|kill_campaign|suggestion_kills)::\w+_on_postgresql/,
    // Five to sixty seconds on two cores, without a shorter form.
    /^server::(memory_use|plans|statements|costly_texts)::/,
    /^fuzz::fragmented_text::g12_g13_the_cost/,
    /^fuzz::typed_trace::g8_a_real_editing_trace/,
    /^locks::(bad_network::g1_a_claim_cut|paused_time::g1_under_paused_time)/,
    /^locks::cluster::(a_round_of_a_thousand|a_slot_migration_moves)/,
    /^locks::cluster_failures::(a_dead_cluster_primary|g6_a_failover_to)/,
    /^locks::guards_redis::(a_hundred_locks_are|g6_a_failed_renewal)/,
    /^locks::memory_vs_redis::memory_and_redis_agree_in/,
    /^locks::reassert_grace::g1_the_holder_reasserts_before_new_claims_after_an_empty_node/,
    /^locks::sentinel::g6_seats_survive_a/,
    /^notify::webhooks::(a_claim_whose_answer|g16_a_flood_of|g16_thirty_documents_that)/,
    /^server::admin_series::the_series_of_three/,
    /^server::budgets::(g17_a_full_database|g17_an_edit_above|g17_edits_are_rejected|g17_replies_do_not)/,
    /^server::charges::(g13_a_body_that|g17_bodies_under_way|g17_early_messages_of|g17_the_memory_of|g17_unfinished_messages_are)/,
    /^server::crash_points::(g15_a_request_whose|g15_a_server_killed_while|g15_the_effect_of)/,
    /^server::decisions::sqlite::g13_a_decision_names/,
    /^server::dropped_handlers::g15_a_handler_dropped_at_any_await_delivers_what_it_commits_on_postgresql/,
    /^server::edge_rules::failed_probes_log_the/,
    /^server::export_kills::g11_builders_killed_at/,
    /^server::exports::(g11_a_build_frozen|g11_a_hundred_requests_for_an_export_make_one_build_on_three|g11_builds_of_a|g13_few_rendered_files)/,
    /^server::exports_docx::(a_word_export_has|a_word_file_of)/,
    /^server::hostile_clients::g13_a_text_whose_integration/,
    /^server::http_edge::g13_a_partial_request/,
    /^server::imports::g12_a_hostile_file/,
    /^server::malformed_frames::(g13_a_million_fragments|g13_a_slow_reader|g13_large_responses_to)/,
    /^server::many_servers::(g1_of_a_hundred|g4_sessions_of_a|reviewing_at_any_server)/,
    /^server::metrics::each_event_of_a/,
    /^server::offer_races::(g11_after_a_kill|g11_closes_withdrawals_and_acceptances_among_claims_give_no_slot_twice_on_three|g11_five_hundred_claims|g16_a_held_lock)/,
    /^server::peer_events::no_peer_leaves_because/,
    /^server::provider_keys::(a_renewal_by_a|a_rotated_key_is|a_server_starts_without|forty_renewals_leave)/,
    /^server::redis_cluster::seats_and_texts_survive/,
    /^server::redis_commands::a_renewal_round_is/,
    /^server::redis_outage::(g3_without_redis_writes|g6_two_hundred_sessions|typing_while_redis_is)/,
    /^server::reminder_races::(g11_one_server_with|g11_three_servers_on)/,
    /^server::reminders::(a_long_batch_raises|a_waiter_whose_half)/,
    /^server::review_requests::g11_two_users_who/,
    /^server::set_back::(g16_a_room_of|g7_saved_text_survives_a_postgresql_failover_to_an_older_state_during)/,
    /^server::storage_outage::(g7_an_edit_rejected|g7_edits_beyond_the|g7_one_edit_above)/,
    /^server::stuck::(g16_a_flood_of|g16_a_stop_with)/,
    /^server::suggestion_batches::g17_a_batch_passes/,
    /^server::webhooks::(g16_thirty_documents_that|g7_no_webhook_is_lost)/,
    /^storage::crash::g7_acknowledged_commits_survive/,
    /^storage::postgres::the_next_call_reconnects/,
    /^storage::reviews::sqlite::g13_a_link_rejects/,
    /^storage::versions::sqlite::g13_versions_are_bounded/,
  ],
}
