//! Roles and bindings.

use super::field::{Errors, Field};
use super::selector;
use crate::NameRule;
use crate::default::{set, text};
use crate::kind::strategy::Fields;
use serde_json::{Value, json};
use watchkeeper_schema::FieldError;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(crate) fn role(object: &Field<'_>, is_namespaced: bool, errors: &mut Errors) {
    rules(object, is_namespaced, errors);
    let (sum, selectors) =
        (object.get("aggregationRule"), object.get("aggregationRule").get("clusterRoleSelectors"));
    if is_namespaced || !sum.is_set() {
        return;
    }
    selectors.required_as("at least one clusterRoleSelector required if aggregationRule is non-nil", errors);
    for labels in selectors.items() {
        let before = errors.len();
        selector::selector(&labels, errors);
        if errors.len() > before {
            let detail = "invalid label selector.";
            errors.push(FieldError::invalid(&labels.at, Value::Null, detail));
        }
    }
}

fn rules(object: &Field<'_>, is_namespaced: bool, errors: &mut Errors) {
    for rule in object.get("rules").items() {
        rule.get("verbs").required_as("verbs must contain at least one value", errors);
        let urls = rule.get("nonResourceURLs");
        if !urls.is_empty() {
            if is_namespaced {
                urls.invalid("namespaced rules cannot apply to non-resource URLs", errors);
            }
            let names = ["apiGroups", "resources", "resourceNames"];
            if names.into_iter().any(|name| !rule.get(name).is_empty()) {
                urls.invalid("rules cannot apply to both regular resources and non-resource URLs", errors);
            }
            continue;
        }
        rule.get("apiGroups").required_as("resource rules must supply at least one api group", errors);
        rule.get("resources").required_as("resource rules must supply at least one resource", errors);
    }
}

pub(crate) fn binding(object: &Field<'_>, is_namespaced: bool, errors: &mut Errors) {
    let role = object.get("roleRef");
    role.get("apiGroup").one_of(&[GROUP], errors);
    let kinds: &[&str] = if is_namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    role.get("kind").one_of(kinds, errors);
    let name = role.get("name");
    if name.required(errors) {
        let problems = NameRule::PathSegment.problems(name.text());
        problems.into_iter().for_each(|problem| name.invalid(problem, errors));
    }
    object.get("subjects").items().for_each(|subject| self::subject(&subject, is_namespaced, errors));
}

fn subject(subject: &Field<'_>, is_namespaced: bool, errors: &mut Errors) {
    let (name, group, namespace) = (subject.get("name"), subject.get("apiGroup"), subject.get("namespace"));
    name.required(errors);
    match subject.get("kind").text() {
        "ServiceAccount" => {
            name.dns_subdomain(errors);
            if !group.is_empty() {
                errors.push(FieldError::not_supported(&group.at, group.text(), [""]));
            }
            if !is_namespaced {
                namespace.required(errors);
            }
        }
        "User" | "Group" => group.one_of(&[GROUP], errors),
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(&subject.get("kind").at, other, kinds));
        }
    }
}

pub(crate) fn default_subject(fields: &mut Fields) {
    if matches!(text(fields, "kind"), "User" | "Group") {
        set(fields, "apiGroup", GROUP);
    }
}

/// What a binding grants stays.
pub(crate) fn keep_role(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let role = new.get("roleRef");
    if role.value != old.get("roleRef").value {
        let [group, kind, name] = ["apiGroup", "kind", "name"].map(|name| role.get(name).value);
        // Theirs is the Go struct.
        let shown = json!({"APIGroup": group, "Kind": kind, "Name": name});
        errors.push(FieldError::invalid(&role.at, shown, "cannot change roleRef"));
    }
}
