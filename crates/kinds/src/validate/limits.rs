//! Quotas and ranges of resources, and the nodes that have them.

use super::field::{Errors, Field};
use super::network;
use crate::decimal::{self, Quantity};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{label_key_problems, label_value_problems};

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

pub(super) fn quota(object: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
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
    let Some(read) = read(amount) else { return };
    if read.is_negative() {
        amount.invalid("must be greater than or equal to 0", errors);
    }
    if WHOLE.contains(&name) && !read.is_whole() {
        amount.invalid("must be an integer", errors);
    }
}

fn read(amount: &Field<'_>) -> Option<Quantity> {
    decimal::parse(amount.text()).ok().flatten()
}

pub(super) fn range(object: &Field<'_>, errors: &mut Errors) {
    let mut kinds = HashSet::new();
    for limit in object.get("spec").get("limits").items() {
        let kind = limit.get("type");
        let problems = label_key_problems(kind.text());
        if problems.is_empty() && !kind.text().contains('/') {
            if !matches!(kind.text(), "Pod" | "Container" | "PersistentVolumeClaim") {
                kind.invalid("must be a standard limit type or fully qualified", errors);
            }
        } else {
            problems.iter().for_each(|problem| kind.invalid(problem, errors));
        }
        if !kinds.insert(kind.text()) {
            errors.push(FieldError::duplicate(&kind.at, kind.text()));
        }
        let is_pod = kind.text() == "Pod";
        for name in ["default", "defaultRequest"] {
            if is_pod && !limit.get(name).is_empty() {
                let detail = "may not be specified when `type` is 'Pod'";
                errors.push(FieldError::forbidden(&limit.get(name).at, detail));
            }
        }
        if kind.text() == "PersistentVolumeClaim"
            && ["min", "max"].into_iter().all(|name| !limit.get(name).get("storage").is_set())
        {
            let detail = "either minimum or maximum storage value is required, but neither was provided";
            errors.push(FieldError::required(&limit.at.child("limits"), detail));
        }
        bounds(&limit, is_pod, errors);
    }
}

/// Least, usual and most of each resource are in this order.
fn bounds(limit: &Field<'_>, is_pod: bool, errors: &mut Errors) {
    let names: BTreeSet<&str> = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"]
        .into_iter()
        .flat_map(|list| limit.get(list).entries().map(|(name, _)| name).collect::<Vec<_>>())
        .collect();
    for name in names {
        let of = |list: &str| {
            let amount = limit.get(list).get(name);
            let is_seen = !(is_pod && list.starts_with("default"));
            read(&amount).filter(|_| is_seen).map(|read| (amount.text(), read))
        };
        // Which is above which, where it is said, which of them is shown, and in what words.
        const ORDER: [(&str, &str, &str, bool, &str, &str); 5] = [
            ("min", "max", "min", true, "min", "max"),
            ("min", "defaultRequest", "defaultRequest", false, "min", "default request"),
            ("defaultRequest", "max", "defaultRequest", true, "default request", "max"),
            ("defaultRequest", "default", "defaultRequest", true, "default request", "default limit"),
            ("min", "default", "default", true, "min", "default"),
        ];
        let mut compare =
            |(low, high, at, shows_low, low_word, high_word): (&str, &str, &str, bool, &str, &str)| {
                if let (Some((less, low)), Some((more, high))) = (of(low), of(high))
                    && low.compare(&high) == Some(Ordering::Greater)
                {
                    let detail = format!("{low_word} value {less} is greater than {high_word} value {more}");
                    let shown = if shows_low { less } else { more };
                    errors.push(FieldError::invalid(&limit.at.child(at).key(name), shown, detail));
                }
            };
        ORDER.into_iter().for_each(&mut compare);
        compare(("default", "max", "default", false, "default", "max"));
    }
}

pub(super) fn node(object: &Field<'_>, errors: &mut Errors) {
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
        network::block(&block, errors);
    }
}
