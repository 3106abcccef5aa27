//! What a hook is asked, and what it answers.

use serde_json::{Map, Value, json};

use super::Phase;
use super::hook::{Hook, ReviewVersion};
use super::matching::operation;
use crate::resource::Resource;
use crate::status_error::StatusError;
use crate::webhook_client::{decode_answer, wrong_type};
use crate::write::admission::{Attributes, Verb};

/// What is asked about one write.
pub(super) struct Question<'a> {
    pub(super) attributes: &'a Attributes<'a>,
    /// The resource in the version in which the hook sees it.
    pub(super) resource: &'a Resource,
    pub(super) object: &'a Value,
    pub(super) old: &'a Value,
}

/// What a hook said.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) allowed: bool,
    pub(super) status: Value,
    /// A JSON patch, as it came.
    pub(super) patch: Option<Vec<u8>>,
    pub(super) patch_type: String,
    pub(super) warnings: Vec<String>,
    /// What is to be noted about the request, by keys of the webhook.
    pub(super) annotations: Vec<(String, String)>,
}

impl Question<'_> {
    /// The AdmissionReview.
    pub(super) fn review(&self, version: ReviewVersion, phase: Phase, uid: &str) -> Value {
        let Self { attributes, resource, object, old } = self;
        let (target, context) = (attributes.target, attributes.context);
        let asked = &target.resource;
        let speaks = asked
            .builtin_kind()
            .and_then(|kind| kind.subresource(attributes.subresource))
            .and_then(|subresource| subresource.speaks);
        let kind = |resource: &Resource| match (speaks, attributes.subresource) {
            (Some(of), _) => json!({"group": of.group, "version": of.version, "kind": of.kind}),
            // That of a custom resource.
            (None, "scale") => json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
            _ => json!({"group": resource.group, "version": resource.version, "kind": resource.kind}),
        };
        let place = |resource: &Resource| json!({"group": resource.group, "version": resource.version, "resource": resource.plural});
        let mut request = json!({
            "uid": uid,
            "kind": kind(resource),
            "resource": place(resource),
            "requestKind": kind(asked),
            "requestResource": place(asked),
            "operation": operation(attributes.verb),
            "userInfo": user(attributes),
            "object": object,
            "oldObject": old,
            "dryRun": context.dry_run,
            "options": options(attributes),
        });
        if !attributes.subresource.is_empty() {
            request["subResource"] = attributes.subresource.into();
            request["requestSubResource"] = attributes.subresource.into();
        }
        // A name that is made up comes after everything that could change the object.
        let is_unnamed = attributes.name_is_generated && phase == Phase::Mutating || context.of_collection;
        if !target.name.is_empty() && !is_unnamed {
            request["name"] = target.name.as_str().into();
        }
        if let Some(namespace) = &target.namespace {
            request["namespace"] = namespace.as_str().into();
        } else if asked.is_core("namespaces") {
            request["namespace"] = target.name.as_str().into();
        }
        json!({"kind": "AdmissionReview", "apiVersion": version.api_version(), "request": request})
    }
}

fn user(attributes: &Attributes<'_>) -> Value {
    let mut user = Map::new();
    if let Some(identity) = attributes.context.author.client() {
        user.insert("username".into(), identity.user.as_str().into());
        if !identity.uid.is_empty() {
            user.insert("uid".into(), identity.uid.as_str().into());
        }
        if !identity.groups.is_empty() {
            user.insert("groups".into(), json!(identity.groups));
        }
        if !identity.extra.is_empty() {
            user.insert("extra".into(), json!(identity.extra));
        }
    }
    user.into()
}

fn options(attributes: &Attributes<'_>) -> Value {
    let kind = match attributes.verb {
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Delete => "DeleteOptions",
        Verb::Connect => return Value::Null,
    };
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    if attributes.context.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    if attributes.verb != Verb::Delete && attributes.context.names_manager {
        options["fieldManager"] = attributes.context.manager.as_str().into();
    }
    options
}

/// Reads an answer; the error says what is wrong with it, in upstream's words.
pub(super) fn read(
    answer: &[u8],
    version: ReviewVersion,
    uid: &str,
    phase: Phase,
) -> Result<Verdict, String> {
    let invalid = |why: String| format!("received invalid webhook response: {why}");
    let review = decode_answer(answer).map_err(|why| format!("failed to call webhook: {why}"))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // Both are read, and neither is made of the other.
    let other = match version {
        ReviewVersion::V1 => ReviewVersion::V1Beta1,
        ReviewVersion::V1Beta1 => ReviewVersion::V1,
    };
    if review["apiVersion"] == other.api_version() && review["kind"] == "AdmissionReview" {
        let short = |version: ReviewVersion| version.api_version().trim_start_matches("admission.k8s.io/");
        return Err(format!(
            "failed to call webhook: converting ({}.AdmissionReview) to ({}.AdmissionReview): unknown conversion",
            short(other),
            short(version)
        ));
    }
    check_types(&review, version).map_err(|why| format!("failed to call webhook: {why}"))?;
    let response = &review["response"];
    if response.is_null() {
        return Err(invalid("webhook response was absent".to_owned()));
    }
    if version == ReviewVersion::V1 {
        let expected = version.api_version();
        let (api_version, kind) = (text(&review["apiVersion"]), text(&review["kind"]));
        if api_version != expected || kind != "AdmissionReview" {
            let why = format!(
                "expected webhook response of {expected}, Kind=AdmissionReview, got {api_version}, Kind={kind}"
            );
            return Err(invalid(why));
        }
        let answered = text(&response["uid"]);
        if answered != uid {
            return Err(invalid(format!("expected response.uid={uid:?}, got {answered:?}")));
        }
    }
    let encoded = text(&response["patch"]);
    let kind = response.get("patchType").filter(|kind| !kind.is_null()).map(&text);
    let has_patch = !encoded.is_empty();
    match (phase, version, has_patch, kind.as_deref()) {
        (Phase::Validating, ReviewVersion::V1, true, _) => {
            return Err(invalid("validating webhook may not return response.patch".to_owned()));
        }
        (Phase::Validating, ReviewVersion::V1, _, Some(_)) => {
            return Err(invalid("validating webhook may not return response.patchType".to_owned()));
        }
        (Phase::Mutating, ReviewVersion::V1, true, None) => {
            return Err(invalid("webhook returned response.patch but not response.patchType".to_owned()));
        }
        (Phase::Mutating, ReviewVersion::V1, false, Some(_)) => {
            return Err(invalid("webhook returned response.patchType but not response.patch".to_owned()));
        }
        (Phase::Mutating, _, _, Some("")) => {
            return Err(invalid("webhook returned invalid response.patchType of \"\"".to_owned()));
        }
        _ => {}
    }
    let patch = match has_patch && phase == Phase::Mutating {
        true => Some(
            watchkeeper_go::base64::decode(&encoded)
                .map_err(|error| format!("received undecodable patch in webhook response: {error}"))?,
        ),
        false => None,
    };
    let warnings = response["warnings"].as_array().into_iter().flatten().map(text).collect();
    let annotations = response["auditAnnotations"].as_object().into_iter().flatten();
    let annotations = annotations.map(|(key, value)| (key.clone(), text(value))).collect();
    let (allowed, status) = (response["allowed"] == true, response["status"].clone());
    Ok(Verdict { allowed, status, patch, patch_type: kind.unwrap_or_default(), warnings, annotations })
}

/// A field of an answer, which values it takes, and what Go calls their type.
type Field<'a> = (&'a str, fn(&Value) -> bool, &'a str);

/// Refuses an answer with values of other types, as Go's decoder does: what cannot be read is no verdict.
fn check_types(review: &Value, version: ReviewVersion) -> Result<(), String> {
    let package = version.api_version().trim_start_matches("admission.k8s.io/");
    let (response, patch_type) = (&review["response"], format!("{package}.PatchType"));
    let check = |found: &Value, is_right: fn(&Value) -> bool, place: &str, wanted: &str| {
        if found.is_null() || is_right(found) { Ok(()) } else { Err(wrong_type(found, place, wanted)) }
    };
    check(response, Value::is_object, "AdmissionReview.response", &format!("{package}.AdmissionResponse"))?;
    let fields: [Field<'_>; 7] = [
        ("uid", Value::is_string, "types.UID"),
        ("allowed", Value::is_boolean, "bool"),
        ("status", Value::is_object, "v1.Status"),
        ("patch", Value::is_string, "[]uint8"),
        ("patchType", Value::is_string, &patch_type),
        ("auditAnnotations", Value::is_object, "map[string]string"),
        ("warnings", Value::is_array, "[]string"),
    ];
    for (field, is_right, wanted) in fields {
        check(&response[field], is_right, &format!("AdmissionResponse.response.{field}"), wanted)?;
    }
    let annotations = response["auditAnnotations"].as_object().into_iter().flat_map(|pairs| pairs.values());
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let texts = annotations.map(|value| ("auditAnnotations", value));
    for (field, value) in texts.chain(warnings.map(|value| ("warnings", value))) {
        check(value, Value::is_string, &format!("AdmissionResponse.response.{field}"), "string")?;
    }
    let fields: [Field<'_>; 5] = [
        ("status", Value::is_string, "string"),
        ("message", Value::is_string, "string"),
        ("reason", Value::is_string, "v1.StatusReason"),
        ("details", Value::is_object, "v1.StatusDetails"),
        ("code", |code| code.as_i64().is_some_and(|code| i32::try_from(code).is_ok()), "int32"),
    ];
    for (field, is_right, wanted) in fields {
        check(&response["status"][field], is_right, &format!("Status.response.status.{field}"), wanted)?;
    }
    Ok(())
}

/// What the client is told whose write a hook refused.
pub(super) fn denied(hook: &Hook, status: &Value) -> StatusError {
    let text = |field: &str| status[field].as_str().unwrap_or_default();
    let why = match (text("message"), text("reason")) {
        ("", "") => " without explanation".to_owned(),
        ("", reason) => format!(": {reason}"),
        (message, _) => format!(": {message}"),
    };
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or_default();
    let message = format!("admission webhook {:?} denied the request{why}", hook.name);
    StatusError::of_webhook(code.clamp(400, 599), text("reason"), message, &status["details"])
}

/// What the client is told when a hook could not be asked.
pub(super) fn unanswered(hook: &Hook, why: &str) -> StatusError {
    StatusError::internal(format!("failed calling webhook {:?}: {why}", hook.name))
}
