//! Admission policies and their bindings, but for the expressions in them.

use super::field::{Errors, Field};
use super::names::path_segment;
use super::selector;
use std::collections::HashSet;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{dns_subdomain_problems, label_key_problems};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// What can be changed by a policy while it happens.
const CHANGES: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
pub(crate) const NOT_SPECIFIED: &str = "expression is not specified";

/// What both kinds of policies have.
pub(crate) fn common(spec: &Field<'_>, is_mutating: bool, errors: &mut Errors) {
    spec.get("failurePolicy").one_of(&["Fail", "Ignore"], errors);
    let kind = spec.get("paramKind");
    if kind.is_set() {
        parameters(&kind, errors);
    }
    let constraints = spec.get("matchConstraints");
    if !constraints.is_set() {
        errors.push(FieldError::required(&constraints.at, ""));
    } else {
        matching(&constraints, errors);
        constraints.get("resourceRules").required(errors);
        if is_mutating {
            only_changes(&constraints, errors);
        }
    }
    match_conditions(&spec.get("matchConditions"), errors);
    for variable in spec.get("variables").items() {
        let (name, expression) = (variable.get("name"), variable.get("expression"));
        if name.text().trim().is_empty() {
            errors.push(FieldError::required(&name.at, "name is not specified"));
        } else if !is_identifier(name.text()) {
            name.invalid("must be a valid CEL identifier", errors);
        }
        if expression.text().trim().is_empty() {
            errors.push(FieldError::required(&expression.at, NOT_SPECIFIED));
        }
    }
}

/// Conditions of which all have to hold for a policy or a webhook to be asked.
pub(crate) fn match_conditions(conditions: &Field<'_>, errors: &mut Errors) {
    let mut names = HashSet::new();
    if conditions.items().count() > 64 {
        errors.push(FieldError::too_many(&conditions.at, conditions.items().count(), 64));
    }
    for condition in conditions.items() {
        let (name, expression) = (condition.get("name"), condition.get("expression"));
        if expression.text().trim().is_empty() {
            errors.push(FieldError::required(&expression.at, ""));
        }
        if name.required(errors) {
            label_key_problems(name.text()).into_iter().for_each(|problem| name.invalid(problem, errors));
            if !names.insert(name.text()) {
                errors.push(FieldError::duplicate(&name.at, name.text()));
            }
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    const RESERVED: [&str; 21] = [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "namespace",
        "null",
        "package",
        "return",
        "true",
        "var",
        "void",
        "while",
    ];
    name.bytes().next().is_some_and(is_start)
        && name.bytes().all(|byte| is_start(byte) || byte.is_ascii_digit())
        && !RESERVED.contains(&name)
}

fn parameters(kind: &Field<'_>, errors: &mut Errors) {
    let (version, name) = (kind.get("apiVersion"), kind.get("kind"));
    if version.required(errors) {
        match version.text().split('/').collect::<Vec<_>>()[..] {
            [_] => {}
            [group, version_only] => {
                let problems = if group.is_empty() { Vec::new() } else { dns_subdomain_problems(group) };
                if !problems.is_empty() {
                    errors.push(FieldError::invalid(&version.at, group, problems.join(",")));
                }
                if version_only.is_empty() {
                    version.invalid("version must be specified", errors);
                }
            }
            _ => version.invalid(format!("unexpected GroupVersion string: {}", version.text()), errors),
        }
    }
    name.required(errors);
}

/// What a policy is about.
fn matching(resources: &Field<'_>, errors: &mut Errors) {
    resources.get("matchPolicy").one_of(&["Equivalent", "Exact"], errors);
    selector::selector(&resources.get("namespaceSelector"), errors);
    selector::selector(&resources.get("objectSelector"), errors);
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in resources.get(list).items() {
            let mut names = HashSet::new();
            for name in rule.get("resourceNames").items() {
                path_segment(&name, errors);
                if !names.insert(name.text()) {
                    errors.push(FieldError::duplicate(&name.at, name.text()));
                }
            }
            rule_with_operations(&rule, false, errors);
        }
    }
}

/// Which requests a policy or a webhook is about. Of webhooks, whether resources overlap is looked at as well.
pub(crate) fn rule_with_operations(rule: &Field<'_>, is_webhook: bool, errors: &mut Errors) {
    let not_alone = |list: &Field<'_>, called: &str, errors: &mut Errors| {
        if list.items().count() > 1 && list.items().any(|item| item.text() == "*") {
            list.invalid(format!("if '*' is present, must not specify other {called}"), errors);
        }
    };
    let operations = rule.get("operations");
    operations.required(errors);
    not_alone(&operations, "operations", errors);
    for operation in operations.items() {
        operation.one_of(&OPERATIONS, errors);
    }
    for (field, called) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let list = rule.get(field);
        list.required(errors);
        not_alone(&list, called, errors);
    }
    for version in rule.get("apiVersions").items() {
        version.required(errors);
    }
    let resources = rule.get("resources");
    resources.required(errors);
    for resource in resources.items() {
        resource.required(errors);
    }
    let mut plain = resources.items().filter(|resource| !resource.text().contains('/'));
    let (has_all, has_others) = plain.by_ref().fold((false, false), |(all, others), resource| {
        (all || resource.text() == "*", others || resource.text() != "*")
    });
    if is_webhook && has_all && has_others {
        let detail = "if '*' is present, must not specify other resources without subresources";
        resources.invalid(detail, errors);
    }
    rule.get("scope").one_of(&["*", "Cluster", "Namespaced"], errors);
}

fn only_changes(resources: &Field<'_>, errors: &mut Errors) {
    for rule in resources.get("resourceRules").items() {
        for operation in rule.get("operations").items() {
            if !CHANGES.contains(&operation.text()) {
                let at = resources.at.child("resourceRules").child("operations");
                errors.push(FieldError::not_supported(&at, operation.text(), CHANGES));
            }
        }
    }
}

pub(crate) fn binding(spec: &Field<'_>, is_mutating: bool, errors: &mut Errors) {
    let name = spec.get("policyName");
    if name.required(errors) {
        name.dns_subdomain(errors);
    }
    let parameter = spec.get("paramRef");
    if parameter.is_set() {
        reference(&parameter, errors);
    }
    let resources = spec.get("matchResources");
    if resources.is_set() {
        matching(&resources, errors);
    }
    if is_mutating {
        return only_changes(&resources, errors);
    }
    let actions = spec.get("validationActions");
    let mut seen = HashSet::new();
    for action in actions.items() {
        action.one_of(&["Audit", "Deny", "Warn"], errors);
        if !seen.insert(action.text()) {
            errors.push(FieldError::duplicate(&action.at, action.text()));
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        actions.invalid(detail, errors);
    }
    actions.required_as("at least one validation action is required", errors);
}

fn reference(parameter: &Field<'_>, errors: &mut Errors) {
    let (name, labels) = (parameter.get("name"), parameter.get("selector"));
    let exclusive = "name and selector are mutually exclusive";
    if !name.is_empty() {
        path_segment(&name, errors);
    }
    if !name.is_empty() && labels.is_set() {
        errors.push(FieldError::forbidden(&name.at, exclusive));
    }
    selector::selector(&labels, errors);
    if !name.is_empty() && labels.is_set() {
        errors.push(FieldError::forbidden(&labels.at, exclusive));
    }
    if name.is_empty() && !labels.is_set() {
        errors.push(FieldError::required(&parameter.at, "one of name or selector must be specified"));
    }
    let action = parameter.get("parameterNotFoundAction");
    if action.required(errors) {
        action.one_of(&["Deny", "Allow"], errors);
    }
}

/// The warning that a binding of a policy is answered with.
pub(crate) const NOT_EVALUATED: &str = "admission policies are kept, but not evaluated";
