//! Webhooks over a socket: who is believed, and what becomes of what they say.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod chaos;
mod hooked;
mod sender;
mod verified;
