//! Recorded cases: one line of JSON each.

use serde_json::Value;
use std::time::{Duration, SystemTime};

/// The moment up to which the recorded ages are counted.
pub(crate) fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600)
}

/// Runs every case of a file and shows all that fail, not only the first.
pub(crate) fn run(cases: &str, at_least: usize, mut check: impl FnMut(&Value) -> Result<(), String>) {
    let mut failures = Vec::new();
    let mut count = 0;
    for line in cases.lines() {
        if let Err(failure) = check(&serde_json::from_str(line).unwrap()) {
            failures.push(failure);
        }
        count += 1;
    }
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
    assert!(count >= at_least, "only {count} cases");
}

/// Whether both are the same; if not, what they are.
pub(crate) fn same(what: &dyn std::fmt::Display, ours: &Value, theirs: &Value) -> Result<(), String> {
    if ours == theirs { Ok(()) } else { Err(format!("{what}\n  ours   {ours}\n  theirs {theirs}")) }
}
