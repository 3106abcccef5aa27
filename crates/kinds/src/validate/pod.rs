//! Templates of pods, and what both have.

use super::containers::{containers, ephemeral_containers};
use super::field::{Errors, Field};
use super::security_context::pod_security_context;
use super::volumes::volumes;
use super::workloads::template_labels;
use std::collections::HashSet;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::label_key_problems;

/// A template: labels, annotations, and a pod.
pub(crate) fn template(template: &Field<'_>, errors: &mut Errors) {
    let labels = template.get("metadata").get("labels");
    Field { at: template_labels(&template.at), ..labels }.labels(errors);
    spec(&template.get("spec"), errors);
    let ephemeral = template.get("spec").get("ephemeralContainers");
    if !ephemeral.is_empty() {
        errors.push(FieldError::forbidden(&ephemeral.at, "ephemeral containers not allowed in pod template"));
    }
}

/// What a pod is to be.
pub(crate) fn spec(spec: &Field<'_>, errors: &mut Errors) {
    let known = volumes(&spec.get("volumes"), errors);
    let mut names = HashSet::new();
    containers(&spec.get("containers"), true, &known, &mut names, errors);
    containers(&spec.get("initContainers"), false, &known, &mut names, errors);
    ephemeral_containers(spec, &known, &mut names, errors);
    spec.get("restartPolicy").one_of(&["Always", "OnFailure", "Never"], errors);
    spec.get("dnsPolicy").one_of(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], errors);
    spec.get("nodeSelector").labels(errors);
    pod_security_context(spec, errors);
    spec.get("serviceAccountName").dns_subdomain(errors);
    spec.get("nodeName").dns_subdomain(errors);
    let deadline = spec.get("activeDeadlineSeconds");
    if deadline.number().is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        deadline.invalid("must be between 1 and 2147483647, inclusive", errors);
    }
    for name in ["hostname", "subdomain"] {
        let name = spec.get(name);
        if !name.is_empty() {
            dns_label_with_dots(&name, errors);
        }
    }
    spec.get("tolerations").items().for_each(|toleration| self::toleration(&toleration, errors));
    for alias in spec.get("hostAliases").items() {
        alias.get("ip").ip(errors);
        alias.get("hostnames").items().for_each(|name| name.dns_subdomain(errors));
    }
    spec.get("priorityClassName").dns_subdomain(errors);
}

/// A label, whose dots are not mentioned on their own.
fn dns_label_with_dots(name: &Field<'_>, errors: &mut Errors) {
    let before = errors.len();
    name.dns_label(errors);
    errors.truncate(errors.len().min(before + 1));
}

/// What is wrong with a toleration.
pub(crate) fn toleration(toleration: &Field<'_>, errors: &mut Errors) {
    let get = |name| toleration.get(name);
    if !get("key").is_empty() {
        label_key_problems(get("key").text())
            .into_iter()
            .for_each(|problem| get("key").invalid(problem, errors));
    }
    if get("key").is_empty() && get("operator").text() != "Exists" {
        let detail =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&get("operator").at, get("operator").text(), detail));
    }
    if get("tolerationSeconds").is_set() && get("effect").text() != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&get("effect").at, get("effect").text(), detail));
    }
    match get("operator").text() {
        "Equal" | "" | "Lt" | "Gt" => {}
        "Exists" if !get("value").is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(&get("operator").at, get("value").text(), detail));
        }
        "Exists" => {}
        other => errors.push(FieldError::not_supported(&get("operator").at, other, ["Equal", "Exists"])),
    }
    if !get("effect").is_empty() {
        get("effect").one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
    }
}
