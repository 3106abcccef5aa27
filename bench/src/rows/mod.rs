//! What is measured.

pub mod delivery;
pub mod events;
pub mod lookups;
pub mod memory;
pub mod queue;

use crate::table::Row;

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
    pub run: fn(Size) -> Vec<Row>,
}

/// All groups, in the order of the table.
pub const GROUPS: [Group; 5] = [
    Group { name: "memory", run: memory::rows },
    Group { name: "events", run: events::rows },
    Group { name: "delivery", run: delivery::rows },
    Group { name: "lookups", run: lookups::rows },
    Group { name: "queue", run: queue::rows },
];

/// A runtime on this thread alone, so that CPU time is the work's and not the scheduler's.
pub fn runtime() -> tokio::runtime::Runtime {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => panic!("no runtime: {error}"),
    }
}
