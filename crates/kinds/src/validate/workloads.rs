//! Kinds that run copies of a pod.

use super::field::{Errors, Field};
use super::{pod, selector};
use serde_json::Value;
use watchkeeper_schema::{FieldError, Path};

pub(super) fn deployment(spec: &Field<'_>, errors: &mut Errors) {
    spec.get("replicas").not_negative(errors);
    selection(spec, Some("deployment"), errors);
    replicated_template(spec, errors);
    let strategy = spec.get("strategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "Recreate" => {
            rolling.forbidden_if_set("may not be specified when strategy `type` is 'Recreate'", errors);
        }
        "RollingUpdate" => rolling_update(&rolling, errors),
        _ => errors.push(shown_strategy(
            FieldError::not_supported(&strategy.at, strategy.value.clone(), ["Recreate", "RollingUpdate"]),
            &strategy,
        )),
    }
    let (ready, deadline) = (spec.get("minReadySeconds"), spec.get("progressDeadlineSeconds"));
    ready.not_negative(errors);
    spec.get("revisionHistoryLimit").not_negative(errors);
    deadline.not_negative(errors);
    if deadline.number().is_some_and(|deadline| deadline <= ready.number().unwrap_or_default()) {
        deadline.invalid("must be greater than minReadySeconds", errors);
    }
}

pub(super) fn replica_set(spec: &Field<'_>, errors: &mut Errors) {
    spec.get("replicas").not_negative(errors);
    spec.get("minReadySeconds").not_negative(errors);
    selection(spec, Some("deployment"), errors);
    replicated_template(spec, errors);
}

pub(super) fn daemon_set(spec: &Field<'_>, errors: &mut Errors) {
    let selects = spec.get("selector");
    selector::selector(&selects, errors);
    if selects.is_set() && selector::is_empty(selects.value) {
        selects.invalid("empty selector is invalid for daemonset", errors);
    }
    matching(spec, errors);
    let template = spec.get("template");
    pod::template(&template, errors);
    always_restarting(&template, errors);
    deadline_not_allowed(&template, "DaemonSet", errors);
    spec.get("minReadySeconds").not_negative(errors);
    let strategy = spec.get("updateStrategy");
    if strategy.get("type").text() == "RollingUpdate" {
        daemon_rolling_update(&strategy.get("rollingUpdate"), errors);
    }
    if !matches!(strategy.get("type").text(), "RollingUpdate" | "OnDelete") {
        errors.push(shown_strategy(
            FieldError::not_supported(&strategy.at, strategy.value.clone(), ["RollingUpdate", "OnDelete"]),
            &strategy,
        ));
    }
    spec.get("revisionHistoryLimit").not_negative(errors);
}

pub(super) fn replication_controller(spec: &Field<'_>, errors: &mut Errors) {
    spec.get("minReadySeconds").not_negative(errors);
    spec.get("selector").required(errors);
    spec.get("replicas").not_negative(errors);
    let template = spec.get("template");
    if !template.required(errors) {
        return;
    }
    let labels = template.get("metadata").get("labels");
    let selected = spec.get("selector");
    let all_match = selected.entries().all(|(key, value)| labels.get(key).value == value.value);
    if !selected.is_empty() && !all_match {
        labels.invalid("`selector` does not match template `labels`", errors);
    }
    pod::template(&template, errors);
    always_restarting(&template, errors);
    deadline_not_allowed(&template, "ReplicationController", errors);
}

pub(super) fn controller_revision(object: &Field<'_>, errors: &mut Errors) {
    object.get("revision").not_negative(errors);
    if !object.get("data").is_set() {
        errors.push(FieldError::required(&object.get("data").at, "data is mandatory"));
    }
}

/// There is a selector, it is a good one, it selects something, and it selects the template.
pub(super) fn selection(spec: &Field<'_>, kind: Option<&str>, errors: &mut Errors) {
    let selects = spec.get("selector");
    if !selects.is_set() {
        errors.push(FieldError::required(&selects.at, ""));
    } else {
        let before = errors.len();
        selector::selector(&selects, errors);
        match kind {
            Some(kind) if selector::is_empty(selects.value) => {
                selects.invalid(format!("empty selector is invalid for {kind}"), errors);
            }
            _ => {}
        }
        if errors.len() > before && !selector::is_empty(selects.value) {
            selects.invalid("invalid label selector", errors);
            return;
        }
    }
    matching(spec, errors);
}

fn matching(spec: &Field<'_>, errors: &mut Errors) {
    let (selects, template) = (spec.get("selector"), spec.get("template"));
    let labels = template.get("metadata").get("labels");
    let selects_all = selects.is_set() && selector::is_empty(selects.value);
    if !selects_all && !selector::matches(selects.value, labels.value) {
        labels.invalid("`selector` does not match template `labels`", errors);
    }
}

fn replicated_template(spec: &Field<'_>, errors: &mut Errors) {
    let template = spec.get("template");
    pod::template(&template, errors);
    always_restarting(&template, errors);
    deadline_not_allowed(&template, "ReplicaSet", errors);
}

pub(super) fn always_restarting(template: &Field<'_>, errors: &mut Errors) {
    let policy = template.get("spec").get("restartPolicy");
    if matches!(policy.text(), "Never" | "OnFailure") {
        errors.push(FieldError::not_supported(&policy.at, policy.text(), ["Always"]));
    }
}

pub(super) fn deadline_not_allowed(template: &Field<'_>, kind: &str, errors: &mut Errors) {
    let deadline = template.get("spec").get("activeDeadlineSeconds");
    deadline.forbidden_if_set(&format!("activeDeadlineSeconds in {kind} is not Supported"), errors);
}

fn rolling_update(rolling: &Field<'_>, errors: &mut Errors) {
    if !rolling.is_set() {
        errors.push(FieldError::required(&rolling.at, "this should be defaulted and never be nil"));
        return;
    }
    let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    amount_or_percent(&unavailable, errors);
    amount_or_percent(&surge, errors);
    let is_nothing = |value: &Value| value == 0 || value == "0%";
    if is_nothing(unavailable.value) && is_nothing(surge.value) {
        errors.push(FieldError::invalid(
            &unavailable.at,
            unavailable.value.clone(),
            "may not be 0 when `maxSurge` is 0",
        ));
    }
    not_above_all(&unavailable, errors);
}

/// Either some may be missing, or there may be some more: exactly one of the two.
fn daemon_rolling_update(rolling: &Field<'_>, errors: &mut Errors) {
    if !rolling.is_set() {
        errors.push(FieldError::required(&rolling.at, ""));
        return;
    }
    let both = [rolling.get("maxUnavailable"), rolling.get("maxSurge")];
    both.iter().for_each(|amount| amount_or_percent(amount, errors));
    both.iter().for_each(|amount| not_above_all(amount, errors));
    let is_some = |amount: &Value| match amount {
        Value::String(percent) => {
            percent.trim_end_matches('%').parse::<i64>().is_ok_and(|number| number != 0)
        }
        number => number.as_i64().is_some_and(|number| number != 0),
    };
    match (is_some(both[0].value), is_some(both[1].value)) {
        (true, true) => both[1].invalid("may not be set when maxUnavailable is non-zero", errors),
        (false, false) => {
            errors.push(FieldError::required(&both[0].at, "cannot be 0 when maxSurge is 0"));
        }
        _ => {}
    }
}

/// The strategy as the structure that kube-apiserver has for it.
pub(super) fn shown_strategy(error: FieldError, strategy: &Field<'_>) -> FieldError {
    let rolling = strategy.get("rollingUpdate");
    let rolling = match rolling.value.as_object() {
        Some(fields) => fields
            .iter()
            .map(|(name, value)| (name[..1].to_uppercase() + &name[1..], value.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        None => Value::Null,
    };
    error.structure(&[("Type", strategy.get("type").text().into()), ("RollingUpdate", rolling)])
}

/// A number that is not below zero, or a percentage.
pub(super) fn amount_or_percent(amount: &Field<'_>, errors: &mut Errors) {
    match amount.value {
        Value::String(text) if !is_percent(text) => amount.invalid(
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
            errors,
        ),
        _ => amount.not_negative(errors),
    }
}

/// A percentage, if it is one, is at most all.
pub(super) fn not_above_all(amount: &Field<'_>, errors: &mut Errors) {
    let percent = amount.text().strip_suffix('%').and_then(|number| number.parse::<u64>().ok());
    if percent.is_some_and(|percent| percent > 100) {
        amount.invalid("must not be greater than 100%", errors);
    }
}

fn is_percent(text: &str) -> bool {
    let digits = text.strip_suffix('%').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Where the labels of a template are said to be, when one of them is bad.
pub(super) fn template_labels(template: &Path) -> Path {
    template.child("labels")
}
