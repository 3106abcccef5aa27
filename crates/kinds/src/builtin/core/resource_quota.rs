use crate::Kind;
use crate::kind::row::{STATUS, kind};
use crate::validate::field::{Errors, Field};
use std::collections::HashSet;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::label_key_problems;

pub(crate) const KIND: Kind = kind("", "v1", "ResourceQuota", "resourcequotas", "resourcequota")
    .short(&["quota"])
    .with(&[STATUS])
    .returns_deleted()
    .validate_with(validate)
    .metadata_checks(1, 0)
    .table(table::TABLE);

/// What quotas count besides what has a domain.
const COUNTED: [&str; 19] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];

/// What there are only whole ones of.
const WHOLE: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

fn validate(object: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = object.get("spec");
    for (name, amount) in spec.get("hard").entries() {
        resource_name(name, &amount, errors);
        resource_amount(name, &amount, errors);
    }
    let scopes = spec.get("scopes");
    for _ in scopes.items().filter(|scope| !SCOPES.contains(&scope.text())) {
        scopes.invalid("unsupported scope", errors);
    }
    if let Some(old) = old {
        let set =
            |scopes: &Field<'_>| scopes.items().map(|scope| scope.text().to_owned()).collect::<HashSet<_>>();
        if set(&scopes) != set(&old.get("spec").get("scopes")) {
            scopes.invalid("field is immutable", errors);
        }
    }
}

fn resource_name(name: &str, amount: &Field<'_>, errors: &mut Errors) {
    let complain = |problem: &str, errors: &mut Errors| {
        errors.push(FieldError::invalid(&amount.at, name, problem));
    };
    let problems = label_key_problems(name);
    if !problems.is_empty() {
        problems.iter().for_each(|problem| complain(problem, errors));
    } else if !name.contains('/') && !is_standard(name) {
        complain("must be a standard resource type or fully qualified", errors);
    }
    if !name.contains('/') && !is_counted(name) {
        complain("must be a standard resource for quota", errors);
    }
}

fn is_counted(name: &str) -> bool {
    COUNTED.contains(&name) || name.strip_prefix("requests.").unwrap_or(name).starts_with("hugepages-")
}

fn is_standard(name: &str) -> bool {
    is_counted(name) || name == "storage"
}

fn resource_amount(name: &str, amount: &Field<'_>, errors: &mut Errors) {
    let Some(read) = amount.quantity() else { return };
    if read.is_negative() {
        amount.invalid("must be greater than or equal to 0", errors);
    }
    if WHOLE.contains(&name) && !read.is_whole() {
        amount.invalid("must be an integer", errors);
    }
}

mod table {
    use serde_json::Value;
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, View, canonical, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            text("Request", "Used and allowed amounts of what may be requested."),
            text("Limit", "Used and allowed amounts of what limits may add up to."),
            AGE,
        ],
        cells,
    );

    fn cells(view: &View<'_>) -> Vec<Value> {
        let quota = view.object;
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        for (name, hard) in quota.at("status.hard").as_object().into_iter().flatten() {
            let used = quota.at("status.used").as_object().and_then(|used| used.get(name));
            let used = canonical(used.unwrap_or(&Value::Null));
            let column = if name.starts_with("limits.") { &mut limits } else { &mut requests };
            column.push(format!("{name}: {used}/{}", canonical(hard)));
        }
        vec![view.name(), requests.join(", ").into(), limits.join(", ").into(), view.age()]
    }
}
