//! The work queue of Watchkeeper: which key to work on next.
//!
//! [`Queue`] is where to start; its documentation is the contract. Inside, a pure state machine (`state.rs`, with what is
//! ready in `bands.rs` and `lanes.rs` and what is delayed in `timers.rs`) decides what happens, and a thin shell
//! (`queue.rs`, `get.rs`, `drain.rs`) puts one lock around it and wakes one worker at a time (`waiters.rs`). The time comes
//! from a [`Clock`]; the crate does no I/O and spawns nothing.

mod backoff;
mod bands;
mod builder;
mod clock;
mod counts;
mod drain;
mod durations;
mod get;
mod index;
#[cfg(test)]
mod interleavings;
mod job;
mod lanes;
mod list;
#[cfg(test)]
mod memory;
mod metrics;
mod outcome;
mod priority;
mod queue;
mod state;
mod sync;
mod timers;
mod waiters;

pub use backoff::Backoff;
pub use builder::QueueBuilder;
pub use clock::{Clock, Sleep, TokioClock};
pub use counts::QueueCounts;
pub use drain::{Drain, Left};
pub use get::Get;
pub use job::Job;
pub use metrics::QueueMetrics;
pub use outcome::JobOutcome;
pub use priority::{Add, Priority};
pub use queue::Queue;
