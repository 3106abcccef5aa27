use crate::default::{child, set};
use crate::kind::row::{STATUS, kind};
use crate::kind::strategy::Fields;
use crate::validate::containers;
use crate::validate::containers::resource_name;
use crate::validate::field::{Errors, Field};
use crate::validate::names::path_segment;
use crate::{Kind, decimal};
use serde_json::{Value, json};
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind(
    "autoscaling",
    "v2",
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
    "horizontalpodautoscaler",
)
.short(&["hpa"])
.in_all()
.with(&[STATUS])
.validate_with(validate)
.type_defaults(&[("HorizontalPodAutoscalerBehavior", default_behavior)])
.metadata_checks(1, 0)
.table(table::TABLE);

const KINDS: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

/// The longest times of scaling rules, in seconds.
const LONGEST_WINDOW: i64 = 3600;
const LONGEST_PERIOD: i64 = 1800;

/// If there are rules at all, they are complete.
fn default_behavior(fields: &mut Fields) {
    if let Some(up) = child(fields, "scaleUp") {
        set(up, "stabilizationWindowSeconds", 0);
        set(up, "selectPolicy", "Max");
        let policies = json!([
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ]);
        set(up, "policies", policies);
    }
    if let Some(down) = child(fields, "scaleDown") {
        set(down, "selectPolicy", "Max");
        set(down, "policies", json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]));
    }
}

pub(crate) fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
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
    containers::not_negative(&rules.get("tolerance"), errors);
}

pub(crate) mod table {
    use crate::columns::at_most;
    use serde_json::Value;
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, canonical, optional, text};

    const UNKNOWN: &str = "<unknown>";

    pub(crate) const TABLE: Layout = Layout::new(
        &[
            NAME,
            text("Reference", "What is scaled."),
            text("Targets", "Measured and aimed at values, the first two."),
            text("MinPods", "How many pods there are at least."),
            text("MaxPods", "How many pods there are at most."),
            text("Replicas", "How many pods there are."),
            AGE,
        ],
        |view| {
            let scaler = view.object;
            let target = scaler.at("spec.scaleTargetRef");
            vec![
                view.name(),
                format!("{}/{}", target.text("kind"), target.text("name")).into(),
                targets(scaler).into(),
                scaler.at("spec.minReplicas").as_i64().unwrap_or(1).to_string().into(),
                scaler.int("spec.maxReplicas").into(),
                scaler.int("status.currentReplicas").into(),
                view.age(),
            ]
        },
    );

    fn targets(scaler: &Value) -> String {
        let metrics = scaler.list("spec.metrics");
        if metrics.is_empty() {
            // Version 1 knows only this metric, and it is also what is measured if nothing is said.
            let percent = |path| scaler.at(path).as_i64().map(|percent: i64| format!("{percent}%"));
            let current = percent("status.currentCPUUtilizationPercentage").unwrap_or_else(|| UNKNOWN.into());
            let target = percent("spec.targetCPUUtilizationPercentage").unwrap_or_else(|| "80%".into());
            return format!("cpu: {current}/{target}");
        }
        let statuses = scaler.list("status.currentMetrics");
        let shown: Vec<String> =
            metrics.iter().enumerate().map(|(index, metric)| target(metric, statuses.get(index))).collect();
        at_most(2, ", ", &shown)
    }

    /// One metric: what is measured, a slash, what is aimed at.
    fn target(metric: &Value, status: Option<&Value>) -> String {
        let field = match metric.text("type") {
            "External" => "external",
            "Pods" => "pods",
            "Object" => "object",
            "Resource" => "resource",
            "ContainerResource" => "containerResource",
            _ => return "<unknown type>".into(),
        };
        let (spec, target) = (metric.at(field), metric.at(field).at("target"));
        let current = status.map(|status| status.at(field)).filter(|status| !status.is_null());
        let current = current.map(|status| status.at("current"));
        let average = target.has("averageValue");
        let amount =
            |name: &str| current.map_or_else(|| UNKNOWN.into(), |current| optional(current.at(name)));
        match field {
            "external" | "object" if average => {
                let current =
                    current.map(|current| current.at("averageValue")).filter(|value| !value.is_null());
                let current = current.map_or_else(|| UNKNOWN.into(), canonical);
                format!("{current}/{} (avg)", canonical(target.at("averageValue")))
            }
            "external" | "object" => format!("{}/{}", amount("value"), optional(target.at("value"))),
            "pods" => format!("{}/{}", amount("averageValue"), optional(target.at("averageValue"))),
            _ if average => {
                let name = spec.text("name");
                format!("{name}: {}/{}", amount("averageValue"), canonical(target.at("averageValue")))
            }
            _ => {
                let percent = |value: Option<i64>, without: &str| {
                    value.map_or_else(|| without.into(), |value| format!("{value}%"))
                };
                let measured = current.and_then(|current| current.at("averageUtilization").as_i64());
                let aimed = target.at("averageUtilization").as_i64();
                format!("{}: {}/{}", spec.text("name"), percent(measured, UNKNOWN), percent(aimed, "<auto>"))
            }
        }
    }
}
