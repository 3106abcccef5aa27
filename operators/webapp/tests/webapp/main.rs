//! The operator against an API server in this process, in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod definition;
mod drift;
mod quiet;
mod restarts;
mod trouble;
mod world;
