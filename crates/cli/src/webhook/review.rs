//! The review that is sent.

use std::fmt;

use serde_json::{Value, json};

use super::verdict::Verdict;
use super::{Operation, ReviewVersion, Webhook, read};
use crate::failure::Failure;

/// The `uid` of reviews that are made here.
const UID: &str = "00000000-0000-4000-8000-000000000000";

/// An AdmissionReview or a ConversionReview with a request.
pub(super) struct Review(Value);

impl Review {
    /// The review that was recorded, or one about the object that was given.
    pub(super) fn of(arguments: &Webhook) -> Result<Self, Failure> {
        let given = read(&arguments.file)?;
        let kind = given["kind"].as_str().unwrap_or_default();
        if matches!(kind, "AdmissionReview" | "ConversionReview") {
            if !given["request"].is_object() {
                let shown = arguments.file.display();
                return Err(Failure::input(format!("{shown}: the {kind} has no request")));
            }
            return Ok(Self(given));
        }
        match &arguments.to {
            Some(version) => Ok(Self(conversion(arguments, given, version))),
            None => Ok(Self(admission(arguments, given)?)),
        }
    }

    /// What an answer to it says.
    pub(super) fn judge(&self, answer: &Value) -> Result<Verdict, Failure> {
        let request = &self.0["request"];
        let (expected, got) = (self.0["kind"].as_str(), answer["kind"].as_str());
        if got != expected {
            return Err(Failure::running(format!(
                "the webhook answered with a {} and not with a {}",
                got.unwrap_or("document without kind"),
                expected.unwrap_or_default()
            )));
        }
        let response = &answer["response"];
        if !response.is_object() {
            return Err(Failure::running("the webhook answered with a review without response"));
        }
        if response["uid"] != request["uid"] {
            return Err(Failure::running(format!(
                "the webhook answered another review: its uid is {} and not {}",
                response["uid"], request["uid"]
            )));
        }
        match expected {
            Some("ConversionReview") => Verdict::of_conversion(request, response),
            _ => Verdict::of_admission(request, response),
        }
    }
}

impl fmt::Display for Review {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn admission(arguments: &Webhook, given: Value) -> Result<Value, Failure> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&given["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let kind = text(&given["kind"]);
    let plural = arguments.resource.clone().unwrap_or_else(|| format!("{}s", kind.to_lowercase()));
    let old = arguments.old.as_deref().map(read).transpose()?;
    let (operation, object, old) = match (arguments.operation, old) {
        (Operation::Create, None) => ("CREATE", given.clone(), Value::Null),
        (Operation::Create, Some(_)) => {
            return Err(Failure::input(
                "--old: what is created was not there before; use --operation update",
            ));
        }
        (Operation::Update, Some(old)) => ("UPDATE", given.clone(), old),
        (Operation::Update, None) => {
            return Err(Failure::input("--operation update needs --old FILE, the object before"));
        }
        // What is deleted is all there is.
        (Operation::Delete, old) => ("DELETE", Value::Null, old.unwrap_or_else(|| given.clone())),
        (Operation::Connect, _) => ("CONNECT", given.clone(), Value::Null),
    };
    let options = match operation {
        "CREATE" => json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}),
        "UPDATE" => json!({"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}),
        "DELETE" => json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}),
        _ => Value::Null,
    };
    let kind = json!({"group": group, "version": version, "kind": kind});
    let resource = json!({"group": group, "version": version, "resource": plural});
    let mut request = json!({
        "uid": UID, "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
        "operation": operation, "object": object, "oldObject": old, "dryRun": arguments.dry_run, "options": options,
        "userInfo": {"username": arguments.user, "groups": arguments.group},
    });
    for field in ["name", "namespace"] {
        if let Some(value) = given["metadata"][field].as_str().filter(|value| !value.is_empty()) {
            request[field] = value.into();
        }
    }
    if let Some(subresource) = &arguments.subresource {
        request["subResource"] = subresource.as_str().into();
        request["requestSubResource"] = subresource.as_str().into();
    }
    let version = version_name(arguments.review_version);
    Ok(
        json!({"kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{version}"), "request": request}),
    )
}

fn conversion(arguments: &Webhook, given: Value, to: &str) -> Value {
    let group =
        given["apiVersion"].as_str().and_then(|version| version.split_once('/')).map(|(group, _)| group);
    let desired = match (to.contains('/'), group) {
        (false, Some(group)) => format!("{group}/{to}"),
        _ => to.to_owned(),
    };
    let version = version_name(arguments.review_version);
    let request = json!({"uid": UID, "desiredAPIVersion": desired, "objects": [given]});
    json!({"kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{version}"), "request": request})
}

fn version_name(version: ReviewVersion) -> &'static str {
    match version {
        ReviewVersion::V1 => "v1",
        ReviewVersion::V1beta1 => "v1beta1",
    }
}
