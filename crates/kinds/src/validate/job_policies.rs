//! What becomes of a job when some of its pods have failed or succeeded.

use super::field::{Errors, Field};
use std::collections::HashSet;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::label_key_problems;

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];

/// The most rules of a policy, and patterns and exit codes of a rule.
const MOST_RULES: usize = 20;
const MOST_PATTERNS: usize = 20;
const MOST_CODES: usize = 255;

/// `podFailurePolicy` of a job.
pub(crate) fn failure(policy: &Field<'_>, spec: &Field<'_>, errors: &mut Errors) {
    let pod = spec.get("template").get("spec");
    let [containers, inits] = ["containers", "initContainers"].map(|list| pod.get(list));
    let names: HashSet<&str> =
        containers.items().chain(inits.items()).map(|container| container.get("name").text()).collect();
    policy.get("rules").at_most(MOST_RULES, errors);
    for rule in policy.get("rules").items() {
        let action = rule.get("action");
        match action.text() {
            "" => {
                let detail = "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]";
                errors.push(FieldError::required(&action.at, detail));
            }
            "FailIndex" if !spec.get("backoffLimitPerIndex").is_set() => {
                action.invalid("requires the backoffLimitPerIndex to be set", errors);
            }
            _ => action.one_of(&ACTIONS, errors),
        }
        let (codes, conditions) = (rule.get("onExitCodes"), rule.get("onPodConditions"));
        if codes.is_set() {
            exit_codes(&codes, &names, errors);
        }
        pod_conditions(&conditions, errors);
        let detail = match (codes.is_set(), !conditions.is_empty()) {
            (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        errors.push(FieldError::broken(&rule.at, detail));
    }
}

fn exit_codes(codes: &Field<'_>, names: &HashSet<&str>, errors: &mut Errors) {
    let (operator, container, values) =
        (codes.get("operator"), codes.get("containerName"), codes.get("values"));
    if operator.is_empty() {
        errors.push(FieldError::required(&operator.at, "valid values: [\"In\" \"NotIn\"]"));
    } else {
        operator.one_of(&["In", "NotIn"], errors);
    }
    if container.is_set() && !names.contains(container.text()) {
        let detail = "must be one of the container or initContainer names in the pod template";
        container.invalid(detail, errors);
    }
    if values.is_empty() {
        let none = serde_json::json!([]);
        errors.push(FieldError::invalid(&values.at, none, "at least one value is required"));
    } else {
        values.at_most(MOST_CODES, errors);
    }
    let mut seen = HashSet::new();
    for value in values.items() {
        if operator.text() == "In" && value.number() == Some(0) {
            value.invalid("must not be 0 for the In operator", errors);
        }
        if !seen.insert(value.number()) {
            errors.push(FieldError::duplicate(&value.at, value.value.clone()));
        }
    }
    let numbers: Vec<_> = values.items().map(|value| value.number()).collect();
    if !numbers.is_sorted() {
        values.invalid("must be ordered", errors);
    }
}

fn pod_conditions(conditions: &Field<'_>, errors: &mut Errors) {
    conditions.at_most(MOST_PATTERNS, errors);
    for pattern in conditions.items() {
        let (kind, status) = (pattern.get("type"), pattern.get("status"));
        for problem in label_key_problems(kind.text()) {
            errors.push(FieldError::invalid(&kind.at, kind.text(), problem));
        }
        if status.is_empty() {
            let detail = "valid values: [\"False\" \"True\" \"Unknown\"]";
            errors.push(FieldError::required(&status.at, detail));
        } else {
            status.one_of(&["False", "True", "Unknown"], errors);
        }
    }
}

/// `successPolicy` of a job, but for the format of `succeededIndexes`.
pub(crate) fn success(policy: &Field<'_>, spec: &Field<'_>, errors: &mut Errors) {
    if spec.get("completionMode").text() != "Indexed" {
        let error = FieldError::invalid(&policy.at, policy.value.clone(), "requires indexed completion mode");
        return errors.push(error.structure(&[("Rules", policy.get("rules").value.clone())]));
    }
    let rules = policy.get("rules");
    let detail = "at least one rules must be specified when the successPolicy is specified";
    rules.required_as(detail, errors);
    rules.at_most(MOST_RULES, errors);
    let completions = spec.get("completions").number().unwrap_or_default();
    for rule in rules.items() {
        let (count, indexes) = (rule.get("succeededCount"), rule.get("succeededIndexes"));
        if !count.is_set() && !indexes.is_set() {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            errors.push(FieldError::required(&rule.at, detail));
        }
        count.not_negative(errors);
        if count.number().is_some_and(|count| count > completions) {
            let detail =
                format!("must be less than or equal to {completions} (the number of specified completions)");
            count.invalid(detail, errors);
        }
    }
}
