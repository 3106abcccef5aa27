use crate::Kind;
use crate::default::{child, set, text};
use crate::kind::row::{STATUS, kind};
use crate::kind::strategy::Fields;
use crate::prepare::object;
use serde_json::{Value, json};
use watchkeeper_table::layout::Layout;

pub(crate) const KIND: Kind = kind(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    "customresourcedefinition",
)
.short(&["crd", "crds"])
.categories(&["api-extensions"])
.cluster_wide()
.with(&[STATUS])
.generation()
.conditional()
.upstream_folder("apiextensions.k8s.io/customresourcedefinitions")
.default_with(default)
.prepare_create(add_stored_version)
.prepare_update(|new, _| add_stored_version(new))
.status_keeps(&["labels", "annotations", "ownerReferences", "finalizers"])
.table(Layout::CREATED);

fn default(fields: &mut Fields) {
    let Some(spec) = child(fields, "spec") else { return };
    if let Some(names) = child(spec, "names") {
        let kind = text(names, "kind").to_owned();
        set(names, "singular", kind.to_lowercase());
        if !kind.is_empty() {
            set(names, "listKind", format!("{kind}List"));
        }
    }
    let versions = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
    let stored =
        versions.filter(|version| version["storage"] == true).map(|version| version["name"].clone()).next();
    if let (Some(stored), Some(status)) = (stored, child(fields, "status"))
        && status.get("storedVersions").and_then(Value::as_array).is_none_or(Vec::is_empty)
    {
        status.insert("storedVersions".into(), json!([stored]));
    }
}

/// The version that is stored is one of the stored versions.
fn add_stored_version(fields: &mut Fields) {
    let versions = fields.get("spec").and_then(|spec| spec["versions"].as_array());
    let stored = versions.and_then(|versions| versions.iter().find(|version| version["storage"] == true));
    let Some(name) = stored.map(|version| version["name"].clone()) else { return };
    let versions = object(fields, "status").entry("storedVersions").or_insert(Value::Null);
    match versions {
        Value::Array(versions) if versions.contains(&name) => {}
        Value::Array(versions) => versions.push(name),
        none => *none = json!([name]),
    }
}
