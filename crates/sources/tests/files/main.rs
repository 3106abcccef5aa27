//! The source of files: its contract, the traps of watching files, and three writers against a model.
//!
//! | trap | test |
//! |---|---|
//! | 1 | `an_editor_that_replaces_a_file_changes_its_objects_and_deletes_none` |
//! | 2 | `a_file_is_not_read_before_its_writer_has_closed_it` |
//! | 3 | `a_mounted_config_map_changes_when_its_link_is_exchanged` |
//! | 4 | `a_file_that_is_a_mount_is_polled_and_says_so` |
//! | 5 | `a_directory_that_is_filled_before_it_is_watched_is_read_whole` |
//! | 6 | `twenty_thousand_files_at_once_are_all_seen`, `files::tests::hints_that_were_lost_make_it_look_at_everything` |
//! | 7 | `files::tests::without_watches_it_polls_and_says_so` |
//! | 8 | `a_directory_can_be_polled`, `files::mounts::tests::file_systems_that_others_write_to_are_silent` |
//! | 9 | `a_directory_that_is_gone_keeps_its_objects`, `an_empty_directory_is_believed_the_second_time`, `a_directory_that_is_not_mounted_keeps_its_objects` |
//! | 10 | `a_change_that_size_and_time_do_not_show_is_seen` |
//! | 11 | `of_two_files_with_one_object_the_first_wins_until_it_is_gone`, `a_file_that_is_renamed_changes_nothing` |
//! | 12 | `files_that_belong_together_are_read_together` |
//! | 13 | `one_bad_document_keeps_its_last_good_state_and_disturbs_no_other` |
//! | 14 | `what_editors_leave_behind_is_not_read` |
//! | 15 | `links_in_a_loop_cost_themselves_only`, `a_file_that_cannot_be_read_keeps_its_objects`, `line_ends_and_byte_order_marks_make_no_difference` |

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod chaos;
mod contract;
mod place;
mod replaced;
mod status;
mod tap;
mod traps;
mod trust;
