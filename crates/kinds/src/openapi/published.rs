//! The definitions that a document holds.

use super::resource::{Resource, gvk};
use super::{CustomKind, custom};
use crate::{Speaks, definition, find_kind};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

const RESOURCE_LIST: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList";
pub(super) const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";

/// Calls `publish` with each definition that the resources need, by name; references as in Swagger.
pub(super) fn each(
    resources: &[Resource],
    custom: &[CustomKind<'_>],
    for_swagger: bool,
    mut publish: impl FnMut(&str, Value),
) {
    let customs: Vec<(String, Value)> =
        custom.iter().flat_map(|kind| custom::definitions(kind, for_swagger)).collect();
    for name in needed(resources, &customs) {
        if let Some((_, schema)) = customs.iter().find(|(known, _)| *known == name) {
            publish(&name, schema.clone());
        } else if name == PATCH {
            publish(
                &name,
                json!({"description": "A patch in one of the forms of patches.", "type": "object"}),
            );
        } else if name == WATCH_EVENT {
            publish(
                &name,
                json!({
                    "description": "One line of a watch.", "type": "object", "required": ["type", "object"],
                    "properties": {
                        "type": {"type": "string", "default": "", "description": "What happened."},
                        "object": {"type": "object", "description": "To what, or what went wrong."},
                    },
                }),
            );
        } else if let Some(index) = definition::find(&name) {
            publish(&name, built_in(&name, definition::schema(index)));
        }
    }
}

/// The names of definitions that are reachable, sorted.
fn needed(resources: &[Resource], customs: &[(String, Value)]) -> BTreeSet<String> {
    let mut open: Vec<String> =
        [STATUS, DELETE_OPTIONS, PATCH, WATCH_EVENT, RESOURCE_LIST].map(str::to_owned).into();
    for resource in resources {
        open.push(resource.object.clone());
        open.push(resource.list.clone());
        open.extend(resource.subresources.iter().map(|subresource| subresource.definition.clone()));
    }
    let mut found = BTreeSet::new();
    while let Some(name) = open.pop() {
        let custom = customs.iter().find(|(known, _)| *known == name);
        match (custom, definition::find(&name)) {
            (Some((_, schema)), _) => open.extend(references(&schema.to_string())),
            (None, Some(index)) if !found.contains(&name) => {
                open.extend(references(definition::schema_text(index)));
            }
            (None, None) if name != PATCH && name != WATCH_EVENT => continue,
            _ => {}
        }
        if custom.is_some() && found.contains(&name) {
            continue;
        }
        found.insert(name);
    }
    found
}

/// The definitions a schema refers to, from its text.
fn references(schema: &str) -> Vec<String> {
    let mut parts = schema.split("\"#/definitions/");
    parts.next();
    parts.filter_map(|part| part.split('"').next()).map(str::to_owned).collect()
}

/// Names the kind a definition is of.
fn built_in(name: &str, mut schema: Value) -> Value {
    let mut parts = name.rsplitn(4, '.');
    let (kind, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let short = parts.next().unwrap_or_default();
    let single = kind.strip_suffix("List").unwrap_or(kind);
    let groups = crate::all().iter().map(|kind| kind.group);
    let extra = ["autoscaling", "policy", "authentication.k8s.io", ""];
    let group = groups.chain(extra).find(|group| {
        definition::name(group, version, kind) == name
            && short == group.split('.').next().filter(|s| !s.is_empty()).unwrap_or("core")
    });
    let Some(group) = group else { return schema };
    let mut spoken = crate::all().iter().flat_map(|kind| kind.subresources).filter_map(|of| of.speaks);
    let is_spoken = |speaks: Speaks| (speaks.group, speaks.version, speaks.kind) == (group, version, kind);
    if find_kind(group, version, single).is_some() || spoken.any(is_spoken) {
        schema["x-kubernetes-group-version-kind"] = json!([gvk(group, version, kind)]);
    }
    schema
}
