//! The API as a client sees it, called in this process without a socket.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod access;
mod account_tokens;
mod actions;
mod aggregation;
mod api_services;
mod bodies;
mod bootstrap;
mod certificates;
mod collecting;
mod compression;
mod conversion;
mod documents;
mod event_expiry;
mod harness;
mod hooks;
mod hostile_webhooks;
mod in_flight;
mod kubernetes_endpoints;
mod lifecycles;
mod lists;
mod namespace_defaults;
mod objects;
mod plugins;
mod pods;
mod protobuf;
mod quotas;
mod rights;
mod services;
mod shared_storage;
mod storage_protection;
mod supervision;
mod timeouts;
mod watches;
mod web_sockets;
mod webhooks;
