use super::at_most;
use crate::column::{AGE, NAME, integer, text};
use crate::fields::Fields;
use crate::printer::Printer;
use crate::quantity::{canonical, optional};
use serde_json::Value;

const UNKNOWN: &str = "<unknown>";

pub(super) static HORIZONTAL_POD_AUTOSCALER: Printer = Printer::new(
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

pub(super) static SCALE: Printer = Printer::new(
    &[
        crate::column::text("Name", "The name of the scaled object."),
        integer("Desired", "How many replicas there should be."),
        integer("Available", "How many replicas there are."),
        AGE,
    ],
    |view| {
        let scale = view.object;
        vec![view.name(), scale.int("spec.replicas").into(), scale.int("status.replicas").into(), view.age()]
    },
);

pub(super) static POD_DISRUPTION_BUDGET: Printer = Printer::new(
    &[
        NAME,
        text("Min Available", "How many pods must stay."),
        text("Max Unavailable", "How many pods may go."),
        integer("Allowed Disruptions", "How many pods may be evicted now."),
        AGE,
    ],
    |view| {
        let budget = view.object;
        let bound = |path| match budget.at(path) {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => "N/A".into(),
        };
        vec![
            view.name(),
            bound("spec.minAvailable").into(),
            bound("spec.maxUnavailable").into(),
            budget.int("status.disruptionsAllowed").into(),
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
    let amount = |name: &str| current.map_or_else(|| UNKNOWN.into(), |current| optional(current.at(name)));
    match field {
        "external" | "object" if average => {
            let current = current.map(|current| current.at("averageValue")).filter(|value| !value.is_null());
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
