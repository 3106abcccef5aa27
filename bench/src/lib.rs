//! Side-by-side benchmarks against the peers: the same bytes, the same work, in one run, as ratios.
//!
//! `bench/run` runs all of it with the other benchmarks, or a group alone: `bench/run memory`.

pub mod measure;
pub mod peers;
pub mod rows;
pub mod sample;
pub mod server;
