//! The source of HTTP: its contract, what services do, and a service that does everything wrong.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod chaos;
mod conditional;
mod contract;
mod credentials;
mod pages;
mod refused;
mod service;
mod tap;
mod waiting;
