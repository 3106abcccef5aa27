//! The rules for custom objects that follow from their definition.
//!
//! The generation of an object also goes up when it is marked for deletion; that holds for every kind and is not here.

use super::compiled::{Definition, Version};
use super::field::{fields_mut, get, object_mut, text};
use super::scale;
use serde_json::{Map, Value, json};
use watchkeeper_go::json as go_json;
use watchkeeper_schema::{FieldError, Path};

/// Prepares an object that is to be created: no status if that has a subresource of its own, generation 1.
pub(crate) fn prepare_create(version: &Version, object: &mut Value) {
    if version.status {
        fields_mut(object).remove("status");
    }
    object_mut(object, "metadata")["generation"] = json!(1);
}

/// Prepares an object that is to replace `old`: the status stays if it has a subresource of its own, and the generation
/// goes up if anything but the metadata differs then.
pub(crate) fn prepare_update(version: &Version, new: &mut Value, old: &Value) {
    let fields = fields_mut(new);
    if version.status {
        match old.get("status") {
            Some(status) => fields.insert("status".into(), status.clone()),
            None => fields.remove("status"),
        };
    }
    let differs = {
        let content = |object: &'_ Value| -> Vec<(String, Value)> {
            let fields = object.as_object().into_iter().flatten();
            let fields = fields.filter(|(name, _)| *name != "metadata");
            fields.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        content(new) != content(old)
    };
    set_generation(new, generation(old).saturating_add(i64::from(differs)));
}

/// Prepares an object whose `/status` is written: all but the status and `managedFields` is as in `old`.
pub(crate) fn prepare_status_update(new: &mut Value, old: &Value) {
    let status = fields_mut(new).remove("status");
    let managed = get(new, "metadata").and_then(|metadata| get(metadata, "managedFields")).cloned();
    *new = old.clone();
    let fields = fields_mut(new);
    match status {
        Some(status) => fields.insert("status".into(), status),
        None => fields.remove("status"),
    };
    let metadata = fields_mut(object_mut(new, "metadata"));
    match managed {
        Some(managed) => metadata.insert("managedFields".into(), managed),
        None => metadata.remove("managedFields"),
    };
}

/// Why a body cannot be an object of this version at all: a bad request. `object` is what was read of the body, `body` its
/// JSON, which is repeated in the answer.
///
/// A body with another `kind` passes: [`check_type`] finds that, later.
pub(crate) fn refuse(
    definition: &Definition,
    version: &Version,
    object: &Value,
    body: &str,
) -> Option<String> {
    let unrecognized = |problem: String| {
        let kind = &definition.names.kind;
        Some(format!(
            "the object provided is unrecognized (must be of type {kind}): {problem} ({})",
            summary(body)
        ))
    };
    let no_kind = |problem: String| {
        format!("couldn't get version/kind; json parse error: json: cannot unmarshal {problem}")
    };
    let nothing = Map::new();
    let fields = match object {
        Value::Object(fields) => fields,
        Value::Null => &nothing,
        other => {
            let target = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
            return unrecognized(no_kind(format!("{} into Go value of type {target}", go_json::kind(other))));
        }
    };
    for field in ["apiVersion", "kind"] {
        if let Some(value) = fields.get(field).filter(|value| !value.is_string() && !value.is_null()) {
            let problem = format!("{} into Go struct field .{field} of type string", go_json::kind(value));
            return unrecognized(no_kind(problem));
        }
    }
    let api_version = text(object, "apiVersion");
    if api_version.matches('/').count() > 1 {
        return unrecognized(format!("unexpected GroupVersion string: {api_version}"));
    }
    if text(object, "kind").is_empty() {
        return unrecognized(format!("Object 'Kind' is missing in '{body}'"));
    }
    let expected = definition.api_version(version);
    let shown = api_version.strip_prefix('/').unwrap_or(api_version);
    (api_version != expected).then(|| {
        format!("the API version in the data ({shown}) does not match the expected API version ({expected})")
    })
}

/// What is wrong with a body that is no object at all.
pub(crate) fn not_an_object(body: &Value) -> String {
    let target = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type {target}",
        go_json::kind(body)
    )
}

/// The beginning of a body that looks like an object; the bytes of one that does not.
pub(crate) fn summary(body: &str) -> String {
    const LENGTH: usize = 30;
    let bytes = body.as_bytes();
    let start = &bytes[..bytes.len().min(LENGTH)];
    let more = if bytes.len() > LENGTH { " ..." } else { "" };
    match bytes.first() {
        None => "<empty>".into(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(start)),
        Some(_) => {
            let hex: Vec<String> = start.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}{more}", hex.concat())
        }
    }
}

/// What is wrong with `kind` and `apiVersion` of an object; nothing else is to be looked at then.
pub(crate) fn check_type(definition: &Definition, version: &Version, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (field, expected) in
        [("kind", definition.names.kind.clone()), ("apiVersion", definition.api_version(version))]
    {
        let found = text(object, field);
        if found != expected {
            errors.push(FieldError::invalid(
                &Path::root().child(field),
                found,
                format!("must be {expected}"),
            ));
        }
    }
    errors
}

/// What is wrong with the numbers that `/scale` shows, beyond what the schema says. `status_only` for a write of
/// `/status`.
pub(crate) fn check_scale(version: &Version, object: &Value, status_only: bool) -> Vec<FieldError> {
    version.scale.as_ref().map(|paths| scale::check(paths, object, status_only)).unwrap_or_default()
}

/// Moves an object to another version of its definition without a webhook: by its `apiVersion` alone.
pub(crate) fn convert(object: &mut Value, api_version: &str) {
    fields_mut(object).insert("apiVersion".into(), json!(api_version));
}

fn generation(object: &Value) -> i64 {
    get(object, "metadata").and_then(|metadata| metadata.get("generation")?.as_i64()).unwrap_or_default()
}

fn set_generation(object: &mut Value, generation: i64) {
    let metadata = fields_mut(object_mut(object, "metadata"));
    if generation == 0 {
        metadata.remove("generation");
    } else {
        metadata.insert("generation".into(), json!(generation));
    }
}
