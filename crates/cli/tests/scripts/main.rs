//! The scripts that `make test`, `make lint` and `make test-packaging` run, on machines that lack one thing or another.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod advisories;
mod machine;
mod packaging;
mod setup;
