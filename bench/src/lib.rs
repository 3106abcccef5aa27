//! Side-by-side benchmarks against the peers: the same bytes, the same work, in one run, as ratios.
//!
//! `make bench` runs all of it and writes `bench/RESULTS.md`; `cargo run --release -p watchkeeper-bench -- memory`
//! runs one group.

pub mod measure;
pub mod peers;
pub mod rows;
pub mod sample;
pub mod server;
pub mod table;
