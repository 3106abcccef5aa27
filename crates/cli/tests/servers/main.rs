//! Several servers over one etcd, how they end, and how what they keep is taken elsewhere.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod failing;
mod looking;
mod moving;
mod several;
mod stopping;
mod world;
