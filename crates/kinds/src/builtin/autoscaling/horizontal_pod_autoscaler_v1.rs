use super::horizontal_pod_autoscaler::validate;
use crate::Kind;
use crate::kind::row::{STATUS, kind};
use crate::kind::strategy::{Conversion, Fields};
use serde_json::{Value, json};

/// The view of `autoscaling/v1`, which knows only the load of processors. What it cannot say it carries in annotations, so that
/// writing it back loses nothing.
pub(crate) const KIND: Kind = kind(
    "autoscaling",
    "v1",
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
    "horizontalpodautoscaler",
)
.short(&["hpa"])
.in_all()
.with(&[STATUS])
.stored_as("autoscaling", "v2", Conversion { to_stored: to_v2, from_stored: to_v1 })
.validate_with(validate)
.metadata_checks(1, 0)
.table(super::horizontal_pod_autoscaler::table::TABLE);

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const TARGET: &str = "targetCPUUtilizationPercentage";

fn to_v1(mut v2: Value) -> Value {
    let mut carried = Vec::new();
    if let Some(Value::Object(spec)) = v2.get_mut("spec") {
        let Some(Value::Array(mut metrics)) = spec.remove("metrics").or(Some(json!([]))) else { return v2 };
        if let Some(place) = metrics.iter().position(|metric| cpu_target(metric).is_some()) {
            spec.insert(TARGET.into(), cpu_target(&metrics.remove(place)).unwrap_or_default());
        }
        if !metrics.is_empty() {
            carried.push((METRICS, Value::Array(metrics)));
        }
        carried.extend(spec.remove("behavior").map(|behavior| (BEHAVIOR, behavior)));
    }
    if let Some(Value::Object(status)) = v2.get_mut("status") {
        let conditions = status.remove("conditions").filter(|conditions| !conditions.is_null());
        carried.extend(conditions.map(|conditions| (CONDITIONS, conditions)));
        let metrics = status.remove("currentMetrics");
        let cpu =
            metrics.as_ref().and_then(Value::as_array).into_iter().flatten().find(|metric| is_cpu(metric));
        if let Some(load) = cpu.map(|metric| metric["resource"]["current"]["averageUtilization"].clone()) {
            status.insert("currentCPUUtilizationPercentage".into(), load);
        }
    }
    if let Some(Value::Object(metadata)) = v2.get_mut("metadata").filter(|_| !carried.is_empty()) {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        for (name, value) in carried {
            if let Value::Object(annotations) = annotations {
                annotations.insert(name.into(), value.to_string().into());
            }
        }
    }
    v2
}

fn to_v2(mut v1: Value) -> Value {
    let mut carried = |name: &str| -> Option<Value> {
        let annotations = v1.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()?;
        serde_json::from_str(annotations.remove(name)?.as_str()?).ok()
    };
    let (metrics, behavior, conditions) = (carried(METRICS), carried(BEHAVIOR), carried(CONDITIONS));
    let mut metrics = metrics.and_then(|metrics| metrics.as_array().cloned()).unwrap_or_default();
    if let Some(Value::Object(spec)) = v1.get_mut("spec") {
        if let Some(target) = spec.remove(TARGET) {
            let target = json!({"type": "Utilization", "averageUtilization": target});
            metrics.insert(0, json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
        }
        if !metrics.is_empty() {
            spec.insert("metrics".into(), metrics.into());
        }
        set(spec, "behavior", behavior);
    }
    if let Some(Value::Object(status)) = v1.get_mut("status") {
        if let Some(load) = status.remove("currentCPUUtilizationPercentage") {
            let current = json!({"averageUtilization": load});
            let metrics = json!([{"type": "Resource", "resource": {"name": "cpu", "current": current}}]);
            status.insert("currentMetrics".into(), metrics);
        }
        set(status, "conditions", conditions);
    }
    v1
}

fn set(fields: &mut Fields, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        fields.insert(name.into(), value);
    }
}

fn is_cpu(metric: &Value) -> bool {
    metric["type"] == "Resource" && metric["resource"]["name"] == "cpu"
}

/// The share of processors a metric asks for, if it is about that.
fn cpu_target(metric: &Value) -> Option<Value> {
    let target = &metric["resource"]["target"]["averageUtilization"];
    (is_cpu(metric) && target.is_number()).then(|| target.clone())
}
