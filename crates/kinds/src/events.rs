//! The two views of an event: as the core group has it, which is how it is stored, and as `events.k8s.io` has it.

use serde_json::Value;

/// What a field of a core event is called in the other group.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// An event of the core group with the names of the other group.
pub(crate) fn to_new(core: Value) -> Value {
    rename(core, |name| RENAMED.iter().find(|(old, _)| *old == name).map(|(_, new)| *new))
}

/// An event of the other group with the names of the core group.
pub(crate) fn to_core(new: Value) -> Value {
    rename(new, |name| RENAMED.iter().find(|(_, new)| *new == name).map(|(old, _)| *old))
}

fn rename(event: Value, renamed: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(fields) = event else { return event };
    fields.into_iter().map(|(name, value)| (renamed(&name).map_or(name, str::to_owned), value)).collect()
}
