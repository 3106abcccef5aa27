//! Connections over real sockets: TLS as our own server speaks it, and servers that do what no decent server does.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod credentials;
mod http_client;
mod place;
mod pool;
mod proxy;
mod raw;
mod secure;
