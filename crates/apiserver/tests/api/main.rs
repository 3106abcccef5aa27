//! The API as a client sees it, called in this process without a socket.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod access;
mod account_tokens;
mod actions;
mod aggregation;
mod api_services;
mod beginnings;
mod bodies;
mod certificates;
mod collecting;
mod conversion;
mod documents;
mod harness;
mod hooks;
mod hostile_webhooks;
mod in_flight;
mod lifecycles;
mod lists;
mod objects;
mod plugins;
mod pods;
mod protobuf;
mod provided;
mod quotas;
mod rights;
mod services;
mod shared_storage;
mod storage_protection;
mod supervision;
mod watches;
mod web_sockets;
mod webhooks;
