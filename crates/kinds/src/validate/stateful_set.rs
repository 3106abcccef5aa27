//! Sets of pods that keep their names and their claims.

use super::field::{Errors, Field};
use super::workloads::{always_restarting, deadline_not_allowed, selection, shown_strategy, template_labels};
use super::{pod, storage};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use watchkeeper_schema::FieldError;

/// A new set, or one that replaces `old`. What cannot change is not judged again, and neither is a template that replaces
/// a bad one.
pub(super) fn stateful_set(object: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    let was_bad = |old: &Field<'_>| {
        let mut errors = Errors::new();
        spec(&old.get("spec"), false, true, &mut errors);
        !errors.is_empty()
    };
    let skips_template = old.is_some_and(was_bad);
    spec(&object.get("spec"), old.is_none(), !skips_template, errors);
}

fn spec(spec: &Field<'_>, is_new: bool, judges_template: bool, errors: &mut Errors) {
    let policy = spec.get("podManagementPolicy");
    match policy.text() {
        "OrderedReady" | "Parallel" => {}
        "" => errors.push(FieldError::required(&policy.at, "")),
        _ => policy.invalid("must be 'OrderedReady' or 'Parallel'", errors),
    }
    strategy(&spec.get("updateStrategy"), errors);
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    for name in ["whenDeleted", "whenScaled"] {
        retention.get(name).one_of(&["Retain", "Delete"], errors);
    }
    if is_new {
        spec.get("volumeClaimTemplates").items().for_each(|claim| storage::claim(&claim.get("spec"), errors));
    }
    spec.get("replicas").not_negative(errors);
    spec.get("minReadySeconds").not_negative(errors);
    let start = spec.get("ordinals").get("start");
    Field { at: spec.at.child("ordinals.start"), ..start }.not_negative(errors);
    if is_new {
        spec.get("serviceName").dns_label(errors);
    }
    selection(spec, Some("statefulset"), errors);
    let template = spec.get("template");
    if judges_template {
        let made = with_claims(spec);
        pod::template(&Field { value: &made, at: template.at.clone() }, errors);
    }
    // They are looked at once more for this kind.
    let labels = template.get("metadata").get("labels");
    Field { at: template_labels(&template.at), ..labels }.labels(errors);
    always_restarting(&template, errors);
    deadline_not_allowed(&template, "StatefulSet", errors);
}

fn strategy(strategy: &Field<'_>, errors: &mut Errors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "RollingUpdate" => rolling.get("partition").not_negative(errors),
        "OnDelete" if rolling.is_set() => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(FieldError::invalid(&rolling.at, rolling.value.clone(), detail).structure(&[
                ("Partition", rolling.get("partition").value.clone()),
                ("MaxUnavailable", rolling.get("maxUnavailable").value.clone()),
            ]));
        }
        "OnDelete" => {}
        "" => errors.push(FieldError::required(&strategy.at, "")),
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            let error = FieldError::invalid(&strategy.at, strategy.value.clone(), detail);
            errors.push(shown_strategy(error, strategy));
        }
    }
}

/// The template with what the controller will put into pods: a volume for each claim, which hides one of the same name,
/// and a host name in place of the one that is there.
fn with_claims(spec: &Field<'_>) -> Value {
    let mut template = spec.get("template").value.clone();
    let Some(pod) = template.get_mut("spec").and_then(Value::as_object_mut) else { return template };
    pod.remove("hostname");
    pod.remove("subdomain");
    let claims: BTreeMap<&str, Value> = spec
        .get("volumeClaimTemplates")
        .items()
        .map(|claim| claim.get("metadata").get("name").text())
        .map(|name| (name, json!({"name": name, "persistentVolumeClaim": {"claimName": name}})))
        .collect();
    if claims.is_empty() {
        return template;
    }
    let own = spec.get("template").get("spec").get("volumes");
    let own = own.items().filter(|volume| !claims.contains_key(volume.get("name").text()));
    let volumes: Vec<Value> =
        claims.values().cloned().chain(own.map(|volume| volume.value.clone())).collect();
    pod.insert("volumes".into(), volumes.into());
    template
}
