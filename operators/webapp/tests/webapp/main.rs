//! The operator against an API server in this process, in virtual time; and as the program that it is.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod definition;
mod drift;
mod installed;
mod program;
mod quiet;
mod restarts;
mod rights;
mod roles;
mod trouble;
mod webhooks;
mod world;
