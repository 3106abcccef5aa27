//! Several sources as one: the contract, who wins, what a member that fails means, and random members against a model.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod contract;
mod members;
mod model;
mod tap;
