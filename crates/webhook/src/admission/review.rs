//! The documents in which a server asks and a webhook answers.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use watchkeeper_go::base64;

use super::handler::Answer;
use super::request::AdmissionRequest;
use crate::malformed::Malformed;

const GROUP: &str = "admission.k8s.io/";
/// The form of reviews has been the same in both versions.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<AdmissionRequest>,
}

/// A question for admission, in the version in which it has to be answered.
pub(crate) struct Review {
    api_version: String,
    pub(crate) request: Arc<AdmissionRequest>,
}

impl Review {
    pub(crate) fn read(body: &[u8]) -> Result<Self, Malformed> {
        let document: Document = serde_json::from_slice(body).map_err(|error| Malformed::json(&error))?;
        let version = document.api_version.strip_prefix(GROUP).unwrap_or_default();
        if document.kind != "AdmissionReview" || !VERSIONS.contains(&version) {
            return Err(Malformed::Other("not an AdmissionReview of admission.k8s.io/v1"));
        }
        let request = document.request.ok_or(Malformed::Other("the review has no request"))?;
        Ok(Self { api_version: document.api_version, request: Arc::new(request) })
    }

    /// The document that answers it.
    pub(crate) fn answer(&self, answer: &Answer) -> Value {
        let Answer { verdict, patch } = answer;
        let status = verdict.status(&self.request);
        let mut response = json!({"uid": self.request.uid, "allowed": status.is_none()});
        if let Some(status) = &status {
            response["status"] = status.to_value(None);
        } else if !patch.is_empty() {
            response["patchType"] = "JSONPatch".into();
            response["patch"] = base64::encode(Value::from(patch.clone()).to_string().as_bytes()).into();
        }
        if !verdict.warnings().is_empty() {
            response["warnings"] = verdict.warnings().into();
        }
        if !verdict.audit_lines().is_empty() {
            response["auditAnnotations"] = json!(verdict.audit_lines());
        }
        json!({"apiVersion": self.api_version, "kind": "AdmissionReview", "response": response})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    fn review(version: &str) -> Review {
        let review = json!({
            "apiVersion": format!("admission.k8s.io/{version}"), "kind": "AdmissionReview",
            "request": {
                "uid": "u1", "operation": "CREATE", "name": "shop", "dryRun": null,
                "kind": {"group": "example.com", "version": "v1", "kind": "App"},
                "object": {"metadata": {"name": "shop"}}, "oldObject": null,
            },
        });
        Review::read(review.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_yes_has_a_patch_and_a_no_has_every_field_that_is_wrong() {
        let review = review("v1");
        assert_eq!(review.request.old_object_json(), None);
        let patch = vec![json!({"op": "add", "path": "/spec", "value": {}})];
        let answer = review.answer(&Answer { verdict: Verdict::allow(), patch: patch.clone() });
        assert_eq!(answer["response"]["allowed"], true);
        let text = base64::decode(answer["response"]["patch"].as_str().unwrap()).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), Value::from(patch.clone()));

        let mut verdict = Verdict::allow();
        verdict.invalid("spec.size", 11, "must be at most 10").required("spec.image", "").warn("careful");
        let response = review.answer(&Answer { verdict, patch })["response"].take();
        assert_eq!(response["allowed"], false);
        assert_eq!(response["patch"], Value::Null);
        assert_eq!(response["warnings"], json!(["careful"]));
        assert_eq!(
            response["status"]["message"],
            "App.example.com \"shop\" is invalid: [spec.size: Invalid value: 11: must be at most 10, spec.image: Required value]"
        );
        assert_eq!(response["status"]["code"], 422);
        assert_eq!(response["status"]["details"]["causes"][1]["field"], "spec.image");
    }

    #[test]
    fn it_is_answered_in_its_own_version() {
        let answer = review("v1beta1").answer(&Verdict::allow().into());
        assert_eq!(answer["apiVersion"], "admission.k8s.io/v1beta1");
        assert_eq!(answer["response"], json!({"uid": "u1", "allowed": true}));
    }

    #[test]
    fn what_is_no_review_is_refused() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"apiVersion": "admission.k8s.io/v9", "kind": "AdmissionReview", "request": {"uid": "1", "operation": "CREATE"}}"#,
            r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}"#,
            r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1", "operation": "EAT"}}"#,
        ] {
            assert!(Review::read(text.as_bytes()).is_err(), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let deep = format!(
            r#"{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {{"uid": "1", "operation": "CREATE", "object": {deep}}}}}"#
        );
        // It is not looked into before somebody wants it, and then not to any depth.
        let review = Review::read(deep.as_bytes()).unwrap();
        assert!(review.request.object::<Value>().is_err());
    }
}
