use crate::Kind;
use crate::default::set;
use crate::kind::row::{STATUS, field, kind};
use crate::kind::strategy::Fields;
use crate::validate::addresses;
use crate::validate::field::{Errors, Field};
use serde_json::{Value, json};
use std::collections::HashSet;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{label_key_problems, label_value_problems};

pub(crate) const KIND: Kind = kind("", "v1", "Node", "nodes", "node")
    .short(&["no"])
    .cluster_wide()
    .with(&[STATUS])
    .selectable(&[field("spec.unschedulable", "false")])
    .upstream_folder("minions")
    .unify(unify)
    .type_defaults(&[("NodeStatus", default_status)])
    .keeps_status_on_create()
    .validate_with(validate)
    .table(table::TABLE);

/// The first of the blocks of addresses for the pods of a node is its block.
fn unify(fields: &mut Fields) {
    let Some(Value::Object(spec)) = fields.get_mut("spec") else { return };
    let first = spec.get("podCIDRs").and_then(|all| all.get(0)).cloned();
    match (first, spec.get("podCIDR").cloned()) {
        (Some(first), None) => {
            spec.insert("podCIDR".into(), first);
        }
        (None, Some(block)) => {
            spec.insert("podCIDRs".into(), json!([block]));
        }
        _ => {}
    }
}

fn default_status(fields: &mut Fields) {
    if let Some(capacity) = fields.get("capacity").filter(|capacity| capacity.is_object()).cloned() {
        set(fields, "allocatable", capacity);
    }
}

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = object.get("spec");
    let taints = Field { at: object.get("metadata").at.child("taints"), ..spec.get("taints") };
    let mut seen = HashSet::new();
    for taint in taints.items() {
        let (key, value, effect) = (taint.get("key"), taint.get("value"), taint.get("effect"));
        for problem in label_key_problems(key.text()) {
            errors.push(FieldError::invalid(&key.at, key.text(), problem));
        }
        let problems = label_value_problems(value.text());
        if !problems.is_empty() {
            value.invalid(problems.join(";"), errors);
        }
        if effect.required(errors) {
            effect.one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        }
        if !seen.insert((key.text(), effect.text())) {
            let mut error = FieldError::duplicate(&taint.at, taint.value.clone());
            error.detail = "taints must be unique by key and effect pair".into();
            errors.push(error);
        }
    }
    for block in spec.get("podCIDRs").items() {
        addresses::block(&block, errors);
    }
}

mod table {
    use serde_json::Value;
    use std::collections::BTreeSet;
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text, wide};

    const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
    const ROLE: &str = "kubernetes.io/role";

    pub(super) const TABLE: Layout = Layout::new(
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
        addresses
            .find(|address| address.text("type") == kind)
            .map_or("<none>", |address| address.text("address"))
    }
}
