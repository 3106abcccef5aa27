//! What is measured.

pub mod delivery;
pub mod events;
pub mod growth;
pub mod lookups;
pub mod memory;
pub mod queue;

use std::time::Duration;

use watchkeeper_bench_report::{Report, Row, Target, Unit};

use crate::measure::alternate;

/// Who is measured beside ours.
pub const PEER: &str = "kube-runtime";

/// How much work each measurement does.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Objects in the store.
    pub objects: usize,
    /// Changes in the log.
    pub changes: usize,
    /// How often ours and the peer's alternate.
    pub rounds: usize,
}

/// A group of rows that can be run alone.
pub struct Group {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Measures it.
    pub run: fn(Size) -> Report,
}

/// All groups, in the order of the table.
pub const GROUPS: [Group; 6] = [
    Group { name: "memory", run: |size| memory::rows(size).into() },
    Group { name: "events", run: |size| events::rows(size).into() },
    Group { name: "delivery", run: |size| delivery::rows(size).into() },
    Group { name: "lookups", run: |size| lookups::rows(size).into() },
    Group { name: "queue", run: |size| queue::rows(size).into() },
    Group { name: "growth", run: growth::curves },
];

/// A runtime on this thread alone, so that CPU time is the work's and not the scheduler's.
pub fn runtime() -> tokio::runtime::Runtime {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => panic!("no runtime: {error}"),
    }
}

/// A row of CPU times, and how many times less than the peer's ours should be.
fn row(
    group: &str,
    what: String,
    size: Size,
    units: usize,
    ours: impl FnMut() -> Duration,
    peer: impl FnMut() -> Duration,
    times: Option<f64>,
) -> Row {
    let (ours, peer) = alternate(size.rounds, units, ours, peer);
    let row = Row::new(group, what, Unit::Seconds, ours).beside(PEER, peer);
    Row { target: times.map(Target::TimesBetter), ..row }
}
