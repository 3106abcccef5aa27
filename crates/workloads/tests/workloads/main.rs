//! Workloads in an API server in this process, mostly in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod deployments;
mod jobs;
mod kubectl;
mod place;
mod pods;
mod rollouts;
mod services;
mod statefulsets;
mod supervision;
