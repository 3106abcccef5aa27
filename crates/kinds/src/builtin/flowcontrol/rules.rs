//! Which requests a FlowSchema is about.

use crate::validate::field::{Errors, Field};
use serde_json::Value;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{dns_label_problems, dns_subdomain_problems};

/// What can be done, as rules name it, in the order of names.
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// What is wrong with a rule.
pub(super) fn rule(rule: &Field<'_>, errors: &mut Errors) {
    let [subjects, resources, paths] =
        ["subjects", "resourceRules", "nonResourceRules"].map(|field| rule.get(field));
    if subjects.required_as("subjects must contain at least one value", errors) {
        subjects.items().for_each(|one| subject(&one, errors));
    }
    if resources.is_empty() && paths.is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(&rule.at, detail));
    }
    resources.items().for_each(|one| resource_rule(&one, errors));
    paths.items().for_each(|one| path_rule(&one, errors));
}

/// The field that says who a subject of a kind is.
fn field_of(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "User" => "user",
        "Group" => "group",
        "ServiceAccount" => "serviceAccount",
        _ => return None,
    })
}

fn subject(subject: &Field<'_>, errors: &mut Errors) {
    let kind = subject.get("kind");
    let Some(own) = field_of(kind.text()) else {
        let known = ["Group", "ServiceAccount", "User"];
        errors.push(FieldError::not_supported(&kind.at, kind.text(), known));
        return;
    };
    let who = subject.get(own);
    if who.is_set() {
        name(&who, own, errors);
    } else {
        let detail = format!("{own} is required when subject kind is '{}'", kind.text());
        errors.push(FieldError::required(&who.at, detail));
    }
    for (other, of) in [("serviceAccount", "ServiceAccount"), ("user", "User"), ("group", "Group")] {
        if other != own {
            let detail = format!("{other} is forbidden when subject kind is not '{of}'");
            subject.get(other).forbidden_if_set(&detail, errors);
        }
    }
}

fn name(who: &Field<'_>, kind: &str, errors: &mut Errors) {
    let name = who.get("name");
    if name.required(errors) && kind == "serviceAccount" && name.text() != "*" {
        name.if_set(dns_subdomain_problems, errors);
    }
    let namespace = who.get("namespace");
    if kind == "serviceAccount" && namespace.required_as("must specify namespace for service account", errors)
    {
        namespace.if_set(dns_label_problems, errors);
    }
}

/// Whether `*` is in a list.
fn has_all(list: &Field<'_>) -> bool {
    list.items().any(|item| item.text() == "*")
}

/// A list with something in it; if `*` is, nothing else is.
fn some_or_all(list: &Field<'_>, required: &str, others: &str, errors: &mut Errors) -> bool {
    if !list.required_as(required, errors) {
        return false;
    }
    if has_all(list) && list.items().count() > 1 {
        list.invalid(format!("if '*' is present, must not specify other {others}"), errors);
    }
    true
}

fn verbs(rule: &Field<'_>, errors: &mut Errors) {
    let verbs = rule.get("verbs");
    let given = some_or_all(&verbs, "verbs must contain at least one value", "verbs", errors);
    if given && !has_all(&verbs) && !verbs.items().all(|verb| VERBS.contains(&verb.text())) {
        let value: Value = verbs.value.clone();
        errors.push(FieldError::not_supported(&verbs.at, value, VERBS));
    }
}

fn resource_rule(rule: &Field<'_>, errors: &mut Errors) {
    verbs(rule, errors);
    let required = "resource rules must supply at least one api group";
    some_or_all(&rule.get("apiGroups"), required, "api groups", errors);
    let required = "resource rules must supply at least one resource";
    some_or_all(&rule.get("resources"), required, "resources", errors);
    let namespaces = rule.get("namespaces");
    if namespaces.is_empty() && rule.get("clusterScope").value != true {
        let detail = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(FieldError::required(&namespaces.at, detail));
    } else if has_all(&namespaces) {
        if namespaces.items().count() > 1 {
            namespaces.invalid("if '*' is present, must not specify other namespaces", errors);
        }
    } else {
        for namespace in namespaces.items() {
            for problem in dns_label_problems(namespace.text()) {
                let intro = "each member of this list must be '*' or a DNS-1123 label; ";
                namespace.invalid(format!("{intro}{problem}"), errors);
            }
        }
    }
}

fn path_rule(rule: &Field<'_>, errors: &mut Errors) {
    verbs(rule, errors);
    let paths = rule.get("nonResourceURLs");
    let required = "nonResourceURLs must contain at least one value";
    if some_or_all(&paths, required, "non-resource URLs", errors) && !has_all(&paths) {
        for path in paths.items() {
            if let Some(problem) = path_problem(path.text()) {
                path.invalid(problem, errors);
            }
        }
    }
}

fn path_problem(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("must not be empty");
    }
    if path == "/" {
        return None;
    }
    if !path.starts_with('/') {
        return Some("must start with slash");
    }
    if path.contains(' ') {
        return Some("must not contain white-space");
    }
    if path.contains("//") {
        return Some("must not contain double slash");
    }
    match path.matches('*').count() {
        0 => None,
        1 if path.ends_with("/*") => None,
        _ => Some("wildcard can only do suffix matching"),
    }
}
