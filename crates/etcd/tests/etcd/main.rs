//! The client against a real etcd.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod calls;
mod failures;
mod leases;
mod secured;
mod snapshot_file;
mod watches;

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
