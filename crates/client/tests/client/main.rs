//! The client against an API server in this process.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod applies;
mod caches;
mod children;
mod dynamic;
mod finalizers;
mod modifies;
mod own_writes;
mod statuses;
mod world;
mod writes;
