//! Elections on an API server in this process, in virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod faults;
mod hand_over;
mod people;
mod place;
mod supervision;
