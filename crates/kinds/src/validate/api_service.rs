//! Who serves a group and version.

use super::field::{Errors, Field};
use crate::NameRule;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::dns_1035_label_problems;

/// The name is the version and the group that are served, now and after every change.
pub(super) fn name(object: &Field<'_>, errors: &mut Errors) {
    let (name, spec) = (object.get("metadata").get("name"), object.get("spec"));
    let problems = NameRule::PathSegment.problems(name.text());
    let required = format!("{}.{}", spec.get("version").text(), spec.get("group").text());
    if problems.is_empty() && name.text() != required {
        name.invalid(format!("must be `spec.version+\".\"+spec.group`: {required:?}"), errors);
    }
    problems.into_iter().for_each(|problem| name.invalid(problem, errors));
}

pub(super) fn spec(spec: &Field<'_>, errors: &mut Errors) {
    let (group, version) = (spec.get("group"), spec.get("version"));
    if group.is_empty() && version.text() != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required(&group.at, detail));
    }
    group.dns_subdomain(errors);
    for problem in dns_1035_label_problems(version.text()) {
        errors.push(FieldError::invalid(&version.at, version.text(), problem));
    }
    for (priority, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let priority = spec.get(priority);
        if !(1..=most).contains(&priority.number().unwrap_or_default()) {
            priority.invalid(format!("must be positive and less than {most}"), errors);
        }
    }
    let (service, bundle, insecure) =
        (spec.get("service"), spec.get("caBundle"), spec.get("insecureSkipTLSVerify"));
    if !service.is_set() {
        if !bundle.is_empty() {
            let length = watchkeeper_go::base64::decode(bundle.text()).map_or(0, |bytes| bytes.len());
            let detail = "local APIServices may not have a caBundle";
            errors.push(FieldError::invalid(&bundle.at, format!("{length} bytes"), detail));
        }
        if insecure.value == true {
            insecure.invalid("local APIServices may not have insecureSkipTLSVerify", errors);
        }
        return;
    }
    for name in ["namespace", "name"] {
        service.get(name).required(errors);
    }
    let port = service.get("port");
    if !(1..=65535).contains(&port.number().unwrap_or_default()) {
        port.invalid("port is not valid: must be between 1 and 65535, inclusive", errors);
    }
    if insecure.value == true && !bundle.is_empty() {
        insecure.invalid("may not be true if caBundle is present", errors);
    }
}

pub(super) fn status(status: &Field<'_>, errors: &mut Errors) {
    for condition in status.get("conditions").items() {
        condition.get("status").one_of(&["True", "False", "Unknown"], errors);
    }
}
