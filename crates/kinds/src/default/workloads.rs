use super::{Fields, object, objects, set, text};
use serde_json::json;

pub(super) fn deployment_strategy(fields: &mut Fields) {
    set(fields, "type", "RollingUpdate");
    if text(fields, "type") != "RollingUpdate" {
        return;
    }
    if let Some(rolling) = object(fields, "rollingUpdate") {
        set(rolling, "maxUnavailable", "25%");
        set(rolling, "maxSurge", "25%");
    }
}

pub(super) fn daemon_set_strategy(fields: &mut Fields) {
    set(fields, "type", "RollingUpdate");
    if text(fields, "type") != "RollingUpdate" {
        return;
    }
    if let Some(rolling) = object(fields, "rollingUpdate") {
        set(rolling, "maxUnavailable", 1);
        set(rolling, "maxSurge", 0);
    }
}

pub(super) fn stateful_set_strategy(fields: &mut Fields) {
    if text(fields, "type").is_empty() {
        fields.insert("type".into(), "RollingUpdate".into());
        object(fields, "rollingUpdate");
    }
    if text(fields, "type") == "RollingUpdate"
        && fields.contains_key("rollingUpdate")
        && let Some(rolling) = object(fields, "rollingUpdate")
    {
        set(rolling, "partition", 0);
    }
}

/// The claims in a template say what they are.
pub(super) fn stateful_set(fields: &mut Fields) {
    for claim in objects(fields, "volumeClaimTemplates") {
        set(claim, "apiVersion", "v1");
        set(claim, "kind", "PersistentVolumeClaim");
    }
}

/// What jobs get; the job in the template of a CronJob is left as it is.
pub(super) fn job(fields: &mut Fields) {
    let Some(spec) = object(fields, "spec") else { return };
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".into(), json!(1));
    }
    set(spec, "parallelism", 1);
    let backoff_limit = if spec.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 };
    set(spec, "backoffLimit", backoff_limit);
    set(spec, "completionMode", "NonIndexed");
    set(spec, "suspend", false);
    set(spec, "manualSelector", false);
    let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    set(spec, "podReplacementPolicy", replacement);
    let labels = spec.get("template").map(|template| template["metadata"]["labels"].clone());
    if let (Some(labels), Some(metadata)) =
        (labels.filter(|labels| labels.is_object()), object(fields, "metadata"))
    {
        set(metadata, "labels", labels);
    }
}
