use crate::column::{AGE, NAME, text, wide};
use crate::fields::Fields;
use crate::printer::Printer;
use serde_json::Value;
use std::collections::BTreeSet;

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE: &str = "kubernetes.io/role";

pub(super) static NODE: Printer = Printer::new(
    &[
        NAME,
        text("Status", "Whether the node is ready, and whether it takes new pods."),
        text("Roles", "The roles of the node."),
        AGE,
        text("Version", "The version of the kubelet."),
        wide("Internal-IP", "The address inside the cluster."),
        wide("External-IP", "The address outside the cluster."),
        wide("OS-Image", "The operating system."),
        wide("Kernel-Version", "The kernel and the architecture."),
        wide("Container-Runtime", "What runs the containers."),
    ],
    |view| {
        let node = view.object;
        let info = node.at("status.nodeInfo");
        let mut kernel = info.text_or("kernelVersion", "<unknown>").to_owned();
        let architecture = info.text("architecture");
        if !architecture.is_empty() {
            kernel = format!("{kernel} ({architecture})");
        }
        vec![
            view.name(),
            status(node).into(),
            roles(node).into(),
            view.age(),
            info.text("kubeletVersion").into(),
            address(node, "InternalIP").into(),
            address(node, "ExternalIP").into(),
            info.text_or("osImage", "<unknown>").into(),
            kernel.into(),
            info.text_or("containerRuntimeVersion", "<unknown>").into(),
        ]
    },
);

fn status(node: &Value) -> String {
    let conditions = node.list("status.conditions").iter();
    let ready = conditions.rev().find(|condition| condition.text("type") == "Ready");
    let status = match ready.map(|condition| condition.text("status")) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    };
    if node.flag("spec.unschedulable") { format!("{status},SchedulingDisabled") } else { status.into() }
}

fn roles(node: &Value) -> String {
    let labels = node.at("metadata.labels").as_object().into_iter().flatten();
    let role = |(key, value): (&'_ String, &'_ Value)| match key.strip_prefix(ROLE_PREFIX) {
        Some(role) => Some(role.to_owned()),
        None if key == ROLE => value.as_str().map(str::to_owned),
        None => None,
    };
    let roles: BTreeSet<String> = labels.filter_map(role).filter(|role| !role.is_empty()).collect();
    if roles.is_empty() { "<none>".into() } else { Vec::from_iter(roles).join(",") }
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let mut addresses = node.list("status.addresses").iter();
    addresses.find(|address| address.text("type") == kind).map_or("<none>", |address| address.text("address"))
}
