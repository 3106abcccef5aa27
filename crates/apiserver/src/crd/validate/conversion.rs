//! `spec.conversion`.

use super::Kept;
use super::labels::{dns_1035_problems, dns_subdomain_problems};
use super::spec::Spec;
use crate::crd::bundle;
use crate::crd::field::{get, optional_text, text, texts};
use crate::crd::url::Url;
use serde_json::{Value, json};
use std::collections::HashSet;

use watchkeeper_schema::{FieldError, Path};

/// The versions of a ConversionReview that the server can send.
pub(super) const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// What is wrong with the way objects get from one version to another.
pub(super) fn check(spec: &Spec<'_>, kept: &Kept, at: &Path, errors: &mut Vec<FieldError>) {
    let Some(conversion) = spec.conversion else {
        return;
    };
    let strategy = text(conversion, "strategy");
    if strategy != "None" && spec.preserve_unknown {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(&at.child("strategy"), strategy, detail));
    }
    match strategy {
        "" => errors.push(FieldError::required(&at.child("strategy"), "")),
        "None" | "Webhook" => {}
        other => errors.push(FieldError::not_supported(&at.child("strategy"), other, ["None", "Webhook"])),
    }
    let webhook = get(conversion, "webhook");
    let config = webhook.and_then(|webhook| get(webhook, "clientConfig"));
    let review_versions =
        webhook.map(|webhook| texts(webhook, "conversionReviewVersions")).unwrap_or_default();
    let (at_config, at_versions) = (at.child("webhookClientConfig"), at.child("conversionReviewVersions"));
    if strategy == "Webhook" {
        match config {
            None => errors.push(FieldError::required(&at_config, "required when strategy is set to Webhook")),
            Some(config) => check_config(config, kept, &at_config, errors),
        }
        check_review_versions(&review_versions, kept, &at_versions, errors);
        return;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if config.is_some() {
        errors.push(FieldError::forbidden(&at_config, detail));
    }
    if !review_versions.is_empty() {
        errors.push(FieldError::forbidden(&at_versions, detail));
    }
}

fn check_config(config: &Value, kept: &Kept, at: &Path, errors: &mut Vec<FieldError>) {
    match (optional_text(config, "url"), get(config, "service")) {
        (Some(url), None) => check_url(url, &at.child("url"), errors),
        (None, Some(service)) => check_service(service, &at.child("service"), errors),
        _ => errors.push(FieldError::required(at, "exactly one of url or service is required")),
    }
    if !kept.bundle
        && let Some(bundle) = get(config, "caBundle")
        && let Some(problem) = bundle::problem(bundle)
    {
        errors.push(FieldError::invalid(&at.child("caBundle"), bundle.clone(), problem));
    }
}

fn check_url(text: &str, at: &Path, errors: &mut Vec<FieldError>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(problem) => {
            errors.push(FieldError::required(at, format!("url must be a valid URL: {problem}{FORM}")));
            return;
        }
    };
    let mut invalid = |value: &str, detail: String| errors.push(FieldError::invalid(at, value, detail));
    if url.scheme != "https" {
        invalid(&url.scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host.is_empty() {
        invalid("", format!("host must be specified{FORM}"));
    }
    if let Some(user) = &url.user {
        invalid(user, "user information is not permitted in the URL".into());
    }
    if !url.fragment.is_empty() {
        invalid(&url.fragment, "fragments are not permitted in the URL".into());
    }
    if !url.query.is_empty() {
        invalid(&url.query, "query parameters are not permitted in the URL".into());
    }
}

fn check_service(service: &Value, at: &Path, errors: &mut Vec<FieldError>) {
    // kube-apiserver takes the one for the other: a missing namespace is reported at the name.
    for (reported, missing) in [("name", "namespace"), ("namespace", "name")] {
        if text(service, missing).is_empty() {
            errors.push(FieldError::required(&at.child(reported), ""));
        }
    }
    let port = get(service, "port").and_then(Value::as_i64).unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&at.child("port"), port, detail));
    }
    if let Some(path) = optional_text(service, "path") {
        check_service_path(path, &at.child("path"), errors);
    }
}

fn check_service_path(path: &str, at: &Path, errors: &mut Vec<FieldError>) {
    let mut invalid = |detail: String| errors.push(FieldError::invalid(at, path, detail));
    if path.is_empty() || path == "/" {
        return;
    }
    if path == "//" {
        invalid("segment[0] may not be empty".into());
        return;
    }
    if !path.starts_with('/') {
        invalid("must start with a '/'".into());
    }
    let segments = path.get(1..).unwrap_or(path);
    for (index, segment) in segments.strip_suffix('/').unwrap_or(segments).split('/').enumerate() {
        if segment.is_empty() {
            invalid(format!("segment[{index}] may not be empty"));
            continue;
        }
        for problem in dns_subdomain_problems(segment) {
            invalid(format!("segment[{index}]: {problem}"));
        }
    }
}

fn check_review_versions(versions: &[String], kept: &Kept, at: &Path, errors: &mut Vec<FieldError>) {
    if versions.is_empty() {
        errors.push(FieldError::required(at, ""));
        return;
    }
    let mut seen = HashSet::new();
    for (index, version) in versions.iter().enumerate() {
        let at = at.index(index);
        if !seen.insert(version.as_str()) {
            errors.push(FieldError::invalid(&at, version.as_str(), "duplicate version"));
            continue;
        }
        let problems = dns_1035_problems(version);
        errors
            .extend(problems.into_iter().map(|problem| FieldError::invalid(&at, version.as_str(), problem)));
    }
    if !kept.review_versions && !REVIEW_VERSIONS.iter().any(|known| seen.contains(known)) {
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::invalid(at, json!(versions), detail));
    }
}
