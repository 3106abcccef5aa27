//! Taking over from client-side apply.

use super::Request;
use super::set::FieldSet;
use serde_json::{Map, Value};
use watchkeeper_go as go;

/// The only manager that takes over.
pub(super) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// How many bytes all annotations of an object may have together.
const MAX_ANNOTATIONS: usize = 256 << 10;

fn annotation(object: &Value) -> Option<&str> {
    let annotations = object.get("metadata")?.get("annotations")?;
    annotations.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// What client-side apply set and is still as it set it.
pub(super) fn owned(request: &Request<'_>, live: &Value) -> Option<FieldSet> {
    let last: Value = crate::json::decode(annotation(live)?.as_bytes()).ok()?.value;
    if last.get("apiVersion")?.as_str()? != request.api_version {
        return None;
    }
    let typed = request.typed().ok()?;
    typed.validate(live, false).ok()?;
    typed.validate(&last, false).ok()?;
    let changes = typed.compare(&last, live);
    let fields = typed.fields(&last).difference(&changes.modified);
    Some(fields.difference(&changes.added).difference(&changes.removed))
}

/// Writes what was applied into the annotation of an object that has it.
pub(super) fn refresh(object: &mut Value, applied: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
    }
    let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") else {
        return;
    };
    annotations.insert(ANNOTATION.into(), format!("{}\n", go::json::encode(&applied)).into());
    let size = |annotations: &Map<String, Value>| -> usize {
        annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum()
    };
    if size(annotations) > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}
