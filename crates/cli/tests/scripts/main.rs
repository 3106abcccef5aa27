//! The scripts that `make test` and `make lint` begin with, on machines that lack one thing or another.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod advisories;
mod machine;
mod setup;
