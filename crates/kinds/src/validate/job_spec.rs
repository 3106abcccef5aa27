//! The spec of a job, and of the jobs of a cron job.

use super::field::{Errors, Field};
use super::names::domain_prefixed;
use super::{job_policies, pod, selector};
use watchkeeper_schema::FieldError;

/// The longest name of who manages a job.
const LONGEST_MANAGER: i64 = 63;

/// How many pods with numbers may run at a time, or fail, or be more than usual.
const MOST_INDEXES: i64 = 100_000;

/// How many may run at a time, or fail, where there are more than that.
const MOST_OF_MANY: i64 = 10_000;

pub(crate) fn job_spec(spec: &Field<'_>, has_selector: bool, errors: &mut Errors) {
    for name in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        spec.get(name).not_negative(errors);
    }
    let (limit, failed) = (spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes"));
    if failed.is_set() && !limit.is_set() {
        errors.push(FieldError::required(&limit.at, "when maxFailedIndexes is specified"));
    }
    let manager = spec.get("managedBy");
    if manager.is_set() {
        domain_prefixed(&manager, errors);
        if manager.text().len() as i64 > LONGEST_MANAGER {
            errors.push(FieldError::too_long(&manager.at, LONGEST_MANAGER));
        }
    }
    let mode = spec.get("completionMode");
    mode.one_of(&["NonIndexed", "Indexed"], errors);
    if mode.text() == "Indexed" {
        indexed(spec, errors);
    } else if matches!(mode.text(), "" | "NonIndexed") {
        for field in [&limit, &failed].into_iter().filter(|field| field.is_set()) {
            field.invalid("requires indexed completion mode", errors);
        }
    }
    let policy = spec.get("podFailurePolicy");
    if policy.is_set() {
        job_policies::failure(&policy, spec, errors);
    }
    let success = spec.get("successPolicy");
    if success.is_set() {
        job_policies::success(&success, spec, errors);
    }
    let allowed: &[&str] = if policy.is_set() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    spec.get("podReplacementPolicy").one_of(allowed, errors);
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
    let restart = template.get("spec").get("restartPolicy");
    match restart.text() {
        "OnFailure" if policy.is_set() => {
            restart.invalid("only \"Never\" is supported when podFailurePolicy is specified", errors);
        }
        "OnFailure" | "Never" => {}
        "" | "Always" => {
            errors.push(FieldError::required(&restart.at, "valid values: \"OnFailure\", \"Never\""));
        }
        other => errors.push(FieldError::not_supported(&restart.at, other, ["OnFailure", "Never"])),
    }
}

/// A job whose pods have numbers: there are not too many of them.
fn indexed(spec: &Field<'_>, errors: &mut Errors) {
    let [completions, parallelism, failed] =
        ["completions", "parallelism", "maxFailedIndexes"].map(|name| spec.get(name));
    if !completions.is_set() {
        errors.push(FieldError::required(&completions.at, "when completion mode is Indexed"));
    }
    let exceeds = |field: &Field<'_>, limit: i64| field.number().is_some_and(|number| number > limit);
    if exceeds(&parallelism, MOST_INDEXES) {
        let detail = format!("must be less than or equal to {MOST_INDEXES} when completion mode is Indexed");
        parallelism.invalid(detail, errors);
    }
    if completions.number().is_some_and(|completions| exceeds(&failed, completions)) {
        failed.invalid("must be less than or equal to completions", errors);
    }
    if exceeds(&failed, MOST_INDEXES) {
        failed.invalid(format!("must be less than or equal to {MOST_INDEXES}"), errors);
    }
    if !exceeds(&completions, MOST_INDEXES) || !spec.get("backoffLimitPerIndex").is_set() {
        return;
    }
    if !failed.is_set() {
        let detail = format!("must be specified when completions is above {MOST_INDEXES}");
        errors.push(FieldError::required(&failed.at, detail));
    }
    for field in [&parallelism, &failed].into_iter().filter(|field| exceeds(field, MOST_OF_MANY)) {
        let detail = format!(
            "must be less than or equal to {MOST_OF_MANY} when completions are above {MOST_INDEXES} and used with backoff limit per index"
        );
        field.invalid(detail, errors);
    }
}
