use crate::path::{Path, Segment};

/// Whether a field moves whenever anything else does, and so tells a reader nothing: versions and counters of states, the record
/// of who owns which field, copies of what was applied, and the times in conditions.
pub fn is_bookkeeping(path: &Path) -> bool {
    let fields: Vec<&str> = path.fields().collect();
    match fields.as_slice() {
        [
            "metadata",
            "managedFields" | "resourceVersion" | "generation" | "uid" | "creationTimestamp" | "selfLink",
            ..,
        ] => true,
        ["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"] => true,
        ["status", "observedGeneration"] => true,
        [.., "conditions", "observedGeneration"] => true,
        [.., "conditions", time] => is_in_list(path) && TIMES.contains(time),
        _ => false,
    }
}

/// The fields of conditions that say when something was looked at.
const TIMES: [&str; 4] = ["lastTransitionTime", "lastUpdateTime", "lastProbeTime", "lastHeartbeatTime"];

/// Whether the last step leads into an item of a list.
fn is_in_list(path: &Path) -> bool {
    let before_last = path.0.iter().rev().nth(1);
    matches!(before_last, Some(Segment::Item { .. } | Segment::Index(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_always_moves_is_bookkeeping_and_nothing_else_is() {
        for (text, expected) in [
            ("metadata.resourceVersion", true),
            ("metadata.generation", true),
            ("metadata.managedFields[0].time", true),
            (r#"metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]"#, true),
            ("status.observedGeneration", true),
            ("status.conditions[type=Ready].lastTransitionTime", true),
            ("status.conditions[type=Ready].observedGeneration", true),
            ("status.parents[name=a].conditions[type=Ready].lastTransitionTime", true),
            ("status.conditions[type=Ready].status", false),
            ("status.conditions.lastTransitionTime", false),
            ("metadata.labels.generation", false),
            ("metadata.deletionTimestamp", false),
            ("spec.generation", false),
            ("spec.renewTime", false),
            ("spec.lastTransitionTime", false),
        ] {
            let path = text.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(is_bookkeeping(&path), expected, "{text}");
        }
    }
}
