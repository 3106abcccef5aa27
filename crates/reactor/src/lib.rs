//! Reactions without Rust: what `watchkeeper run` does.
//!
//! A [`Reactor`] is read from a file: sources, and for each of them what is to be done when one of its objects comes, changes or
//! goes. [`Engine`] does it. The way of a change:
//!
//! 1. A source ([`source`]) is followed by an informer, whose journal says which key has changed (`feed`).
//! 2. The key goes into the queue of every reaction on that source: in order, once however often it changed, with a back-off of its
//!    own when the reaction fails (`reaction`).
//! 3. When its turn comes, what the source has now is compared with what was delivered last (`delivered`). The difference is the
//!    [`Change`], which passes the filter (`condition`) or not.
//! 4. The `action` is done: a command, a request, or objects in a cluster.
//! 5. What was delivered is written down (`delivered`, `state`), so that it survives a restart.
//!
//! [`source::open`] makes a source of a URL, for others too: `watchkeeper watch` uses it.

mod action;
mod change;
mod condition;
mod confirm;
mod delivered;
mod drift;
mod engine;
mod error;
mod feed;
mod file;
mod leftovers;
mod metrics;
mod node;
mod print;
mod reaction;
pub mod source;
mod state;
mod template;

pub use change::{Change, Event};
pub use engine::{Engine, Options, Summary};
pub use error::Error;
pub use file::{Mistake, Mistakes, Reactor};
pub use metrics::MetricsServer;
