use crate::column::{AGE, Column, NAME, text, wide};
use crate::fields::Fields;
use crate::printer::{Printer, View};
use crate::quantity::canonical;
use serde_json::Value;

const CAPACITY: Column = text("Capacity", "How much the volume holds.");
const MODES: Column = text("Access Modes", "By how many it can be mounted, and how.");
const CLASS: Column = text("StorageClass", "The class of storage.");
const ATTRIBUTES: Column = text("VolumeAttributesClass", "The class of adjustable attributes.");
const VOLUME_MODE: Column = wide("VolumeMode", "Whether it is a file system or a block device.");

pub(super) static PERSISTENT_VOLUME: Printer = Printer::new(
    &[
        NAME,
        CAPACITY,
        MODES,
        text("Reclaim Policy", "What becomes of the volume when its claim is gone."),
        text("Status", "Whether the volume is free, bound, released or failed."),
        text("Claim", "The claim that the volume is bound to."),
        CLASS,
        ATTRIBUTES,
        text("Reason", "Why the volume is in its status."),
        AGE,
        VOLUME_MODE,
    ],
    |view| {
        let volume = view.object;
        let claim = match volume.at("spec.claimRef") {
            Value::Null => String::new(),
            claim => format!("{}/{}", claim.text("namespace"), claim.text("name")),
        };
        vec![
            view.name(),
            canonical(volume.at("spec.capacity.storage")).into(),
            access_modes(volume.list("spec.accessModes")).into(),
            volume.text_or("spec.persistentVolumeReclaimPolicy", "Retain").into(),
            phase(view).into(),
            claim.into(),
            class(volume).into(),
            volume.set_text_or("spec.volumeAttributesClassName", "<unset>").into(),
            volume.text("status.reason").into(),
            view.age(),
            volume.set_text_or("spec.volumeMode", "Filesystem").into(),
        ]
    },
);

pub(super) static PERSISTENT_VOLUME_CLAIM: Printer = Printer::new(
    &[
        NAME,
        text("Status", "Whether the claim is bound."),
        text("Volume", "The volume that the claim is bound to."),
        CAPACITY,
        MODES,
        CLASS,
        ATTRIBUTES,
        AGE,
        VOLUME_MODE,
    ],
    |view| {
        let claim = view.object;
        let volume = claim.text("spec.volumeName");
        let (capacity, modes) = match volume {
            "" => (String::new(), String::new()),
            _ => (
                canonical(claim.at("status.capacity.storage")),
                access_modes(claim.list("status.accessModes")),
            ),
        };
        vec![
            view.name(),
            phase(view).into(),
            volume.into(),
            capacity.into(),
            modes.into(),
            class(claim).into(),
            claim.set_text_or("spec.volumeAttributesClassName", "<unset>").into(),
            view.age(),
            claim.set_text_or("spec.volumeMode", "Filesystem").into(),
        ]
    },
);

fn phase<'a>(view: &View<'a>) -> &'a str {
    if view.is_terminating() { "Terminating" } else { view.object.text_or("status.phase", "Pending") }
}

fn class(object: &Value) -> &str {
    let beta = object.entry("metadata.annotations", "volume.beta.kubernetes.io/storage-class");
    beta.unwrap_or_else(|| object.text("spec.storageClassName"))
}

fn access_modes(modes: &[Value]) -> String {
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
