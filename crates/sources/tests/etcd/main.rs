//! The source of etcd: its contract, the traps of watching etcd, and a cluster that fails against a model.
//!
//! | trap | test |
//! |---|---|
//! | pages of different moments | `a_snapshot_in_pages_is_of_one_revision` |
//! | compaction while a snapshot is read, or while nobody watches | `what_was_compacted_is_expired_and_a_new_snapshot_tells_what_is_gone`, `chaos` |
//! | several keys of one revision | `all_keys_of_a_transaction_are_told_before_a_position_is`, `etcd::log::tests` |
//! | a prefix that is silent while others are compacted | `progress_elsewhere_moves_the_position_so_that_it_can_be_resumed` |
//! | a watch from a revision that is still to come says nothing | `a_cluster_that_was_made_anew_is_noticed` |
//! | one value that cannot be read, or is too large | `what_cannot_be_read_is_named_and_the_rest_goes_on`, `a_value_that_is_too_large_costs_itself_only` |
//! | a status that wakes its reader | `a_status_is_written_beside_its_object_and_wakes_nobody` |
//! | a disk that was set back, under the same revisions | `a_member_whose_disk_was_set_back_is_found_out_and_the_difference_is_told_and_counted` |
//! | a connection that is dead without saying so | `a_dead_connection_is_noticed` |

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod chaos;
mod contract;
mod drift;
mod status;
mod tap;
mod tls;
mod traps;

/// A server, or the end of the test where there is none.
macro_rules! server {
    ($($flag:expr),*) => {
        match watchkeeper_etcd::testing::Server::with(&[$($flag),*]).await.unwrap() {
            Some(server) => server,
            None => return,
        }
    };
}

pub(crate) use server;
