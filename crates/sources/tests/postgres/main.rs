//! The source of PostgreSQL against a real server: its contract, the traps of watching tables, and a server that is killed again and again.
//!
//! | trap | test |
//! |---|---|
//! | sequences and clocks are taken before the commit | `a_transaction_that_is_committed_late_is_not_lost` |
//! | deletes are invisible to watermarks | `rows_that_are_deleted_are_missed_by_the_count` |
//! | rows change or appear without being written | `a_column_with_a_default_is_in_rows_that_nobody_wrote`, `rows_of_a_partition_that_is_attached_are_seen` |
//! | notifications: keys only, too long, truncated tables | `a_trigger_tells_of_every_kind_of_change`, `a_key_that_is_too_long_to_be_notified_is_found_all_the_same` |
//! | notifications get lost | `a_change_that_nobody_notified_is_found_and_counted` |
//! | notifications never come, as behind a pooler | `a_connection_over_which_nothing_is_notified_is_given_up` |
//! | the gap of a reconnect | `what_changes_while_a_connection_is_cut_is_seen` |
//! | a gap or a double between snapshot and log | `every_change_is_told_once_while_others_write` |
//! | resume after a restart, of either side | `a_feed_is_resumed_where_it_was_after_a_restart_of_either_side` |
//! | an abandoned slot fills the disk | `a_slot_goes_with_its_feed_unless_it_is_durable` |
//! | a slot that is gone or invalidated | `a_slot_that_is_dropped_means_a_new_snapshot`, `a_slot_that_was_too_far_behind_means_a_new_snapshot` |
//! | only keys of deleted rows are logged | `a_key_that_the_log_does_not_have_is_refused` |
//! | TOAST | `large_values_that_an_update_does_not_touch_are_kept` |
//! | TRUNCATE | `a_table_that_is_truncated_is_empty_at_that_place_of_the_log` |
//! | columns come and go | `columns_that_come_and_go_lead_to_a_new_snapshot` |
//! | huge transactions, rolled-back ones | `transactions_are_told_whole_or_not_at_all` |
//! | failover | `a_position_of_another_server_has_expired` |
//! | row filters | `a_row_that_leaves_the_filter_of_its_publication_is_gone` |
//! | a changed primary key | `a_row_whose_key_changes_is_another_object` |
//! | two sources, one slot | `two_sources_do_not_share_a_slot` |
//! | changes that never were in the log | `what_was_not_published_is_found_told_and_counted` |
//! | a database without traffic | `the_position_moves_though_nothing_happens_to_the_table` |

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod bounded;
mod chaos;
mod contract;
mod drift;
mod notified;
mod polled;
mod refused;
mod replicated;
mod server;
mod slots;
mod status;
mod tap;
mod tls;
mod values;
