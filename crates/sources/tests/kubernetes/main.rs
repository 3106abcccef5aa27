//! The Kubernetes source against a scripted server on a real socket.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod bad_input;
mod paged_list;
#[path = "../server/mod.rs"]
mod server;
mod streamed_list;
mod tap;
mod watch;
