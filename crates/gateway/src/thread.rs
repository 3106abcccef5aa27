//! Threads that a supervisor knows of.

use std::panic::{AssertUnwindSafe, catch_unwind};

use watchkeeper_supervision::Entry;

/// Runs the work of a thread to its end. After a panic it is counted, logged and begun again after a pause, as a supervisor does with tasks: the work
/// has to leave its state such that it can go on.
pub(crate) fn run(entry: &Entry, mut work: impl FnMut()) {
    while catch_unwind(AssertUnwindSafe(&mut work)).is_err() {
        std::thread::sleep(entry.panicked(None));
        entry.begins();
    }
}
