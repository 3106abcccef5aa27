use super::{Subresource, object};
use crate::Kind;
use crate::kind::strategy::Fields;
use serde_json::{Value, json};

pub(super) fn prepare(kind: &Kind, write: Subresource, new: &mut Fields, old: &Fields) {
    if kind.generation {
        keep(object(new, "metadata"), metadata(old), "generation");
    }
    match write {
        Subresource::Main => main(kind, new, old),
        Subresource::Status => status(kind, new, old),
        Subresource::Finalize => only(new, old, "finalizers"),
        Subresource::EphemeralContainers => only(new, old, "ephemeralContainers"),
        Subresource::Approval => approval(new, old),
        Subresource::Binding => {}
        Subresource::Resize => resize(new, old),
    }
    let counts = kind.generation && !matches!(write, Subresource::Status | Subresource::Binding);
    if counts && (kind.strategy.counts)(new, old) {
        let before = metadata(old).and_then(|metadata| metadata.get("generation")).and_then(Value::as_i64);
        object(new, "metadata").insert("generation".into(), json!(before.unwrap_or_default() + 1));
    }
}

fn main(kind: &Kind, new: &mut Fields, old: &Fields) {
    if kind.has_status() {
        keep(new, Some(old), "status");
    }
    if let Some(prepare) = kind.strategy.prepare_update {
        prepare(new, old);
    }
}

/// Everything is as before but what was decided.
fn approval(new: &mut Fields, old: &Fields) {
    let conditions = new.get("status").and_then(|status| status.get("conditions")).cloned();
    keep(new, Some(old), "spec");
    keep(new, Some(old), "status");
    let status = object(new, "status");
    match conditions {
        Some(conditions) => status.insert("conditions".into(), conditions),
        None => status.remove("conditions"),
    };
}

/// Everything but metadata and status is as before.
fn status(kind: &Kind, new: &mut Fields, old: &Fields) {
    let is_kept = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata" | "status");
    new.retain(|name, _| !is_kept(name) || old.contains_key(name));
    for name in old.keys().filter(|name| is_kept(name)) {
        keep(new, Some(old), name);
    }
    for field in kind.strategy.status_keeps {
        keep(object(new, "metadata"), metadata(old), field);
    }
    if let Some(prepare) = kind.strategy.prepare_status_update {
        prepare(new, old);
    }
}

/// Everything is as before but one field of the spec.
fn only(new: &mut Fields, old: &Fields, field: &str) {
    let asked = new.get("spec").and_then(|spec| spec.get(field)).cloned();
    keep(new, Some(old), "status");
    keep(new, Some(old), "spec");
    let spec = object(new, "spec");
    match asked {
        Some(asked) => spec.insert(field.into(), asked),
        None => spec.remove(field),
    };
}

/// Everything is as before but the resources of containers.
fn resize(new: &mut Fields, old: &Fields) {
    let asked = new.get("spec").cloned().unwrap_or_default();
    keep(new, Some(old), "status");
    keep(new, Some(old), "spec");
    for list in ["containers", "initContainers"] {
        let containers =
            object(new, "spec").get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers {
            let same =
                asked[list].as_array().into_iter().flatten().find(|asked| asked["name"] == container["name"]);
            for field in ["resources", "resizePolicy"] {
                let asked = same.and_then(|asked| asked.get(field));
                if let (Some(asked), Value::Object(container)) = (asked, &mut *container) {
                    container.insert(field.into(), asked.clone());
                }
            }
        }
    }
}

/// The metadata of an object.
pub(crate) fn metadata(fields: &Fields) -> Option<&Fields> {
    fields.get("metadata").and_then(Value::as_object)
}

/// Sets a field to what it was before, or to nothing if it was not there.
pub(crate) fn keep(new: &mut Fields, old: Option<&Fields>, field: &str) {
    match old.and_then(|old| old.get(field)) {
        Some(before) => new.insert(field.to_owned(), before.clone()),
        None => new.remove(field),
    };
}
