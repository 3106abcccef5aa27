//! What the server makes of a definition that is sent, before it is validated.

use super::canonical::canonical_spec;
use super::field::{fields_mut, flag, get, list, list_mut, object_mut, text};
use serde_json::{Value, json};

/// Prepares a definition that is to be created: fills in defaults, starts with an empty status and generation 1.
pub(crate) fn prepare_create(definition: &mut Value) {
    default(definition);
    fields_mut(definition).insert("status".into(), empty_status());
    object_mut(definition, "metadata")["generation"] = json!(1);
    store_storage_version(definition);
}

/// Prepares a definition that is to replace `old`: fills in defaults, keeps the status, and counts the generation up if
/// the spec differs. A new storage version joins `status.storedVersions`.
pub(crate) fn prepare_update(new: &mut Value, old: &Value) {
    default(new);
    let mut old = old.clone();
    default(&mut old);
    complete_status(&mut old);
    let same = canonical_spec(new) == canonical_spec(&old);
    let generation = generation(&old);
    set_generation(new, if same { generation } else { generation.saturating_add(1) });
    fields_mut(new).insert("status".into(), old["status"].take());
    store_storage_version(new);
}

/// Prepares a definition whose status is to be written: the spec stays as it is in `old`. Other than for custom resources,
/// labels, annotations and finalizers may change.
pub(crate) fn prepare_status_update(new: &mut Value, old: &Value) {
    let spec = get(old, "spec").cloned().unwrap_or_default();
    fields_mut(new).insert("spec".into(), spec);
    complete_status(new);
    set_generation(new, generation(old));
}

/// Writes out what is always in a status, and fills in the stored version if there is none.
fn complete_status(definition: &mut Value) {
    let status = object_mut(definition, "status");
    for (field, value) in fields_mut(&mut empty_status()) {
        fields_mut(status).entry(field.as_str()).or_insert(value.take());
    }
    if list(status, "storedVersions").is_empty() {
        store_storage_version(definition);
    }
}

/// What a status without content looks like.
fn empty_status() -> Value {
    json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null})
}

fn generation(definition: &Value) -> i64 {
    get(definition, "metadata").and_then(|metadata| metadata.get("generation")?.as_i64()).unwrap_or_default()
}

fn set_generation(definition: &mut Value, generation: i64) {
    let metadata = fields_mut(object_mut(definition, "metadata"));
    if generation == 0 {
        metadata.remove("generation");
    } else {
        metadata.insert("generation".into(), json!(generation));
    }
}

/// Fills in what may be left out of the spec, and writes out what is always there.
fn default(definition: &mut Value) {
    let spec = object_mut(definition, "spec");
    let names = object_mut(spec, "names");
    let kind = text(names, "kind").to_string();
    if text(names, "singular").is_empty() && !kind.is_empty() {
        names["singular"] = json!(kind.to_lowercase());
    }
    if text(names, "listKind").is_empty() && !kind.is_empty() {
        names["listKind"] = json!(format!("{kind}List"));
    }
    fill(names, &[("plural", json!("")), ("kind", json!(""))]);
    fill(spec, &[("group", json!("")), ("scope", json!("")), ("versions", Value::Null)]);
    if get(spec, "conversion").is_none() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    fill(object_mut(spec, "conversion"), &[("strategy", json!(""))]);
    default_webhook(spec);
    let fields = fields_mut(spec);
    if fields.get("preserveUnknownFields") == Some(&json!(false)) {
        fields.remove("preserveUnknownFields");
    }
    for version in spec["versions"].as_array_mut().into_iter().flatten().filter(|version| version.is_object())
    {
        fill(version, &[("name", json!("")), ("served", json!(false)), ("storage", json!(false))]);
    }
}

/// The port of a service is 443 unless said otherwise.
fn default_webhook(spec: &mut Value) {
    let Some(webhook) = spec["conversion"].get_mut("webhook").filter(|webhook| webhook.is_object()) else {
        return;
    };
    fill(webhook, &[("conversionReviewVersions", Value::Null)]);
    let service = webhook.get_mut("clientConfig").and_then(|config| config.get_mut("service"));
    if let Some(service) = service.filter(|service| service.is_object()) {
        if get(service, "port").is_none() {
            service["port"] = json!(443);
        }
        fill(service, &[("name", json!("")), ("namespace", json!(""))]);
    }
}

fn fill(object: &mut Value, defaults: &[(&str, Value)]) {
    let fields = fields_mut(object);
    for (field, default) in defaults {
        fields.entry(*field).or_insert_with(|| default.clone());
    }
}

/// Objects may be stored in the storage version from now on.
fn store_storage_version(definition: &mut Value) {
    let versions = get(definition, "spec").map_or(&[][..], |spec| list(spec, "versions"));
    let Some(storage) = versions.iter().find(|version| flag(version, "storage")) else {
        return;
    };
    let storage = json!(text(storage, "name"));
    let stored = list_mut(object_mut(definition, "status"), "storedVersions");
    if !stored.contains(&storage) {
        stored.push(storage);
    }
}
