//! Webhooks over a socket: who is believed, and what becomes of what they say.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod chaos;
mod hooked;
mod sender;
#[path = "../http/service.rs"]
#[allow(dead_code, reason = "the tests of HTTP use the rest")]
mod service;
mod verified;
