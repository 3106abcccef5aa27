//! Kinds with a few rules each.

use super::field::{Errors, Field};
use super::workloads::{amount_or_percent, not_above_all};
use super::{containers, pod, selector};
use watchkeeper_schema::metadata::label_key_problems;
use watchkeeper_schema::{FieldError, Path};

/// What holds a namespace, when that is all that is written.
pub(super) fn finalizers(object: &Field<'_>, errors: &mut Errors) {
    for finalizer in object.get("spec").get("finalizers").items() {
        label_key_problems(finalizer.text())
            .into_iter()
            .for_each(|problem| finalizer.invalid(problem, errors));
        if !finalizer.text().contains('/') && finalizer.text() != "kubernetes" {
            finalizer.invalid("name is neither a standard finalizer name nor is it fully qualified", errors);
        }
    }
}

pub(super) fn namespace(object: &Field<'_>, errors: &mut Errors) {
    let finalizers = object.get("spec").get("finalizers");
    for finalizer in finalizers.items().map(|finalizer| finalizer.text()) {
        for problem in label_key_problems(finalizer) {
            errors.push(FieldError::invalid(&finalizers.at, finalizer, problem));
        }
        if !finalizer.contains('/') && finalizer != "kubernetes" {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&finalizers.at, finalizer, detail));
        }
    }
}

pub(super) fn budget(spec: &Field<'_>, errors: &mut Errors) {
    let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if least.is_set() && most.is_set() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        let field = |name: &str| spec.get(name).value.clone();
        errors.push(FieldError::invalid(&spec.at, spec.value.clone(), detail).structure(&[
            ("MinAvailable", field("minAvailable")),
            ("Selector", field("selector")),
            ("MaxUnavailable", field("maxUnavailable")),
            ("UnhealthyPodEvictionPolicy", field("unhealthyPodEvictionPolicy")),
        ]));
    }
    for amount in [least, most] {
        amount_or_percent(&amount, errors);
        not_above_all(&amount, errors);
    }
    selector::selector(&spec.get("selector"), errors);
    spec.get("unhealthyPodEvictionPolicy").one_of(&["AlwaysAllow", "IfHealthyBudget"], errors);
}

pub(super) fn priority_class(object: &Field<'_>, errors: &mut Errors) {
    let (name, value) = (object.get("metadata").get("name"), object.get("value"));
    if name.text().starts_with("system-") {
        if !matches!(name.text(), "system-node-critical" | "system-cluster-critical") {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {} is not a known system priority class",
                name.text()
            );
            errors.push(FieldError::forbidden(&name.at, detail));
        }
    } else if value.number().is_some_and(|value| value > 1_000_000_000) {
        let detail = "maximum allowed value of a user defined priority is 1000000000";
        errors.push(FieldError::forbidden(&value.at, detail));
    }
    object.get("preemptionPolicy").one_of(&["PreemptLowerPriority", "Never"], errors);
}

pub(super) fn runtime_class(object: &Field<'_>, errors: &mut Errors) {
    let handler = object.get("handler");
    if handler.required(errors) {
        handler.dns_label(errors);
    }
    let overhead = object.get("overhead");
    // Amounts are checked as limits of containers are, and are said to be some.
    for (name, amount) in overhead.get("podFixed").entries() {
        let limit = Field { value: amount.value, at: overhead.at.child("limits").key(name) };
        containers::resource(name, &limit, errors);
    }
    let scheduling = object.get("scheduling");
    scheduling.get("nodeSelector").labels(errors);
    let mut seen = Vec::new();
    for toleration in scheduling.get("tolerations").items() {
        pod::toleration(&toleration, errors);
        let key = ["key", "operator", "value", "effect"].map(|name| toleration.get(name).text());
        if seen.contains(&key) {
            let [name, operator, value, effect] = key;
            let seconds = toleration.get("tolerationSeconds").value.clone();
            errors.push(FieldError::duplicate(&toleration.at, toleration.value.clone()).structure(&[
                ("Key", name.into()),
                ("Operator", operator.into()),
                ("Value", value.into()),
                ("Effect", effect.into()),
                ("TolerationSeconds", seconds),
            ]));
        }
        seen.push(key);
    }
}

pub(super) fn lease(spec: &Field<'_>, errors: &mut Errors) {
    let seconds = spec.get("leaseDurationSeconds");
    if seconds.number().is_some_and(|seconds| seconds <= 0) {
        seconds.invalid("must be greater than 0", errors);
    }
    spec.get("leaseTransitions").not_negative(errors);
}

/// An event is in the namespace of what it is about; one that says when it happened says who saw it. Those of
/// `events.k8s.io` have to say more.
pub(super) fn event(object: &Field<'_>, is_new: bool, errors: &mut Errors) {
    let own = object.get("metadata").get("namespace");
    let about = object.get(if is_new { "regarding" } else { "involvedObject" }).get("namespace");
    let at = Path::root().child("involvedObject").child("namespace");
    let elsewhere = FieldError::invalid(&at, about.text(), "does not match event.namespace");
    let has_time = object.get("eventTime").is_set();
    let is_elsewhere = match (about.is_empty(), has_time) {
        (true, false) => own.text() != "default",
        (true, true) => !matches!(own.text(), "default" | "kube-system"),
        (false, false) => about.text() != own.text(),
        (false, true) => false,
    };
    if is_elsewhere {
        errors.push(elsewhere);
    }
    if has_time {
        let reporter = object.get(if is_new { "reportingController" } else { "reportingComponent" });
        reporter.required(errors);
        for problem in label_key_problems(reporter.text()) {
            errors.push(FieldError::invalid(&reporter.at, reporter.text(), problem));
        }
        for name in ["reportingInstance", "action", "reason"] {
            object.get(name).required(errors);
            if object.get(name).text().len() > 128 {
                errors.push(FieldError::invalid(&object.get(name).at, "", "can have at most 128 characters"));
            }
        }
    }
    if is_new {
        new_event(object, errors);
    }
}

fn new_event(object: &Field<'_>, errors: &mut Errors) {
    let series = object.get("series");
    if series.is_set() && series.get("count").number().unwrap_or_default() < 2 {
        errors.push(FieldError::invalid(&series.get("count").at, "", "should be at least 2"));
    }
    if !object.get("eventTime").is_set() {
        errors.push(FieldError::required(&object.get("eventTime").at, ""));
    }
    let kind = object.get("type");
    if !matches!(kind.text(), "Normal" | "Warning") {
        errors.push(FieldError::invalid(&kind.at, "", format!("has invalid value: {}", kind.text())));
    }
}
