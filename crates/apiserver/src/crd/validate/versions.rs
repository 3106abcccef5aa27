//! The spec and its versions.

use super::conversion;
use super::internal;
use super::joined;
use super::labels::{dns_1035_problems, dns_subdomain_problems};
use super::names;
use super::schemas;
use super::spec::{Spec, Version};
use super::{Kept, columns, selectable, subresources};
use serde_json::Value;
use std::collections::HashSet;
use watchkeeper_go::json as go_json;

use watchkeeper_schema::{FieldError, Path, Reason};

/// What is wrong with a spec.
pub(super) fn check(spec: &Spec<'_>, kept: &Kept, at: &Path, errors: &mut Vec<FieldError>) {
    check_group(spec.group, &at.child("group"), errors);
    match spec.scope {
        "" => errors.push(FieldError::required(&at.child("scope"), "")),
        "Cluster" | "Namespaced" => {}
        scope => errors.push(FieldError::not_supported(&at.child("scope"), scope, ["Cluster", "Namespaced"])),
    }
    schemas::required(spec, kept, at, errors);
    if spec.preserve_unknown && schemas::has_defaults(spec) {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(&at.child("preserveUnknownFields"), true, detail));
    }
    let per_version = spec.versions().iter().any(|version| version.parts.subresources.is_some());
    for (index, version) in spec.versions().iter().enumerate() {
        let at = at.child("versions").index(index);
        errors.extend(joined(&at.child("name"), version.name, &dns_1035_problems(version.name)));
        let has_status = if per_version {
            // The first version by that name, should there be several.
            let named = spec.versions().iter().find(|other| other.name == version.name);
            named.is_some_and(|version| version.parts.has_status())
        } else {
            spec.shared.has_status()
        };
        check_version(version, has_status, kept, &at, errors);
    }
    check_list(spec, at, errors);
    names::check_requested(spec.names, &at.child("names"), errors);
    check_shared(spec, kept, at, errors);
    conversion::check(spec, kept, &at.child("conversion"), errors);
}

fn check_group(group: &str, at: &Path, errors: &mut Vec<FieldError>) {
    if group.is_empty() {
        errors.push(FieldError::required(at, ""));
        return;
    }
    match joined(at, group, &dns_subdomain_problems(group)) {
        Some(error) => errors.push(error),
        None if !group.contains('.') => {
            errors.push(FieldError::invalid(at, group, "should be a domain with at least one dot"));
        }
        None => {}
    }
}

fn check_version(
    version: &Version<'_>,
    has_status: bool,
    kept: &Kept,
    at: &Path,
    errors: &mut Vec<FieldError>,
) {
    check_warning(version, &at.child("deprecationWarning"), errors);
    schemas::check(&version.parts, has_status, &at.child("schema"), errors);
    if let Some(subresources) = version.parts.subresources {
        subresources::check(subresources, &at.child("subresources"), errors);
    }
    columns::check(version.parts.columns, &at.child("additionalPrinterColumns"), errors);
    let Some(fields) = version.parts.selectable.filter(|fields| !fields.is_empty()) else {
        return;
    };
    match version.parts.openapi() {
        None => errors.push(FieldError::invalid(
            &at.child("selectableFields"),
            "",
            "may only be set when `version.schema.openAPIV3Schema` is not included",
        )),
        Some(openapi) => {
            selectable::check(fields, openapi, kept, version.name, &at.child("selectableFields"), errors);
        }
    }
}

/// What clients of a deprecated version are told goes into a header.
fn check_warning(version: &Version<'_>, at: &Path, errors: &mut Vec<FieldError>) {
    let Some(warning) = version.warning else {
        return;
    };
    let mut problems: Vec<String> = Vec::new();
    if version.deprecated {
        if warning.len() > 256 {
            problems.push("must be <= 256 characters long".into());
        }
        if warning.is_empty() {
            problems.push("must not be an empty string".into());
        }
        if let Some((index, _)) = warning.char_indices().find(|(_, char)| !is_printable(*char)) {
            problems.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {index}"
            ));
        }
    } else {
        problems.push("can only be set for deprecated versions".into());
    }
    let shown = go_json::encode(&Value::from(warning));
    errors.extend(problems.into_iter().map(|problem| shown_as(at, &shown, &problem)));
}

/// The standard library tells through the escapes of every character but the first of a text.
fn is_printable(char: char) -> bool {
    let escapes_itself = matches!(char, '"' | '\'' | '\\');
    escapes_itself || !format!("a{char}").escape_debug().skip(1).any(|shown| shown == '\\')
}

/// An invalid value that is shown in a form a JSON value cannot have.
pub(super) fn shown_as(at: &Path, shown: &str, detail: &str) -> FieldError {
    FieldError {
        reason: Reason::Invalid,
        field: at.to_string(),
        value: None,
        detail: format!("{shown}: {detail}"),
        shown: None,
    }
}

/// What is wrong with the versions together.
fn check_list(spec: &Spec<'_>, at: &Path, errors: &mut Vec<FieldError>) {
    let versions = spec.versions();
    let mut seen = HashSet::new();
    if !versions.iter().all(|version| seen.insert(version.name)) {
        let shown = internal::versions(spec);
        errors.push(shown_as(&at.child("versions"), &shown, "must contain unique version names"));
    }
    if versions.iter().filter(|version| version.storage).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(shown_as(&at.child("versions"), &internal::versions(spec), detail));
    }
    // kube-apiserver keeps the name of the first version twice.
    if let Some(first) = versions.first().filter(|first| !first.name.is_empty()) {
        errors.extend(joined(&at.child("version"), first.name, &dns_1035_problems(first.name)));
    }
}

/// What is wrong with what all versions say.
fn check_shared(spec: &Spec<'_>, kept: &Kept, at: &Path, errors: &mut Vec<FieldError>) {
    let shared = &spec.shared;
    let has_status = shared.has_status() || spec.versions().iter().any(|version| version.parts.has_status());
    schemas::check(shared, has_status, &at.child("validation"), errors);
    if let Some(subresources) = shared.subresources {
        subresources::check(subresources, &at.child("subresources"), errors);
    }
    columns::check(shared.columns, &at.child("additionalPrinterColumns"), errors);
    let Some(fields) = shared.selectable.filter(|fields| !fields.is_empty()) else {
        return;
    };
    let at = at.child("selectableFields");
    match shared.schema {
        None => {
            errors.push(FieldError::invalid(&at, "", "may only be set when validations.schema is included"));
        }
        Some(_) => {
            let openapi = shared.openapi().unwrap_or(&Value::Null);
            selectable::check(fields, openapi, kept, "", &at, errors);
        }
    }
}
