//! Volumes and claims.

use serde_json::Value;
use watchkeeper_table::layout::{Column, Fields, View, text, wide};

pub(crate) const CAPACITY: Column = text("Capacity", "How much the volume holds.");

pub(crate) const MODES: Column = text("Access Modes", "By how many it can be mounted, and how.");

pub(crate) const CLASS: Column = text("StorageClass", "The class of storage.");

pub(crate) const ATTRIBUTES: Column = text("VolumeAttributesClass", "The class of adjustable attributes.");

pub(crate) const VOLUME_MODE: Column = wide("VolumeMode", "Whether it is a file system or a block device.");

/// The phase of a volume or a claim.
pub(crate) fn phase<'a>(view: &View<'a>) -> &'a str {
    if view.is_terminating() { "Terminating" } else { view.object.text_or("status.phase", "Pending") }
}

/// The class of storage of a volume or a claim.
pub(crate) fn class(object: &Value) -> &str {
    let beta = object.entry("metadata.annotations", "volume.beta.kubernetes.io/storage-class");
    beta.unwrap_or_else(|| object.text("spec.storageClassName"))
}

/// Access modes, in short.
pub(crate) fn access_modes(modes: &[Value]) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let shown = known.into_iter().filter(|(mode, _)| modes.iter().any(|one| one == mode));
    let short: Vec<&str> = shown.map(|(_, short)| short).collect();
    short.join(",")
}
