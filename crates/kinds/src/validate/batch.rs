//! Jobs, now and by the clock.

use super::cron;
use super::field::{Errors, Field};
use super::{pod, selector};
use watchkeeper_schema::FieldError;

pub(super) fn job(spec: &Field<'_>, errors: &mut Errors) {
    job_spec(spec, true, errors);
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
