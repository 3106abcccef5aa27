//! A gateway on real sockets, with real backends.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

mod ai;
mod ai_budgets;
mod ai_dialects;
mod ai_mcp;
mod ai_places;
mod ai_promises;
mod ai_prompts;
mod ai_records;
mod ai_replicas;
mod ai_routing;
mod ai_streams;
mod ai_usage;
mod ai_webhooks;
mod apis;
mod backends;
mod hostile;
mod live;
mod observed;
mod oracle;
mod policies;
#[allow(dead_code, reason = "other tests need more of it")]
#[path = "../../../sources/tests/postgres/server.rs"]
mod postgres;
mod protocols;
mod routes;
mod safety;
mod smuggling;
mod sources;
mod standard;
mod supervision;
mod support;
mod upstreams;
