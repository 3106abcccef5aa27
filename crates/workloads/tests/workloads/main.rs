//! Workloads in an API server in this process, mostly in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod deployments;
mod place;
mod pods;
