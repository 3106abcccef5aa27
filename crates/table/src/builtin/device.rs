use crate::column::{AGE, NAME, text};
use crate::fields::Fields;
use crate::printer::Printer;

pub(super) static RESOURCE_CLAIM: Printer =
    Printer::new(&[NAME, text("State", "Whether devices are allocated, and for whom."), AGE], |view| {
        let claim = view.object;
        let (is_deleted, is_allocated) =
            (claim.has("metadata.deletionTimestamp"), claim.has("status.allocation"));
        let states = [
            ("deleted", is_deleted),
            ("pending", !is_deleted && !is_allocated),
            ("allocated", is_allocated),
            ("reserved", is_allocated && !claim.list("status.reservedFor").is_empty()),
        ];
        let states: Vec<&str> = states.into_iter().filter_map(|(name, is)| is.then_some(name)).collect();
        vec![view.name(), states.join(",").into(), view.age()]
    });

pub(super) static RESOURCE_SLICE: Printer = Printer::new(
    &[
        NAME,
        text("Node", "The node that the devices are at."),
        text("Driver", "The driver that the devices belong to."),
        text("Pool", "The pool that the slice is a part of."),
        AGE,
    ],
    |view| {
        let spec = view.object.at("spec");
        vec![
            view.name(),
            spec.text("nodeName").into(),
            spec.text("driver").into(),
            spec.text("pool.name").into(),
            view.age(),
        ]
    },
);
