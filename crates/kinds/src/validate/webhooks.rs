//! Webhooks of admission.

use super::field::{Errors, Field};
use super::policies::{match_conditions, rule_with_operations};
use super::selector;
use std::collections::HashSet;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{dns_1035_label_problems, dns_subdomain_problems};

/// The versions of reviews that a webhook has to understand one of.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];
const FORM: &str = "; desired format: https://host[/path]";

pub(crate) fn webhooks(webhooks: &Field<'_>, is_mutating: bool, errors: &mut Errors) {
    let mut names = HashSet::new();
    for webhook in webhooks.items() {
        self::webhook(&webhook, is_mutating, errors);
        versions(&webhook.get("admissionReviewVersions"), errors);
        let name = webhook.get("name");
        if !name.is_empty() && !names.insert(name.text()) {
            errors.push(FieldError::duplicate(&name.at, name.text()));
        }
    }
}

fn webhook(webhook: &Field<'_>, is_mutating: bool, errors: &mut Errors) {
    let name = webhook.get("name");
    if name.required(errors) {
        let problems = dns_subdomain_problems(name.text());
        let is_good = problems.is_empty();
        problems.into_iter().for_each(|problem| name.invalid(problem, errors));
        if is_good && name.text().split('.').count() < 3 {
            name.invalid("should be a domain with at least three segments separated by dots", errors);
        }
    }
    webhook.get("rules").items().for_each(|rule| rule_with_operations(&rule, true, errors));
    webhook.get("failurePolicy").one_of(&["Fail", "Ignore"], errors);
    webhook.get("matchPolicy").one_of(&["Equivalent", "Exact"], errors);
    let effects = webhook.get("sideEffects");
    if !effects.is_set() {
        errors.push(FieldError::required(&effects.at, "must specify one of None, NoneOnDryRun"));
    } else {
        effects.one_of(&["None", "NoneOnDryRun"], errors);
    }
    let seconds = webhook.get("timeoutSeconds");
    if seconds.number().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        seconds.invalid("the timeout value must be between 1 and 30 seconds", errors);
    }
    selector::selector(&webhook.get("namespaceSelector"), errors);
    selector::selector(&webhook.get("objectSelector"), errors);
    if is_mutating {
        webhook.get("reinvocationPolicy").one_of(&["IfNeeded", "Never"], errors);
    }
    client(&webhook.get("clientConfig"), errors);
    match_conditions(&webhook.get("matchConditions"), errors);
}

fn client(client: &Field<'_>, errors: &mut Errors) {
    let (url, service) = (client.get("url"), client.get("service"));
    match (url.is_set(), service.is_set()) {
        (true, false) => self::url(&url, errors),
        (false, true) => self::service(&service, errors),
        _ => errors.push(FieldError::required(&client.at, "exactly one of url or service is required")),
    }
}

fn url(url: &Field<'_>, errors: &mut Errors) {
    let mut complain = |value: &str, detail: &str| {
        errors.push(FieldError::invalid(&url.at, value, detail));
    };
    let (scheme, rest) = url.text().split_once("://").unwrap_or(("", url.text()));
    if scheme != "https" {
        complain(scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() || scheme.is_empty() {
        complain("", &format!("host must be specified{FORM}"));
    }
    for (part, detail) in [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ] {
        if !part.is_empty() {
            complain(part, detail);
        }
    }
}

fn service(service: &Field<'_>, errors: &mut Errors) {
    for name in ["name", "namespace"] {
        service.get(name).required(errors);
    }
    let (port, path) = (service.get("port"), service.get("path"));
    if !(1..=65535).contains(&port.number().unwrap_or_default()) {
        port.invalid("port is not valid: must be between 1 and 65535, inclusive", errors);
    }
    match path.text() {
        "" | "/" => return,
        "//" => return path.invalid("segment[0] may not be empty", errors),
        _ => {}
    }
    if !path.text().starts_with('/') {
        path.invalid("must start with a '/'", errors);
    }
    // As kube-apiserver does, whatever the first character is.
    let rest: String = path.text().chars().skip(1).collect();
    for (index, segment) in rest.strip_suffix('/').unwrap_or(&rest).split('/').enumerate() {
        if segment.is_empty() {
            path.invalid(format!("segment[{index}] may not be empty"), errors);
            continue;
        }
        for problem in dns_subdomain_problems(segment) {
            path.invalid(format!("segment[{index}]: {problem}"), errors);
        }
    }
}

fn versions(versions: &Field<'_>, errors: &mut Errors) {
    if !versions.required_as("must specify one of v1, v1beta1", errors) {
        return;
    }
    let mut seen = HashSet::new();
    for version in versions.items() {
        if !seen.insert(version.text()) {
            version.invalid("duplicate version", errors);
            continue;
        }
        let problems = dns_1035_label_problems(version.text()).into_iter();
        problems.for_each(|problem| version.invalid(problem, errors));
    }
    if !REVIEWS.iter().any(|known| seen.contains(known)) {
        versions.invalid("must include at least one of v1, v1beta1", errors);
    }
}
