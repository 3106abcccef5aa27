//! Kinds with a few rules each.

use super::field::{Errors, Field};
use super::selector;
use super::workloads::{amount_or_percent, not_above_all};
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{dns_subdomain_problems, label_key_problems};

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

pub(super) fn autoscaler(spec: &Field<'_>, errors: &mut Errors) {
    let (least, most, target) =
        (spec.get("minReplicas"), spec.get("maxReplicas"), spec.get("scaleTargetRef"));
    if least.number().is_some_and(|least| least < 1) {
        least.invalid("must be greater than or equal to 1", errors);
    }
    let asked = most.number().unwrap_or_default();
    if asked < 1 {
        errors.push(FieldError::required(&most.at, "must be set and greater than 0"));
    } else if least.number().is_some_and(|least| least > asked) {
        most.invalid("must be greater than or equal to `minReplicas`", errors);
    }
    for name in ["kind", "name"] {
        target.get(name).required(errors);
    }
    let version = target.get("apiVersion");
    if !version.text().contains('/') && version.text() != "v1" {
        errors.push(FieldError::invalid(&version.at, version.text(), "apiVersion must specify API group"));
    }
    for metric in spec.get("metrics").items() {
        let kinds = ["ContainerResource", "External", "Object", "Pods", "Resource"];
        let kind = metric.get("type");
        kind.one_of(&kinds, errors);
        let mut name = kind.text().to_owned();
        if let Some(first) = name.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        let source = metric.get(&name);
        if kinds.contains(&kind.text()) && !source.is_set() {
            let detail = "must populate information for the given metric source";
            errors.push(FieldError::required(&source.at, detail));
        }
    }
}

pub(super) fn budget(spec: &Field<'_>, errors: &mut Errors) {
    let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if least.is_set() && most.is_set() {
        spec.invalid("minAvailable and maxUnavailable cannot be both set", errors);
    }
    for amount in [least, most] {
        amount_or_percent(&amount, errors);
        not_above_all(&amount, errors);
    }
    selector::selector(&spec.get("selector"), errors);
}

pub(super) fn priority_class(object: &Field<'_>, errors: &mut Errors) {
    let value = object.get("value");
    if value.number().is_some_and(|value| value > 1_000_000_000) {
        let detail = "maximum allowed value of a user defined priority is 1000000000";
        errors.push(FieldError::forbidden(&value.at, detail));
    }
    object.get("preemptionPolicy").one_of(&["PreemptLowerPriority", "Never"], errors);
}

pub(super) fn lease(spec: &Field<'_>, errors: &mut Errors) {
    let seconds = spec.get("leaseDurationSeconds");
    if seconds.number().is_some_and(|seconds| seconds <= 0) {
        seconds.invalid("must be greater than 0", errors);
    }
    spec.get("leaseTransitions").not_negative(errors);
}

/// An event is in the namespace of what it is about.
pub(super) fn event(object: &Field<'_>, errors: &mut Errors) {
    let own = object.get("metadata").get("namespace");
    let about = object.get("involvedObject").get("namespace");
    let is_elsewhere = if about.is_empty() { own.text() != "default" } else { about.text() != own.text() };
    if is_elsewhere && about.value.is_string() {
        errors.push(FieldError::invalid(&about.at, about.text(), "does not match event.namespace"));
    }
}

pub(super) fn webhooks(webhooks: &Field<'_>, errors: &mut Errors) {
    for webhook in webhooks.items() {
        let name = webhook.get("name");
        if name.required(errors) {
            let problems = dns_subdomain_problems(name.text());
            let is_good = problems.is_empty();
            problems.into_iter().for_each(|problem| name.invalid(problem, errors));
            if is_good && name.text().split('.').count() < 3 {
                name.invalid("should be a domain with at least three segments separated by dots", errors);
            }
        }
        let effects = webhook.get("sideEffects");
        if !effects.is_set() {
            errors.push(FieldError::required(&effects.at, "must specify one of None, NoneOnDryRun"));
        } else {
            effects.one_of(&["None", "NoneOnDryRun"], errors);
        }
        let seconds = webhook.get("timeoutSeconds");
        if seconds.number().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
            seconds.invalid("the timeout value must be between 1 and 30 seconds", errors);
        }
        let client = webhook.get("clientConfig");
        if client.get("url").is_set() == client.get("service").is_set() {
            errors.push(FieldError::required(&client.at, "exactly one of url or service is required"));
        }
        webhook.get("admissionReviewVersions").required_as("must specify one of v1, v1beta1", errors);
    }
}
