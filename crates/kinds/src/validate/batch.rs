//! Jobs, now and by the clock.

use super::cron;
use super::field::{Errors, Field};
use super::{pod, selector};
use serde_json::json;
use watchkeeper_schema::FieldError;

pub(super) fn job(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    job_spec(&spec, true, errors);
    // The pods of a job are found by its uid, unless its writer takes care of that.
    let (uid, selects) = (object.get("metadata").get("uid"), spec.get("selector"));
    let made = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid.value}});
    let legacy = json!({"matchLabels": {"controller-uid": uid.value}});
    if spec.get("manualSelector").value != true
        && selects.is_set()
        && !uid.is_empty()
        && ![made, legacy].contains(selects.value)
    {
        selects.invalid("`selector` not auto-generated", errors);
    }
}

/// What becomes of a job when a pod of it fails.
fn failure_policy(policy: &Field<'_>, errors: &mut Errors) {
    for rule in policy.get("rules").items() {
        rule.get("action").one_of(&["Count", "FailIndex", "FailJob", "Ignore"], errors);
        let (codes, conditions) = (rule.get("onExitCodes"), rule.get("onPodConditions"));
        match (codes.is_set(), !conditions.is_empty()) {
            (false, false) => errors.push(FieldError::broken(
                &rule.at,
                "specifying one of OnExitCodes and OnPodConditions is required",
            )),
            (true, true) => errors.push(FieldError::broken(
                &rule.at,
                "specifying both OnExitCodes and OnPodConditions is not supported",
            )),
            _ => {}
        }
    }
}

fn job_spec(spec: &Field<'_>, has_selector: bool, errors: &mut Errors) {
    for name in
        ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"]
    {
        spec.get(name).not_negative(errors);
    }
    let mode = spec.get("completionMode");
    mode.one_of(&["NonIndexed", "Indexed"], errors);
    if mode.text() == "Indexed" && !spec.get("completions").is_set() {
        errors.push(FieldError::required(&spec.get("completions").at, "when completion mode is Indexed"));
    }
    failure_policy(&spec.get("podFailurePolicy"), errors);
    let template = spec.get("template");
    if has_selector {
        let selects = spec.get("selector");
        if !selects.is_set() {
            errors.push(FieldError::required(&selects.at, ""));
        }
        selector::selector(&selects, errors);
        let labels = template.get("metadata").get("labels");
        if !selector::matches(selects.value, labels.value) {
            labels.invalid("`selector` does not match template `labels`", errors);
        }
    }
    pod::template(&template, errors);
    let policy = template.get("spec").get("restartPolicy");
    match policy.text() {
        "OnFailure" | "Never" => {}
        "" | "Always" => {
            errors.push(FieldError::required(&policy.at, "valid values: \"OnFailure\", \"Never\""));
        }
        other => errors.push(FieldError::not_supported(&policy.at, other, ["OnFailure", "Never"])),
    }
}

pub(super) fn cron_job(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let (schedule, zone) = (spec.get("schedule"), spec.get("timeZone"));
    if schedule.required(errors) {
        if schedule.text().contains("TZ") {
            schedule.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead", errors);
        } else if let Err(problem) = cron::check(schedule.text()) {
            schedule.invalid(problem, errors);
        }
    }
    if zone.is_set() && zone.text().is_empty() {
        zone.invalid("timeZone must be nil or non-empty string", errors);
    }
    spec.get("startingDeadlineSeconds").not_negative(errors);
    spec.get("concurrencyPolicy").one_of(&["Allow", "Forbid", "Replace"], errors);
    job_spec(&spec.get("jobTemplate").get("spec"), false, errors);
    spec.get("successfulJobsHistoryLimit").not_negative(errors);
    spec.get("failedJobsHistoryLimit").not_negative(errors);
    // The name of a job is that of the cron job and eleven characters.
    let name = object.get("metadata").get("name");
    if name.text().len() > 52 {
        name.invalid("must be no more than 52 characters", errors);
    }
}
