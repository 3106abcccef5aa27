//! The source of MySQL and MariaDB against a real MariaDB: its contract, the traps of polling tables, and a server that is killed again and again.
//!
//! | trap | test |
//! |---|---|
//! | clocks and numbers are taken before the commit | `a_transaction_that_is_committed_late_is_not_lost` |
//! | deletes are invisible to watermarks | `rows_that_are_deleted_are_gone` |
//! | a long read sees rows of different moments | `a_read_is_of_one_moment` |
//! | zones, modes and character sets of the server | `a_row_is_the_same_object_whatever_the_server_is_set_to` |
//! | `DECIMAL`, `BIGINT UNSIGNED`, `JSON`, `BLOB`, `DATETIME`, `BIT` | `a_row_is_the_same_object_whatever_the_server_is_set_to` |
//! | `max_allowed_packet` | `a_row_that_is_larger_than_a_packet_is_named_and_the_others_come` |
//! | columns come and go | `columns_that_come_and_go_are_read` |
//! | the server is killed | `whatever_happens_to_a_server_the_store_ends_equal_to_its_table` |
//! | a wrong password | `passwords_are_proved_and_never_shown` |
//! | a table that is missing, or without a key | `what_is_not_there_is_missing_and_says_what_to_do` |
//! | a huge table | `the_first_snapshot_of_a_hundred_thousand_rows_is_bounded_in_memory` |
//! | a status looks like a change | `a_status_wakes_nobody` |
//! | TLS that does not match | `tls_is_as_strict_as_it_is_asked_to_be` |

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod chaos;
mod contract;
mod polled;
mod refused;
mod server;
mod status;
#[path = "../postgres/tap.rs"]
#[allow(dead_code, reason = "tables that are polled have no positions")]
mod tap;
mod tls;
mod values;
