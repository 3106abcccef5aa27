//! Groups that belong to Kubernetes need the consent of its API reviewers, said in an annotation.

use super::field::{deep, text};
use super::url::Url;
use serde_json::Value;
use watchkeeper_go::quote as quoted;

pub(super) const ANNOTATION: &str = "api-approved.kubernetes.io";

/// What the annotation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approval {
    /// It is a link to the review.
    Approved,
    /// It says that there was none, on purpose.
    Bypassed,
    /// There is none.
    Missing,
    /// It is something else.
    Invalid,
}

/// What the annotation of a definition says, and a sentence about it; `None` if its group is anybody's.
pub(super) fn of(definition: &Value) -> Option<(Approval, String)> {
    let group = deep(definition, &["spec", "group"])?.as_str()?;
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    is_protected.then(|| judge(annotation(definition)))
}

/// What the annotation of a definition says, whatever its group.
pub(super) fn said(definition: &Value) -> Approval {
    judge(annotation(definition)).0
}

/// The annotation; empty if there is none.
pub(super) fn annotation(definition: &Value) -> &str {
    deep(definition, &["metadata", "annotations"]).map_or("", |annotations| text(annotations, ANNOTATION))
}

fn judge(annotation: &str) -> (Approval, String) {
    const MUST: &str = "protected groups must have approval annotation \"api-approved.kubernetes.io\"";
    const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    if annotation.is_empty() {
        return (Approval::Missing, format!("{MUST}, {SEE}"));
    }
    if annotation.starts_with("unapproved") {
        return (Approval::Bypassed, format!("not approved: {}", quoted(annotation)));
    }
    match Url::parse_request(annotation) {
        Ok(url) if !url.host.is_empty() && !url.scheme.is_empty() => {
            (Approval::Approved, format!("approved in {annotation}"))
        }
        _ => (
            Approval::Invalid,
            format!("{MUST} with either a URL or a reason starting with \"unapproved\", {SEE}"),
        ),
    }
}
