//! What reconcilers in tests did.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Runs by key: how many there were, and whether two were ever at the same time.
#[derive(Clone, Default)]
pub(crate) struct Log {
    entries: Arc<Mutex<Entries>>,
}

#[derive(Default)]
struct Entries {
    lines: Vec<String>,
    running: HashMap<String, u32>,
    runs: HashMap<String, u32>,
    overlaps: u32,
}

impl Log {
    pub(crate) fn say(&self, line: impl Into<String>) {
        self.entries.lock().lines.push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.entries.lock().lines.clone()
    }

    /// A run of a key; it ends when the result is dropped.
    pub(crate) fn run(&self, key: &str) -> Run {
        let mut entries = self.entries.lock();
        *entries.runs.entry(key.into()).or_default() += 1;
        let running = entries.running.entry(key.into()).or_default();
        *running += 1;
        if *running > 1 {
            entries.overlaps += 1;
        }
        Run { log: self.clone(), key: key.into() }
    }

    pub(crate) fn total(&self) -> u32 {
        self.entries.lock().runs.values().sum()
    }

    pub(crate) fn keys(&self) -> usize {
        self.entries.lock().runs.len()
    }

    pub(crate) fn overlaps(&self) -> u32 {
        self.entries.lock().overlaps
    }
}

pub(crate) struct Run {
    log: Log,
    key: String,
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(running) = self.log.entries.lock().running.get_mut(&self.key) {
            *running -= 1;
        }
    }
}
