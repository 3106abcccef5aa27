use super::joined;
use crate::column::{AGE, Column, NAME, boolean, integer, text};
use crate::fields::Fields;
use crate::printer::Printer;
use serde_json::Value;

const DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

pub(super) static STORAGE_CLASS: Printer = Printer::new(
    &[
        NAME,
        text("Provisioner", "What makes volumes of this class."),
        text("ReclaimPolicy", "What becomes of a volume when its claim is gone."),
        text("VolumeBindingMode", "When claims are bound to volumes."),
        text("AllowVolumeExpansion", "Whether volumes can grow."),
        AGE,
    ],
    |view| {
        let class = view.object;
        let mut name = class.text("metadata.name").to_owned();
        if DEFAULT_CLASS.iter().any(|key| class.entry("metadata.annotations", key) == Some("true")) {
            name.push_str(" (default)");
        }
        vec![
            name.into(),
            class.text("provisioner").into(),
            class.set_text_or("reclaimPolicy", "Delete").into(),
            class.set_text_or("volumeBindingMode", "Immediate").into(),
            class.flag("allowVolumeExpansion").into(),
            view.age(),
        ]
    },
);

pub(super) static VOLUME_ATTRIBUTES_CLASS: Printer =
    Printer::new(&[NAME, text("DriverName", "The driver that the attributes are for."), AGE], |view| {
        vec![view.name(), view.object.text("driverName").into(), view.age()]
    });

pub(super) static VOLUME_ATTACHMENT: Printer = Printer::new(
    &[
        NAME,
        Column { format: "name", ..text("Attacher", "The driver that attaches the volume.") },
        text("PV", "The volume."),
        text("Node", "The node that the volume is attached to."),
        boolean("Attached", "Whether the volume is attached."),
        AGE,
    ],
    |view| {
        let attachment = view.object;
        vec![
            view.name(),
            attachment.text("spec.attacher").into(),
            attachment.text("spec.source.persistentVolumeName").into(),
            attachment.text("spec.nodeName").into(),
            attachment.flag("status.attached").into(),
            view.age(),
        ]
    },
);

pub(super) static CSI_NODE: Printer =
    Printer::new(&[NAME, integer("Drivers", "How many storage drivers the node has."), AGE], |view| {
        vec![view.name(), view.object.len("spec.drivers").into(), view.age()]
    });

pub(super) static CSI_DRIVER: Printer = Printer::new(
    &[
        NAME,
        boolean("AttachRequired", "Whether volumes are attached before they are mounted."),
        boolean("PodInfoOnMount", "Whether the driver is told of the pod when it mounts."),
        boolean("StorageCapacity", "Whether the driver reports how much room is left."),
        text("TokenRequests", "For whom the driver is given tokens of the pod."),
        boolean("RequiresRepublish", "Whether mounted volumes are published again and again."),
        text("Modes", "Which kinds of volumes there are."),
        AGE,
    ],
    |view| {
        let driver = view.object;
        let tokens = match driver.at("spec.tokenRequests") {
            Value::Array(requests) => joined(requests, "audience"),
            _ => "<unset>".into(),
        };
        let modes: Vec<&str> =
            driver.list("spec.volumeLifecycleModes").iter().filter_map(Value::as_str).collect();
        let modes = if modes.is_empty() { "Persistent".into() } else { modes.join(",") };
        vec![
            view.name(),
            driver.at("spec.attachRequired").as_bool().unwrap_or(true).into(),
            driver.flag("spec.podInfoOnMount").into(),
            driver.flag("spec.storageCapacity").into(),
            tokens.into(),
            driver.flag("spec.requiresRepublish").into(),
            modes.into(),
            view.age(),
        ]
    },
);
