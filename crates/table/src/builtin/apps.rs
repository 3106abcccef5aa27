use super::containers;
use crate::column::{AGE, Column, NAME, integer, text, wide};
use crate::fields::Fields;
use crate::printer::{Printer, View};
use crate::selector;
use serde_json::Value;

pub(super) const CONTAINERS: Column = wide("Containers", "The names of the containers.");
pub(super) const IMAGES: Column = wide("Images", "The images of the containers.");
pub(super) const SELECTOR: Column = wide("Selector", "The labels of the pods that belong to it.");
const REPLICAS: [Column; 8] = [
    NAME,
    integer("Desired", "How many pods there should be."),
    integer("Current", "How many pods there are."),
    integer("Ready", "How many pods are ready."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) static REPLICATION_CONTROLLER: Printer = Printer::new(&REPLICAS, |view| {
    let own = view.object.at("spec.selector");
    let labels = if own.is_null() { view.object.at("spec.template.metadata.labels") } else { own };
    replicas(view, selector::labels(labels))
});

pub(super) static REPLICA_SET: Printer =
    Printer::new(&REPLICAS, |view| replicas(view, selector::shown(view.object.at("spec.selector"))));

pub(super) static DEPLOYMENT: Printer = Printer::new(
    &[
        NAME,
        text("Ready", "How many pods are ready, of how many."),
        text("Up-to-date", "How many pods have the current template."),
        text("Available", "How many pods have been ready for long enough."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    |view| {
        let deployment = view.object;
        let [names, images] = containers(deployment, "spec.template.spec");
        let selector = selector::text(deployment.at("spec.selector"));
        vec![
            view.name(),
            ready_of_desired(deployment),
            deployment.int("status.updatedReplicas").into(),
            deployment.int("status.availableReplicas").into(),
            view.age(),
            names,
            images,
            selector.unwrap_or_else(|| "<invalid>".into()).into(),
        ]
    },
);

pub(super) static STATEFUL_SET: Printer = Printer::new(
    &[NAME, text("Ready", "How many pods are ready, of how many."), AGE, CONTAINERS, IMAGES],
    |view| {
        let [names, images] = containers(view.object, "spec.template.spec");
        vec![view.name(), ready_of_desired(view.object), view.age(), names, images]
    },
);

pub(super) static DAEMON_SET: Printer = Printer::new(
    &[
        NAME,
        integer("Desired", "How many nodes should run a pod."),
        integer("Current", "How many of those do."),
        integer("Ready", "On how many nodes the pod is ready."),
        integer("Up-to-date", "On how many nodes the pod has the current template."),
        integer("Available", "On how many nodes the pod has been ready for long enough."),
        text("Node Selector", "The labels of the nodes that run a pod."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    |view| {
        let set = view.object;
        let [names, images] = containers(set, "spec.template.spec");
        vec![
            view.name(),
            set.int("status.desiredNumberScheduled").into(),
            set.int("status.currentNumberScheduled").into(),
            set.int("status.numberReady").into(),
            set.int("status.updatedNumberScheduled").into(),
            set.int("status.numberAvailable").into(),
            selector::labels(set.at("spec.template.spec.nodeSelector")).into(),
            view.age(),
            names,
            images,
            selector::shown(set.at("spec.selector")).into(),
        ]
    },
);

pub(super) static CONTROLLER_REVISION: Printer = Printer::new(
    &[
        NAME,
        text("Controller", "What the revision belongs to."),
        text("Revision", "The number of the revision."),
        AGE,
    ],
    |view| {
        let revision = view.object.int("revision");
        vec![view.name(), controller(view.object).into(), revision.into(), view.age()]
    },
);

fn replicas(view: &View<'_>, selector: String) -> Vec<Value> {
    let [names, images] = containers(view.object, "spec.template.spec");
    vec![
        view.name(),
        desired(view.object).into(),
        view.object.int("status.replicas").into(),
        view.object.int("status.readyReplicas").into(),
        view.age(),
        names,
        images,
        selector.into(),
    ]
}

/// One, unless another number is asked for.
fn desired(object: &Value) -> i64 {
    object.at("spec.replicas").as_i64().unwrap_or(1)
}

fn ready_of_desired(object: &Value) -> Value {
    format!("{}/{}", object.int("status.readyReplicas"), desired(object)).into()
}

/// The owner that is the controller, as `kind.group/name`.
fn controller(object: &Value) -> String {
    let mut owners = object.list("metadata.ownerReferences").iter();
    let Some(owner) = owners.find(|owner| owner.flag("controller")) else {
        return "<none>".into();
    };
    let (kind, name) = (owner.text("kind").to_lowercase(), owner.text("name"));
    match owner.text("apiVersion").split_once('/') {
        Some((group, _)) if !group.is_empty() => format!("{kind}.{}/{name}", group.to_lowercase()),
        _ if kind.is_empty() => name.into(),
        _ => format!("{kind}/{name}"),
    }
}
