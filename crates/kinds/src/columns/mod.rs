//! What the tables of several kinds have in common.

pub(crate) mod policies;
pub(crate) mod rbac;
pub(crate) mod volumes;

use serde_json::Value;
use std::collections::BTreeSet;
use watchkeeper_table::layout::{AGE, Column, Fields, NAME, View, integer, wide};

pub(crate) const CONTAINERS: Column = wide("Containers", "The names of the containers.");

pub(crate) const IMAGES: Column = wide("Images", "The images of the containers.");

pub(crate) const SELECTOR: Column = wide("Selector", "The labels of the pods that belong to it.");

pub(crate) const REPLICAS: [Column; 8] = [
    NAME,
    integer("Desired", "How many pods there should be."),
    integer("Current", "How many pods there are."),
    integer("Ready", "How many pods are ready."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// The values of the text field `name` of all items, with commas between.
pub(crate) fn joined(items: &[Value], name: &str) -> String {
    let texts: Vec<&str> = items.iter().map(|item| item.text(name)).collect();
    texts.join(",")
}

/// The names and images of the containers in the pod spec at `path`.
pub(crate) fn containers(object: &Value, path: &str) -> [Value; 2] {
    let containers = object.at(path).list("containers");
    [joined(containers, "name").into(), joined(containers, "image").into()]
}

/// Up to `most` texts with commas between, and how many more there are.
pub(crate) fn at_most(most: usize, separator: &str, texts: &[String]) -> String {
    let shown = texts[..texts.len().min(most)].join(separator);
    match texts.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

/// `True` or `False`.
pub(crate) fn title(flag: bool) -> &'static str {
    if flag { "True" } else { "False" }
}

/// The row of a kind that keeps a number of pods.
pub(crate) fn replicas(view: &View<'_>, selector: String) -> Vec<Value> {
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

/// How many pods are ready, of how many.
pub(crate) fn ready_of_desired(object: &Value) -> Value {
    format!("{}/{}", object.int("status.readyReplicas"), desired(object)).into()
}

/// The addresses in the status of a load balancer, sorted.
pub(crate) fn balancer_addresses(object: &Value) -> BTreeSet<String> {
    let ingress = object.list("status.loadBalancer.ingress").iter();
    let addresses = ingress.map(|ingress| ingress.text_or("ip", ingress.text("hostname")));
    addresses.filter(|address| !address.is_empty()).map(str::to_owned).collect()
}
