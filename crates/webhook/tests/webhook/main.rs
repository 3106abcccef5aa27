//! Webhooks of a manager, asked by an API server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

mod admission;
mod certificates;
mod conversion;
mod dynamic;
mod hanging;
mod hostile;
mod killed;
mod kinds;
mod nearby;
mod rotation;
mod stopping;
mod world;
