//! How many pods there are to be, and by which measure.

use super::containers::resource_name;
use super::field::{Errors, Field};
use super::names::path_segment;
use crate::decimal;
use serde_json::Value;
use watchkeeper_schema::FieldError;

const KINDS: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

/// The longest times of scaling rules, in seconds.
const LONGEST_WINDOW: i64 = 3600;
const LONGEST_PERIOD: i64 = 1800;

pub(super) fn autoscaler(spec: &Field<'_>, errors: &mut Errors) {
    let (least, most) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    if least.number().is_some_and(|least| least < 1) {
        least.invalid("must be greater than or equal to 1", errors);
    }
    let asked = most.number().unwrap_or_default();
    if asked == 0 {
        errors.push(FieldError::required(&most.at, "must be set and greater than 0"));
    } else if asked < 0 {
        most.invalid("must be greater than or equal to 1", errors);
    }
    if least.number().is_some_and(|least| least > asked) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(&most.at, asked, detail));
    }
    reference(&spec.get("scaleTargetRef"), true, errors);
    let metrics = spec.get("metrics");
    metrics.items().for_each(|metric| self::metric(&metric, errors));
    let is_from_outside = |metric: Field<'_>| matches!(metric.get("type").text(), "Object" | "External");
    if least.number() == Some(0) && !metrics.items().any(is_from_outside) {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(&metrics.at, detail));
    }
    for direction in ["scaleUp", "scaleDown"] {
        let rules = spec.get("behavior").get(direction);
        if rules.is_set() {
            self::rules(&rules, errors);
        }
    }
}

fn reference(target: &Field<'_>, needs_group: bool, errors: &mut Errors) {
    for name in ["kind", "name"] {
        if target.get(name).required(errors) {
            path_segment(&target.get(name), errors);
        }
    }
    let version = target.get("apiVersion");
    match version.text().matches('/').count() {
        0 if needs_group && version.text() != "v1" => {
            let detail = "apiVersion must specify API group";
            errors.push(FieldError::invalid(&version.at, version.text(), detail));
        }
        0 | 1 => {}
        _ => version.invalid(format!("unexpected GroupVersion string: {}", version.text()), errors),
    }
}

fn metric(metric: &Field<'_>, errors: &mut Errors) {
    let kind = metric.get("type");
    if kind.is_empty() {
        errors.push(FieldError::required(&kind.at, "must specify a metric source type"));
    }
    let supported = |errors: &mut Errors| {
        if !KINDS.contains(&kind.text()) {
            errors.push(FieldError::not_supported(&kind.at, kind.text(), KINDS));
        }
    };
    supported(errors);
    // Only the first source is looked at, in this order.
    let sources = ["object", "external", "pods", "resource", "containerResource"];
    let present: Vec<&str> = sources.into_iter().filter(|name| metric.get(name).is_set()).collect();
    if let Some(first) = present.first() {
        source(first, &metric.get(first), errors);
    }
    // It is looked at twice: for what it is, and for what it needs.
    supported(errors);
    let mut wanted = kind.text().to_owned();
    if let Some(first) = wanted.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    if KINDS.contains(&kind.text()) && !metric.get(&wanted).is_set() {
        let detail = "must populate information for the given metric source";
        errors.push(FieldError::required(&metric.get(&wanted).at, detail));
    }
    if present.len() > 1 {
        for other in present.into_iter().filter(|name| *name != wanted) {
            let detail = "must populate the given metric source only";
            errors.push(FieldError::forbidden(&metric.get(other).at, detail));
        }
    }
}

fn source(kind: &str, source: &Field<'_>, errors: &mut Errors) {
    let (name, target) = (source.get("name"), source.get("target"));
    match kind {
        "object" => reference(&source.get("describedObject"), false, errors),
        "resource" => {
            name.required_as("must specify a resource name", errors);
        }
        "containerResource" => {
            if name.required_as("must specify a resource name", errors) {
                resource_name(name.text(), &name, errors);
            }
            let container = source.get("container");
            if container.required_as("must specify a container", errors) {
                container.dns_label(errors);
            }
        }
        _ => {}
    }
    let metric = source.get("metric").get("name");
    if matches!(kind, "object" | "external" | "pods")
        && metric.required_as("must specify a metric name", errors)
    {
        path_segment(&metric, errors);
    }
    self::target(&target, errors);
    let [value, average, utilization] =
        ["value", "averageValue", "averageUtilization"].map(|name| target.get(name));
    let (has_value, has_average, has_utilization) = (value.is_set(), average.is_set(), utilization.is_set());
    match kind {
        "object" if !has_value && !has_average => {
            errors.push(FieldError::required(&average.at, "must set either a target value or averageValue"));
        }
        "external" if !has_value && !has_average => {
            let detail = "must set either a target value for metric or a per-pod target";
            errors.push(FieldError::required(&average.at, detail));
        }
        "external" if has_value && has_average => {
            let detail = "may not set both a target value for metric and a per-pod target";
            errors.push(FieldError::forbidden(&value.at, detail));
        }
        "pods" if !has_average => {
            let detail = "must specify a positive target averageValue";
            errors.push(FieldError::required(&average.at, detail));
        }
        "resource" | "containerResource" if !has_utilization && !has_average => {
            let detail = "must set either a target raw value or a target utilization";
            errors.push(FieldError::required(&utilization.at, detail));
        }
        "resource" | "containerResource" if has_utilization && has_average => {
            let detail = "may not set both a target raw value and a target utilization";
            errors.push(FieldError::forbidden(&average.at, detail));
        }
        _ => {}
    }
}

fn target(target: &Field<'_>, errors: &mut Errors) {
    let kind = target.get("type");
    if kind.is_empty() {
        errors.push(FieldError::required(&kind.at, "must specify a metric target type"));
    }
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(&kind.at, kind.text(), detail));
    }
    for name in ["value", "averageValue"] {
        let amount = target.get(name);
        if amount.is_set() && !is_positive(amount.value) {
            amount.invalid("must be positive", errors);
        }
    }
    let utilization = target.get("averageUtilization");
    if utilization.number().is_some_and(|percent| percent < 1) {
        utilization.invalid("must be greater than 0", errors);
    }
}

fn is_positive(amount: &Value) -> bool {
    let read = amount.as_str().and_then(|text| decimal::parse(text).ok().flatten());
    read.is_none_or(|amount| !amount.is_negative() && amount.whole() != Some(0))
}

fn rules(rules: &Field<'_>, errors: &mut Errors) {
    let (window, policies) = (rules.get("stabilizationWindowSeconds"), rules.get("policies"));
    match window.number() {
        Some(seconds) if seconds < 0 => window.invalid("must be greater than or equal to zero", errors),
        Some(seconds) if seconds > LONGEST_WINDOW => {
            window.invalid(format!("must be less than or equal to {LONGEST_WINDOW}"), errors);
        }
        _ => {}
    }
    rules.get("selectPolicy").one_of(&["Disabled", "Max", "Min"], errors);
    policies.required_as("must specify at least one Policy", errors);
    for policy in policies.items() {
        policy.get("type").one_of(&["Percent", "Pods"], errors);
        for name in ["value", "periodSeconds"] {
            let number = policy.get(name);
            if number.number().unwrap_or_default() <= 0 {
                let value = number.number().unwrap_or_default();
                errors.push(FieldError::invalid(&number.at, value, "must be greater than zero"));
            }
        }
        let period = policy.get("periodSeconds");
        if period.number().is_some_and(|seconds| seconds > LONGEST_PERIOD) {
            period.invalid(format!("must be less than or equal to {LONGEST_PERIOD}"), errors);
        }
    }
    super::containers::not_negative(&rules.get("tolerance"), errors);
}
