//! An API gateway whose configuration is custom resources.
//!
//! A [`Gateway`] reads objects of some kinds ([`kinds`]) from any mix of sources, and serves requests by them. A change is served as soon as it is
//! known: it costs what it changes, and no connection is closed for it.
//!
//! The way of an object: `control` hears of it by an informer, `compile` makes of it a part of the [`table`], and publishes that. The way of
//! a request: a socket of [`watchkeeper_front`], `proxy`, which finds its rule in the table, asks the [`policy`] of the rule, and sends it to a
//! server of its backend over `upstream`.
//!
//! | promise | where |
//! |---|---|
//! | a request keeps its table to its last byte | [`Gateway`] |
//! | a change costs what it changes; the order of changes does not matter; an invalid object keeps its last good form | [`Compiler`] |
//! | what is counted and learned outlives every edit | [`upstream`], [`policy`] |

mod admin;
pub mod ai;
pub mod api;
mod check;
mod compile;
mod control;
mod describe;
mod dump;
mod json_schema;
mod metrics;
pub mod mock;
pub mod net;
pub mod object;
pub mod packed_json;
pub mod policy;
mod proxy;
mod query;
mod spans;
mod stats;
pub mod table;
mod thread;
pub mod upstream;

pub use admin::Admin;
pub use check::{Checked, Finding, check};
pub use compile::{Compiler, Condition, Place, Report, Settings};
pub use control::{
    BudgetStore, Error, Explained, From, Gateway, Handle, Options, Question, Served, StateError, explain,
};
pub use describe::description;
pub use dump::dump;
pub use spans::Otlp;
pub use stats::RouteStats;
pub use watchkeeper_gateway_kinds as kinds;
