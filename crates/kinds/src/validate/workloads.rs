//! Kinds that run copies of a pod.

use super::field::{Errors, Field};
use super::{pod, selector};
use serde_json::Value;
use watchkeeper_schema::{FieldError, Path};

/// There is a selector, it is a good one, it selects something, and it selects the template.
pub(crate) fn selection(spec: &Field<'_>, kind: Option<&str>, errors: &mut Errors) {
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

pub(crate) fn matching(spec: &Field<'_>, errors: &mut Errors) {
    let (selects, template) = (spec.get("selector"), spec.get("template"));
    let labels = template.get("metadata").get("labels");
    let selects_all = selects.is_set() && selector::is_empty(selects.value);
    if !selects_all && !selector::matches(selects.value, labels.value) {
        labels.invalid("`selector` does not match template `labels`", errors);
    }
}

pub(crate) fn replicated_template(spec: &Field<'_>, errors: &mut Errors) {
    let template = spec.get("template");
    pod::template(&template, errors);
    always_restarting(&template, errors);
    deadline_not_allowed(&template, "ReplicaSet", errors);
}

pub(crate) fn always_restarting(template: &Field<'_>, errors: &mut Errors) {
    let policy = template.get("spec").get("restartPolicy");
    if matches!(policy.text(), "Never" | "OnFailure") {
        errors.push(FieldError::not_supported(&policy.at, policy.text(), ["Always"]));
    }
}

pub(crate) fn deadline_not_allowed(template: &Field<'_>, kind: &str, errors: &mut Errors) {
    let deadline = template.get("spec").get("activeDeadlineSeconds");
    deadline.forbidden_if_set(&format!("activeDeadlineSeconds in {kind} is not Supported"), errors);
}

/// The strategy as the structure that kube-apiserver has for it.
pub(crate) fn shown_strategy(error: FieldError, strategy: &Field<'_>) -> FieldError {
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
pub(crate) fn amount_or_percent(amount: &Field<'_>, errors: &mut Errors) {
    match amount.value {
        Value::String(text) if !is_percent(text) => amount.invalid(
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
            errors,
        ),
        _ => amount.not_negative(errors),
    }
}

/// A percentage, if it is one, is at most all.
pub(crate) fn not_above_all(amount: &Field<'_>, errors: &mut Errors) {
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
pub(crate) fn template_labels(template: &Path) -> Path {
    template.child("labels")
}
