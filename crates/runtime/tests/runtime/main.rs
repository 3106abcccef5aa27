//! Controllers and managers against the API server, in this process unless a test needs a process that can be killed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod basics;
mod clusters;
mod contexts;
mod declared;
mod definitions;
mod degraded;
mod dynamic;
mod failures;
mod hot_loops;
mod leader_election;
mod lists;
mod lives;
mod log;
mod processes;
mod program;
mod rights;
mod sources;
mod storms;
mod supervision;
mod watches;
