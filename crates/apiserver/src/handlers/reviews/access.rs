//! What somebody may do.

use serde_json::{Value, json};
use watchkeeper_rbac::{About, Request, Rule, RulesOf};
use watchkeeper_schema::{FieldError, Path};

use crate::access::{Authorization, user};
use crate::authentication::Identity;
use crate::object::meta;
use crate::resource::Resource;
use crate::server::Server;
use crate::status_error::{StatusError, Subject};

/// The status of a review of one request.
pub(super) fn review(
    server: &Server,
    resource: &Resource,
    asking: &Identity,
    object: &Value,
) -> Result<Value, StatusError> {
    let is_self = resource.kind == "SelfSubjectAccessReview";
    let errors = problems(object, is_self, resource.namespaced);
    if !errors.is_empty() {
        // The kind is not said, as in kube-apiserver.
        return Err(StatusError::invalid(Subject { group: &resource.group, name: "" }, "", &errors));
    }
    let spec = &object["spec"];
    let named = named(spec);
    let identity = if is_self { asking } else { &named };
    let verdict = server.access.judge(identity, &request(spec));
    let mut status = json!({"allowed": verdict.is_allowed()});
    let reason = verdict.reason();
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    Ok(status)
}

/// Who is asked about.
fn named(spec: &Value) -> Identity {
    let texts = |value: &Value| {
        let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect::<Vec<_>>()
    };
    Identity {
        user: spec["user"].as_str().unwrap_or_default().to_owned(),
        uid: spec["uid"].as_str().unwrap_or_default().to_owned(),
        groups: texts(&spec["groups"]),
        extra: Default::default(),
    }
}

/// What is asked about.
fn request(spec: &Value) -> Request<'_> {
    let attributes = &spec["resourceAttributes"];
    if let Some(path) = spec["nonResourceAttributes"].as_object() {
        let text = |field: &str| path.get(field).and_then(Value::as_str).unwrap_or_default();
        return Request { verb: text("verb"), about: About::Path(text("path")) };
    }
    let text = |field: &str| attributes[field].as_str().unwrap_or_default();
    Request {
        verb: text("verb"),
        about: About::Resource {
            group: text("group"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
        },
    }
}

/// What is wrong with a question.
fn problems(object: &Value, is_self: bool, is_local: bool) -> Vec<FieldError> {
    let spec = &object["spec"];
    let at = Path::root().child("spec");
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let mut errors = Vec::new();
    let mut metadata = object["metadata"].as_object().cloned().unwrap_or_default();
    metadata.retain(|field, value| {
        !value.is_null() && field != "managedFields" && !(is_local && field == "namespace")
    });
    if !metadata.is_empty() {
        errors.push(FieldError::invalid(
            &Path::root().child("metadata"),
            Value::Object(metadata),
            "must be empty",
        ));
    }
    let shown = |path: &Value| json!({"Path": path["path"].as_str().unwrap_or_default(), "Verb": path["verb"].as_str().unwrap_or_default()});
    if !resource.is_null() && !path.is_null() {
        let why = "cannot be specified in combination with resourceAttributes";
        errors.push(FieldError::invalid(&at.child("nonResourceAttributes"), shown(path), why));
    }
    if resource.is_null() && path.is_null() {
        let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        errors.push(FieldError::invalid(&at.child("resourceAttributes"), Value::Null, why));
    }
    let is_empty = |field: &str| match &spec[field] {
        Value::String(text) => text.is_empty(),
        Value::Array(texts) => texts.is_empty(),
        _ => true,
    };
    if !is_self && is_empty("user") && is_empty("groups") {
        errors.push(FieldError::invalid(
            &at.child("user"),
            "",
            "at least one of user or group must be specified",
        ));
    }
    for selector in ["fieldSelector", "labelSelector"] {
        let raw = resource[selector]["rawSelector"].as_str().unwrap_or_default();
        let has_more = resource[selector]["requirements"].as_array().is_some_and(|more| !more.is_empty());
        if !raw.is_empty() && has_more {
            let at = at.child("resourceAttributes").child(selector).child("rawSelector");
            errors.push(FieldError::invalid(&at, raw, "may not specified at the same time as requirements"));
        }
    }
    if is_local {
        let namespace = resource["namespace"].as_str().unwrap_or_default();
        if !resource.is_null() && namespace != meta::text(object, "namespace") {
            let at = at.child("resourceAttributes").child("namespace");
            errors.push(FieldError::invalid(&at, namespace, "must match metadata.namespace"));
        }
        if !path.is_null() {
            let why = "disallowed on this kind of request";
            errors.push(FieldError::invalid(&at.child("nonResourceAttributes"), shown(path), why));
        }
    }
    errors
}

/// The status of a review of everything that somebody may do in a namespace.
pub(super) fn rules(server: &Server, identity: &Identity, object: &Value) -> Result<Value, StatusError> {
    let namespace = object["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(StatusError::bad_request("no namespace on request"));
    }
    let mut held = match server.options.authorization {
        Authorization::None | Authorization::AlwaysAllow => everything(),
        Authorization::Rbac => server.access.rules_of(&user(identity), namespace),
    };
    let paths = |rule: &Rule| json!({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls});
    let resources = |rule: &Rule| {
        let mut rule = rule.clone();
        rule.non_resource_urls.clear();
        rule.value()
    };
    let rules = std::mem::take(&mut held.rules);
    let about = |of: fn(&Rule) -> &Vec<String>| rules.iter().filter(move |rule| !of(rule).is_empty());
    let mut status = json!({
        "resourceRules": about(|rule| &rule.resources).map(resources).collect::<Vec<_>>(),
        "nonResourceRules": about(|rule| &rule.non_resource_urls).map(paths).collect::<Vec<_>>(),
        "incomplete": false,
    });
    match held.failures.as_slice() {
        [] => {}
        [one] => status["evaluationError"] = one.as_str().into(),
        several => status["evaluationError"] = format!("[{}]", several.join(", ")).into(),
    }
    Ok(status)
}

/// The rules of somebody who may do everything.
fn everything() -> RulesOf {
    let all = || vec!["*".to_owned()];
    let resources = Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() };
    let paths = Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() };
    RulesOf { rules: vec![resources, paths], failures: Vec::new() }
}
